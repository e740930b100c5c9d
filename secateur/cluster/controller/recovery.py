"""Decides how a controller that starts anew goes on: a function of the members' reports, without I/O.

The newest record among the reports is that of the cluster: the controller before had delivered every change to all
members before it acknowledged it. Members that do not report are waited for, as long as they may live. The controller
goes on without them only if no newer record can exist than those reported:

- Every member of the newest topology that reported held a lease. Then nobody has acted on a topology without any of
  them (:mod:`secateur.cluster.lease`), and a topology that takes a copy from a member counts only once that member has
  it.
- Or those that reported are a majority of the members. The topology that follows next has at least one of them.

All members of a topology may have been silent for so long that others, which had come meanwhile, were left alone. So
where none of those that reported holds a lease, those of a newer topology are waited for as well, as long as a member
may be silent.

A process that was started anew with what a member has on disk reports that. Where every process was, all of them are
waited for, and the cluster goes on from their disks. Where a process has lived on, it is no member: what the one before
had in memory has ended with it, and the address of the record is not its own.

**Invariant**: a record that any command or write was acknowledged by is never replaced by an older one.
`tests/unit/cluster/test_recovery.py` tries all reports of small clusters.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from secateur.cluster.controller.catalog import Catalog, by_folded_name, encoded_table
from secateur.cluster.controller.leaving import NOBODY_LEAVES, Leaving
from secateur.cluster.controller.stream_batches import StreamBatches
from secateur.partitioning.tables.table import TableDef, TableDefinition
from secateur.partitioning.topology.topology import Topology
from secateur.planner.views import ViewDef
from secateur.protocol.access import AccessRecord
from secateur.protocol.codec import decode, encode
from secateur.protocol.hello import Pruning
from secateur.protocol.recovery import ClusterRecord, ControllerState, LastLoad, MemberReport

_EPOCH_SHIFT: Final = 40
_UNSEEN_VERSIONS: Final = 1_000
"""More than the versions of the topology that a controller can have made without any member's report of them."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """The state from which a new controller goes on.

    Attributes:
        record: The newest record, in the next epoch, with a topology that all receivers take for a newer one.
        lost: The members of it that have not reported, and are to be removed.
    """

    record: ClusterRecord
    lost: tuple[str, ...]


class Patience:
    """Whether members have been waited for long enough: so long that the leases of those that are silent have ended.

    A time in which this process stood still does not count: reports have come meanwhile, and wait to be read.

    Args:
        silence_s: How long members are waited for.
        now_s: Now, on a clock that only grows.
    """

    def __init__(self, silence_s: float, now_s: float) -> None:
        self._left_s = silence_s
        self._looked_s = now_s

    def is_over(self, now_s: float, turn_s_max: float) -> bool:
        """Look again.

        Args:
            now_s: Now.
            turn_s_max: How long it may take from one look to the next while this process runs.
        """
        passed_s, self._looked_s = now_s - self._looked_s, now_s
        if passed_s <= turn_s_max:
            self._left_s -= passed_s
        return self._left_s <= 0


def first_of(epoch: int) -> int:
    """The first number of an epoch, for numbers that only grow and that nobody keeps: higher than all before."""
    return (epoch - 1) << _EPOCH_SHIFT


def newest_record(reports: Mapping[str, MemberReport]) -> ClusterRecord | None:
    """The newest record that a member has; None when none has one."""
    records = [report.record for report in reports.values() if report.record.version]
    return max(records, key=lambda record: (record.epoch, record.version), default=None)


def missing(reports: Mapping[str, MemberReport]) -> tuple[str, ...]:
    """The members of the newest topology that have not reported."""
    record = newest_record(reports)
    return () if record is None else tuple(member for member in record.topology.member_ids if member not in reports)


def unheard(reports: Mapping[str, MemberReport]) -> tuple[str, ...]:
    """The members of the newest topology whose processes of then have not reported.

    An address is of one process. So a member that has its record from its disk, and another address than that in the
    newest topology, is of a process that came after the one that the topology knows.
    """
    record = newest_record(reports)
    if record is None:
        return ()
    return tuple(
        member.id
        for member in record.topology.members
        if (report := reports.get(member.id)) is None or (report.is_restored and report.address != member)
    )


def is_from_disk(reports: Mapping[str, MemberReport]) -> bool:
    """Whether every member of the newest record has its own from its disk: all processes have ended, as it seems.

    The members that are missing may then be on their way, at addresses that the record does not have: nobody can find
    out whether their processes have ended. So it is for :func:`recovered_from_disk` to decide. It may seem so for a
    moment, until a member reports that was not started anew. One that was removed before may live on, and is none.
    """
    newest = newest_record(reports)
    return newest is not None and all(
        report.is_restored
        for member_id, report in reports.items()
        if newest.topology.has_member(member_id) and report.record.version
    )


def recovered_from_disk(reports: Mapping[str, MemberReport]) -> Recovered | None:
    """Decide for a cluster of which every process was started anew; None until all its members have reported.

    Members of the newest record without a record of their own have lost their data, and members that lack a load are
    of no use: see :func:`outdated`.
    """
    record = newest_record(reports)
    if record is None or missing(reports):
        return None
    behind = outdated(reports)
    unusable = tuple(
        member for member in record.topology.member_ids if not reports[member].record.version or member in behind
    )
    return _going_on(record, reports, unusable)


def outdated(reports: Mapping[str, MemberReport]) -> dict[str, int]:
    """The members that lack a load which another member has published, with the origin of its table.

    A load is on the disks of all members before it is published on the first. So their disks have lost what they said
    was written, or were never asked to write it (``fsync="off"``). One that has prepared the last load, and nothing
    behind it, has everything: it learns the outcome from the others.
    """
    newest = newest_publications(reports)
    return {
        member: held.origin
        for member, report in reports.items()
        for held in report.tables
        if held.published < (last := newest[held.origin]).number
        and not (held.has_load_in_doubt and held.last_load == last.load_id)
    }


def newest_publications(reports: Mapping[str, MemberReport]) -> dict[int, LastLoad]:
    """The last load of each table that a member has published, by its origin, as far as the members know."""
    newest: dict[int, LastLoad] = {}
    for report in reports.values():
        for held in report.tables:
            last = LastLoad(held.published, "" if held.has_load_in_doubt else held.last_load)
            known = newest.setdefault(held.origin, last)
            if (last.number, last.load_id) > (known.number, known.load_id):
                newest[held.origin] = last
    return newest


def recovered(reports: Mapping[str, MemberReport], gone: Collection[str], *, is_late: bool) -> Recovered | None:
    """Decide from the reports of this moment; None when more reports are needed.

    Args:
        reports: The last report of each member.
        gone: Members whose processes are known to have ended.
        is_late: Whether the leases of all members that do not report have ended by now.
    """
    record = newest_record(reports)
    if record is None:
        return None
    members = record.topology.member_ids
    lost = unheard(reports)
    present = [member for member in members if member not in lost]
    leases = [reports[member].holds_lease for member in present]
    if not is_late and not (any(leases) and all(member in gone for member in lost)):
        return None
    if lost and not (leases and all(leases)) and 2 * len(present) <= len(members):
        return None
    return _going_on(record, reports, lost)


def _going_on(record: ClusterRecord, reports: Mapping[str, MemberReport], lost: tuple[str, ...]) -> Recovered:
    epoch = 1 + max(report.record.epoch for report in reports.values())
    addresses = tuple(
        member if member.id in lost or member.id not in reports else reports[member.id].address
        for member in record.topology.members
    )
    topology = Topology(record.topology.version + _UNSEEN_VERSIONS, addresses, record.topology.owners)
    return Recovered(ClusterRecord(epoch, 0, topology, record.state), lost)


@dataclass(frozen=True, slots=True, eq=False)
class RestOfState:
    """The state of the controller but for members and owners; the fields are those of :class:`ControllerState`."""

    catalog: Catalog = field(default_factory=Catalog)
    changing: TableDef | None = None
    changing_for: str | None = None
    pruning: Pruning = Pruning.ON
    last_member: int = 0
    done: tuple[str, ...] = ()
    streams: StreamBatches = field(default_factory=StreamBatches)
    access: AccessRecord = field(default_factory=AccessRecord)
    leaving: Leaving = NOBODY_LEAVES
    last_loads: Mapping[str, Mapping[int, LastLoad]] = field(default_factory=dict)


class RecordEncoder:
    """Encodes the state of the controller; tables that have not changed are encoded once.

    A consensus log among the members would need a majority for each change. Here the controller is the only one that
    changes the state, and members may be lost one after the other without stopping the rest.
    """

    def __init__(self) -> None:
        self._tables: dict[int, tuple[TableDef, bytes]] = {}  # by the identity of the table, which is kept with it
        self._last: tuple[RestOfState, bytes] | None = None
        self._lock = asyncio.Lock()

    async def encoded(self, rest: RestOfState) -> bytes:
        """The bytes of a :class:`~secateur.protocol.recovery.ControllerState`."""
        async with self._lock:
            if self._last is None or self._last[0] is not rest:
                self._last = rest, encode(await self._state(rest))
            return self._last[1]

    async def _state(self, rest: RestOfState) -> ControllerState:
        catalog, changing = rest.catalog, rest.changing
        wanted = [*catalog.tables(), *(() if changing is None else (changing,))]
        known = {id(table): entry for table in wanted if (entry := self._tables.get(id(table))) is not None}
        for table in wanted:
            if id(table) not in known:
                known[id(table)] = table, await encoded_table(table)
        self._tables = known
        return ControllerState(
            catalog_version=catalog.version,
            last_table_id=catalog.last_table_id,
            book=catalog.book,
            tables=tuple(known[id(table)][1] for table in catalog.tables()),
            changing=None if changing is None else known[id(changing)][1],
            changing_for=rest.changing_for,
            views=tuple(encode(view) for view in catalog.views.values()),
            external_tables=tuple(catalog.external_tables.values()),
            types=tuple(catalog.types.values()),
            pruning=rest.pruning,
            last_member=rest.last_member,
            done=rest.done,
            streams=rest.streams.entries,
            access=rest.access,
            draining=tuple(sorted(rest.leaving.draining)),
            drained=tuple(sorted(rest.leaving.drained)),
            last_loads=rest.last_loads,
        )


def catalog_of(state: ControllerState) -> Catalog:
    """The tables and views of a record."""
    return Catalog(
        version=state.catalog_version,
        last_table_id=state.last_table_id,
        by_name=by_folded_name(decode(table, TableDefinition).table for table in state.tables),
        views=by_folded_name(decode(view, ViewDef) for view in state.views),
        external_tables=by_folded_name(state.external_tables),
        types=by_folded_name(state.types),
        book=state.book,
    )


def changing_of(state: ControllerState) -> TableDef | None:
    """The table of a record whose ranges were being changed, as it is to be."""
    return None if state.changing is None else decode(state.changing, TableDefinition).table
