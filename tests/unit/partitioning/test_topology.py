from __future__ import annotations

import pickle

import numpy as np
import pytest

from secateur.errors import ProtocolError, TopologyChangedError, UnreachableError
from secateur.partitioning.topology import MemberAddress, Ownership, Topology
from secateur.protocol import decode, encode, pack

OWNERS = Ownership.of(("m1", "m2", "m3"), np.array([[0, 1, 2, 0], [1, 2, 0, 2]], dtype=np.uint16))
TOPOLOGY = Topology(
    5,
    (MemberAddress("m1", "127.0.0.1", 1001), MemberAddress("m2", "127.0.0.1", 1002), MemberAddress("m3", "::1", 1003)),
    {"g": OWNERS},
)


def test_questions_to_an_ownership() -> None:
    assert (OWNERS.replicas, OWNERS.partitions) == (2, 4)
    assert [OWNERS.primary(p) for p in range(4)] == ["m1", "m2", "m3", "m1"]
    assert OWNERS.backups(3) == ("m3",)
    assert OWNERS.holders(3) == ("m1", "m3")
    assert OWNERS.partitions_of("m1") == [0, 3]
    assert OWNERS.held_by("m1") == [0, 2, 3]
    assert OWNERS.partitions_of("m9") == OWNERS.held_by("m9") == []
    assert OWNERS.primaries([3, 1, 0]) == {"m1": [3, 0], "m2": [1]}
    assert OWNERS.primaries([]) == {}
    with pytest.raises(IndexError):
        OWNERS.primary(4)


def test_questions_to_a_topology() -> None:
    assert TOPOLOGY.member_ids == ("m1", "m2", "m3")
    assert TOPOLOGY.member("m3") == MemberAddress("m3", "::1", 1003)
    assert TOPOLOGY.primaries("g", [2, 3]) == {"m3": [2], "m1": [3]}
    assert TOPOLOGY.ownership("g") is OWNERS
    with pytest.raises(UnreachableError, match="member m4 is not part of topology 5, which has m1, m2, m3"):
        TOPOLOGY.member("m4")
    with pytest.raises(
        TopologyChangedError, match="topology 5 has no owners for affinity group 'h'; fetch a newer one"
    ):
        TOPOLOGY.primaries("h", [0])


def test_owners_cannot_be_changed_nor_change_with_the_array_given() -> None:
    given = np.zeros((1, 2), dtype=np.uint16)
    ownership = Ownership.of(("m1", "m2"), given)
    given[0, 0] = 1
    assert ownership.primary(0) == "m1"
    with pytest.raises(ValueError, match="read-only"):
        ownership.owners[0, 0] = 1


def test_equality_and_hash_are_by_content() -> None:
    same = Ownership.of(OWNERS.members, OWNERS.owners.astype(np.int64))
    assert same == OWNERS
    assert hash(same) == hash(OWNERS)
    assert Ownership.of(("a", "b", "c"), OWNERS.owners) != OWNERS
    assert Ownership.of(OWNERS.members, OWNERS.owners[::-1]) != OWNERS
    assert OWNERS != "m1"


def test_round_trips() -> None:
    assert decode(encode(TOPOLOGY), Topology) == TOPOLOGY
    assert pickle.loads(pickle.dumps(TOPOLOGY)) == TOPOLOGY


def test_a_hundred_thousand_partitions_travel_as_bytes() -> None:
    large = Ownership.of(("m1", "m2"), np.zeros((2, 100_000), dtype=np.uint16))
    assert len(encode(large)) < 400_100


@pytest.mark.parametrize(
    "data",
    [
        [["m1"], [1, 2], b"\x00\x00"],
        [["m1"], [1, 1], b"\x01\x00"],
        [[], [1, 1], b"\x00\x00"],
    ],
    ids=["too few", "unknown member", "no members"],
)
def test_owners_that_do_not_fit(data: list[object]) -> None:
    with pytest.raises(ProtocolError, match="that do not fit it"):
        decode(pack(data), Ownership)
