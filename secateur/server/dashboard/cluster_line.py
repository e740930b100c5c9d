"""The line at the top of every page: members, rate and times of statements, how much they touch, and memory."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from secateur.server.dashboard.readings import Reading, Readings

MEMBERS: Final = "SELECT * FROM secateur.members ORDER BY id"
_LATENCIES: Final = "SELECT * FROM secateur.latencies"
_WINDOW_S: Final = 10.0
_QUERIES: Final = ("local", "scatter", "distributed")

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Interval:
    """What has ended between two readings of ``secateur.latencies``, without the queries of the readings themselves.

    Attributes:
        seconds: Between them.
        statements: Statements, and parts of changes.
        queries: Those of them that are queries.
        members_touched: The members of each query, added up.
        pruned: Queries that left a partition out.
        unpruned: Queries that read all of several partitions.
        buckets: The number of statements by the milliseconds that they took at most.
    """

    seconds: float
    statements: int
    queries: int
    members_touched: int
    pruned: int
    unpruned: int
    buckets: Mapping[float, int]


@dataclass(frozen=True, slots=True)
class ClusterLine:
    """The numbers; None where nothing has been measured yet.

    Attributes:
        alive: Members that are not lost.
        members: Members, with the lost ones that the cluster still lists.
        suspected: Members that have been silent for a while.
        window_s: The seconds over which the five that follow were measured.
        statements_per_s: Statements that have ended, for each second.
        percentiles_ms: The times at the members that 50, 95 and 99 % of the statements did not exceed.
        members_touched: The mean of the members that took part in a query.
        share_pruned: The queries that left a partition out, of those over several partitions.
        memory_used: Bytes, over all members.
        memory_limit: Bytes, over all members.
    """

    alive: int
    members: int
    suspected: int
    window_s: float | None
    statements_per_s: float | None
    percentiles_ms: tuple[float, ...] | None
    members_touched: float | None
    share_pruned: float | None
    memory_used: int
    memory_limit: int


class ClusterLines:
    """Makes the line from readings, over the last ten seconds. Thread-safe; it blocks while the cluster is asked.

    Args:
        readings: The way to the system tables.
    """

    def __init__(self, readings: Readings) -> None:
        self._readings = readings
        self._last: Reading | None = None
        self._intervals: deque[Interval] = deque()
        self._lock = threading.Lock()

    def now(self) -> ClusterLine:
        """The line as it is now.

        Raises:
            Error: The cluster did not answer.
        """
        members = self._readings.rows(MEMBERS)
        with self._lock:
            self._look()
            return _line(members, tuple(self._intervals))

    def _look(self) -> None:
        reading = self._readings.read(_LATENCIES)
        last = self._last
        if last is not None and reading.read_s == last.read_s:
            return
        own_ms = self._readings.own_times_ms()
        self._last = reading
        if last is not None:
            own = own_ms[: reading.own_before - last.own_before]
            self._intervals.append(interval_between(last.rows, reading.rows, reading.read_s - last.read_s, own))
        while len(self._intervals) > 1 and sum(one.seconds for one in self._intervals) > _WINDOW_S:
            self._intervals.popleft()


def interval_between(before: Sequence[Row], after: Sequence[Row], seconds: float, own_ms: Sequence[float]) -> Interval:
    """What has ended between two readings of ``secateur.latencies``.

    A member counts from the second reading that has it: what it did before is not of this interval.

    Args:
        before: The rows of the first reading.
        after: Those of the second.
        seconds: The time between them.
        own_ms: The milliseconds of the queries that are left out. Each is taken from the last bucket that is not
            longer: the member, whose time counts, took a little less than the caller.
    """
    members = {row["member"] for row in before}
    known = {(row["member"], row["execution"]): row for row in before}
    counts = dict.fromkeys(("statements", "queries", "members_touched", "pruned", "unpruned"), 0)
    buckets: dict[float, int] = {}
    for row in after:
        if row["member"] not in members:
            continue
        old = known.get((row["member"], row["execution"]))
        if old is not None and old["statements"] > row["statements"]:
            old = None  # the member began anew
        grown = {name: row[name] - (old[name] if old else 0) for name in ("statements", *list(counts)[2:])}
        counts["statements"] += grown["statements"]
        if row["execution"] in _QUERIES:
            counts["queries"] += grown["statements"]
            for name in list(counts)[2:]:
                counts[name] += grown[name]
        _add(buckets, row, 1)
        if old is not None:
            _add(buckets, old, -1)
    left_out = _left_out(buckets, own_ms)
    for name in ("statements", "queries", "members_touched"):  # each of them ran on one member, over no partition
        counts[name] = max(counts[name] - left_out, 0)
    return Interval(seconds, **counts, buckets={bound: count for bound, count in sorted(buckets.items()) if count > 0})


def _add(buckets: dict[float, int], row: Row, sign: int) -> None:
    for bound_ms, count in zip(row["bucket_ms"], row["bucket_statements"], strict=True):
        buckets[bound_ms] = buckets.get(bound_ms, 0) + sign * count


def _left_out(buckets: dict[float, int], own_ms: Iterable[float]) -> int:
    count = 0
    for time_ms in sorted(own_ms, reverse=True):
        filled = [bound_ms for bound_ms, number in buckets.items() if number > 0]
        if not filled:
            break
        fitting = [bound_ms for bound_ms in filled if bound_ms <= 1.1 * time_ms]
        buckets[max(fitting) if fitting else min(filled)] -= 1
        count += 1
    return count


def _line(members: Sequence[Row], intervals: Sequence[Interval]) -> ClusterLine:
    window_s = sum(one.seconds for one in intervals)
    statements = sum(one.statements for one in intervals)
    queries = sum(one.queries for one in intervals)
    pruned = sum(one.pruned for one in intervals)
    over_several = pruned + sum(one.unpruned for one in intervals)
    alive = [row for row in members if row["state"] != "lost"]
    return ClusterLine(
        alive=len(alive),
        members=len(members),
        suspected=sum(row["state"] == "suspect" for row in members),
        window_s=window_s or None,
        statements_per_s=statements / window_s if window_s else None,
        percentiles_ms=_percentiles_ms(intervals),
        members_touched=sum(one.members_touched for one in intervals) / queries if queries else None,
        share_pruned=pruned / over_several if over_several else None,
        memory_used=sum(row["memory_used"] for row in alive),
        memory_limit=sum(row["memory_limit"] or 0 for row in alive),
    )


def _percentiles_ms(intervals: Sequence[Interval]) -> tuple[float, ...] | None:
    buckets: dict[float, int] = {}
    for one in intervals:
        for bound_ms, count in one.buckets.items():
            buckets[bound_ms] = buckets.get(bound_ms, 0) + count
    total = sum(buckets.values())
    if not total:
        return None
    found = []
    for fraction in (0.5, 0.95, 0.99):
        rank = max(math.ceil(fraction * total), 1)
        for bound_ms, count in sorted(buckets.items()):
            rank -= count
            if rank <= 0:
                found.append(bound_ms)
                break
    return tuple(found)
