"""CREATE and DROP TABLE at the controller: all members or none, and members that are lost on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import pytest
from msgspec import structs

from secateur.cluster.controller import (
    ClusterState,
    LoadPublisher,
    MemberJoined,
    MemberLost,
    StatisticsCache,
    TableCommands,
)
from secateur.cluster.lease import LeaseTimes
from secateur.cluster.peers import Peers
from secateur.errors import (
    DeadlineError,
    MemberLostError,
    ProtocolError,
    TableExistsError,
    TopologyChangedError,
    UnknownTableError,
)
from secateur.partitioning.schemes import HashComponent, PartitionScheme
from secateur.partitioning.tables import TableDef
from secateur.partitioning.topology import MemberAddress, Topology, copies_of
from secateur.partitioning.types import parse_type
from secateur.protocol import (
    AbortStagedLoad,
    Acknowledged,
    CatchUp,
    CaughtUp,
    CloseForChange,
    CreateStoredTable,
    DropStoredTable,
    LoadDropped,
    Message,
    TableUse,
    TakeTopology,
    operation_of,
)
from secateur.wire import Payload

TABLE = TableDef(
    "t",
    0,
    (),
    ("id",),
    PartitionScheme(hashes=(HashComponent(("id",), 6),), types=(("id", parse_type("BIGINT")),)),
    backups=0,
)


class FakePeers(Peers):
    """Writes down the calls, and fails those it is told to, once each."""

    def __init__(self) -> None:
        self.gone: set[str] = set()
        self.users: set[str] = set()
        self.calls: list[tuple[str, type[Message[Any]]]] = []
        self.hosted: dict[str, tuple[int, ...]] = {}
        self.failures: dict[tuple[str, type[Message[Any]]], Exception] = {}
        self.together = asyncio.Barrier(2)

    def update(self, topology: Topology) -> None:
        pass

    async def call(self, member_id: str, message: Message[Any], payload: Payload = b"") -> Any:
        self.calls.append((member_id, type(message)))
        failure = self.failures.pop((member_id, type(message)), None)
        if failure is not None:
            raise failure
        match message:
            case CloseForChange():
                return TableUse(member_id not in self.users)
            case AbortStagedLoad():
                return LoadDropped(True)
            case CatchUp():
                await self.together.wait()
                return CaughtUp(True)
            case CreateStoredTable(partitions=partitions):
                self.hosted[member_id] = tuple(partitions)
        assert operation_of(message).reply is Acknowledged
        return Acknowledged()

    async def is_gone(self, member_id: str, timeout_s: float) -> bool:
        return member_id in self.gone


class World:
    """Three members."""

    def __init__(self) -> None:
        self.peers = FakePeers()
        self.lost: list[str] = []
        self.state = ClusterState(self.peers, self.lost.append, LeaseTimes(5.0))
        loads, statistics = LoadPublisher(self.state, bool), StatisticsCache(self.peers, lambda _: None)
        self.commands = TableCommands(self.state, loads, nullcontext, statistics, ThreadPoolExecutor(1))

    def asked(self, member_id: str) -> list[type[Message[Any]]]:
        """What a member was asked, but for topologies."""
        return [kind for member, kind in self.peers.calls if member == member_id and kind is not TakeTopology]


def run(work: Callable[[World], Awaitable[None]]) -> World:
    async def main() -> World:
        world = World()
        for member in ("m1", "m2", "m3"):
            await world.state.change(MemberJoined(MemberAddress(member, "127.0.0.1", 7000)))
        await work(world)
        return world

    return asyncio.run(main())


def wants_to_leave(world: World, *members: str) -> None:
    world.state.leaving = world.state.leaving.asked(members)


async def create(world: World) -> None:
    await world.commands.create(TABLE, if_not_exists=False, or_replace=False)


def test_a_table_counts_once_every_member_has_it() -> None:
    world = run(create)
    table = world.state.catalog.table("T")
    assert table.table_id == 1
    assert all(world.asked(member) == [CreateStoredTable] for member in ("m1", "m2", "m3"))
    assert list(world.state.topology.owners) == [table.scheme.affinity_group()]


def test_a_name_is_taken_once() -> None:
    async def twice(world: World) -> None:
        await create(world)
        await world.commands.create(TABLE, if_not_exists=True, or_replace=False)
        with pytest.raises(TableExistsError):
            await create(world)

    assert run(twice).asked("m1") == [CreateStoredTable]


def test_a_table_goes_when_the_one_in_its_place_is_there() -> None:
    async def replaced(world: World) -> None:
        await create(world)
        await world.commands.create(structs.replace(TABLE, name="T"), if_not_exists=False, or_replace=True)

    world = run(replaced)
    assert [(table.name, table.table_id) for table in world.state.catalog.tables()] == [("T", 2)]
    assert all(
        world.asked(member) == [CreateStoredTable, CreateStoredTable, DropStoredTable] for member in ("m1", "m2", "m3")
    )
    assert list(world.state.topology.owners) == [TABLE.scheme.affinity_group()]


def test_a_table_stays_when_the_one_in_its_place_is_refused() -> None:
    async def refused(world: World) -> None:
        await create(world)
        world.peers.failures["m2", CreateStoredTable] = DeadlineError("too slow")
        with pytest.raises(DeadlineError):
            await world.commands.create(TABLE, if_not_exists=False, or_replace=True)

    world = run(refused)
    assert [table.table_id for table in world.state.catalog.tables()] == [1]
    assert list(world.state.topology.owners) == [TABLE.scheme.affinity_group()]


def test_nothing_is_left_of_a_table_that_a_member_refuses() -> None:
    async def refused(world: World) -> None:
        world.peers.failures["m2", CreateStoredTable] = DeadlineError("too slow")
        with pytest.raises(DeadlineError, match="too slow"):
            await create(world)

    world = run(refused)
    assert (world.state.catalog.tables(), dict(world.state.topology.owners)) == ((), {})
    assert all(world.asked(member) == [CreateStoredTable, DropStoredTable] for member in ("m1", "m2", "m3"))


def test_the_survivors_are_asked_anew_under_another_id() -> None:
    async def with_a_loss(world: World) -> None:
        world.peers.failures["m2", CreateStoredTable] = MemberLostError("gone", member="m2")
        world.peers.gone.add("m2")
        await create(world)

    world = run(with_a_loss)
    assert (world.lost, [member.id for member in world.state.lost]) == (["m2"], ["m2"])
    assert world.state.catalog.table("t").table_id == 2
    assert world.asked("m3") == [CreateStoredTable, DropStoredTable, CreateStoredTable]
    assert set(world.state.topology.ownership(TABLE.scheme.affinity_group()).members) == {"m1", "m3"}


def test_a_dropped_table_leaves_no_owners() -> None:
    async def both(world: World) -> None:
        await create(world)
        await world.commands.drop("t", if_exists=False)
        await world.commands.drop("t", if_exists=True)
        with pytest.raises(UnknownTableError):
            await world.commands.drop("t", if_exists=False)

    world = run(both)
    assert (world.state.catalog.tables(), dict(world.state.topology.owners)) == ((), {})
    assert world.asked("m1") == [CreateStoredTable, DropStoredTable]


def drop_unused(world: World, table_id: int = 1) -> Awaitable[bool]:
    return world.commands.drop_unused("T", table_id)


@pytest.mark.parametrize("table_id", [pytest.param(1, id="unused"), pytest.param(2, id="another")])
def test_an_unused_table_goes_if_it_is_the_one_that_was_created(table_id: int) -> None:
    async def both(world: World) -> None:
        await create(world)
        assert await drop_unused(world, table_id)
        assert await drop_unused(world, table_id)  # asked again

    world = run(both)
    assert len(world.state.catalog.tables()) == table_id - 1
    asked = [CreateStoredTable, CloseForChange, DropStoredTable, AbortStagedLoad]
    assert world.asked("m1") == (asked if table_id == 1 else asked[:1])


def test_a_table_that_one_member_knows_to_be_used_stays() -> None:
    async def used(world: World) -> None:
        await create(world)
        world.peers.users.add("m2")
        assert not await drop_unused(world)

    world = run(used)
    assert [table.name for table in world.state.catalog.tables()] == ["t"]
    assert all(
        world.asked(member) == [CreateStoredTable, CloseForChange, AbortStagedLoad] for member in ("m1", "m2", "m3")
    )


def test_every_member_lets_writes_in_again_if_one_cannot_be_asked() -> None:
    async def failing(world: World) -> None:
        await create(world)
        world.peers.failures["m2", CloseForChange] = DeadlineError("too slow")
        with pytest.raises(DeadlineError, match="too slow"):
            await drop_unused(world)

    world = run(failing)
    assert [table.name for table in world.state.catalog.tables()] == ["t"]
    assert all(world.asked(member)[-1] is AbortStagedLoad for member in ("m1", "m2", "m3"))


@pytest.mark.parametrize("backups", [0, 1])
def test_survivors_decide_about_a_table_only_if_they_have_all_of_it(backups: int) -> None:
    async def with_a_loss(world: World) -> None:
        await world.commands.create(structs.replace(TABLE, backups=backups), if_not_exists=False)
        world.peers.failures["m2", CloseForChange] = MemberLostError("gone", member="m2")
        world.peers.gone.add("m2")
        assert await drop_unused(world) is bool(backups)

    assert len(run(with_a_loss).state.catalog.tables()) == 1 - backups


@pytest.mark.parametrize(
    ("table_id", "cells", "error", "words"),
    [
        pytest.param(9, [1], TopologyChangedError, "dropped and created again", id="another-table"),
        pytest.param(1, ["x"], ProtocolError, "cells are numbers", id="no-numbers"),
    ],
)
def test_ranges_that_cannot_be_made(table_id: int, cells: list[Any], error: type[Exception], words: str) -> None:
    async def made(world: World) -> None:
        await create(world)
        with pytest.raises(error, match=words):
            await world.commands.make_ranges("t", table_id, cells)

    run(made)


@pytest.mark.parametrize("lost", [pytest.param([], id="alive-or-late"), pytest.param(["m2"], id="gone")])
def test_whether_a_member_is_alive(lost: list[str]) -> None:
    async def check(world: World) -> None:
        world.peers.gone.update(lost)
        await world.state.check_member("m2")

    assert run(check).lost == lost


def test_a_connection_that_breaks_once_costs_nobody_a_member() -> None:
    async def with_a_reset(world: World) -> None:
        world.peers.failures["m2", CreateStoredTable] = MemberLostError("reset")
        creating = asyncio.create_task(create(world))
        while world.asked("m2") != [CreateStoredTable, CreateStoredTable]:
            world.state.heard("m2", stalled_s=0.0)
            await asyncio.sleep(0)
        await creating

    world = run(with_a_reset)
    assert (world.lost, world.state.catalog.table("t").table_id) == ([], 1)


def test_a_member_that_is_lost_after_it_has_answered_owns_nothing_of_the_new_table() -> None:
    async def with_a_loss(world: World) -> None:
        answered = world.peers.call

        async def call(member_id: str, message: Message[Any], payload: Payload = b"") -> Any:
            if (member_id, type(message)) == ("m3", CreateStoredTable) and not world.lost:
                world.state.apply(MemberLost("m2"))
            return await answered(member_id, message, payload)

        world.peers.call = call  # type: ignore[method-assign]
        await create(world)

    world = run(with_a_loss)
    assert set(world.state.topology.ownership(TABLE.scheme.affinity_group()).members) == {"m1", "m3"}
    assert world.asked("m1") == [CreateStoredTable, DropStoredTable, CreateStoredTable]


@pytest.mark.parametrize("when", ["before", "meanwhile", "and no longer"])
def test_members_host_what_they_own_of_a_table_that_is_created_while_one_is_to_leave(when: str) -> None:
    """Seed 3490 of the simulation: members were told owners that included the one that was to leave."""

    async def with_one_that_leaves(world: World) -> None:
        if when != "meanwhile":
            wants_to_leave(world, "m3")
        answered = world.peers.call

        async def call(member_id: str, message: Message[Any], payload: Payload = b"") -> Any:
            if member_id == "m1" and type(message) is CreateStoredTable:
                wants_to_leave(world, *(["m3"] if when == "meanwhile" else []))
            return await answered(member_id, message, payload)

        if when != "before":
            world.peers.call = call  # type: ignore[method-assign]
        await world.commands.create(structs.replace(TABLE, backups=1), if_not_exists=False)

    world = run(with_one_that_leaves)
    table = world.state.catalog.table("t")
    owned = {member: tuple(copies_of(world.state.topology, table, member)) for member in ("m1", "m2", "m3")}
    assert world.peers.hosted == owned
    assert bool(owned["m3"]) is (when == "and no longer")


def test_a_member_that_comes_back_is_not_lost_any_more() -> None:
    async def leave_and_join(world: World) -> None:
        await world.state.change(MemberLost("m2"))
        assert [member.id for member in world.state.lost] == ["m2"]
        await world.state.change(MemberJoined(MemberAddress("m2", "127.0.0.1", 7000)))

    assert run(leave_and_join).state.lost == []


def test_members_follow_a_lost_alter_table_all_at_once() -> None:
    async def follow(world: World) -> None:
        async with asyncio.timeout(10):  # neither answers before the other is asked
            await world.commands.follow(TABLE, ["m1", "m3"])

    world = run(follow)
    assert [world.asked(member) for member in ("m1", "m2", "m3")] == [[CatchUp], [], [CatchUp]]
