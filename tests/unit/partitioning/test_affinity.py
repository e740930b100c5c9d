from __future__ import annotations

from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secateur.errors import InterfaceError
from secateur.partitioning.topology import Ownership, assign, grow


def members(n: int) -> list[str]:
    return [f"m{i + 1}" for i in range(n)]


def copies(ownership: Ownership) -> set[tuple[int, str]]:
    return {(partition, member) for partition in range(ownership.partitions) for member in ownership.holders(partition)}


def check(ownership: Ownership, partitions: int, ids: list[str], replicas: int) -> None:
    """The laws of one assignment: shape, no member twice for a partition, balance of primaries and of backups."""
    assert ownership.members == tuple(ids)
    assert ownership.owners.shape == (min(replicas, len(ids)), partitions)
    for partition in range(partitions):
        assert len(set(ownership.holders(partition))) == ownership.replicas
    for rows in (ownership.owners[:1], ownership.owners[1:]):
        loads = np.bincount(rows.ravel(), minlength=len(ids))
        assert loads.max() - loads.min() <= 1, loads


def fewest_moves(before: Ownership, ids: list[str], partitions: int) -> int:
    """Primaries that must move: all but those that members may keep, when the larger shares go to those that have
    most.
    """
    has = sorted((len(before.partitions_of(member)) for member in ids), reverse=True)
    low, larger = divmod(partitions, len(ids))
    return partitions - sum(min(owned, low + (position < larger)) for position, owned in enumerate(has))


def test_the_first_assignment_is_dealt() -> None:
    ownership = assign(7, members(3), 2)
    assert ownership.owners.tolist() == [[0, 1, 2, 0, 1, 2, 0], [1, 2, 0, 2, 0, 1, 1]]


def test_one_member_owns_everything_without_backups() -> None:
    assert assign(3, ["m1"], 2).owners.tolist() == [[0, 0, 0]]


def test_no_partitions() -> None:
    assert assign(0, members(3), 2).owners.shape == (2, 0)
    assert assign(0, members(2), 2, assign(0, members(3), 2)).owners.shape == (2, 0)


def test_as_many_copies_as_members_at_most() -> None:
    assert assign(5, members(2), 4).replicas == 2


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("n", [2, 3, 4, 8, 16])
def test_a_join_copies_only_to_the_new_member(n: int, replicas: int) -> None:
    before = assign(271, members(n), replicas)
    after = assign(271, [*members(n), "new"], replicas, before)
    check(after, 271, [*members(n), "new"], replicas)
    assert {member for _, member in copies(after) - copies(before)} == {"new"}


@pytest.mark.parametrize("replicas", [2, 3])
@pytest.mark.parametrize("n", [3, 4, 8, 16])
def test_a_leave_promotes_backups_and_copies_only_what_was_lost(n: int, replicas: int) -> None:
    before = assign(271, members(n), replicas)
    after = assign(271, members(n)[1:], replicas, before)
    check(after, 271, members(n)[1:], replicas)
    orphans = before.partitions_of("m1")
    promoted = sum(after.primary(partition) in before.holders(partition) for partition in orphans)
    assert promoted >= len(orphans) - 1
    assert len(copies(after) - copies(before)) == (len(before.held_by("m1")) if after.replicas == replicas else 0)


def test_the_load_of_a_lost_member_spreads_over_all_others() -> None:
    before = assign(240, members(5), 2)
    heirs = [before.backups(partition)[0] for partition in before.partitions_of("m3")]
    assert {member: heirs.count(member) for member in heirs} == {"m1": 12, "m2": 12, "m4": 12, "m5": 12}


def test_a_join_takes_partitions_from_everywhere_in_the_id_space() -> None:
    taken = assign(1000, members(4), 2, assign(1000, members(3), 2)).partitions_of("m4")
    assert np.histogram(taken, bins=10, range=(0, 1000))[0].min() >= 20


def test_nothing_changes_when_nothing_changed() -> None:
    for n, replicas in [(1, 1), (3, 2), (7, 3)]:
        before = assign(271, members(n), replicas)
        assert assign(271, members(n), replicas, before) == before


def test_added_partitions_leave_the_old_ones_where_balance_allows() -> None:
    before = assign(9, members(3), 2)
    after = assign(12, members(3), 2, before)
    check(after, 12, members(3), 2)
    assert after.owners[0, :9].tolist() == before.owners[0].tolist()


def test_the_order_in_which_members_are_named_does_not_move_partitions() -> None:
    before = assign(100, members(4), 2)
    after = assign(100, members(4)[::-1], 2, before)
    assert [after.holders(p) for p in range(100)] == [before.holders(p) for p in range(100)]


def test_all_members_replaced() -> None:
    after = assign(50, ["a", "b", "c"], 2, assign(50, members(3), 2))
    check(after, 50, ["a", "b", "c"], 2)


def test_more_replicas_later() -> None:
    before = assign(50, members(4), 1)
    after = assign(50, members(4), 3, before)
    check(after, 50, members(4), 3)
    assert after.owners[0].tolist() == before.owners[0].tolist()


@pytest.mark.parametrize("replicas", [2, 3])
@pytest.mark.parametrize("nodes", ["aabb", "abab", "aabbcc", "abcabc", "aab", "abbbbb"])
def test_copies_are_on_as_many_nodes_as_there_are(nodes: str, replicas: int) -> None:
    ids = members(len(nodes))
    node_of = dict(zip(ids, nodes, strict=True))
    for ownership in (
        assign(60, ids, replicas, nodes=nodes),
        assign(60, ids, replicas, assign(40, ids, replicas, nodes=nodes), nodes=nodes),
        grow(assign(40, ids, replicas, nodes=nodes), 60, ids, np.arange(40, dtype=np.int32), nodes=nodes),
    ):
        for partition in range(60):
            holders = ownership.holders(partition)
            assert len(set(holders)) == min(replicas, len(ids))
            assert len({node_of[member] for member in holders}) == min(replicas, len(set(nodes)))


@pytest.mark.parametrize("nodes", ["aabb", "abab", "aabbcc", "abcabc"])
def test_nodes_of_one_size_have_even_loads(nodes: str) -> None:
    check(assign(60, members(len(nodes)), 2, nodes=nodes), 60, members(len(nodes)), 2)


def test_one_node_for_all_is_as_none() -> None:
    assert assign(60, members(4), 3, nodes="aaaa") == assign(60, members(4), 3)


@settings(max_examples=150, deadline=None)
@given(
    partitions=st.integers(1, 60),
    start=st.integers(1, 6),
    replicas=st.integers(1, 4),
    steps=st.lists(
        st.one_of(st.just("join"), st.integers(0, 5), st.tuples(st.integers(1, 3), st.integers(1, 3)), st.just("grow")),
        max_size=8,
    ),
)
def test_laws_hold_over_any_history(partitions: int, start: int, replicas: int, steps: list[object]) -> None:
    """Joins, leaves of any member, several of both at once, and ranges added."""
    names = (f"m{i}" for i in count(1))
    ids = [next(names) for _ in range(start)]
    before = assign(partitions, ids, replicas)
    check(before, partitions, ids, replicas)
    for step in steps:
        match step:
            case int(position):
                if len(ids) > 1:
                    ids = [member for i, member in enumerate(ids) if i != position % len(ids)]
            case (int(gone), int(come)):
                ids = [*ids[gone:], *(next(names) for _ in range(come))]
            case "grow":
                partitions += 7
            case _:
                ids = [*ids, next(names)]
        after = assign(partitions, ids, replicas, before)
        check(after, partitions, ids, replicas)
        assert after == assign(partitions, ids, replicas, before)
        kept = sum(after.primary(p) == before.primary(p) for p in range(before.partitions))
        assert partitions - kept == fewest_moves(before, ids, partitions)
        before = after


@pytest.mark.parametrize(
    ("partitions", "ids", "replicas"),
    [(5, [], 1), (5, ["m1", "m1"], 1), (5, ["m1"], 0), (-1, ["m1"], 1), (5, [str(i) for i in range(65_536)], 1)],
    ids=["no members", "a member twice", "no copies", "negative partitions", "too many members"],
)
def test_refused(partitions: int, ids: list[str], replicas: int) -> None:
    with pytest.raises(InterfaceError):
        assign(partitions, ids, replicas)
