"""The ledger of a member: what each tenant has used, by the hour, for ``secateur.tenants``.

Nothing is written while statements run: the log of statements has them, and the accounts of tenants have counters.
Both are added up here when somebody asks, when many statements have come together, or when an hour ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from secateur.cluster.member.admission.tenants import TenantAccounts, TenantUse
from secateur.cluster.member.monitoring.statement_sums import EndedStatement
from secateur.protocol.changes import ChangedRows, WorkedOut
from secateur.protocol.query import Executed
from secateur.protocol.summaries import OTHERS, LatencyHistogram, TenantHour
from secateur.wire import ShortTable

HOUR_S: Final = 3600
_HOURS_MAX: Final = 24
_TENANTS_MAX: Final = 10_000
"""Lines of an hour; the tenants that have used least stand in one line together."""
_OLD_TENANTS_MAX: Final = 1000
"""Lines of an hour that is over."""
_SLACK: Final = 1.25
"""Lines are joined when there are so many times as many as may be, so that this is done now and then only."""


class TenantLedger:
    """Lives on the event loop of a member.

    Args:
        clock: Seconds since the epoch.
        tenants_max: The number of tenants that have a line of their own in an hour.
    """

    def __init__(
        self,
        accounts: TenantAccounts,
        clock: Callable[[], float] = time.time,
        tenants_max: int = _TENANTS_MAX,
    ) -> None:
        self._accounts = accounts
        self._clock = clock
        self._tenants_max = tenants_max
        self._hours: dict[int, dict[str, TenantHour]] = {}
        self._now = self._hour_of(clock())

    def lines(self) -> list[TenantHour]:
        """All lines, those of the newest hour last."""
        self.fold()
        return [line for hour in sorted(self._hours) for line in self._hours[hour].values()]

    def add(self, entries: Sequence[EndedStatement], buckets: Sequence[int]) -> None:
        """Add statements that have ended, each once. Costs 0.25 us for each, whatever the number of tenants.

        Args:
            entries: The statements, in the order in which they have ended.
            buckets: The bucket of the time of each, see :func:`~secateur.protocol.summaries.buckets_of`.
        """
        if not entries:
            return
        hour, newest = (self._hour_of(entry[3] + entry[4]) for entry in (entries[0], entries[-1]))
        if hour != newest:
            middle = len(entries) // 2
            self.add(entries[:middle], buckets[:middle])
            self.add(entries[middle:], buckets[middle:])
            return
        if hour <= self._now - _HOURS_MAX * HOUR_S:
            return
        lines = self._hours.get(hour, {})
        for (_, _, _, _, _, said, _, tenant), bucket in zip(entries, buckets, strict=True):
            line = lines.get(tenant)
            if line is None:
                line = self._line(hour, tenant)
                lines = self._hours[hour]
            line.statements += 1
            counts = line.latencies.counts
            counts[bucket] = counts.get(bucket, 0) + 1
            if said is None:
                line.failed += 1
            elif type(said) is Executed:
                line.rows += said.rows
                if said.values is not None:
                    line.bytes_sent += ShortTable(said.values, said.rows).nbytes
            elif isinstance(said, (ChangedRows, WorkedOut)):
                line.rows += said.rows

    def fold(self) -> None:
        """Add what the accounts have counted since the last time to the hour that was then."""
        for account in self._accounts:
            use = account.taken()
            if use == TenantUse():
                continue
            line = self._line(self._now, account.name)
            line.statements += use.gets
            line.refused += use.refused
            line.processor_ms += 1000 * (use.short_s + use.kernel_s)
            line.waiting_ms += 1000 * use.waited_s
            line.rows_read += use.rows_read
            line.bytes_sent += use.bytes_sent
        self._accounts.forget_unused()
        self._now = self._hour_of(self._clock())
        for hour in list(self._hours):
            if hour <= self._now - _HOURS_MAX * HOUR_S:
                del self._hours[hour]
            else:
                self._join_least(hour)

    def turned(self) -> None:
        """Called now and then: what was used before an hour ends belongs to that hour."""
        if self._hour_of(self._clock()) != self._now:
            self.fold()

    def _line(self, hour: int, tenant: str) -> TenantHour:
        lines = self._hours.setdefault(hour, {})
        line = lines.get(tenant)
        if line is None:
            line = lines[tenant] = TenantHour(tenant, hour, latencies=LatencyHistogram({}))
            if len(lines) > _SLACK * self._tenants_max:
                self._join_least(hour)
        return lines.setdefault(tenant, line)

    def _join_least(self, hour: int) -> None:
        """Let the tenants that have used least of an hour stand in one line, if there are too many."""
        lines = self._hours[hour]
        most = self._tenants_max if hour == self._now else min(self._tenants_max, _OLD_TENANTS_MAX)
        if len(lines) <= (_SLACK * most if hour == self._now else most):
            return
        others = lines.pop(OTHERS, None) or TenantHour(OTHERS, hour)
        by_use = sorted(lines.values(), key=lambda line: (line.processor_ms, line.statements))
        for line in by_use[: len(lines) - most + 1]:
            others.add(line)
            del lines[line.tenant]
        lines[OTHERS] = others

    def _hour_of(self, moment_s: float) -> int:
        return int(moment_s // HOUR_S) * HOUR_S
