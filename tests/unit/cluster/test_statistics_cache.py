"""When members are asked for statistics, and what is kept of their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from secateur.cluster.controller import StatisticsCache
from secateur.errors import UnreachableError
from secateur.partitioning.schemes import PartitionScheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.protocol import LookAtStatistics, StoredStatistics
from secateur.storage import ChangeOperation, Partition, TableLayout, summarize

TABLE = TableDef("t", 1, (Column("id", parse_type("BIGINT"), nullable=False),), ("id",), PartitionScheme(), backups=1)


class Members:
    """Two members with one partition each, and the cluster around the book."""

    def __init__(self, **clock: Any) -> None:
        layout = TableLayout.of(TABLE)
        self.partitions = {"m1": Partition(layout, 0), "m2": Partition(layout, 1)}
        self.calls: list[tuple[str, int, list[int]]] = []
        self.tables = {1: TABLE}
        self.failure: Exception | None = None
        self.cache = StatisticsCache(self, self.served, **clock)

    def served(self, table_id: int) -> tuple[TableDef, Mapping[str, Sequence[int]]] | None:
        return (self.tables[table_id], {"m1": [0], "m2": [1]}) if table_id in self.tables else None

    async def call(self, member_id: str, message: Any) -> Any:
        assert isinstance(message, LookAtStatistics)
        self.calls.append((member_id, message.table_id, message.partitions))
        if self.failure is not None:
            raise self.failure
        return StoredStatistics(summarize(TABLE, [self.partitions[member_id].snapshot()]))

    def add(self, member: str, *ids: int) -> None:
        self.partitions[member].apply(ChangeOperation.APPEND, pa.table({"id": list(ids)}, schema=TABLE.arrow_schema))

    async def settle(self) -> None:
        """Let the background work end."""
        working = self.cache._working
        if working is not None:
            await working

    def rows(self) -> int | None:
        known = self.cache.statistics_snapshot.of(1)
        return None if known is None else known.rows


def test_a_load_is_looked_at_and_a_small_one_after_it_is_not() -> None:
    async def scenario() -> None:
        members = Members()
        members.add("m1", *range(60))
        members.add("m2", *range(100, 140))
        members.cache.written(1, 100)
        await members.settle()
        assert members.calls == [("m1", 1, [0]), ("m2", 1, [1])]
        assert members.rows() == 100
        known = members.cache.statistics_snapshot.of(1)
        assert known is not None
        assert known.columns["id"].distinct == 100
        members.cache.written(1, 20)
        await members.settle()
        assert len(members.calls) == 2
        members.add("m1", *range(200, 221))
        members.cache.written(1, 1)
        await members.settle()
        assert (len(members.calls), members.rows()) == (4, 121)
        members.cache.replaced(1)
        await members.settle()
        assert len(members.calls) == 6

    asyncio.run(scenario())


def test_single_writes_are_noticed_through_what_members_count() -> None:
    async def scenario() -> None:
        members = Members()
        members.add("m1", *range(10))
        members.cache.counted("m1", {1: 10, 9: 5})
        await members.settle()
        assert members.rows() == 10
        members.add("m1", 10, 11)
        members.cache.counted("m1", {1: 12})  # two rows, and a copy of each to come
        members.cache.counted("m2", {1: 2})
        await members.settle()
        assert members.rows() == 10
        members.add("m1", 12)
        members.cache.counted("m1", {1: 13})
        members.cache.counted("m1", {1: 13})
        await members.settle()
        assert members.rows() == 13

    asyncio.run(scenario())


def test_a_member_that_has_left_counts_from_nothing_when_one_comes_in_its_place() -> None:
    async def scenario() -> None:
        members = Members()
        members.add("m1", *range(10))
        members.cache.counted("m1", {1: 10})
        await members.settle()
        members.cache.member_left("m1")
        members.add("m1", *range(10, 18))
        members.cache.counted("m1", {1: 8})
        await members.settle()
        assert members.rows() == 18

    asyncio.run(scenario())


def test_a_member_out_of_reach_leaves_what_was_known_and_is_asked_again() -> None:
    async def scenario() -> None:
        members = Members()
        members.add("m1", *range(10))
        members.failure = UnreachableError("m2 does not answer")
        members.cache.written(1, 10)
        await members.settle()
        assert members.rows() is None
        with pytest.raises(UnreachableError):
            await members.cache.refresh(1)
        members.failure = None
        members.cache.counted("m1", {})
        await members.settle()
        assert members.rows() == 10

    asyncio.run(scenario())


def test_a_dropped_table_is_forgotten() -> None:
    async def scenario() -> None:
        members = Members()
        members.add("m1", *range(10))
        assert await members.cache.refresh(1) is not None
        members.tables.clear()
        members.cache.written(1, 100)
        await members.settle()
        assert members.rows() is None
        assert await members.cache.refresh(1) is None
        assert members.cache.statistics_snapshot.version == 1

    asyncio.run(scenario())


def test_a_table_that_changes_all_the_time_is_looked_at_from_time_to_time() -> None:
    now_s, slept = 0.0, []

    async def sleep(seconds: float) -> None:
        nonlocal now_s
        slept.append(seconds)
        now_s += seconds

    async def scenario() -> None:
        nonlocal now_s
        members = Members(clock=lambda: now_s, sleep=sleep)
        members.add("m1", *range(10))
        call = members.call

        async def slow(member_id: str, message: Any) -> Any:
            nonlocal now_s
            now_s += 1.0
            return await call(member_id, message)

        members.call = slow  # type: ignore[method-assign]
        members.cache.replaced(1)
        await members.settle()
        members.cache.replaced(1)
        await members.settle()
        assert slept == [18.0]

    asyncio.run(scenario())


def test_closing_gives_up_what_is_under_way() -> None:
    async def scenario() -> None:
        members = Members()
        members.cache.written(1, 1)
        await members.cache.close()
        assert members.calls == []

    asyncio.run(scenario())


def test_statistics_that_are_being_collected_are_worth_a_wait() -> None:
    async def scenario() -> None:
        members = Members()
        members.add("m1", 1, 2, 3)
        assert not members.cache.arriving
        members.cache.written(1, 3)
        assert members.cache.arriving == {1}
        await members.cache.arrived(frozenset({2}))
        assert members.rows() is None
        await members.cache.arrived(frozenset({1}))
        assert (members.rows(), members.cache.arriving) == (3, frozenset())

    asyncio.run(scenario())


def test_nobody_waits_for_statistics_of_members_that_do_not_answer() -> None:
    async def scenario() -> None:
        members = Members()
        members.failure = UnreachableError("gone")
        members.cache.written(1, 3)
        await members.cache.arrived(None)
        assert (members.rows(), members.cache.arriving) == (None, frozenset())

    asyncio.run(scenario())


def test_a_wrong_estimate_is_a_reason_to_look_where_rows_were_written_since() -> None:
    async def scenario() -> None:
        members = Members()
        members.add("m1", *range(100))
        await members.cache.refresh(1)
        members.cache.counted("m1", {}, {1: 1, 9: 1})
        await members.settle()
        assert len(members.calls) == 2, "no row has changed: new statistics would be the same"
        members.add("m1", 100)
        members.cache.counted("m1", {1: 2}, {1: 1})
        await members.settle()
        assert len(members.calls) == 2, "a miss of before the rows were written is none of theirs"
        members.cache.counted("m1", {1: 2}, {1: 2})
        await members.settle()
        assert (len(members.calls), members.rows()) == (4, 101)
        members.add("m1", 101)
        members.cache.counted("m1", {1: 4}, {1: 2})
        await members.settle()
        assert len(members.calls) == 4

    asyncio.run(scenario())


def test_wrong_estimates_from_which_nothing_is_learned_rest_longer() -> None:
    """An uneven column makes an estimate wrong each time, and some row is always being written."""
    now_s = 0.0

    async def scenario() -> int:
        nonlocal now_s
        members = Members(clock=lambda: now_s)
        members.add("m1", *range(100))
        await members.cache.refresh(1)
        members.calls.clear()
        call = members.call

        async def slow(member_id: str, message: Any) -> Any:
            nonlocal now_s
            now_s += 0.5
            return await call(member_id, message)

        members.call = slow  # type: ignore[method-assign]
        version = members.cache.statistics_snapshot.version
        for second in range(1, 1_001):
            now_s += 1.0
            members.cache.counted("m1", {1: 2 * second}, {1: second})
            await members.settle()
            members.cache._written[1] = min(members.cache._written[1], 1.0)
        assert members.cache.statistics_snapshot.version == version
        return len(members.calls) // 2

    assert 5 <= asyncio.run(scenario()) <= 11
