"""Loads on one member, while tables come and go."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import msgspec
import pyarrow as pa
import pytest

from secateur.cluster import ClusterSettings
from secateur.cluster.member import MemberLoads, MemberStorage, MemberWrites, Replication
from secateur.cluster.peers import Peers
from secateur.cluster.termination_protocol import TerminationProtocol
from secateur.cluster.write_latch import LoadLeases
from secateur.errors import LoadFailedError, ProtocolError, TopologyChangedError
from secateur.partitioning.schemes import HashComponent, PartitionScheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.topology import MemberAddress, Topology, assign
from secateur.partitioning.types import SqlType, TypeKind
from secateur.protocol import PrepareLoad, PublishPreparedLoad, Role, StageCopy, StageRows, WriteRows, operation_of
from secateur.storage import MemberStore
from secateur.wire import PeerInfo, Request, encode_table

M = TypeVar("M", bound=msgspec.Struct)

BIGINT = SqlType(TypeKind.BIGINT)
SCHEME = PartitionScheme(hashes=(HashComponent(("id",), 1),), types=(("id", BIGINT),))
TABLE = TableDef("t", 1, (Column("id", BIGINT, nullable=False),), ("id",), SCHEME, 0, False)
ROWS = encode_table(
    pa.table({"id": pa.array([1], pa.int64())}, schema=pa.schema([pa.field("id", pa.int64(), nullable=False)]))
)


def request(message: M, payload: bytes = b"") -> Request[M]:
    return Request(operation_of(message), message, memoryview(payload), PeerInfo(1, "test", "test", False))


async def out_of_sync(table_id: int, partition: int, member: str) -> None:
    raise AssertionError(f"{member} has a copy of partition {partition} of table {table_id} that differs")


def leases(store: MemberStore, peers: Peers) -> LoadLeases:
    return LoadLeases(TerminationProtocol("m1", store.loads, lambda: ("m1",)), peers)


def test_a_write_behind_a_load_learns_at_once_that_the_table_was_dropped() -> None:
    async def run() -> None:
        storage, peers = MemberStorage("m1", ClusterSettings()), Peers("m1", Role.MEMBER, ClusterSettings())
        store, places = storage.store, storage.places
        with ThreadPoolExecutor(1) as executor:
            replication = Replication(storage, peers, out_of_sync)
            writes = MemberWrites(storage, replication)
            loads = MemberLoads(storage, peers, replication, leases(store, peers), executor)
            store.create_table(TABLE, [0])
            places.add_table(TABLE)
            places.update(
                Topology(1, (MemberAddress("m1", "127.0.0.1", 1),), {SCHEME.affinity_group(): assign(1, ("m1",), 1)})
            )
            await loads.stage(request(StageRows("l", 1, 0, [(0, 1)]), ROWS))
            await loads.prepare(request(PrepareLoad("l", 1, "append", [(0, [0])])))
            writing = asyncio.create_task(writes.write(request(WriteRows(1, 0, "append"), ROWS)))
            await asyncio.sleep(0.01)
            store.drop_table(1)
            places.remove_table(1)
            with pytest.raises(LoadFailedError):
                await loads.publish(request(PublishPreparedLoad("l", 1)))
            with pytest.raises(TopologyChangedError, match="does not know table 1: dropped"):
                await asyncio.wait_for(writing, 1)

    asyncio.run(run())


def test_parts_that_name_other_rows_are_refused() -> None:
    async def run() -> None:
        with ThreadPoolExecutor(1) as executor:
            storage, peers = MemberStorage("m1", ClusterSettings()), Peers("m1", Role.MEMBER, ClusterSettings())
            replication = Replication(storage, peers, out_of_sync)
            loads = MemberLoads(storage, peers, replication, leases(storage.store, peers), executor)
            with pytest.raises(ProtocolError, match="the parts name 2 rows, the payload has 1"):
                await loads.stage_copy(request(StageCopy("l", 1, 0, [(0, 2)]), ROWS))

    asyncio.run(run())
