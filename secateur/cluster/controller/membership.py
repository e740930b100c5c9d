"""Membership and ownership: who is in the cluster and who owns what, as a state machine without I/O.

Events go in, the next :class:`~secateur.partitioning.topology.topology.Topology` comes out; the controller sends it to
the members. The controller keeps the topology's affinity groups equal to those of the existing tables.

When a member is lost, each of its partitions goes to its first backup: a backup has every acknowledged write, so
nothing has to move. The lost member stays in the ownership, after the survivors, until it is replaced: **a member
becomes an owner only of what it has**. A partition whose copies are all lost keeps the member that was lost last as
primary, so statements on it get an error that names it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, assert_never

import numpy as np
import numpy.typing as npt

from secateur.cluster.controller.leaving import NOBODY_LEAVES, Leaving
from secateur.errors import InternalError, PartitionLostError, ProgrammingError
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.affinity import assign, grow, same_holders
from secateur.partitioning.topology.topology import MemberAddress, Ownership, Topology

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MemberJoined:
    """A member listens at an address and has no rows."""

    address: MemberAddress


@dataclass(frozen=True, slots=True)
class MemberLost:
    """A member is gone with all that it had."""

    member_id: str


@dataclass(frozen=True, slots=True)
class MemberReturned:
    """A member that was lost listens at an address, with the copies that it had as their last owner."""

    address: MemberAddress


@dataclass(frozen=True, slots=True)
class CopyLost:
    """A living member's copy of a partition differs from the other copies: it no longer counts as one.

    Attributes:
        group: The affinity group.
        partition: The partition.
        member_id: The member.
    """

    group: str
    partition: int
    member_id: str


@dataclass(frozen=True, slots=True)
class CopiesMoved:
    """A member has built copies of partitions, with every acknowledged write, and becomes their owner.

    Attributes:
        group: The affinity group.
        source: The primary of the partitions, from whose copies it has built its own.
        target: The member.
        moves: The partitions, each with the member whose copy this one replaces, in its role; None: the copy is a
            further backup, in place of one that was lost.
    """

    group: str
    source: str
    target: str
    moves: tuple[tuple[int, str | None], ...]

    @property
    def partitions(self) -> list[int]:
        return [partition for partition, _ in self.moves]


@dataclass(frozen=True, slots=True)
class PrimariesMoved:
    """Backups become the primaries of partitions, and their primaries backups.

    Attributes:
        group: The affinity group.
        moves: The partitions, each with its new primary.
    """

    group: str
    moves: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class CopiesDropped:
    """A member is no owner of backups any more, of which there are more than are wanted.

    Attributes:
        group: The affinity group.
        member_id: The member.
        partitions: The partitions.
    """

    group: str
    member_id: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CopiesWanted:
    """There are members enough for more copies of the partitions of a group than it has had so far.

    Attributes:
        group: The affinity group.
        copies: Copies of each partition, primary included.
    """

    group: str
    copies: int


@dataclass(frozen=True, slots=True)
class TableCreated:
    """A table needs owners: those of its affinity group, if that has any."""

    table: TableDef


@dataclass(frozen=True, slots=True)
class RangesChanged:
    """A table needs owners for the ids of new ranges; those of all others stay.

    Attributes:
        before: Its scheme so far, whose owners stay known until they are forgotten: statements still run by it.
        after: Its scheme, in the affinity group that :func:`group_after` chose.
    """

    before: PartitionScheme
    after: PartitionScheme


@dataclass(frozen=True, slots=True)
class OwnersForgotten:
    """No table is in an affinity group any more."""

    group: str


@dataclass(frozen=True, slots=True)
class SettingChanged:
    """A setting of the cluster has another value: clients hear of a newer version, and ask the controller."""


Event = (
    MemberJoined
    | MemberLost
    | MemberReturned
    | CopyLost
    | CopiesMoved
    | PrimariesMoved
    | CopiesDropped
    | CopiesWanted
    | TableCreated
    | RangesChanged
    | OwnersForgotten
    | SettingChanged
)


def advance(topology: Topology, event: Event, leaving: Leaving = NOBODY_LEAVES) -> Topology:
    """The topology after an event, with the next version; the same one if the event changes nothing.

    Args:
        topology: The topology before.
        event: What has happened.
        leaving: Members that get nothing new.

    Raises:
        ProgrammingError: A member joins under an id that is taken.
        PartitionLostError: A table is created or gets ranges when no member is left.
    """
    match event:
        case MemberJoined(address):
            if address.id in topology.member_ids:
                raise ProgrammingError(
                    f"member {address.id} is in the cluster already, at"
                    f" {topology.member(address.id).host}:{topology.member(address.id).port}"
                )
            return Topology(topology.version + 1, (*topology.members, address), topology.owners)
        case MemberLost(member_id):
            if member_id not in topology.member_ids:
                return topology
            members = tuple(member for member in topology.members if member.id != member_id)
            owners = {
                group: _promote(ownership, member_id, {member.id for member in members})
                for group, ownership in topology.owners.items()
            }
            return Topology(topology.version + 1, members, owners)
        case MemberReturned(address):
            returned = advance(topology, MemberJoined(address))
            # Where it is not the last owner, others may have had writes since.
            owners = {group: _without_backups(ownership, address.id) for group, ownership in topology.owners.items()}
            return Topology(returned.version, returned.members, owners)
        case CopyLost(group, partition, member_id):
            return _without_copy(topology, group, partition, member_id)
        case CopiesMoved(group, _, target, moves):
            return _with_holders(
                topology, group, {partition: (replaced, target) for partition, replaced in moves}, _replaced
            )
        case PrimariesMoved(group, moves):
            return _with_holders(topology, group, dict(moves), _promoted)
        case CopiesDropped(group, member_id, partitions):
            return _with_holders(topology, group, dict.fromkeys(partitions, member_id), _dropped)
        case CopiesWanted(group, copies):
            return _with_more_copies(topology, group, copies)
        case TableCreated(table):
            return _with_table(topology, table, leaving)
        case RangesChanged(before, after):
            return _with_ranges(topology, before, after, leaving)
        case OwnersForgotten(group):
            if group not in topology.owners:
                return topology
            owners = {name: ownership for name, ownership in topology.owners.items() if name != group}
            return Topology(topology.version + 1, topology.members, owners)
        case SettingChanged():
            return Topology(topology.version + 1, topology.members, topology.owners)
        case _:
            assert_never(event)


def absent_owners(topology: Topology) -> frozenset[str]:
    """The members that have left and were the last owners of partitions: their copies have every acknowledged write."""
    living = frozenset(topology.member_ids)
    last = {
        ownership.members[number]
        for ownership in topology.owners.values()
        if not living.issuperset(ownership.members)
        for number in np.unique(ownership.owners[0]).tolist()
    }
    return frozenset(last - living)


def group_after(
    topology: Topology, before: PartitionScheme, after: PartitionScheme, taken: Collection[str], unique: str
) -> str:
    """Return the affinity group of a table whose ranges change.

    Tables with equal changes stay co-located, if their owners agree; a table that gets the ranges of another by other
    changes has its rows elsewhere, so it gets a group of its own.

    Args:
        topology: The owners so far.
        before: The table's scheme so far.
        after: The new one.
        taken: The groups of all other tables.
        unique: Told apart from the names of all other groups, ever.
    """
    structure = after.structure()
    remaining = np.intersect1d(before.live_partitions(), after.live_partitions(), assume_unique=True)
    mine = topology.ownership(before.affinity_group())
    for group in _groups_of(topology, structure):
        if group in taken and same_holders(mine, topology.ownership(group), remaining):
            return group
    return f"{structure} #{unique}" if structure in taken else structure


def group_of_new(topology: Topology, scheme: PartitionScheme, unique: str) -> str:
    """Return the affinity group of a new table: that of tables with its structure, if all partitions have owners.

    Owners that were lost do not count.

    Where some are lost, rows of the new table could not be taken there, so it gets a group of its own; and so do the
    next ones, the same.

    Args:
        topology: The owners so far.
        scheme: The table's scheme.
        unique: Told apart from the names of all other groups, ever.
    """
    structure = scheme.structure()
    known = _groups_of(topology, structure)
    living = scheme.live_partitions()
    return next(
        (group for group in known if _all_live(topology, topology.owners[group], living)),
        f"{structure} #{unique}" if known else structure,
    )


def _groups_of(topology: Topology, structure: str) -> list[str]:
    """The affinity groups of tables with one structure."""
    return [group for group in topology.owners if group == structure or group.startswith(f"{structure} #")]


def _all_live(topology: Topology, ownership: Ownership, partitions: npt.NDArray[np.integer[Any]]) -> bool:
    members = topology.member_ids
    lives = np.array([member in members for member in ownership.members], dtype=bool)
    return ownership.partitions > int(partitions.max(initial=-1)) and bool(lives[ownership.owners[0][partitions]].all())


def _with_ranges(topology: Topology, before: PartitionScheme, after: PartitionScheme, leaving: Leaving) -> Topology:
    owning = _owning(topology, leaving)
    group = after.affinity_group()
    if group in topology.owners:
        return topology
    owners = grow(
        topology.ownership(before.affinity_group()),
        after.partition_count,
        [member.id for member in owning],
        after.live_partitions(),
        nodes=[member.node for member in owning],
    )
    for member_id in leaving.drained:  # where members are fewer than copies, those that do not stay fill up
        owners = _without_backups(owners, member_id)
    return Topology(topology.version + 1, topology.members, {**topology.owners, group: owners})


def _promote(ownership: Ownership, lost: str, living: Collection[str]) -> Ownership:
    """Move the lost member after the survivors in each partition, and before those that were lost earlier.

    The survivors keep their order. Members that were lost earlier had less.
    """
    if lost not in ownership.members:
        return ownership
    rank = np.array([0 if member in living else 1 if member == lost else 2 for member in ownership.members])
    order = np.argsort(rank[ownership.owners], axis=0, kind="stable")
    return Ownership.of(ownership.members, np.take_along_axis(ownership.owners, order, axis=0))


def _without_backups(ownership: Ownership, member_id: str) -> Ownership:
    """Replace a member by a placeholder where it is not the last owner: its copies there do not count."""
    if member_id not in ownership.members:
        return ownership
    outdated = ownership.owners == ownership.members.index(member_id)
    outdated[0] = False
    members, nobody = _with_placeholder(ownership, member_id)
    return Ownership.of(members, np.where(outdated, members.index(nobody), ownership.owners))


def _with_placeholder(ownership: Ownership, member_id: str) -> tuple[tuple[str, ...], str]:
    """The members of an ownership with a name for copies of one that do not count, and that name."""
    nobody = f"{member_id} (out of sync)"
    return (ownership.members if nobody in ownership.members else (*ownership.members, nobody)), nobody


def _without_copy(topology: Topology, group: str, partition: int, member_id: str) -> Topology:
    """Replace one copy's member by a placeholder, after the others.

    The last copy of a living member stays, since no other is better.
    """
    ownership = topology.owners.get(group)
    holders = ownership.holders(partition) if ownership is not None and partition < ownership.partitions else ()
    others = [holder for holder in holders if holder != member_id]
    if ownership is None or member_id not in holders or set(others).isdisjoint(topology.member_ids):
        return topology
    members, nobody = _with_placeholder(ownership, member_id)
    owners = ownership.owners.copy()
    owners[:, partition] = [members.index(holder) for holder in (*others, nobody)]
    return Topology(topology.version + 1, topology.members, {**topology.owners, group: Ownership.of(members, owners)})


def _with_holders(
    topology: Topology, group: str, changes: Mapping[int, T], change: Callable[[list[str], T, Collection[str]], None]
) -> Topology:
    """Change the holders of some partitions; names that nobody has any more are forgotten."""
    ownership, living = topology.ownership(group), frozenset(topology.member_ids)
    columns = {partition: list(ownership.holders(partition)) for partition in changes}
    for partition, holders in columns.items():
        change(holders, changes[partition], living)
    names = list(dict.fromkeys([*ownership.members, *(name for holders in columns.values() for name in holders)]))
    number = {name: index for index, name in enumerate(names)}
    owners = ownership.owners.copy()
    for partition, holders in columns.items():
        owners[:, partition] = [number[name] for name in holders]
    used, packed = np.unique(owners, return_inverse=True)
    changed = Ownership.of([names[index] for index in used.tolist()], packed.reshape(owners.shape))
    return Topology(topology.version + 1, topology.members, {**topology.owners, group: changed})


def _replaced(holders: list[str], change: tuple[str | None, str], living: Collection[str]) -> None:
    """A copy in place of another; of a lost one, behind the living ones."""
    replaced, target = change
    if target in holders:
        raise InternalError(f"{target} is an owner already: one of {holders}")
    if replaced is None:
        replaced = next((holder for holder in holders if holder not in living), None)
    if replaced is None or replaced not in holders:
        raise InternalError(f"a copy on {target} has no place among {holders}")
    holders[holders.index(replaced)] = target


def _promoted(holders: list[str], primary: str, living: Collection[str]) -> None:
    """A backup and the primary change places."""
    if primary not in holders or primary not in living:
        raise InternalError(f"{primary} has no copy: the owners are {holders}")
    index = holders.index(primary)
    holders[0], holders[index] = holders[index], holders[0]


def _dropped(holders: list[str], member_id: str, living: Collection[str]) -> None:
    """A backup less; the place of its copy is free, behind the living ones."""
    index = holders.index(member_id)
    if not index:
        raise InternalError(f"{member_id} is the primary, and its copy cannot be dropped")
    del holders[index]
    behind = next((place for place, holder in enumerate(holders) if holder not in living), len(holders))
    holders.insert(behind, *_free_places(holders, 1))


def _with_more_copies(topology: Topology, group: str, copies: int) -> Topology:
    """Make room for further copies of each partition."""
    ownership = topology.ownership(group)
    if copies <= ownership.replicas:
        return topology
    free = _free_places(ownership.members, copies - ownership.replicas)
    names = [*ownership.members, *free]
    rows = [np.full((1, ownership.partitions), names.index(name)) for name in free]
    owners = np.vstack([ownership.owners, *rows])
    return Topology(topology.version + 1, topology.members, {**topology.owners, group: Ownership.of(names, owners)})


def _free_places(taken: Collection[str], count: int) -> list[str]:
    """Names in the places of copies that are not there, other than those that are taken."""
    names = (f"(no copy {number})" for number in itertools.count(1))
    return list(itertools.islice((name for name in names if name not in taken), count))


def staying(topology: Topology, leaving: Leaving) -> Sequence[MemberAddress]:
    """The members that partitions are assigned to: those that stay, or else those that are not drained yet."""
    there = [member for member in topology.members if member.id not in leaving.drained]
    return [member for member in there if member.id not in leaving.draining] or there


def _owning(topology: Topology, leaving: Leaving) -> Sequence[MemberAddress]:
    """The members that new partitions are assigned to.

    Raises:
        PartitionLostError: There is none.
    """
    topology.check_any()
    owning = staying(topology, leaving)
    if not owning:
        raise PartitionLostError(
            f"no member is left but {', '.join(topology.member_ids)}, which own nothing any more and are about to end:"
            " call scale() to start others",
            topology_version=topology.version,
        )
    return owning


def _with_table(topology: Topology, table: TableDef, leaving: Leaving) -> Topology:
    owning = _owning(topology, leaving)
    if table.replicated:
        return topology
    group = table.scheme.affinity_group()
    if group in topology.owners:
        return topology  # its owners are those of the tables before it; copies that these lack are built by and by
    assigned = assign(
        table.partition_count,
        [member.id for member in owning],
        min(1 + table.backups, len(owning)),
        nodes=[member.node for member in owning],
    )
    return Topology(topology.version + 1, topology.members, {**topology.owners, group: assigned})
