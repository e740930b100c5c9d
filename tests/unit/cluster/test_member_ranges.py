"""ALTER TABLE on one member: where ranges are cut out of the catch-all, writes wait until it is decided."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa
import pytest

from secateur.cluster.member_ranges import MemberRanges
from secateur.cluster.write_gate import WriteGate
from secateur.errors import SchemeError, UnknownTableError
from secateur.partitioning.build import build_scheme
from secateur.partitioning.range_changes import AddRange, DropRange, RangeChange, alter_ranges
from secateur.partitioning.range_spec import RangeSpec, catch_all
from secateur.partitioning.table import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.storage.member_store import MemberStore
from secateur.wire import PeerInfo, Request, pack

TYPES = {"n": parse_type("BIGINT")}
SCHEME = build_scheme(range_columns=["n"], ranges=[RangeSpec((0,), (10,)), catch_all()], types=TYPES, primary_key=["n"], table="t")
TABLE = TableDef("t", 1, (Column("n", TYPES["n"], nullable=False),), ("n",), SCHEME)
ADDED = AddRange(RangeSpec((20,), (30,)))


def changed(*changes: RangeChange) -> TableDef:
    return replace(TABLE, scheme=alter_ranges(SCHEME, changes, types=TYPES, primary_key=["n"], table="t"), version=2)


class Setting:
    def __init__(self, executor: ThreadPoolExecutor) -> None:
        self.store = MemberStore()
        self.store.create_table(TABLE, [0, 1])
        self.gate = WriteGate("t")
        self.adopted: list[TableDef] = []
        self.ranges = MemberRanges(self.store, lambda _: self.gate, executor, self.adopted.append)

    def rows(self, *keys: int) -> pa.Table:
        return pa.table({"n": keys}, schema=TABLE.arrow_schema)

    async def ask(self, op: str, table: TableDef) -> None:
        args = {"table_id": table.table_id, "version": table.version, "partitions": table.scheme.live_partitions().tolist()}
        await getattr(self.ranges, op)(Request(op, args, memoryview(pack(table.to_wire())), PeerInfo(1, "test", "test", False)))

    def writes_wait(self) -> bool:
        return self.gate.is_closed


def run(work: Callable[[Setting], Awaitable[None]]) -> None:
    async def main() -> None:
        with ThreadPoolExecutor(1) as executor:
            await work(Setting(executor))

    asyncio.run(main())


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_writes_wait_while_ranges_are_cut_out_of_the_catch_all(end: str) -> None:
    async def work(setting: Setting) -> None:
        await setting.ask("prepare", changed(ADDED))
        assert setting.writes_wait()
        assert setting.store.table(1).version == 1
        await setting.ask(end, changed(ADDED))
        assert not setting.writes_wait()
        assert setting.store.table(1).version == (2 if end == "commit" else 1)
        assert [table.version for table in setting.adopted] == ([2] if end == "commit" else [])

    run(work)


@pytest.mark.parametrize("change", [DropRange(RangeSpec((0,), (10,))), DropRange(catch_all())])
def test_other_changes_stop_nobody(change: RangeChange) -> None:
    async def work(setting: Setting) -> None:
        await setting.ask("prepare", changed(change))
        assert not setting.writes_wait()
        await setting.ask("commit", changed(change))
        await setting.ask("commit", changed(change))
        assert len(setting.adopted) == 1

    run(work)


def test_rows_in_the_catch_all_stand_in_the_way_until_the_change_is_given_up() -> None:
    async def work(setting: Setting) -> None:
        setting.store.write(1, 1, setting.rows(15, 25, 26), "append")
        with pytest.raises(SchemeError, match="the DEFAULT PARTITION has 2 rows of the ranges to be added") as raised:
            await setting.ask("prepare", changed(ADDED))
        assert raised.value.details["rows"] == 2
        await setting.ask("abort", changed(ADDED))
        assert not setting.writes_wait()
        await setting.ask("prepare", changed(AddRange(RangeSpec((30,), (40,)))))

    run(work)


def test_a_catch_all_that_goes_takes_its_rows_with_it() -> None:
    async def work(setting: Setting) -> None:
        setting.store.write(1, 1, setting.rows(25), "append")
        after = changed(DropRange(catch_all()), ADDED)
        await setting.ask("prepare", after)
        await setting.ask("commit", after)
        assert setting.store.relation(1, [0, 2]).num_rows == 0

    run(work)


def test_an_unknown_table() -> None:
    async def work(setting: Setting) -> None:
        with pytest.raises(UnknownTableError):
            await setting.ask("prepare", replace(changed(ADDED), table_id=9))

    run(work)
