from __future__ import annotations

import pickle

import numpy as np
import pytest

from secateur.errors import ProtocolError, TopologyChangedError, UnknownOwnersError, UnreachableError
from secateur.partitioning.topology import OWNERS_PAGE, MemberAddress, Ownership, Topology
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


LARGE = 3 * OWNERS_PAGE + 100


def large(members: tuple[str, ...] = ("m1", "idle", "m2", "m3")) -> Ownership:
    """An ownership of four pages, of which the second member is only a backup."""
    primaries = np.random.default_rng(7).choice([0, 2, 3], LARGE)
    return Ownership.of(members, np.stack([primaries, np.ones(LARGE, np.int64)]))


def test_clients_get_a_large_group_without_its_owners() -> None:
    whole = large()
    topology = Topology(5, TOPOLOGY.members, {"g": OWNERS, "large": whole})
    assert len(encode(topology.outline)) < 500 < LARGE < len(encode(topology))
    assert topology.outline.ownership("g") is OWNERS
    received = decode(encode(topology.outline), Topology).ownership("large")
    assert received.partitions == LARGE
    assert received.owners_of(range(LARGE)) == {"m1", "m2", "m3"}


def test_an_outline_with_the_pages_asked_for_answers_as_the_whole_does() -> None:
    whole, chosen = large(), [3, OWNERS_PAGE * 3 + 99, OWNERS_PAGE - 1]
    for question in (
        lambda ownership: ownership.primary(3),
        lambda ownership: ownership.owners_of(chosen),
        lambda ownership: ownership.owners_of(range(5, OWNERS_PAGE + 5)),
        lambda ownership: ownership.owners_of(np.arange(5, 50)),
        lambda ownership: ownership.primaries(chosen),
        lambda ownership: [ownership.members[index] for index in ownership.all_primaries],
    ):
        known = decode(encode(whole.outline), Ownership)
        with pytest.raises(UnknownOwnersError) as unknown:
            question(known)
        assert unknown.value.details["digest"] == known.digest
        assert question(known.with_pages(whole.pages(unknown.value.details["pages"]))) == question(whole)


def test_a_page_that_is_known_does_not_answer_for_another() -> None:
    whole = large()
    known = whole.outline.with_pages(whole.pages([1]))
    assert known.primary(OWNERS_PAGE) == whole.primary(OWNERS_PAGE)
    with pytest.raises(UnknownOwnersError) as unknown:
        known.primaries([OWNERS_PAGE, 0, 2 * OWNERS_PAGE])
    assert unknown.value.details["pages"] == [0, 2]
    with pytest.raises(IndexError):
        known.primary(LARGE)


def test_pages_of_owners_stay_as_long_as_the_owners_do() -> None:
    first, moved = large(), large(("m1", "idle", "m3", "m2"))
    before = Topology(5, TOPOLOGY.members, {"a": first, "b": first}).outline
    digest = first.outline.digest
    assert digest is not None
    before = before.with_pages(digest, first.pages([0]))
    after = Topology(6, TOPOLOGY.members, {"a": large(), "b": moved}).outline.with_known_owners(before)
    assert after.ownership("a").primary(7) == first.primary(7)
    with pytest.raises(UnknownOwnersError):
        after.ownership("b").primary(7)
    assert after.with_pages(digest, first.pages([1])).ownership("b") is after.ownership("b")


@pytest.mark.parametrize(
    "pages", [{0: b""}, {0: b"\0" * OWNERS_PAGE}, {-1: b""}, {0: b"\3\0" * OWNERS_PAGE}, {9: b"\0\0"}]
)
def test_pages_of_owners_that_do_not_fit_are_refused(pages: dict[int, bytes]) -> None:
    with pytest.raises(ValueError, match="do not fit"):
        large().outline.with_pages(pages)


def test_pages_beyond_the_last_do_not_exist() -> None:
    assert set(large().pages([-1, 3, 4])) == {3}
