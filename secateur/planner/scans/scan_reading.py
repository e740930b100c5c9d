"""The scans of a query with the conditions on them, and their partitions and keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from secateur.engine.sql.key_search import KeySearch
from secateur.partitioning.pruning.nodes import Everywhere
from secateur.partitioning.pruning.select_partitions import combination_limit
from secateur.partitioning.pruning.tree import PartitionTree
from secateur.planner.bind.bound_plan import BoundPlan, Unreadable
from secateur.planner.binding.query import Query, TableReference
from secateur.planner.constrain.colocation import colocated_scans
from secateur.planner.constrain.numbering import Numbering, ScanColumn
from secateur.planner.constrain.scans import NOTHING, ScanConditions, scan_conditions
from secateur.planner.plan_settings import PlanSettings
from secateur.planner.prune.scan import bound_scan
from secateur.planner.prune.scan_bounds import ScanBounds
from secateur.planner.tree.columns import columns_read

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
        plan: The plan that they are read from.
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
    """Read the scans of a query.

    Args:
        query: The query.
        plan: DuckDB's plan of it.
        settings: The session's settings for the plan.
        integers: The indexes of the parameters that are integers in every execution.
    """
    if isinstance(plan, Unreadable):
        unknown = replace(_UNKNOWN, notes=(plan.reason,))
        read = tuple(ScanReading(scan, unknown, bounds_of(scan, unknown, settings)) for scan in query.scans)
        return QueryReading(plan, read)
    try:
        numbered = _numbered(query, plan)
        scans = tuple(
            ScanReading(scan, conditions, bounds_of(scan, conditions, settings, integers))
            for scan, conditions in zip(query.scans, _conditions(query, plan, numbered), strict=True)
        )
        return QueryReading(plan, scans, tuple(numbered.joined), colocated_scans(numbered))
    except RecursionError:
        return read_query(query, Unreadable("it is nested too deeply to be analysed: write it flatter"), settings)


def conditions_with_lists(query: Query, plan: BoundPlan, lists: Mapping[ScanColumn, int]) -> tuple[ScanConditions, ...]:
    """The conditions on each scan if parameters have all values of some columns.

    Args:
        query: The query.
        plan: DuckDB's plan of it.
        lists: The index of the parameter of each of these columns.
    """
    return _conditions(query, plan, _numbered(query, plan, lists))


def bounds_of(
    scan: TableReference,
    conditions: ScanConditions,
    settings: PlanSettings,
    integers: frozenset[int] = frozenset(),
) -> ScanBounds:
    """The bounds that conditions set on the keys of a scan; an external table has no partitions here."""
    table, scheme = scan.table, scan.table.scheme
    if scan.external is not None:
        limit = combination_limit(scheme)
        anywhere = PartitionTree(table.name, scheme, Everywhere(), scheme.live_partition_count, limit)
        return ScanBounds((), anywhere, KeySearch(), None, tuple(sorted(conditions.local)))
    return bound_scan(
        table,
        conditions.names,
        conditions.conjuncts,
        local=conditions.local,
        notes=conditions.notes,
        is_whole=conditions.is_whole,
        others=conditions.others,
        combinations_per_partition=settings.combinations_per_partition,
        integers=integers,
    )


def _conditions(query: Query, plan: BoundPlan, numbered: Numbering) -> tuple[ScanConditions, ...]:
    found = scan_conditions(numbered)
    scanned = {relation for relation, _ in columns_read(plan.root)}
    return tuple(found.get(scan.relation, _UNKNOWN if scan.relation in scanned else NOTHING) for scan in query.scans)


def _numbered(query: Query, plan: BoundPlan, lists: Mapping[ScanColumn, int] = MappingProxyType({})) -> Numbering:
    tables = {scan.relation: scan.table for scan in query.scans}
    return Numbering(plan.root, tables, {scan.relation: scan.alias for scan in query.scans}, lists)
