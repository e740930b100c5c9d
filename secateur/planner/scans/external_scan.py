"""Restricts the scan of an external table: the domains of its columns, and the number of rows that are enough.

Predicates are read as for an index, into boxes over all columns that can be compared, each of which may hold NULL.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from secateur.engine.sql.select_plan import ExternalScan
from secateur.partitioning.pruning.row_predicate import OpenPredicate
from secateur.partitioning.types.column_type import NESTED, SqlType, TypeKind
from secateur.planner.binding.query import Query
from secateur.planner.predicates.bounds import multiply
from secateur.planner.predicates.predicate import PredicateReader
from secateur.planner.scans.scan_reading import ScanReading

_APART: Final = NESTED | {TypeKind.FLOAT, TypeKind.DOUBLE, TypeKind.INTERVAL}
"""Types without an order of values that connectors could rely on, such as that of NaN."""
_CLAUSES: Final = frozenset({"kind", "expressions", "from_", "limit", "offset"})
"""The clauses of a SELECT that any rows of its table satisfy."""


def external_scan(read: ScanReading, query: Query, *, is_faithful: bool) -> ExternalScan:
    """Describe the rows that a scan of an external table needs.

    Args:
        read: The scan and its predicates.
        query: The statement.
        is_faithful: Whether its tree reads back as the same statement.
    """
    types = {column.name: column.type for column in read.scan.table.columns if column.type.kind not in _APART}
    reader = PredicateReader.about(types, {}, read.scope.column_of)
    factors = multiply([reader.read(conjunct) for conjunct in read.scope.conjuncts])
    named = {column for boxes in factors for box in boxes for column, _ in box.constraints}
    used: tuple[tuple[str, SqlType], ...] = tuple((name, kind) for name, kind in types.items() if name in named)
    nulls = tuple(
        dict.fromkeys(name for conjunct in read.scope.conjuncts if (name := _null_column(conjunct, read)) is not None)
    )
    limit = _rows_enough(query) if is_faithful and not read.scope.conjuncts else None
    title = "" if read.scan.external is None else read.scan.external.title
    return ExternalScan(OpenPredicate(factors, used, nulls), limit, title)


def _null_column(conjunct: exp.Expr, read: ScanReading) -> str | None:
    """The column of ``column IS NULL``."""
    match conjunct.unnest():
        case exp.Is(this=exp.Column() as column, expression=exp.Null()):
            return read.scope.column_of(column)
        case _:
            return None


def _rows_enough(query: Query) -> int | None:
    """The number of rows, whichever they are, that a SELECT of columns with a LIMIT needs; None for any other."""
    tree = query.tree
    if not isinstance(tree, exp.Select) or len(query.scans) != 1:
        return None
    given = {key for key, value in tree.args.items() if value}
    table = query.scans[0].node
    if not given <= _CLAUSES or "limit" not in given or table.parent is not tree.args["from_"]:
        return None
    if not {key for key, value in table.args.items() if value} <= {"this", "alias"}:
        return None  # such as a sample
    if any(item.find(exp.Func, exp.Query, exp.Window) for item in tree.expressions) or not all(
        isinstance(item.unalias(), exp.Column | exp.Star) for item in tree.expressions
    ):
        return None
    numbers = [_number(tree.args.get(clause)) for clause in ("limit", "offset")]
    return None if None in numbers else sum(number for number in numbers if number is not None)


def _number(clause: exp.Expr | None) -> int | None:
    if clause is None:
        return 0
    value = clause.args.get("expression")
    if not isinstance(clause, exp.Limit | exp.Offset) or not isinstance(value, exp.Literal) or value.is_string:
        return None
    return int(value.name) if value.name.isdecimal() else None
