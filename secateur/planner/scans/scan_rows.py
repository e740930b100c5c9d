"""The rows of a scan that leave their member: filtered, and without the columns that only the filter reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from secateur.partitioning.tables.identifier import quoted
from secateur.planner.bind.bound_plan import Unreadable
from secateur.planner.scans.scan_reading import QueryReading, ScanReading
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.bound_text import BoundText
from secateur.planner.tree.expression_sql import expression_sql
from secateur.planner.tree.rewriting import all_of, over_columns
from secateur.planner.tree.values import Unprintable
from secateur.protocol.values import pack


@dataclass(frozen=True, slots=True)
class ScanFilter:
    """A condition on the rows of a scan.

    Attributes:
        sql: Over the names of its columns.
        condition: The same over all columns of its table.
    """

    sql: str
    condition: ex.AnyExpression = field(compare=False)


def either(filters: Iterable[ScanFilter | None]) -> ScanFilter | None:
    """The filter of the rows that pass one of some filters, of which there is at least one; None where all rows do."""
    found: dict[str, ScanFilter] = {}
    for one in filters:
        if one is None:
            return None
        found[one.sql] = one
    if len(found) == 1:
        return found.popitem()[1]
    return ScanFilter(
        " OR ".join(f"({sql})" for sql in found),
        ex.Conjunction(type="CONJUNCTION_OR", children=tuple(one.condition for one in found.values())),
    )


@dataclass(frozen=True, slots=True)
class ScanRows:
    """The rows of a scan that a statement may need.

    Attributes:
        filter: The filter of the rows; None for all.
        is_complete: Whether it is all that the statement asks of the scan.
        read: Identifies the rows read before that: equal for scans of the same partitions and key ranges of one table.
    """

    filter: ScanFilter | None
    is_complete: bool
    read: bytes


def selected_rows(relation: str, columns: Sequence[str], where: str) -> str:
    """The SELECT of some columns of the rows of a relation that pass a filter, which is empty for all."""
    return f"SELECT {', '.join(map(quoted, columns))} FROM {relation}" + (f" WHERE {where}" if where else "")


def rows_of_scans(read: QueryReading) -> dict[str, ScanRows]:
    """The rows of each scan that a statement may need, by the name of the scan's relation."""
    if isinstance(read.plan, Unreadable):
        return {scan.scan.relation: ScanRows(None, False, _read(scan)) for scan in read.scans}
    return {scan.scan.relation: _rows_of(scan, read.plan.text) for scan in read.scans}


def _rows_of(read: ScanReading, text: BoundText) -> ScanRows:
    conditions = read.conditions
    names = [*map(quoted, conditions.names)]
    filters, kept = [], []
    for index in sorted(conditions.local):
        condition = conditions.conjuncts[index]
        try:
            filters.append(expression_sql(condition, names, text))
        except Unprintable:
            continue
        kept.append(condition)
    if not kept:
        return ScanRows(None, not conditions.conjuncts, _read(read))
    # DuckDB scans the number of a row where no column is needed; no condition reads it.
    table = [column.name for column in read.scan.visible_columns]
    places = {index: table.index(name) for index, name in enumerate(conditions.names) if name in table}
    whole = ScanFilter(" AND ".join(filters), all_of([over_columns(one, places) for one in kept]))
    return ScanRows(whole, len(filters) == len(conditions.conjuncts), _read(read))


def _read(read: ScanReading) -> bytes:
    # Scans that read the same may read other rows once the keys of joins are known.
    same = [[bounds.tree, bounds.keys] for bounds in (read.bounds, read.bounds_in_steps) if bounds is not None]
    return pack([read.scan.table.table_id, same])
