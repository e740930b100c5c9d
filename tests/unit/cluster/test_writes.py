"""Direct writes and their copies: the parts of several members on one event loop, over connections that can be held up
or cut.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import pytest
from links import Answers, Links

from secateur.cluster import ClusterSettings
from secateur.cluster.controller import CopyLost, MemberLost, advance
from secateur.cluster.member import MemberStorage, MemberWrites, Replication
from secateur.engine_limits import EngineLimits
from secateur.errors import MemberLostError, ProtocolError, TopologyChangedError
from secateur.partitioning.schemes import HashComponent, PartitionScheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.topology import MemberAddress, Topology, assign
from secateur.partitioning.types import SqlType, TypeKind
from secateur.protocol import (
    ChangedMany,
    GetCopyTails,
    Role,
    TellSettled,
    WriteCopies,
    WriteCopy,
    WriteMany,
    WriteRows,
    operation_of,
)
from secateur.storage import ChangeOperation
from secateur.wire import Payload, PeerInfo, Request, ShortTable, encode_rows, encode_table

BIGINT = SqlType(TypeKind.BIGINT)
SCHEME = PartitionScheme(hashes=(HashComponent(("id",), 1),), types=(("id", BIGINT),))
GROUP = SCHEME.affinity_group()
TABLE = TableDef("t", 1, (Column("id", BIGINT, nullable=False),), ("id",), SCHEME, 0, False)
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False)])


M = TypeVar("M", bound=msgspec.Struct)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())}, schema=SCHEMA)


def request(message: M, payload: Payload = b"") -> Request[M]:
    return Request(
        operation_of(message), message, memoryview(bytes(payload)), PeerInfo(1, "test", "test", False, Role.MEMBER)
    )  # type: ignore[arg-type]


class Member:
    """The parts of a member that write and copy."""

    def __init__(self, cluster: Cluster, name: str, limits: EngineLimits) -> None:
        storage = MemberStorage(name, ClusterSettings(engine_limits=limits))
        self.store, self.places = storage.store, storage.places
        self.replication = Replication(storage, cluster.links.of(name), cluster.out_of_sync)
        self.writes = MemberWrites(storage, self.replication)
        self.store.create_table(TABLE, [0])
        self.places.add_table(TABLE)
        self.answers: Answers = {
            WriteCopy: self.replication.received.write_copy,
            WriteCopies: self.replication.received.write_copies,
            GetCopyTails: self.replication.received.tails,
            TellSettled: self.replication.received.copies_settled,
        }

    def take(self, topology: Topology) -> None:
        self.places.update(topology)
        self.replication.update(topology)

    @property
    def ids(self) -> list[int]:
        return sorted(self.store.relation(1, [0]).column("id").to_pylist())


class Cluster:
    """A table of one partition with a copy on every member; m1 is the first primary."""

    def __init__(self, *names: str, limits: EngineLimits) -> None:
        self.links = Links()
        self.topology = Topology(1, tuple(MemberAddress(name, "127.0.0.1", 1) for name in names), {})
        self.members = {name: Member(self, name, limits) for name in names}
        self.links.answers.update({name: member.answers for name, member in self.members.items()})
        self._announce(Topology(2, self.topology.members, {GROUP: assign(1, names, len(names))}))

    def lose(self, name: str) -> Member:
        """A member dies; what it has sent and has not arrived never does."""
        self.links.lose(name)
        member = self.members.pop(name)
        self._announce(advance(self.topology, MemberLost(name)))
        return member

    async def out_of_sync(self, table_id: int, partition: int, member: str) -> None:
        assert table_id == TABLE.table_id
        self._announce(advance(self.topology, CopyLost(GROUP, partition, member)))

    async def write(self, name: str, number: int, change_id: str = "", mode: str = "append") -> int:
        """What a client asks for; returns the rows."""
        asked = WriteRows(1, 0, mode, change_id or f"c{number}")
        return (await self.members[name].writes.write(request(asked, encode_table(rows(number))))).message.rows

    async def write_many(self, name: str, *numbers: int) -> ChangedMany:
        """What a client asks for about several rows at once."""
        writes = [(0, encode_rows(ShortTable([[number]], 1))) for number in numbers]
        asked = WriteMany(1, "append", f"many {numbers}", writes)
        return (await self.members[name].writes.write_many(request(asked))).message

    def count_copies(self, name: str) -> Counter[type]:
        """The messages with changes that reach a member from now on, by their type."""
        seen: Counter[type] = Counter()
        answers = self.links.answers[name]

        def counted(kind: type) -> Callable[[Request[Any]], Any]:
            return lambda asked: (seen.update([kind]), answers[kind](asked))[1]

        self.links.answers[name] = {**answers, WriteCopy: counted(WriteCopy), WriteCopies: counted(WriteCopies)}
        return seen

    async def until_equal(self) -> list[int]:
        """The rows of all copies, once they have the same."""
        async with asyncio.timeout(5):
            while len({tuple(member.ids) for member in self.members.values()}) > 1:  # noqa: ASYNC110 - no event
                await asyncio.sleep(0)
        return next(iter(self.members.values())).ids

    def _announce(self, topology: Topology) -> None:
        self.topology = topology
        for member in self.members.values():
            member.take(topology)

    async def close(self) -> None:
        for member in self.members.values():
            await member.replication.close()


async def turns(count: int = 30) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def with_members(*names: str, **limits: float) -> Callable[[Callable[[Cluster], Awaitable[None]]], Callable[[], None]]:
    def decorate(test: Callable[[Cluster], Awaitable[None]]) -> Callable[[], None]:
        async def on_loop() -> None:
            cluster = Cluster(*names, limits=EngineLimits(**limits))  # type: ignore[arg-type]
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


def start(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    return asyncio.create_task(work)


@with_members("m1", "m2", "m3")
async def test_a_write_is_acknowledged_when_all_copies_have_it(cluster: Cluster) -> None:
    release = cluster.links.hold("m1", "m3")
    writing = start(cluster.write("m1", 1))
    await turns()
    assert not writing.done()
    assert [member.ids for member in cluster.members.values()] == [[1], [1], []]
    release.set()
    assert await writing == 1
    assert cluster.members["m3"].ids == [1]


@with_members("m1", "m2", "m3")
async def test_a_write_that_is_asked_for_again_at_the_successor_is_on_all_copies_when_it_is_acknowledged(
    cluster: Cluster,
) -> None:
    cluster.links.hold("m1", "m3")
    writing = start(cluster.write("m1", 1, "c"))
    await turns()
    assert cluster.members["m2"].ids == [1]
    cluster.lose("m1")
    writing.cancel()
    release = cluster.links.hold("m2", "m3")
    again = start(cluster.write("m2", 1, "c"))
    await turns()
    assert not again.done(), "it is known, but m3 is without it"
    release.set()
    assert await again == 1
    assert cluster.members["m3"].ids == [1]
    cluster.lose("m2")
    assert cluster.members["m3"].ids == [1]


@pytest.mark.parametrize("reached", ["m2", "m3"])
def test_copies_are_equal_after_a_loss_though_nobody_asks_again(reached: str) -> None:
    @with_members("m1", "m2", "m3")
    async def run(cluster: Cluster) -> None:
        await cluster.write("m1", 1)
        cluster.links.hold("m1", "m3" if reached == "m2" else "m2")
        writing = start(cluster.write("m1", 2))
        await turns()
        cluster.lose("m1")
        writing.cancel()
        assert await cluster.until_equal() == [1, 2]
        assert await cluster.write("m2", 3) == 1
        assert await cluster.until_equal() == [1, 2, 3]

    run()


@with_members("m1", "m2", "m3")
async def test_a_successor_takes_no_writes_before_it_has_what_the_others_have(cluster: Cluster) -> None:
    cluster.links.hold("m1", "m2")
    lost = start(cluster.write("m1", 1, "c"))
    await turns()
    release = cluster.links.hold("m2", "m3")
    cluster.lose("m1")
    lost.cancel()
    again, other = start(cluster.write("m2", 1, "c")), start(cluster.write("m2", 2))
    await turns()
    assert cluster.members["m2"].ids == []
    release.set()
    assert await asyncio.gather(again, other) == [1, 1]
    assert cluster.members["m2"].ids == cluster.members["m3"].ids == [1, 2]


@with_members("m1", "m2")
async def test_a_copy_whose_connection_broke_gets_what_it_missed_in_order(cluster: Cluster) -> None:
    cluster.links.cut.add(("m1", "m2"))
    assert await asyncio.gather(*(cluster.write("m1", number) for number in range(5))) == [1] * 5
    assert cluster.members["m2"].ids == [0, 1, 2, 3, 4]
    assert not cluster.members["m1"].places.latch(1)._writes


@with_members("m1", "m2", "m3")
async def test_a_loss_while_a_write_waits_for_it_releases_the_write(cluster: Cluster) -> None:
    cluster.links.hold("m1", "m3")
    writing = start(cluster.write("m1", 1))
    await turns()
    cluster.lose("m3")
    assert await writing == 1


@with_members("m1", "m2")
async def test_a_primary_that_was_left_behind_acknowledges_nothing(cluster: Cluster) -> None:
    await cluster.write("m1", 1)
    old = cluster.members["m1"]
    cluster.topology = advance(cluster.topology, MemberLost("m1"))
    cluster.members["m2"].take(cluster.topology)  # m1 lives, and does not hear of it
    with pytest.raises(MemberLostError, match="the rows are visible on m1, but m2 refused their copy"):
        await cluster.write("m1", 2)
    assert cluster.members["m2"].ids == [1]
    with pytest.raises(TopologyChangedError, match="nothing was written: its copies follow another primary than m1"):
        await cluster.write("m1", 3)
    assert old.ids == [1, 2]


@with_members("m1", "m2")
async def test_a_copy_that_cannot_be_caught_up_leaves_the_ownership(cluster: Cluster) -> None:
    await cluster.write("m1", 1)
    cluster.members["m2"].store.apply(
        1, 0, ChangeOperation.UPSERT, rows(7)
    )  # a difference that should not be: the next append fails there
    assert await cluster.write("m1", 7) == 1
    holders = cluster.topology.ownership(GROUP).holders(0)
    assert holders == ("m1", "m2 (out of sync)")
    assert await cluster.write("m1", 8) == 1
    assert cluster.members["m2"].ids == [1, 7]


@with_members("m1", "m2", confirm_wait_s=0.01)
async def test_a_copy_out_of_reach_is_an_error_in_the_end_and_is_caught_up_later(cluster: Cluster) -> None:
    release = cluster.links.hold("m1", "m2")
    cluster.links.cut.add(("m1", "m2"))
    writing = start(cluster.write("m1", 1))
    await turns()
    release.set()
    again = cluster.links.held["m1", "m2"] = asyncio.Event()
    with pytest.raises(MemberLostError, match="visible on m1, but their backup on m2 was not confirmed within"):
        await writing
    latch = cluster.members["m1"].places.latch(1)
    closing = start(latch.close("load"))
    await turns()
    assert not closing.done(), "a load must not overtake the write on m2"
    again.set()
    await closing
    assert await cluster.until_equal() == [1]


@with_members("m1", "m2")
async def test_an_unexpected_error_of_a_copy_does_not_hold_a_write_up(cluster: Cluster) -> None:
    def fail(_: Request[WriteCopy]) -> Any:
        raise ValueError("a bug")

    cluster.links.answers["m2"] = {**cluster.members["m2"].answers, WriteCopy: fail}
    async with asyncio.timeout(5):
        assert await cluster.write("m1", 1) == 1
    assert cluster.topology.ownership(GROUP).holders(0) == ("m1", "m2 (out of sync)")
    assert not cluster.members["m1"].places.latch(1)._writes


@with_members("m1", "m2", "m3")
async def test_an_unexpected_error_while_a_member_takes_over_does_not_close_the_partition(cluster: Cluster) -> None:
    answers = cluster.members["m3"].answers
    failures = [ValueError("a bug")]

    def fail_once(asked: Request[GetCopyTails]) -> Any:
        if failures:
            raise failures.pop()
        return answers[GetCopyTails](asked)

    cluster.links.answers["m3"] = {**answers, GetCopyTails: fail_once}
    await cluster.write("m1", 1)
    cluster.lose("m1")
    async with asyncio.timeout(5):
        assert await cluster.write("m2", 2) == 1
    assert await cluster.until_equal() == [1, 2]


@with_members("m1", "m2", settled_after_s=0.0)
async def test_what_all_copies_have_is_not_kept_for_ever(cluster: Cluster) -> None:
    await cluster.write("m1", 1)
    backup = cluster.members["m2"].replication._replicas[1, 0]
    while backup.unsettled:  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert backup.tail(0, 0) == ()


@with_members("m1", "m2")
async def test_a_write_of_a_partition_that_is_not_there_names_those_that_are(cluster: Cluster) -> None:
    with pytest.raises(ProtocolError, match="t has the partitions 0 to 0, not 5"):
        await cluster.members["m1"].writes.write(request(WriteRows(1, 5, "append"), encode_table(rows(1))))


@with_members("m1", "m2", "m3")
async def test_changes_of_one_frame_go_to_each_copy_in_one_message(cluster: Cluster) -> None:
    seen = [cluster.count_copies(name) for name in ("m2", "m3")]
    assert await cluster.write_many("m1", 3, 1, 2) == ChangedMany([1, 1, 1])
    assert [member.ids for member in cluster.members.values()] == [[1, 2, 3]] * 3
    assert seen == [{WriteCopies: 1}, {WriteCopies: 1}]
    assert await cluster.write_many("m1", 4) == ChangedMany([1])
    assert seen == [{WriteCopies: 1, WriteCopy: 1}, {WriteCopies: 1, WriteCopy: 1}]


@with_members("m1", "m2")
async def test_changes_of_one_turn_go_in_one_message(cluster: Cluster) -> None:
    seen = cluster.count_copies("m2")
    assert await cluster.write_many("m1", *range(100)) == ChangedMany([1] * 100)
    assert cluster.members["m2"].ids == list(range(100))
    assert seen == {WriteCopies: 4}


@with_members("m1", "m2", "m3")
async def test_changes_of_one_frame_are_acknowledged_when_all_copies_have_them(cluster: Cluster) -> None:
    release = cluster.links.hold("m1", "m3")
    writing = start(cluster.write_many("m1", 1, 2))
    await turns()
    assert not writing.done()
    assert [member.ids for member in cluster.members.values()] == [[1, 2], [1, 2], []]
    release.set()
    assert await writing == ChangedMany([1, 1])
    assert cluster.members["m3"].ids == [1, 2]


@with_members("m1", "m2")
async def test_a_copy_that_did_not_get_a_message_of_several_changes_gets_them_in_order(cluster: Cluster) -> None:
    cluster.links.cut.add(("m1", "m2"))
    both = await asyncio.gather(cluster.write_many("m1", 5, 4, 3), cluster.write_many("m1", 1, 2))
    assert both == [ChangedMany([1, 1, 1]), ChangedMany([1, 1])]
    assert cluster.members["m2"].ids == [1, 2, 3, 4, 5]
    assert not cluster.members["m1"].places.latch(1)._writes


@with_members("m1", "m2")
async def test_a_copy_that_cannot_make_one_of_several_changes_leaves_the_ownership(cluster: Cluster) -> None:
    seen = cluster.count_copies("m2")
    cluster.members["m2"].store.apply(1, 0, ChangeOperation.UPSERT, rows(7))  # the next append of it fails there
    assert await cluster.write_many("m1", 5, 6, 7, 8) == ChangedMany([1, 1, 1, 1])
    assert cluster.topology.ownership(GROUP).holders(0) == ("m1", "m2 (out of sync)")
    assert cluster.members["m2"].ids == [5, 6, 7], "nothing behind the change that it lacks"
    assert seen[WriteCopies] == 1
    assert seen[WriteCopy] >= 1, "the change that failed says why"


@with_members("m1", "m2")
async def test_changes_that_wait_for_a_load_at_a_copy_are_made_behind_it_in_order(cluster: Cluster) -> None:
    """The primary has published a load and makes changes, of which the copy hears before it publishes the load."""
    latch = cluster.members["m2"].places.latch(1)
    await latch.close("load")
    for name in ("m1", "m2"):
        loads = cluster.members[name].store.loads
        loads.stage("load", 1, 0, 0, rows(1))
        loads.prepare("load", 1, "upsert", {0: [0]})
    cluster.members["m1"].store.loads.publish("load", 1)
    writing = start(cluster.write_many("m1", 2, 3))
    await turns()
    assert not writing.done()
    assert cluster.members["m2"].ids == []
    cluster.members["m2"].store.loads.publish("load", 1)
    latch.open("load")
    assert await writing == ChangedMany([1, 1])
    assert cluster.members["m2"].ids == [1, 2, 3]


@with_members("m1", "m2", "m3")
async def test_several_changes_are_known_by_their_ids_at_the_successor(cluster: Cluster) -> None:
    cluster.links.hold("m1", "m3")
    writing = start(cluster.write_many("m1", 1, 2))
    await turns()
    cluster.lose("m1")
    writing.cancel()
    assert [await cluster.write("m2", number, f"many (1, 2).{at}") for at, number in enumerate((1, 2))] == [1, 1]
    assert await cluster.until_equal() == [1, 2]


@with_members("m1", "m2")
async def test_a_primary_that_was_left_behind_acknowledges_none_of_several_changes(cluster: Cluster) -> None:
    await cluster.write("m1", 1)
    cluster.topology = advance(cluster.topology, MemberLost("m1"))
    cluster.members["m2"].take(cluster.topology)  # m1 lives, and does not hear of it
    assert await cluster.write_many("m1", 2, 3) == ChangedMany([], unconfirmed=2)
    assert cluster.members["m2"].ids == [1]
