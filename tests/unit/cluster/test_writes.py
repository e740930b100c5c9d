"""Direct writes on one member, and their copies."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa
import pytest

from secateur.cluster.peers import Peers
from secateur.cluster.settings import ClusterSettings
from secateur.cluster.table_places import TablePlaces
from secateur.cluster.writes import MemberWrites
from secateur.errors import MemberLostError, TopologyChangedError
from secateur.partitioning.affinity import assign
from secateur.partitioning.scheme import HashComponent, PartitionScheme
from secateur.partitioning.table import Column, TableDef
from secateur.partitioning.topology import MemberAddress, Topology
from secateur.partitioning.types import SqlType, TypeKind
from secateur.storage.member_store import MemberStore
from secateur.wire import Payload, PeerInfo, Request, Role, encode_table

BIGINT = SqlType(TypeKind.BIGINT)
SCHEME = PartitionScheme(hashes=(HashComponent(("id",), 1),), types=(("id", BIGINT),))
TABLE = TableDef("t", 1, (Column("id", BIGINT, nullable=False),), ("id",), SCHEME, 0, False)
ROWS = encode_table(pa.table({"id": pa.array([1], pa.int64())}, schema=pa.schema([pa.field("id", pa.int64(), nullable=False)])))


def request(op: str, payload: bytes = b"", **args: object) -> Request:
    return Request(op, args, memoryview(payload), PeerInfo(1, "test", "test", False))


def test_a_copy_from_a_primary_that_was_left_behind_is_refused() -> None:
    async def run() -> None:
        store = MemberStore()
        places = TablePlaces("m2")
        writes = MemberWrites("m2", store, places, Peers("m2", Role.MEMBER, ClusterSettings()))
        store.create_table(TABLE, [0])
        places.add_table(TABLE)
        members = tuple(MemberAddress(name, "127.0.0.1", 1) for name in ("m1", "m2"))
        copy = {"table_id": 1, "partition": 0, "mode": "upsert", "change_id": "c"}
        places.update(Topology(1, members, {SCHEME.affinity_group(): assign(1, ("m1", "m2"), 2)}))
        writes.write_copy(request("write_copy", ROWS, **copy, topology_version=1))
        places.update(Topology(2, members[1:], {SCHEME.affinity_group(): assign(1, ("m2",), 1)}))
        with pytest.raises(TopologyChangedError, match="belongs to m2 at topology version 2: no copies are taken"):
            writes.write_copy(request("write_copy", ROWS, **copy, topology_version=1))
        assert store.partition(1, 0).version == 1

    asyncio.run(run())


class RefusingPeers(Peers):
    """Members that know of other owners already."""

    async def call(self, member_id: str, op: str, args: dict[str, Any], payload: Payload = b"") -> dict[str, Any]:
        raise TopologyChangedError("partition 0 belongs to m2; nothing was written")


def test_a_write_whose_copy_is_refused_does_not_claim_that_nothing_was_written() -> None:
    async def run() -> None:
        store = MemberStore()
        places = TablePlaces("m1")
        writes = MemberWrites("m1", store, places, RefusingPeers("m1", Role.MEMBER, ClusterSettings()))
        store.create_table(TABLE, [0])
        places.add_table(TABLE)
        members = tuple(MemberAddress(name, "127.0.0.1", 1) for name in ("m1", "m2"))
        places.update(Topology(1, members, {SCHEME.affinity_group(): assign(1, ("m1", "m2"), 2)}))
        for _ in range(2):  # asked for again under the same id, it is not made again
            with pytest.raises(MemberLostError, match="the rows are visible on m1, but m2 refused their copy"):
                await writes.write(request("write", ROWS, table_id=1, partition=0, mode="append", change_id="c"))
        assert store.partition(1, 0).version == 1

    asyncio.run(run())
