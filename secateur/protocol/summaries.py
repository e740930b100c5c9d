"""The executions on a member, summed up: by plan for ``secateur.statement_summaries``, and by tenant."""

from __future__ import annotations

import collections
from collections.abc import Iterable
from math import ceil, log2
from typing import Annotated, Final

import msgspec

from secateur.protocol.message import Message
from secateur.protocol.metric_fields import Counter, with_metrics

_BUCKETS_PER_DOUBLING: Final = 8
"""A percentile is at most 2 ** (1 / 8), or 9 %, too high."""
_FIRST_MS: Final = 0.001
"""The upper bound of the first bucket; nothing that a member executes is quicker."""
_LAST_BUCKET: Final = 32 * _BUCKETS_PER_DOUBLING
"""It has everything beyond 49 days."""
_LAST_MS: Final = _FIRST_MS * 2 ** (_LAST_BUCKET // _BUCKETS_PER_DOUBLING)

OTHERS: Final = "others"
"""The line of the tenants that have none of their own because there are too many."""


class LatencyHistogram(msgspec.Struct, frozen=True, array_like=True):
    """A histogram of latencies.

    Source: the bucket bounds grow by a constant factor, as those of HdrHistogram and of Prometheus's native histograms
    do: the relative error is then the same for a microsecond and for an hour.

    Attributes:
        counts: Latencies by number of their bucket; empty buckets are left out. A bucket has the latencies above the
            upper bound of the one before it, up to its own.
    """

    counts: dict[int, int] = {}

    @property
    def total(self) -> int:
        """The number of latencies."""
        return sum(self.counts.values())

    def with_latencies(self, latencies_ms: Iterable[float]) -> LatencyHistogram:
        """This histogram with more latencies, in milliseconds."""
        return self.with_buckets(buckets_of(latencies_ms))

    def with_buckets(self, buckets: Iterable[int]) -> LatencyHistogram:
        """This histogram with more latencies, by the numbers of their buckets, as :func:`buckets_of` gives them."""
        counts = collections.Counter(self.counts)
        counts.update(buckets)
        return LatencyHistogram(dict(counts))

    @classmethod
    def merged(cls, histograms: Iterable[LatencyHistogram]) -> LatencyHistogram:
        """One histogram of the latencies of several."""
        counts: dict[int, int] = {}
        for histogram in histograms:
            for bucket, count in histogram.counts.items():
                counts[bucket] = counts.get(bucket, 0) + count
        return cls(counts)

    @property
    def buckets(self) -> list[tuple[float, int]]:
        """The upper bound in milliseconds and the number of latencies of each bucket that has some, in order."""
        return [(_bound_ms(bucket), count) for bucket, count in sorted(self.counts.items())]

    def percentile_ms(self, fraction: float) -> float:
        """The upper bound of the bucket that has the percentile by nearest rank.

        Args:
            fraction: Between 0 and 1: 0.99 is the latency that 99 % of all do not exceed.

        Returns:
            Milliseconds: at least the true percentile, and at most 9 % more. Below a microsecond and above 49 days, it
            is the bound of the first and of the last bucket.

        Raises:
            ValueError: There are no latencies.
        """
        rank = max(ceil(fraction * self.total), 1)
        for bucket, count in sorted(self.counts.items()):
            rank -= count
            if rank <= 0:
                return _bound_ms(bucket)
        raise ValueError("a histogram without latencies has no percentile")


def _bound_ms(bucket: int) -> float:
    return float(_FIRST_MS * 2 ** (bucket / _BUCKETS_PER_DOUBLING))


def buckets_of(latencies_ms: Iterable[float]) -> list[int]:
    """The number of the bucket of each latency in milliseconds. A member does this for each statement: 0.1 us."""
    return [
        0
        if latency_ms <= _FIRST_MS
        else _LAST_BUCKET
        if latency_ms >= _LAST_MS
        else ceil(_BUCKETS_PER_DOUBLING * log2(latency_ms / _FIRST_MS))
        for latency_ms in latencies_ms
    ]


class ListedExecutions(msgspec.Struct, frozen=True, array_like=True):
    """The ended executions of a plan that a member still lists; there is at least one.

    Attributes:
        executions: How many there are.
        started: When the newest began, in seconds since the epoch.
        failed: How many have failed.
        elapsed_ms: Milliseconds that they took together.
        elapsed_max_ms: Milliseconds of the longest.
        latencies: The time of each.
        queries: How many are queries that were answered; the four that follow are theirs.
        partitions_read: Partitions that were read, added up.
        partitions_total: The most partitions that the tables of one have.
        pruned: Queries that left a partition out.
        unpruned: Queries that read all of several partitions.
        answered: How many were answered.
        members_touched: The members that took part in those, added up.
        counted: How many say how many rows they have sent or changed.
        rows: The rows of those.
        whole: When the newest began that was executed without pruning, or has read all of several partitions, and
            whether it was executed with pruning; None if there is none.
    """

    executions: int
    started: float
    failed: int
    elapsed_ms: float
    elapsed_max_ms: float
    latencies: LatencyHistogram
    queries: int
    partitions_read: int
    partitions_total: int
    pruned: int
    unpruned: int
    answered: int
    members_touched: int
    counted: int
    rows: int
    whole: tuple[float, bool] | None


class PlanSummary(msgspec.Struct, frozen=True, array_like=True):
    """The executions of one plan on a member.

    Attributes:
        plan_id: The plan.
        running: How many run or wait.
        executions: How many have ended since the member is there, failed ones included.
        elapsed_ms: Milliseconds that these took together.
        listed: The executions that the member still lists; None if it lists none any more.
    """

    plan_id: str
    running: int
    executions: int
    elapsed_ms: float
    listed: ListedExecutions | None


@with_metrics
class TenantHour(msgspec.Struct, array_like=True):
    """What one tenant has used of one member in one hour.

    Attributes:
        tenant: Its name; "" for the owner, :data:`OTHERS` for many.
        hour: The beginning of the hour, in seconds since the epoch.
        rows: Rows of results, and rows that were changed.
        latencies: The times of the statements.
    """

    tenant: str
    hour: int
    statements: Annotated[int, Counter("statements of a tenant that have ended, and reads of rows by their keys")] = 0
    failed: Annotated[int, Counter("statements of a tenant that have failed")] = 0
    refused: Annotated[
        int, Counter("statements of a tenant that were refused because of a limit, or because too many waited")
    ] = 0
    processor_ms: Annotated[float, Counter("processor time that a tenant has used", "processor_seconds")] = 0.0
    waiting_ms: Annotated[float, Counter("time that statements of a tenant have waited", "waiting_seconds")] = 0.0
    rows_read: Annotated[int, Counter("rows that kernel calls of a tenant have read")] = 0
    rows: int = 0
    bytes_sent: Annotated[int, Counter("bytes of the answers to a tenant", "sent_bytes")] = 0
    latencies: LatencyHistogram = LatencyHistogram()

    def add(self, other: TenantHour) -> None:
        """Add what another line has."""
        for name in self.__struct_fields__[2:-1]:  # its numbers: all but the tenant, the hour and the times
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.latencies = LatencyHistogram.merged((self.latencies, other.latencies))


class TenantHours(msgspec.Struct, frozen=True):
    """The lines of a member."""

    lines: list[TenantHour] = []


class GetTenantHours(Message[TenantHours], frozen=True):
    """What each tenant has used of a member; nothing where none but the owner was ever connected."""
