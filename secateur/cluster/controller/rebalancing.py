"""Decides which copies are to be built, moved and dropped: pure functions of a topology.

The target is the assignment of :func:`~secateur.partitioning.topology.affinity.assign` to the members that are there,
which keeps what it can. It is compared with the owners of now, and each difference becomes a move; the first moves are
those of partitions with the fewest copies. Whoever carries them out asks again after each change of the topology, so
there is nothing to resume: a move that was not finished is a difference still.

Healing after a loss, a member that comes back or is added, and one that is to be drained are the same question with
other members.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from secateur.cluster.controller.leaving import NOBODY_LEAVES, Leaving
from secateur.cluster.controller.membership import CopiesDropped, CopiesMoved, CopiesWanted, PrimariesMoved, staying
from secateur.partitioning.topology.affinity import assign
from secateur.partitioning.topology.topology import MemberAddress, Ownership, Topology

_BATCH_PARTITIONS_MIN: Final = 32
"""Partitions that move together, where there are so many."""
_BATCHES_MAX: Final = 64

_UNEVEN_MAX: Final = 2
_UNEVEN_SHARE: Final = 0.2
"""The number of partitions, and the share of the mean, by which members may differ before partitions are moved."""

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class CopiesOfGroup:
    """The copies that the tables of an affinity group ask for.

    Attributes:
        copies: Copies of each partition, primary included.
        live: The partitions that can hold rows, ascending; those of dropped ranges have owners that do not matter.
    """

    copies: int
    live: npt.NDArray[np.int32]


Move = CopiesMoved | PrimariesMoved | CopiesDropped | CopiesWanted
"""A move is the event with which it ends."""


def moves_of(topology: Topology, wanted: Mapping[str, CopiesOfGroup], leaving: Leaving = NOBODY_LEAVES) -> list[Move]:
    """The moves that lead from the present owners to the wanted ones, the most urgent first.

    Costs 0.3 s for 100,000 partitions.

    Args:
        topology: The members and owners of now.
        wanted: The wanted copies, by affinity group.
        leaving: Members that are to own nothing.
    """
    members = staying(topology, leaving)
    if not members:
        return []
    found: list[tuple[int, Move]] = []
    for group, asked in wanted.items():
        ownership = topology.owners.get(group)
        if ownership is None or not len(asked.live) or int(asked.live[-1]) >= ownership.partitions:
            continue
        there_are = min(asked.copies, len(members))
        if there_are > ownership.replicas:
            found.append((0, CopiesWanted(group, there_are)))
            continue
        now = Ownership.of(ownership.members, ownership.owners[:, asked.live])
        if _is_even(topology, now, members, there_are):
            continue
        target = assign(
            len(asked.live),
            [member.id for member in members],
            there_are,
            now,
            nodes=[member.node for member in members],
        )
        found.extend(_of_group(topology, group, asked.live.tolist(), target))
    found.sort(key=lambda entry: entry[0])
    return [move for _, move in found]


def empty(topology: Topology, wanted: Mapping[str, CopiesOfGroup], draining: Collection[str]) -> tuple[str, ...]:
    """The leaving members whose processes may end without the loss of a row.

    A member of the cluster is one of them when it owns no partition that can hold rows. Where all members are to leave,
    they own everything still, although there is nothing to move. One that has left the cluster is one of them unless it
    may come back with the last copy of a partition.

    Args:
        topology: The members and owners of now.
        wanted: The wanted copies, by affinity group.
        draining: The members that are to leave.
    """
    owning: set[str] = set()
    for group, asked in wanted.items():
        ownership = topology.owners.get(group)
        if ownership is None:
            continue
        owners = ownership.owners[:, asked.live[asked.live < ownership.partitions]]
        holders, primaries = (
            {ownership.members[index] for index in np.unique(indices).tolist()} for indices in (owners, owners[:1])
        )
        owning |= holders.intersection(topology.member_ids) | primaries.difference(topology.member_ids)
    return tuple(sorted(set(draining) - owning))


def _is_even(topology: Topology, ownership: Ownership, members: Sequence[MemberAddress], copies: int) -> bool:
    """Whether each partition has its copies on these members, on different nodes, and no member has far too many.

    Ranges that come and go leave small differences. Moving partitions for these would cost more than it brings, and
    would part tables whose ranges change one after the other, which have equal owners otherwise.
    """
    number = {member.id: index for index, member in enumerate(members)}
    owners = np.array([number.get(name, -1) for name in ownership.members])[ownership.owners.astype(np.int64)]
    has_more = np.array([topology.has_member(name) for name in ownership.members])[ownership.owners[copies:]]
    if (owners[:copies] < 0).any() or has_more.any():
        return False
    nodes = list(dict.fromkeys(member.node for member in members))
    if len(nodes) > 1:
        on_nodes = np.sort(np.array([nodes.index(member.node) for member in members])[owners[:copies]], axis=0)
        distinct = 1 + (np.diff(on_nodes, axis=0) != 0).sum(axis=0)
        if int(distinct.min()) < min(copies, len(nodes)):
            return False
    for row in (owners[:1], owners[1:copies]):
        loads = np.bincount(row.ravel(), minlength=len(members))
        if int(loads.max() - loads.min()) > max(_UNEVEN_MAX, _UNEVEN_SHARE * float(loads.mean())):
            return False
    return True


def _of_group(topology: Topology, group: str, live: Sequence[int], target: Ownership) -> Iterator[tuple[int, Move]]:
    """The moves of one group, each with the number of copies that there are of its partitions."""
    ownership, living = topology.owners[group], frozenset(topology.member_ids)
    copies: defaultdict[tuple[int, str, str], list[tuple[int, str | None]]] = defaultdict(list)
    primaries: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)
    drops: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    for position, partition in enumerate(live):
        now = [member for member in ownership.holders(partition) if member in living]
        then = target.holders(position)
        if not now or tuple(now) == then:
            continue
        new = [member for member in then if member not in now]
        old = [member for member in now if member not in then]
        if new:
            # One copy at a time: the next one is a difference still when this one is there.
            member = new[0]
            has_room = len(now) < ownership.replicas
            replaced = None if has_room or not old else now[0] if then[0] == member and now[0] in old else old[-1]
            if has_room or replaced is not None:
                copies[len(now) if has_room else len(now) + len(living), now[0], member].append((partition, replaced))
                continue
        if then[0] in now and now[0] != then[0]:
            primaries[len(now) + len(living)].append((partition, then[0]))
        elif old and now[0] not in old:
            drops[len(now) + len(living), old[0]].append(partition)
    size = max(_BATCH_PARTITIONS_MIN, len(live) // _BATCHES_MAX)
    for (urgency, source, member), moves in copies.items():
        yield from ((urgency, CopiesMoved(group, source, member, batch)) for batch in _batches(moves, size))
    for urgency, changes in primaries.items():
        yield from ((urgency, PrimariesMoved(group, batch)) for batch in _batches(changes, size))
    for (urgency, member), partitions in drops.items():
        yield urgency, CopiesDropped(group, member, tuple(partitions))


def _batches(moves: Sequence[M], size: int) -> Iterator[tuple[M, ...]]:
    return (tuple(moves[start : start + size]) for start in range(0, len(moves), size))
