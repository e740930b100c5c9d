"""The rows of a scan that leave their member: filtered, and without the columns that only the filter reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from secateur.partitioning.tables.identifier import quoted
from secateur.planner.bind.bound_plan import Unreadable
from secateur.planner.scans.scan_reading import QueryReading, ScanReading
from secateur.planner.tree.bound_text import BoundText
from secateur.planner.tree.expression_sql import expression_sql
from secateur.planner.tree.values import Unprintable
from secateur.protocol.values import pack


@dataclass(frozen=True, slots=True)
class ScanRows:
    """The rows of a scan that a statement may need.

    Attributes:
        where: The filter of the rows over the relation of the scan, as SQL; empty for all.
        is_complete: Whether it is all that the statement asks of the scan.
        read: Identifies the rows read before that: equal for scans of the same partitions and key ranges of one table.
    """

    where: str
    is_complete: bool
    read: bytes


def selected_rows(relation: str, columns: Sequence[str], where: str) -> str:
    """The SELECT of some columns of the rows of a relation that pass a filter, which is empty for all."""
    return f"SELECT {', '.join(map(quoted, columns))} FROM {relation}" + (f" WHERE {where}" if where else "")


def rows_of_scans(read: QueryReading) -> dict[str, ScanRows]:
    """The rows of each scan that a statement may need, by the name of the scan's relation."""
    if isinstance(read.plan, Unreadable):
        return {scan.scan.relation: ScanRows("", False, _read(scan)) for scan in read.scans}
    return {scan.scan.relation: _rows_of(scan, read.plan.text) for scan in read.scans}


def _rows_of(read: ScanReading, text: BoundText) -> ScanRows:
    conditions = read.conditions
    names = [*map(quoted, conditions.names)]
    filters = []
    for index in sorted(conditions.local):
        try:
            filters.append(expression_sql(conditions.conjuncts[index], names, text))
        except Unprintable:
            continue
    return ScanRows(" AND ".join(filters), len(filters) == len(conditions.conjuncts), _read(read))


def _read(read: ScanReading) -> bytes:
    # Scans that read the same may read other rows once the keys of joins are known.
    same = [[bounds.tree, bounds.keys] for bounds in (read.bounds, read.bounds_in_steps) if bounds is not None]
    return pack([read.scan.table.table_id, same])
