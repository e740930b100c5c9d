"""What must be true of a simulated cluster at any moment, and what of one that nothing has happened to for a while.

These look at the members directly, at one moment of the true time, and not through a client.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from bounds import kept_by_controller, kept_by_member, statements_at_controller, statements_at_member
from secateur.cluster.controller import Controller
from secateur.cluster.member import Member
from secateur.partitioning.tables import TableDef
from secateur.partitioning.topology import Topology
from world import Host, World

__all__ = ["LossWatch", "PrimaryWatch", "unrest"]

_EVERY_S: Final = 0.02


class PrimaryWatch:
    """Looks again and again for two members that would answer for one partition, and for two topologies of a version.

    A member answers for the partitions that its topology gives it while its lease has not ended on its own clock. A
    process that stands still is no exception: it may go on at any moment.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._owners: dict[tuple[int, str], Any] = {}
        self._compared: dict[int, Topology] = {}  # by their addresses, so they are kept
        self._claims: dict[int, tuple[Topology, frozenset[tuple[str, int]]]] = {}
        self._look()

    def _look(self) -> None:
        claimed: dict[tuple[str, int], str] = {}
        for host, member in _living(self._world):
            topology = member._membership.topology
            self._compare(topology)
            assert host.process is not None
            if host.process.boot_time_s() >= member._storage.store.lease.until_s:
                continue
            for place in self._of(member.member_id, topology):
                if place in claimed:
                    self._world.violated(
                        f"{claimed[place]} and {member.member_id} both answer for partition {place[1]} of {place[0]}"
                    )
                    return
                claimed[place] = member.member_id
        self._world.machine.call_at(self._world.now_s + _EVERY_S, self._look)

    def _of(self, member_id: str, topology: Topology) -> frozenset[tuple[str, int]]:
        known = self._claims.get(id(topology))
        if known is None or known[0] is not topology:
            places = frozenset(
                (group, partition)
                for group, ownership in topology.owners.items()
                for partition in ownership.partitions_of(member_id)
            )
            known = self._claims[id(topology)] = topology, places
        return known[1]

    def _compare(self, topology: Topology) -> None:
        if self._compared.get(id(topology)) is topology:
            return
        self._compared[id(topology)] = topology
        for group, ownership in topology.owners.items():
            known = self._owners.setdefault((topology.version, group), ownership)
            if known is not ownership and _pairs(known) != _pairs(ownership):
                self._world.violated(f"two members know different owners of {group} at version {topology.version}")
                self._owners[topology.version, group] = ownership


class LossWatch:
    """Looks again and again whether rows may be missing that nobody knows of, as ``docs/guarantees.md`` says.

    That is so where a disk has lost what it had said was written, and no other member has a copy. Of a load all members
    know that there were.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._look()

    def _look(self) -> None:
        world = self._world
        liars = {member_id for member_id, disk in world.disks.items() if disk.has_lost}
        if liars and world.real_controller is not None:  # one that has ended is asked for what it knew in the end
            topology = world.real_controller._state.topology
            members = frozenset(topology.member_ids)
            world.may_lack_loads |= bool(members) and members <= liars
            world.may_lack_writes |= world.may_lack_loads or any(
                (members.intersection(holders) or {holders[0]}) <= liars
                for ownership in topology.owners.values()
                for holders in _pairs(ownership)
            )
        world.machine.call_at(world.now_s + _EVERY_S, self._look)


def _pairs(ownership: Any) -> list[tuple[str, ...]]:
    return [ownership.holders(partition) for partition in range(ownership.partitions)]


def unrest(world: World, *, may_lose: bool) -> list[str]:
    """What a cluster has not brought in order yet: a sentence for each.

    Args:
        world: The cluster.
        may_lose: Whether partitions may have lost all copies.
    """
    controller = world.real_controller
    if controller is None:
        return ["there is no controller"]
    return list(_unrest(world, controller, may_lose=may_lose))


def _unrest(world: World, controller: Controller, *, may_lose: bool) -> Iterator[str]:
    topology, tables = controller._state.topology, controller._state.catalog.tables()
    members = {member.member_id: member for _, member in _living(world)}
    if members.keys() != set(topology.member_ids):
        yield f"the topology has {topology.member_ids}, and {sorted(members)} live"
        return
    if controller._state.changing.locked() or controller._joining.loads._is_alone or controller._joining.loads._holders:
        yield "the controller holds a lock"
    yield from kept_by_controller(controller)
    yield from statements_at_controller(controller)
    for number, host in enumerate(world.hosts):
        if host.is_up and (host.host is None or not _is_leased(host)):
            yield f"host {number + 1} has no member with a lease"
    for member in members.values():
        yield from _left_at(member, topology, tables)
    known = [{table.table_id for table in member._storage.store.tables()} for member in members.values()]
    for table in tables:
        if not all(table.table_id in ids for ids in known):
            continue
        yield from _unequal(table, topology, members, may_lose=may_lose)


def _left_at(member: Member, topology: Topology, tables: Iterable[TableDef]) -> Iterator[str]:
    """What a member keeps although nobody needs it any more."""
    name = member.member_id
    if member._membership.topology.version != topology.version:
        yield f"{name} acts on topology {member._membership.topology.version} of {topology.version}"
    replication, built = member._replication.copies, member._replication.built_copies
    for what, held in (
        ("loads that are not decided", member._storage.store.loads.prepared()),
        ("closed latches", [latch._table for latch in member._storage.places._latches.values() if latch.is_closed]),
        ("writes under way", [latch._table for latch in member._storage.places._latches.values() if latch._writes]),
        ("waiting writes", [key for key, waiting in replication.acknowledgements._waiting.items() if waiting]),
        ("takeovers", list(replication._replicas.opening)),
        ("partitions on their way", [*replication.received._expected, *replication.received._arriving]),
        ("copies ahead of the topology", list(replication._replicas.counted)),
        ("copies being built", list(built._fixed)),
        ("learners", [key for key, replica in replication._replicas.items() if replica._learners]),
        (
            "unsettled changes",
            [key for key, replica in replication._replicas.items() if replica.takes_writes and replica.unsettled],
        ),
        ("repairs", [key for key, replica in replication._replicas.items() if replica.is_repairing]),
        ("alterations", list(member._replication.alterations._changes._changes)),
        ("running statements", [*member._engine.runtime.jobs, *member._engine.runtime._executions]),
        (
            "messages of jobs that are not sent",
            [other for other, queue in member._engine.runtime._outgoing._queues.items() if queue],
        ),
        ("members that lost messages of jobs", list(member._engine.runtime._outgoing._untold)),
        (
            "load leases",
            [*member._replication.load_leases._protocol._holds, *member._replication.load_leases._protocol._deciding],
        ),
    ):
        if held:
            yield f"{name} has {what}: {held}"
    known = {table.table_id for table in tables}
    yield from kept_by_member(member, topology, known)
    yield from statements_at_member(member)
    if left := {table.table_id for table in member._storage.store.tables()} ^ known:
        yield f"{name} has other tables than the catalog: {sorted(left)}"
        return
    for table in tables:
        if table.replicated:
            continue
        ownership = topology.ownership(table.scheme.affinity_group())
        hosted, owned = set(member._storage.store.hosted(table.table_id)), set(ownership.held_by(name))
        if hosted - owned:
            yield f"{name} keeps partitions of {table.name} that it does not own: {sorted(hosted - owned)}"


def _unequal(table: TableDef, topology: Topology, members: dict[str, Member], *, may_lose: bool) -> Iterator[str]:
    """Copies that are missing, or do not have the same rows."""
    wanted = min(1 + table.backups, len(members))
    ownership = None if table.replicated else topology.ownership(table.scheme.affinity_group())
    for partition in table.scheme.live_ids():
        holders = topology.member_ids if ownership is None else ownership.holders(partition)
        living = [member for member in holders if member in members]
        if not living and may_lose:
            continue
        if len(living) < wanted and ownership is not None:
            yield f"partition {partition} of {table.name} has {len(living)} copies of {wanted}"
        stores = [members[member]._storage.store for member in living]
        if missing := [
            member
            for member, store in zip(living, stores, strict=True)
            if partition not in store.hosted(table.table_id)
        ]:
            if ownership is None and missing == living and may_lose:
                continue  # all members were lost, and with them the rows of a replicated table
            yield f"partition {partition} of {table.name} is not at its owners {missing}"
            continue
        rows = [store.partition(table.table_id, partition).snapshot().fold().table for store in stores]
        if any(not rows[0].equals(other) for other in rows[1:]):
            shown = {member: copy.to_pylist() for member, copy in zip(living, rows, strict=True)}
            yield f"the copies of partition {partition} of {table.name} differ: {shown}"


def _living(world: World) -> Iterator[tuple[Host, Member]]:
    for host in world.hosts:
        if host.is_up and host.host is not None:
            yield host, host.host.member


def _is_leased(host: Host) -> bool:
    assert host.host is not None
    assert host.process is not None
    return host.process.boot_time_s() < host.host.member._storage.store.lease.until_s
