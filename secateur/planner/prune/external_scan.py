"""Restricts the scan of an external table: the domains of its columns, and the number of rows that are enough.

Conditions are read as for an index, into boxes over all columns that can be compared, each of which may hold NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from secateur.engine.sql.select_plan import ExternalScan
from secateur.partitioning.pruning.row_predicate import OpenPredicate
from secateur.partitioning.types.column_type import OPAQUE, SqlType, TypeKind
from secateur.planner.binding.bound_plan import BoundPlan, Unreadable
from secateur.planner.prune.bounds import multiply
from secateur.planner.prune.predicate import PredicateReader
from secateur.planner.prune.scan_columns import ScanColumns
from secateur.planner.prune.scan_reading import ScanReading
from secateur.planner.tree import expressions as ex
from secateur.planner.tree import relations as rel

_APART: Final = OPAQUE | {TypeKind.FLOAT, TypeKind.DOUBLE}
"""Types without an order of values that connectors could rely on, such as that of NaN."""


def external_scan(read: ScanReading, plan: BoundPlan | Unreadable) -> ExternalScan:
    """Describe the rows that a scan of an external table needs."""
    types = {column.name: column.type for column in read.scan.table.columns if column.type.kind not in _APART}
    conjuncts = read.conditions.conjuncts
    columns = ScanColumns.of(read.scan.table, read.conditions.names)
    reader = PredicateReader.about(types, columns)
    factors = multiply([reader.read(conjunct) for conjunct in conjuncts])
    named = {column for boxes in factors for box in boxes for column, _ in box.constraints}
    used: tuple[tuple[str, SqlType], ...] = tuple((name, kind) for name, kind in types.items() if name in named)
    limit = None if conjuncts or isinstance(plan, Unreadable) else _rows_enough(plan.root)
    title = "" if read.scan.external is None else read.scan.external.title
    return ExternalScan(OpenPredicate(factors, used, _nulls(conjuncts, columns)), limit, title)


def _nulls(conjuncts: Sequence[ex.AnyExpression], columns: ScanColumns) -> tuple[str, ...]:
    """The columns of which NULL is asked for."""
    found: dict[str, None] = {}
    for conjunct in conjuncts:
        match conjunct:
            case ex.BoundOperation(type="OPERATOR_IS_NULL", children=(column,)):
                name = columns.spelled(column)
                if name is not None:
                    found[name] = None
            case _:
                pass
    return tuple(found)


def _rows_enough(root: rel.AnyRelation) -> int | None:
    """The number of rows, whichever they are, that a SELECT of columns with a LIMIT needs; None for any other."""
    relation = _projected(root)
    match relation:
        case rel.LogicalLimit(children=(below,), limit_val=count, offset_val=skipped) if isinstance(
            _projected(below), rel.LogicalScan
        ):
            numbers = {"CONSTANT_VALUE": skipped.constant_integer, "UNSET": 0}
            offset = numbers.get(skipped.type)
            return None if count.type != "CONSTANT_VALUE" or offset is None else count.constant_integer + offset
        case _:
            return None


def _projected(relation: rel.AnyRelation) -> rel.AnyRelation:
    """What is below projections of columns."""
    while isinstance(relation, rel.LogicalProject) and all(
        isinstance(one, ex.InputColumn) for one in relation.expressions
    ):
        (relation,) = relation.children
    return relation
