"""Finds the tables and copies that members lack on disk although they had written them: a pure function of reports.

A member has a table, and a copy that it has built, on disk before the cluster counts on them. So a disk that lacks one
has lost what it said it had written, or was never asked to write it (``fsync="off"``). What another member has is not
lost: that one goes on as the owner, and the copy is built again. Whole frames of a log can be trusted; its end
may be missing. A member that comes back with last copies has no other member to be compared with: see
:mod:`secateur.cluster.controller.publication_numbers`.

A table says how its rows have come from those before the last ALTER TABLE of columns, and no further back. So a disk
that has lost one of these has the table, and one that has lost several has rows that nobody can make those of now from.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from secateur.cluster.controller.membership import CopyLost
from secateur.cluster.controller.recovery import outdated
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.owner_routing import primaries_of
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.recovery import HeldTable, LastLoad, MemberReport

_HAS_LOST: Final = "its disk has lost what it had written."
_NONE: Final[set[int]] = set()
_NO_LOAD: Final = LastLoad(0)


@dataclass(frozen=True, slots=True)
class DiskLosses:
    """The members and copies that cannot be used any more.

    Attributes:
        members: The members of which no data can be used, each with a sentence that says why.
        copies: Single copies that are lost at the other members.
        lost: A sentence about a partition of which no copy is left; empty while there is none.
    """

    members: Mapping[str, str]
    copies: tuple[CopyLost, ...]
    lost: str

    @classmethod
    def of(
        cls,
        tables: Collection[TableDef],
        topology: Topology,
        reports: Mapping[str, MemberReport],
        gone: Collection[str],
    ) -> DiskLosses:
        """Compare what members have on disk with what they own.

        Args:
            tables: The tables of the cluster's newest record.
            topology: Its topology.
            reports: The reports of all members.
            gone: Members whose copies do not count anyway.
        """
        members = dict(_unusable(tables, topology, reports))
        living = set(topology.member_ids).difference(members, gone)
        lacking: dict[CopyLost, None] = {}  # once for all tables of a group
        lost = ""
        for table in tables:
            if table.replicated:
                continue
            group = table.scheme.affinity_group()
            ownership, held = topology.ownership(group), _held(table, reports)
            is_outdated = not held and bool(_found(table, reports))
            on_disk = {m: None if known.partitions is None else set(known.partitions) for m, known in held.items()}
            for partition in table.scheme.live_partitions().tolist():
                holders = ownership.holders(partition)
                owners = living.intersection(holders)
                whole = {m for m in owners if (found := on_disk.get(m, _NONE)) is None or partition in found}
                # Without another copy, one may be missing only because the table's ranges are just being changed.
                missing = {
                    member
                    for member in owners - whole
                    if whole or is_outdated or ((known := held.get(member)) and known.version == table.version)
                }
                # Where no disk has a change of ranges that was made, one owner takes it over, and others copy that.
                behind = {m for m in owners - whole if (known := held.get(m)) and known.version < table.version}
                first = next((holder for holder in holders if holder in owners - missing), None)
                counted_out = missing if whole else missing | (behind - {first})
                lacking.update((CopyLost(group, partition, member), None) for member in sorted(counted_out))
                damaged = missing.union(members).intersection(holders)
                if not lost and damaged and damaged.issuperset(living.intersection(holders)):
                    lost = f"partition {partition} of {table.name} is on {', '.join(sorted(damaged))} only"
        return cls(members, tuple(lacking), lost)


def _unusable(
    tables: Iterable[TableDef], topology: Topology, reports: Mapping[str, MemberReport]
) -> Iterator[tuple[str, str]]:
    """Members whose directory is damaged, or that lack what every member has: a table, a load, replicated rows.

    One without any record has a directory that is new.
    """
    for member, table_id in outdated(reports).items():
        if topology.has_member(member):  # one that was removed was not told of loads after that
            yield member, f"{member} lacks a load of table {table_id} that others have published: {_HAS_LOST}"
    with_data = {member for member in topology.member_ids if member in reports and reports[member].record.version}
    for table in tables:
        held = _held(table, reports)
        whole = {m for m, known in held.items() if not table.replicated or known.partitions is None or known.partitions}
        if whole:
            for member in sorted(with_data - whole):
                yield member, f"{member} lacks the rows of table {table.name}, which others have: {_HAS_LOST}"
    for member, report in reports.items():
        if report.damage and topology.has_member(member):
            yield member, report.damage


def _held(table: TableDef, reports: Mapping[str, MemberReport]) -> dict[str, HeldTable]:
    """The table at the members that have it, or can take it over; an ALTER TABLE that is under way may be made."""
    return {
        member: held
        for member, held in _found(table, reports).items()
        if held.version > table.version or _is_followed(held, table)
    }


def _is_followed(held: HeldTable, table: TableDef) -> bool:
    """Whether a member can make the rows of the table as it is now of those that it has."""
    return held.table_id == table.table_id or (
        table.succession is not None and held.table_id == table.succession.before
    )


def _found(table: TableDef, reports: Mapping[str, MemberReport]) -> dict[str, HeldTable]:
    return {
        member: held
        for member, report in reports.items()
        for held in report.tables
        if held.origin == table.origin and not report.damage
    }


def lost_by(
    report: MemberReport, tables: Iterable[TableDef], topology: Topology, last_loads: Mapping[int, LastLoad]
) -> str:
    """Say which table, load or partition a returning member has lost as its last owner; empty if it has lost none.

    Nobody can tell whether it lacks changes of single partitions: no other member has made them.

    Args:
        report: The report of the member.
        tables: All tables.
        topology: Members and owners.
        last_loads: The loads that it was told to publish before it left, by the origin of the table.
    """
    known = {held.origin: held for held in report.tables}
    for table in tables:
        last_owned = [] if table.replicated else primaries_of(topology, table, report.address.id)
        if not last_owned:
            continue
        held = known.get(table.origin)
        if held is None:
            return _lost(f"table {table.name}")
        if not _is_followed(held, table):
            return _lost(f"what ALTER TABLE {table.name} has changed")
        if held.published < last_loads.get(table.origin, _NO_LOAD).number:
            return _lost(f"a load of {table.name}")
        if held.partitions is not None and held.version == table.version:  # ranges that were made since it left are new
            for partition in sorted(set(last_owned).difference(held.partitions)):
                return _lost(f"partition {partition} of {table.name}")
    return ""


def _lost(what: str) -> str:
    return f"its disk has lost {what}: it may lack other changes as well, so it does not come back with what it has"
