"""ALTER TABLE on members: where ranges are cut out of the catch-all, writes wait until it is decided, by the controller
or, when it is gone, by the members.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from links import Links
from msgspec import structs

from secateur.cluster.member import Alterations, MemberAlterations
from secateur.cluster.termination_protocol import TerminationProtocol
from secateur.cluster.write_latch import LoadLeases, WriteLatch
from secateur.errors import LoadFailedError, SchemeError, UnknownTableError
from secateur.partitioning.schemes import (
    AddRange,
    DropRange,
    RangeChange,
    RangeSpec,
    alter_ranges,
    build_scheme,
    catch_all,
)
from secateur.partitioning.tables import Column, TableDef, TableDefinition
from secateur.partitioning.types import parse_type
from secateur.protocol import (
    AbortAlter,
    CommitAlter,
    DecideLoad,
    PrepareAlter,
    SettleLoad,
    StandingOfLoad,
    TwoPhaseKind,
    encode,
    operation_of,
)
from secateur.storage import ChangeOperation, MemberStore
from secateur.wire import PeerInfo, Request

TYPES = {"n": parse_type("BIGINT")}
SCHEME = build_scheme(
    range_columns=["n"], ranges=[RangeSpec((0,), (10,)), catch_all()], types=TYPES, primary_key=["n"], table="t"
)
TABLE = TableDef("t", 1, (Column("n", TYPES["n"], nullable=False),), ("n",), SCHEME)
ADDED = AddRange(RangeSpec((20,), (30,)))


def changed(*changes: RangeChange) -> TableDef:
    return structs.replace(
        TABLE, scheme_or_reference=alter_ranges(SCHEME, changes, types=TYPES, primary_key=["n"], table="t"), version=2
    )


CONNECTION = PeerInfo(1, "test", "controller", False)


class Setting:
    """A member; several of them over the same connections are a cluster."""

    def __init__(
        self, executor: ThreadPoolExecutor, links: Links | None = None, name: str = "m1", *, lease_s: float = 1000.0
    ) -> None:
        self.links = links or Links()
        self.store = MemberStore()
        self.store.create_table(TABLE, [0, 1])
        self.latch = WriteLatch("t", 20.0)
        self.adopted: list[TableDef] = []
        changes = Alterations(self.store, self.adopted.append)
        protocol = TerminationProtocol(
            name,
            changes,
            lambda: sorted(self.links.answers),
            TwoPhaseKind.ALTER,
            lease_s=lease_s,
            reconnect_s=0.0,
            pause_s=0.001,
        )
        self.leases = LoadLeases(protocol, self.links.of(name))
        self.ranges = MemberAlterations(self.store, lambda _: self.latch, executor, changes, self.leases, self.level)
        self.links.answers[name] = {
            StandingOfLoad: self.leases.standing,
            DecideLoad: self.leases.decide,
            SettleLoad: self.leases.settle,
        }

    async def level(self, table_id: int) -> None:
        assert table_id == TABLE.table_id
        assert self.latch.is_closed

    def rows(self, *keys: int) -> pa.Table:
        return pa.table({"n": keys}, schema=TABLE.arrow_schema)

    async def ask(self, op: str, table: TableDef, load_id: str = "a") -> None:
        asked: Any
        match op:
            case "prepare":
                asked = PrepareAlter(
                    load_id, encode(TableDefinition.of(table)), table.scheme.live_partitions().tolist()
                )
            case "commit":
                asked = CommitAlter(load_id)
            case _:
                asked = AbortAlter(load_id)
        await getattr(self.ranges, op)(Request(operation_of(asked), asked, memoryview(b""), CONNECTION))

    def writes_wait(self) -> bool:
        return self.latch.is_closed

    def lose_controller(self) -> None:
        """Its connection is gone."""
        self.leases.connection_gone(CONNECTION.connection_id)


def run(work: Callable[[Setting], Awaitable[None]]) -> None:
    async def main() -> None:
        with ThreadPoolExecutor(1) as executor:
            setting = Setting(executor)
            try:
                async with asyncio.timeout(20):
                    await work(setting)
            finally:
                await setting.leases.stop()

    asyncio.run(main())


def run_three(work: Callable[[Sequence[Setting]], Awaitable[None]]) -> None:
    """As :func:`run`, with three members."""

    async def main() -> None:
        with ThreadPoolExecutor(1) as executor:
            links = Links()
            members = [Setting(executor, links, name) for name in ("m1", "m2", "m3")]
            try:
                async with asyncio.timeout(20):
                    await work(members)
            finally:
                for member in members:
                    await member.leases.stop()

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
        setting.store.apply(1, 1, ChangeOperation.APPEND, setting.rows(15, 25, 26))
        with pytest.raises(SchemeError, match="the DEFAULT PARTITION has 2 rows of the ranges to be added") as raised:
            await setting.ask("prepare", changed(ADDED))
        assert raised.value.details["rows"] == 2
        await setting.ask("abort", changed(ADDED))
        assert not setting.writes_wait()
        await setting.ask("prepare", changed(AddRange(RangeSpec((30,), (40,)))), "another id")

    run(work)


def test_a_catch_all_that_goes_takes_its_rows_with_it() -> None:
    async def work(setting: Setting) -> None:
        setting.store.apply(1, 1, ChangeOperation.APPEND, setting.rows(25))
        after = changed(DropRange(catch_all()), ADDED)
        await setting.ask("prepare", after)
        await setting.ask("commit", after)
        assert setting.store.relation(1, [0, 2]).num_rows == 0

    run(work)


def test_an_unknown_table() -> None:
    async def work(setting: Setting) -> None:
        with pytest.raises(UnknownTableError):
            await setting.ask("prepare", structs.replace(changed(ADDED), table_id=9))

    run(work)


def test_writes_go_on_when_the_controller_is_gone_between_the_phases() -> None:
    async def work(setting: Setting) -> None:
        await setting.ask("prepare", changed(ADDED))
        assert setting.writes_wait()
        setting.lose_controller()
        await setting.latch.wait_open()
        assert setting.store.table(1).version == 1
        for op in ("commit", "prepare"):
            with pytest.raises(LoadFailedError, match="ALTER TABLE was aborted"):
                await setting.ask(op, changed(ADDED))  # the controller was only slow
        await setting.ask("prepare", changed(ADDED), "another try")
        await setting.ask("commit", changed(ADDED), "another try")
        assert setting.store.table(1).version == 2

    run(work)


@pytest.mark.parametrize("committed", [0, 1, 2, 3])
def test_without_a_controller_all_members_commit_what_one_has_committed(committed: int) -> None:
    async def work(members: Sequence[Setting]) -> None:
        for member in members:
            await member.ask("prepare", changed(ADDED))
        for member in members[3 - committed :]:
            await member.ask("commit", changed(ADDED))
        for member in members:
            member.lose_controller()
        for member in members:
            await member.latch.wait_open()
        assert {member.store.table(1).version for member in members} == {2 if committed else 1}

    run_three(work)


def test_a_member_that_had_not_prepared_ends_the_change_for_all() -> None:
    async def work(members: Sequence[Setting]) -> None:
        for member in members[:2]:
            await member.ask("prepare", changed(ADDED))
        for member in members:
            member.lose_controller()
        for member in members:
            await member.latch.wait_open()
        with pytest.raises(LoadFailedError, match="was aborted"):
            await members[2].ask("prepare", changed(ADDED))
        assert {member.store.table(1).version for member in members} == {1}

    run_three(work)


def test_what_an_earlier_controller_had_prepared_is_forgotten_and_its_late_order_refused() -> None:
    async def work(setting: Setting) -> None:
        dropped = changed(DropRange(RangeSpec((0,), (10,))))  # closes no latch
        await setting.ask("prepare", dropped)
        setting.ranges.controller_replaced()
        with pytest.raises(LoadFailedError, match="was aborted"):
            await setting.ask("commit", dropped)
        assert setting.store.table(1).version == TABLE.version
        await setting.ask("prepare", dropped, "again")
        await setting.ask("commit", dropped, "again")
        assert setting.store.table(1).version == dropped.version

    run(work)
