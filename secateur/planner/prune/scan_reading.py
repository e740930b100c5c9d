"""The scans of a query: the conditions on them, their partitions and keys, and the rows that leave their member.

The rows leave filtered, and without the columns that only the filter reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from msgspec import structs

from secateur.engine.sql.key_search import KeySearch
from secateur.partitioning.pruning.nodes import All, Everywhere, Nothing, intersect, unite
from secateur.partitioning.pruning.select_partitions import (
    COMBINATIONS_PER_PARTITION,
    UnprunedComponent,
    combination_limit,
)
from secateur.partitioning.pruning.tree import PartitionTree
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.column_type import SqlType
from secateur.partitioning.types.sql_text import quoted
from secateur.planner.binding.bound_plan import BoundPlan, Unreadable
from secateur.planner.binding.catalog_view import PlanSettings
from secateur.planner.binding.query import Query, TableReference
from secateur.planner.constrain.colocation import colocated_scans
from secateur.planner.constrain.descent import NOTHING, Constrained, ScanConditions, constrained
from secateur.planner.constrain.numbering import ScanColumn
from secateur.planner.prune.bounds import NOWHERE, UNBOUNDED, Boxes, ScanBounds, multiply
from secateur.planner.prune.bounds import unite as unite_boxes
from secateur.planner.prune.key_search import index_search, is_key_comparison, key_search, read_keys
from secateur.planner.prune.partition_nodes import at_binding, box_node, contradicted_by
from secateur.planner.prune.predicate import PredicateReader
from secateur.planner.prune.reasons import why_not_pruned
from secateur.planner.prune.scan_columns import ScanColumns
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.columns import columns_read
from secateur.planner.tree.expression_sql import BoundText, Unprintable, expression_sql
from secateur.planner.tree.rewriting import all_of, any_of, over_columns
from secateur.protocol.values import pack

_UNKNOWN: Final = ScanConditions((), is_whole=False)


@dataclass(frozen=True, slots=True)
class ScanReading:
    """One scan, the conditions on it, and its bounds.

    Attributes:
        scan: The scan.
        conditions: What holds for the rows that matter.
        bounds: Its key bounds.
        bounds_in_steps: Its key bounds when the keys of joins are found first; None when they are not.
    """

    scan: TableReference
    conditions: ScanConditions
    bounds: ScanBounds
    bounds_in_steps: ScanBounds | None = None


@dataclass(frozen=True, slots=True)
class QueryReading:
    """A query's scans.

    Attributes:
        plan: The plan that they are read from, with inner joins for outer ones where the conditions make them so.
        scans: Its scans.
        joined: The columns of scans that conditions equate, wherever they stand.
        colocated: Groups of co-located scans, as names of relations.
    """

    plan: BoundPlan | Unreadable
    scans: tuple[ScanReading, ...]
    joined: tuple[tuple[ScanColumn, ScanColumn], ...] = ()
    colocated: tuple[tuple[str, ...], ...] = ()


def read_query(
    query: Query,
    plan: BoundPlan | Unreadable,
    settings: PlanSettings,
    integers: frozenset[int] = frozenset(),
) -> QueryReading:
    """Read the scans of a query; ``integers`` are the parameters that are integers in every execution, by index."""
    if isinstance(plan, Unreadable):
        unknown = replace(_UNKNOWN, notes=(plan.reason,))
        read = tuple(ScanReading(scan, unknown, bounds_of(scan, unknown, settings)) for scan in query.scans)
        return QueryReading(plan, read)
    try:
        found = _constrained(query, plan)
        claims = frozenset(query.parameters.claim_places.values())
        scans = tuple(
            ScanReading(scan, conditions, bounds_of(scan, conditions, settings, integers, claims))
            for scan, conditions in zip(query.scans, _conditions(query, found), strict=True)
        )
        numbered = found.numbering
        plan = replace(plan, root=found.root)
        return QueryReading(plan, scans, tuple(numbered.joined), colocated_scans(numbered))
    except RecursionError:
        return read_query(query, Unreadable("it is nested too deeply to be analysed: write it flatter"), settings)


def conditions_with_lists(query: Query, plan: BoundPlan, lists: Mapping[ScanColumn, int]) -> tuple[ScanConditions, ...]:
    """The conditions on each scan if parameters have all values of some columns; ``lists`` has their indexes."""
    return _conditions(query, _constrained(query, plan, lists))


def bounds_of(
    scan: TableReference,
    conditions: ScanConditions,
    settings: PlanSettings,
    integers: frozenset[int] = frozenset(),
    claims: frozenset[int] = frozenset(),
) -> ScanBounds:
    """The bounds that conditions set on the keys of a scan; an external table has no partitions here."""
    table, scheme = scan.table, scan.table.scheme
    if scan.external is not None:
        limit = combination_limit(scheme)
        anywhere = PartitionTree(table.name, scheme, Everywhere(), scheme.live_partition_count, limit)
        return ScanBounds((), anywhere, KeySearch(), None, tuple(sorted(conditions.local)))
    return bound_scan(table, conditions, settings.combinations_per_partition, integers, claims)


def _conditions(query: Query, found: Constrained) -> tuple[ScanConditions, ...]:
    scanned = {relation for relation, _ in columns_read(found.root)}
    return tuple(
        found.conditions.get(scan.relation, _UNKNOWN if scan.relation in scanned else NOTHING) for scan in query.scans
    )


def _constrained(query: Query, plan: BoundPlan, lists: Mapping[ScanColumn, int] = MappingProxyType({})) -> Constrained:
    tables = {scan.relation: scan.table for scan in query.scans}
    return constrained(plan.root, tables, {scan.relation: scan.alias for scan in query.scans}, lists)


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
        any_of([one.condition for one in found.values()]),
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


def bound_scan(
    table: TableDef,
    conditions: ScanConditions,
    combinations_per_partition: int = COMBINATIONS_PER_PARTITION,
    integers: frozenset[int] = frozenset(),
    claims: frozenset[int] = frozenset(),
) -> ScanBounds:
    """The bounds that conditions set on a scan of a table.

    For the numbers see :class:`~secateur.planner.binding.catalog_view.PlanSettings` and :func:`read_query`; ``claims``
    are the indexes of the parameters that are claims.
    """
    scheme, conjuncts = table.scheme, conditions.conjuncts
    columns = ScanColumns.of(table, conditions.names, conditions.others)
    reader = PredicateReader(dict(scheme.types), columns, integers)
    read = reader.read_conjuncts(conjuncts)
    keys_reader, keys_read = read_keys(table, reader, conjuncts, read)
    others = _other_columns(table, columns, conjuncts)
    told = others if claims else {}
    alternatives = _with_other_columns(table, columns, conjuncts, integers, others, told) or tuple(
        reader.close(boxes, conjuncts) for boxes in multiply(read)
    )
    divided = factors = alternatives
    if told:
        divided = tuple(tuple(box.restrict(scheme.columns) for box in boxes) for boxes in alternatives)
        factors = tuple(unite_boxes((box,) for box in boxes) for boxes in divided)
    key_factors = tuple(keys_reader.close(boxes, conjuncts) for boxes in multiply(keys_read))
    decisive = [
        boxes != UNBOUNDED and is_key_comparison(each, table, columns)
        for each, boxes in zip(conjuncts, keys_read, strict=True)
    ]
    keys, is_searched = key_search(table, key_factors, is_complete=conditions.is_whole and all(decisive))
    if keys.bounds is None:
        keys = structs.replace(keys, index=index_search(table, columns, conjuncts))
    residual = tuple(
        index for index in range(len(conjuncts)) if index in conditions.local and not (is_searched and decisive[index])
    )
    total, limit = scheme.live_partition_count, combination_limit(scheme, combinations_per_partition)
    if table.replicated:
        return ScanBounds((), PartitionTree(table.name, scheme, Everywhere(), total, limit), keys, None, residual)
    overflows: list[UnprunedComponent] = []
    nodes = [[box_node(box, scheme, total, limit, overflows) for box in boxes] for boxes in divided]
    root = Nothing() if NOWHERE in key_factors else intersect(map(unite, nodes))
    reason = None
    if isinstance(root, All):
        reason = why_not_pruned(table, factors, [*conditions.notes, *reader.notes], overflows)
    if not isinstance(root, Nothing):
        tried = at_binding(divided, nodes, dict(scheme.types))
        if told:
            tried = [
                contradicted_by(claims, boxes, each, told) for boxes, each in zip(alternatives, tried, strict=True)
            ]
        root = intersect(map(unite, tried))
    return ScanBounds(factors, PartitionTree(table.name, scheme, root, total, limit), keys, reason, residual)


def _other_columns(table: TableDef, columns: ScanColumns, conjuncts: Sequence[ex.AnyExpression]) -> dict[str, SqlType]:
    """The types of the columns beside the partitioning key, of which predicates may contradict each other.

    Those that are named twice, or in one of several alternatives: ``v = NULL`` contradicts itself.
    """
    disjunctions = [one for one in conjuncts if isinstance(one, ex.Conjunction) and one.type == "CONJUNCTION_OR"]
    named = columns.named_in(conjuncts) + columns.named_in(disjunctions)
    return {
        name: columns.types[name] for name, count in named.items() if count > 1 and name not in table.scheme.columns
    }


def _with_other_columns(
    table: TableDef,
    columns: ScanColumns,
    conjuncts: Sequence[ex.AnyExpression],
    integers: frozenset[int],
    others: Mapping[str, SqlType],
    kept: Iterable[str],
) -> tuple[Boxes] | None:
    """The bounds on the partitioning key and other columns, where predicates on these may contradict each other.

    ``v = 1 AND v = 2`` is never TRUE, and ``(a = 1 AND v IS NULL OR a = 2 AND v = 3) AND v > 1`` is ``a = 2``. None if
    there are no other columns, or the predicates have too many alternatives. The boxes keep the columns of ``kept``.
    """
    if not others:
        return None
    reader = PredicateReader(dict(table.scheme.types), columns, integers)
    found = multiply(reader.read_with(conjuncts, others))
    return (reader.close(found[0], conjuncts, kept),) if len(found) == 1 else None
