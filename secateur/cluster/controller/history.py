"""The last fifteen minutes of the cluster: statements, failures, times and memory, every five seconds.

The controller asks each member for what its statements have come to and for what its process takes, and keeps the
differences. ``secateur.history`` has them. A controller that starts anew begins without any.

Members only count, so nothing is done for a statement. If each member kept the differences by itself, the clocks of all
of them would have to agree. Queries of system tables count apart, so the statements that a dashboard shows do not
include its own.

Beside the figures are the latest events, for ``secateur.events``, and the loads, for ``secateur.loads``: those under
way, and the newest that were published.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from secateur.cluster.process_vitals import process_vitals
from secateur.protocol.changes import StagedLoads, StreamBatch
from secateur.protocol.membership import GetVitals, Vitals
from secateur.protocol.message import Message
from secateur.protocol.query import ExecutionTotals
from secateur.protocol.summaries import LatencyHistogram

CLUSTER: Final = "cluster"
CONTROLLER: Final = "controller"
PERIOD_S: Final = 5.0
_KEPT_S: Final = 900.0
_MEMBERS_MAX: Final = 64
"""Members with lines of their own; of a larger cluster, the others are in the line of the cluster only."""
_QUERIES: Final = ("local", "scatter", "distributed")
_SYSTEM: Final = "system"

Ask = Callable[[Message[Vitals]], Awaitable[Sequence[tuple[str, Vitals]]]]


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """The work of a process, or of the whole cluster, in one period.

    Attributes:
        time: Its end, in UTC.
        process: A member, the controller, or ``"cluster"`` for all members together.
        seconds: How long it was.
        statements: Statements that have ended, without those about the cluster itself. None of the controller.
        failed: Statements that ended with an error.
        p50_ms: The time that half of them did not exceed at the members; None without statements. The next two are the
            same of 95 and 99 %.
        p95_ms: See there.
        p99_ms: See there.
        max_ms: The longest one; as the others at most 9 % too high.
        queries: Queries that have ended.
        members_touched: The members that took part in these, added up.
        pruned: Queries that left a partition out.
        unpruned: Queries that read all of several partitions.
        cpu_percent: Processor time of the process, in per cent of one processor. Members of one process each have the
            time of the whole.
        resident_bytes: Resident memory of the process.
        memory_used: Bytes of tables, snapshots, staged rows and results.
    """

    time: datetime
    process: str
    seconds: float
    statements: int | None = None
    failed: int | None = None
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    max_ms: float | None = None
    queries: int | None = None
    members_touched: int | None = None
    pruned: int | None = None
    unpruned: int | None = None
    cpu_percent: float | None = None
    resident_bytes: int | None = None
    memory_used: int | None = None


class _Ended:
    """Statements that have ended in one period."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys(("statements", "failed", "queries", "members_touched", "pruned", "unpruned"), 0)
        self._latencies: Counter[int] = Counter()

    def add(self, before: ExecutionTotals | None, after: ExecutionTotals) -> None:
        """Add the statements that have ended between two totals, of one way in which statements run."""
        if before is None or before.statements > after.statements:  # the member began anew
            before = ExecutionTotals(after.execution, 0, 0.0, LatencyHistogram())
        ended = after.statements - before.statements
        if after.execution == _SYSTEM or not ended:
            return
        self._counts["statements"] += ended
        if after.execution == "failed":
            self._counts["failed"] += ended
        if after.execution in _QUERIES:
            self._counts["queries"] += ended
            for name in ("members_touched", "pruned", "unpruned"):
                self._counts[name] += getattr(after, name) - getattr(before, name)
        self._latencies.update(after.latencies.counts)
        self._latencies.subtract(before.latencies.counts)

    def line(self, time: datetime, process: str, seconds: float) -> HistoryLine:
        """The line for a process, without its processor time and memory."""
        histogram = LatencyHistogram(self._latencies)

        def percentile_ms(fraction: float) -> float | None:
            return histogram.percentile_ms(fraction) if self._counts["statements"] else None

        return HistoryLine(
            time,
            process,
            seconds,
            p50_ms=percentile_ms(0.5),
            p95_ms=percentile_ms(0.95),
            p99_ms=percentile_ms(0.99),
            max_ms=percentile_ms(1.0),
            **self._counts,
        )


class History:
    """Keeps the lines of the last fifteen minutes. Lives on the controller's event loop.

    Args:
        ask: Asks all members; those that do not answer soon are left out.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._periods: deque[list[HistoryLine]] = deque(maxlen=int(_KEPT_S / PERIOD_S))
        self._before: dict[str, Vitals] = {}
        self._own_before: Vitals | None = None

    def lines(self) -> Iterable[HistoryLine]:
        """All lines, the oldest first."""
        return (line for period in self._periods for line in period)

    async def keep(self) -> None:
        """Look every five seconds, until it is cancelled."""
        loop = asyncio.get_running_loop()
        looked_s = loop.time()
        while True:
            await asyncio.sleep(PERIOD_S)
            answers = dict(await self._ask(GetVitals()))
            now_s = loop.time()
            own = Vitals([], *process_vitals(), memory_used=0)
            self.look(answers, own, now_s - looked_s, datetime.now(UTC).replace(tzinfo=None))
            looked_s = now_s

    def look(self, answers: Mapping[str, Vitals], own: Vitals, seconds: float, now: datetime) -> None:
        """A period has ended.

        Args:
            answers: The totals of each member, by id. A member that was not there before counts from the next period.
            own: The process of the controller.
            seconds: How long it was.
            now: The time, in UTC.
        """
        whole = _Ended()
        lines: list[HistoryLine] = []
        for member, after in sorted(answers.items()):
            before = self._before.get(member)
            if before is None:
                continue
            ended, known = _Ended(), {total.execution: total for total in before.totals}
            for total in after.totals:
                for counted in (ended, whole):
                    counted.add(known.get(total.execution), total)
            if len(lines) < _MEMBERS_MAX:
                lines.append(_with_process(ended.line(now, member, seconds), before, after))
        if lines and self._own_before is not None:
            controller = replace(
                _with_process(HistoryLine(now, CONTROLLER, seconds), self._own_before, own), memory_used=None
            )
            self._periods.append([whole.line(now, CLUSTER, seconds), controller, *lines])
        self._before, self._own_before = dict(answers), own


def _with_process(line: HistoryLine, before: Vitals, after: Vitals) -> HistoryLine:
    is_same = before.process_id == after.process_id
    return replace(
        line,
        cpu_percent=100 * (after.cpu_s - before.cpu_s) / line.seconds if is_same else None,
        resident_bytes=after.resident_bytes,
        memory_used=after.memory_used,
    )


_KEPT_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """One event.

    Attributes:
        time: When, in UTC.
        kind: What has happened.
        member: The member concerned; None for none.
        detail: More about it, for people.
    """

    time: datetime
    kind: str
    member: str | None
    detail: str


class EventLog:
    """Keeps the latest events of a cluster, in order."""

    def __init__(self) -> None:
        self._events: deque[ClusterEvent] = deque(maxlen=_KEPT_MAX)

    def add(self, kind: str, member: str | None, detail: str) -> None:
        """Something has happened now."""
        self._events.append(ClusterEvent(datetime.now(UTC).replace(tzinfo=None), kind, member, detail))

    def latest(self) -> list[ClusterEvent]:
        """The events, oldest first; at most 10,000."""
        return list(self._events)


_PUBLISHED_MAX: Final = 1_000


class LoadState(StrEnum):
    """The state of a load."""

    STAGED = "staged"
    """Its rows arrive, or wait; no statement sees them."""
    PUBLISHING = "publishing"
    """Some member has prepared it."""
    PUBLISHED = "published"
    """All of its rows are visible."""


@dataclass(frozen=True, slots=True)
class LoadStatus:
    """One load.

    Attributes:
        load_id: The load.
        table_id: Its table.
        state: How far it is.
        rows: Rows that it has brought; while they are staged, those of failed attempts count as well.
        partitions: Partitions that they are in.
        started_s: When its first rows arrived, in seconds since 1970.
        elapsed_s: Seconds since then; of a published load, until all its members had its rows ready.
        stream: The batch of a stream that it has brought; None for any other load, and until it is published.
    """

    load_id: str
    table_id: int
    state: LoadState
    rows: int
    partitions: int
    started_s: float
    elapsed_s: float
    stream: StreamBatch | None = None


class LoadHistory:
    """Remembers published loads; lives on the controller's event loop.

    Args:
        clock: Seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._published: OrderedDict[str, LoadStatus] = OrderedDict()

    def published(
        self,
        load_id: str,
        table_id: int,
        *,
        rows: int,
        partitions: int,
        age_s: float,
        stream: StreamBatch | None = None,
    ) -> None:
        """A load was published whose first rows arrived ``age_s`` seconds ago."""
        started_s = self._clock() - age_s
        self._published[load_id] = LoadStatus(
            load_id, table_id, LoadState.PUBLISHED, rows, partitions, started_s, age_s, stream
        )
        if len(self._published) > _PUBLISHED_MAX:
            self._published.popitem(last=False)

    def statuses(self, told: Iterable[StagedLoads]) -> list[LoadStatus]:
        """All loads, those that began first in front, of what each member has under way.

        A partition has its rows on each member that keeps a copy; they count once.
        """
        rows: dict[str, dict[int, int]] = {}
        found: dict[str, LoadStatus] = {}
        now_s = self._clock()
        for load in (load for answer in told for load in answer.loads):
            if load.load_id in self._published:
                continue  # a member has not published it yet, or has told so before it did
            parts = rows.setdefault(load.load_id, {})
            for partition, count in load.parts:
                parts[partition] = max(count, parts.get(partition, 0))
            before = found.get(load.load_id)
            started_s = min(now_s - load.age_s, now_s if before is None else before.started_s)
            is_prepared = load.is_prepared or (before is not None and before.state is LoadState.PUBLISHING)
            found[load.load_id] = LoadStatus(
                load.load_id,
                load.table_id,
                LoadState.PUBLISHING if is_prepared else LoadState.STAGED,
                sum(parts.values()),
                sum(count > 0 for count in parts.values()),
                started_s,
                now_s - started_s,
            )
        return sorted([*found.values(), *self._published.values()], key=lambda status: status.started_s)
