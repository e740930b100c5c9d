"""Loads whose controller is gone: gates open again, and living members have the same outcome, whatever had arrived
where.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa
import pytest
from links import Answers, Links

from secateur.cluster import ClusterSettings
from secateur.cluster.controller import LoadPublication, LoadPublisher
from secateur.cluster.member import MemberLoads, MemberStorage, Replication
from secateur.cluster.termination_protocol import TerminationProtocol
from secateur.cluster.write_latch import LoadLeases
from secateur.errors import Error, LoadFailedError
from secateur.partitioning.schemes import HashComponent, PartitionScheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.topology import MemberAddress, Topology, assign
from secateur.partitioning.types import SqlType, TypeKind
from secateur.protocol import (
    AbortStagedLoad,
    DecideLoad,
    GetLoadOutcome,
    HoldLoad,
    Message,
    Operation,
    PrepareLoad,
    PublishPreparedLoad,
    Role,
    SettleLoad,
    StageCopy,
    StageRows,
    StandingOfLoad,
)
from secateur.wire import PeerInfo, Request, encode_table

BIGINT = SqlType(TypeKind.BIGINT)
SCHEME = PartitionScheme(hashes=(HashComponent(("id",), 1),), types=(("id", BIGINT),))
TABLE = TableDef("t", 1, (Column("id", BIGINT, nullable=False),), ("id",), SCHEME, 2, False)
ROWS = encode_table(
    pa.table({"id": pa.array([1], pa.int64())}, schema=pa.schema([pa.field("id", pa.int64(), nullable=False)]))
)
R = TypeVar("R")
NAMES = ("m1", "m2", "m3")
CONNECTION = PeerInfo(7, "test", "controller", False, Role.CONTROLLER)


class Member:
    """The loads of a member."""

    def __init__(self, cluster: Cluster, name: str, lease_s: float) -> None:
        storage, peers = MemberStorage(name, ClusterSettings()), cluster.links.of(name)
        self.store, self.places = storage.store, storage.places
        replication = Replication(storage, peers, cluster.out_of_sync)
        protocol = TerminationProtocol(
            name, self.store.loads, self.places.member_ids, lease_s=lease_s, reconnect_s=0.0, pause_s=0.001
        )
        self.leases = LoadLeases(protocol, peers)
        loads = MemberLoads(storage, peers, replication, self.leases, cluster.executor)
        self.store.create_table(TABLE, [0])
        self.places.add_table(TABLE)
        self.latch = self.places.latch(1)
        self.answers: Answers = {
            StageRows: loads.stage,
            StageCopy: loads.stage_copy,
            PrepareLoad: loads.prepare,
            PublishPreparedLoad: loads.publish,
            AbortStagedLoad: loads.abort,
            GetLoadOutcome: loads.outcome,
            HoldLoad: self.leases.renew,
            StandingOfLoad: self.leases.standing,
            DecideLoad: self.leases.decide,
            SettleLoad: self.leases.settle,
        }

    @property
    def outcome(self) -> tuple[list[int], int]:
        """The rows, and the number of the last publication."""
        return self.store.relation(1, [0]).column("id").to_pylist(), self.store.data_version(1).published


class Cluster:
    """Three members with copies of one partition, and a controller that dies after so many of its requests."""

    def __init__(self, executor: ThreadPoolExecutor, *, requests: int = 1_000_000, lease_s: float = 1000.0) -> None:
        self.executor = executor
        self.links = Links()
        self.dead, self.silent = self.links.dead, self.links.silent
        self.requests = requests
        self.members = {name: Member(self, name, lease_s) for name in NAMES}
        self.links.answers.update({name: member.answers for name, member in self.members.items()})
        topology = Topology(
            2,
            tuple(MemberAddress(name, "127.0.0.1", 1) for name in NAMES),
            {SCHEME.affinity_group(): assign(1, NAMES, 3)},
        )
        for member in self.members.values():
            member.places.update(topology)
        self.controller = self.links.of("controller", peer=CONNECTION, may=self.controller_may)
        self.publisher = LoadPublisher(self.controller, lambda name: name not in self.dead)

    def controller_may(self, message: Message[Any]) -> bool:
        self.requests -= self.requests > 0 and not isinstance(message, HoldLoad)
        return self.requests > 0

    async def out_of_sync(self, table_id: int, partition: int, member: str) -> None:
        raise AssertionError(f"{member} has a copy of partition {partition} of table {table_id} that differs")

    async def stage(self) -> LoadPublication:
        await self.links.of("client").ask("m1", StageRows("l", 1, 0, [(0, 1)]), ROWS)
        return LoadPublication("l", 41, TABLE, "append", {0: [0]}, {name: frozenset({0}) for name in NAMES})

    async def ask(self, member: str, message: Message[R]) -> R:
        return (await self.controller.ask(member, message)).message

    async def prepare(self, *names: str) -> None:
        for name in names:
            await self.ask(name, PrepareLoad("l", 1, "append", [(0, [0])]))

    def lose_controller(self) -> None:
        """Its connections are gone."""
        for member in self.members.values():
            member.leases.connection_gone(CONNECTION.connection_id)

    async def all_open(self) -> set[tuple[tuple[int, ...], int]]:
        """The outcomes of all living members once their gates are open."""
        living = [member for name, member in self.members.items() if name not in self.dead | self.silent]
        for member in living:
            await member.latch.wait_open()
        return {(tuple(rows), number) for rows, number in (member.outcome for member in living)}

    async def close(self) -> None:
        for member in self.members.values():
            await member.leases.stop()


def on_cluster(**options: Any) -> Callable[[Callable[[Cluster], Awaitable[None]]], Callable[[], None]]:
    def decorate(test: Callable[[Cluster], Awaitable[None]]) -> Callable[[], None]:
        async def on_loop() -> None:
            with ThreadPoolExecutor(1) as executor:
                cluster = Cluster(executor, **options)
                try:
                    async with asyncio.timeout(20):
                        await test(cluster)
                finally:
                    await cluster.close()

        def run() -> None:
            asyncio.run(on_loop())

        run.__name__ = test.__name__
        return run

    return decorate


NOTHING = {((), 0)}
LOADED = {((1,), 41)}


@on_cluster()
async def test_a_load_that_is_prepared_everywhere_and_published_nowhere_is_aborted(cluster: Cluster) -> None:
    await cluster.stage()
    await cluster.prepare(*NAMES)
    assert all(member.latch.is_closed for member in cluster.members.values())
    cluster.lose_controller()
    assert await cluster.all_open() == NOTHING
    with pytest.raises(LoadFailedError, match="was aborted"):
        await cluster.ask("m1", PublishPreparedLoad("l", 41))  # the controller was only slow


@on_cluster()
async def test_a_load_that_one_member_has_published_is_published_by_all_under_its_number(cluster: Cluster) -> None:
    await cluster.stage()
    await cluster.prepare(*NAMES)
    await cluster.ask("m3", PublishPreparedLoad("l", 41))
    cluster.lose_controller()
    assert await cluster.all_open() == LOADED


@on_cluster()
async def test_members_that_have_decided_a_load_know_how_many_rows_it_has_changed_everywhere(cluster: Cluster) -> None:
    """The member that was told may be lost before the client asks again."""
    await cluster.stage()
    await cluster.prepare(*NAMES)
    await cluster.ask("m3", PublishPreparedLoad("l", 41, 7))
    cluster.lose_controller()
    assert await cluster.all_open() == LOADED
    assert [(await cluster.ask(name, GetLoadOutcome("l"))).rows for name in NAMES] == [7, 7, 7]


@on_cluster()
async def test_a_gate_that_was_closed_for_a_load_without_rows_yet_opens(cluster: Cluster) -> None:
    await cluster.members["m2"].leases.close("l", 1, cluster.members["m2"].latch, CONNECTION.connection_id)
    cluster.lose_controller()
    assert await cluster.all_open() == NOTHING
    with pytest.raises(LoadFailedError, match="was aborted"):
        await cluster.prepare("m2")


@on_cluster()
async def test_the_lease_ends_with_the_connection_of_the_controller(cluster: Cluster) -> None:
    await cluster.stage()
    await cluster.prepare(*NAMES)
    for member in cluster.members.values():
        member.leases.connection_gone(CONNECTION.connection_id + 1)
        assert member.latch.is_closed
    cluster.lose_controller()
    assert await cluster.all_open() == NOTHING


@on_cluster(lease_s=0.001)
async def test_the_lease_ends_when_the_controller_does_not_renew_it(cluster: Cluster) -> None:
    await cluster.stage()
    with suppress(LoadFailedError):  # the lease may end while others prepare
        await cluster.prepare(*NAMES)
    assert await cluster.all_open() == NOTHING


@on_cluster()
async def test_a_renewal_over_another_connection_keeps_the_gate_closed(cluster: Cluster) -> None:
    await cluster.stage()
    await cluster.prepare("m1")
    member = cluster.members["m1"]
    member.leases.renew(
        Request(Operation.HOLD_LOAD, HoldLoad("l"), memoryview(b""), replace(CONNECTION, connection_id=8))
    )
    cluster.lose_controller()
    for _ in range(20):
        await asyncio.sleep(0)
    assert member.latch.is_closed


@on_cluster()
async def test_a_member_that_is_silent_is_waited_for_since_it_may_have_published(cluster: Cluster) -> None:
    await cluster.stage()
    await cluster.prepare(*NAMES)
    await cluster.ask("m1", PublishPreparedLoad("l", 41))
    cluster.silent.add("m1")
    cluster.lose_controller()
    opening = asyncio.create_task(cluster.all_open())
    for _ in range(100):
        await asyncio.sleep(0)
    assert not opening.done()
    cluster.silent.clear()
    assert await opening == LOADED


@on_cluster()
async def test_a_member_whose_process_has_ended_is_not_waited_for(cluster: Cluster) -> None:
    await cluster.stage()
    await cluster.prepare(*NAMES)
    cluster.dead.add("m1")
    cluster.lose_controller()
    assert await cluster.all_open() == NOTHING


@on_cluster()
async def test_one_load_cannot_hold_two_tables(cluster: Cluster) -> None:
    member = cluster.members["m1"]
    await member.leases.close("l", 1, member.latch, 7)
    with pytest.raises(LoadFailedError, match="load l holds table 1, not 2"):
        await member.leases.close("l", 2, member.latch, 7)


@pytest.mark.parametrize("lost", ["", "m1", "m2", "m3"])
@pytest.mark.parametrize("requests", range(1, 8))
def test_law_wherever_the_controller_dies_the_living_have_one_outcome_and_take_writes_again(
    requests: int, lost: str
) -> None:
    @on_cluster(requests=requests)
    async def run(cluster: Cluster) -> None:
        load = await cluster.stage()
        acknowledged = False

        async def publish() -> None:
            nonlocal acknowledged
            with suppress(Error):
                await cluster.publisher.publish(load)
                acknowledged = True

        publishing = asyncio.create_task(publish())
        while cluster.requests and not publishing.done():  # noqa: ASYNC110
            await asyncio.sleep(0)
        if lost:
            cluster.dead.add(lost)
        cluster.lose_controller()
        outcomes = await cluster.all_open()
        publishing.cancel()
        assert outcomes in (NOTHING, LOADED)
        assert not acknowledged or outcomes == LOADED

    run()


@pytest.mark.parametrize("seed", range(20))
def test_law_a_controller_that_was_only_silent_and_members_that_die_meanwhile_leave_one_outcome(seed: int) -> None:
    chance = random.Random(seed)

    @on_cluster(lease_s=chance.choice([0.0, 0.001, 0.003]))
    async def run(cluster: Cluster) -> None:
        load = await cluster.stage()

        async def pause() -> None:
            for _ in range(chance.randrange(12)):
                await asyncio.sleep(chance.choice([0.0, 0.0, 0.0005]))

        async def ask(name: str, message: Message[Any]) -> bool:
            await pause()
            try:
                await cluster.ask(name, message)
            except Error:
                return False
            return True

        prepared = [await ask(name, PrepareLoad("l", 1, "append", [(0, [0])])) for name in NAMES]
        dying = chance.choice(["", "", *NAMES])
        if all(prepared):
            publishing = [
                asyncio.create_task(ask(name, PublishPreparedLoad("l", load.number)))
                for name in chance.sample(NAMES, chance.randrange(4))
            ]
            await pause()
            cluster.dead |= {dying} - {""}
            await asyncio.gather(*publishing)
        assert await cluster.all_open() in (NOTHING, LOADED)

    run()


def test_the_cases_of_the_law_reach_both_outcomes() -> None:
    """The laws above would hold of members that always abort."""
    found = set()
    for requests in itertools.chain(range(1, 9), [50]):

        @on_cluster(requests=requests)
        async def run(cluster: Cluster) -> None:
            publishing = asyncio.create_task(cluster.publisher.publish(await cluster.stage()))
            while cluster.requests and not publishing.done():  # noqa: ASYNC110
                await asyncio.sleep(0)
            publishing.cancel()
            cluster.lose_controller()
            found.add(frozenset(await cluster.all_open()))

        run()
    assert found == {frozenset(NOTHING), frozenset(LOADED)}
