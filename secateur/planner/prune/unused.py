"""Explains why a predicate that mentions a key column does not prune, in the user's terms and with what to change."""

from __future__ import annotations

from collections.abc import Mapping

from secateur.partitioning.pruning.comparison import Comparison
from secateur.partitioning.types.column_type import SqlType
from secateur.planner.prune.overloads import COMPARISONS, PATTERNS
from secateur.planner.prune.scan_columns import ScanColumns
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.rewriting import cast_of, parts


def why_unused(whole: ex.AnyExpression, columns: ScanColumns, types: Mapping[str, SqlType], text: str) -> str | None:
    """Return the prune reason, which depends on the expression around the first key column; None where there is none.

    Args:
        whole: The predicate.
        columns: The columns of the scan.
        types: The types of the key columns.
        text: The text of the predicate.
    """
    found = _first_column(whole, columns, types)
    if found is None:
        return None
    column, holder = found
    match holder:
        case ex.Call() if cast_of(holder) is not None:
            return f"{column} is cast in {text}: compare the bare column with a {types[column]}"
        case ex.Call(type="COMPARE_DISTINCT_FROM" | "COMPARE_NOT_DISTINCT_FROM"):
            return f"{text} can be TRUE where an outer join has filled {column} with NULL: compare with = or <>"
        case ex.Call() if holder.type in COMPARISONS:
            return f"{column} is not compared with a constant or a parameter in {text}: pass the value as a parameter"
        case ex.Call() if PATTERNS.get(holder.name) in (Comparison.ILIKE, Comparison.NOT_ILIKE):
            return f"ILIKE compares {column} without regard to case: use LIKE, or compare {column} with values"
        case ex.Call() if holder.name in PATTERNS:
            return (
                f"{column} is matched by a pattern that does not bound it: compare it with values, or with "
                "LIKE 'prefix%'"
            )
        case ex.Call(name="row"):
            return (
                f"{column} is part of a row value in {text} that may be NULL, or that is not "
                "compared with constants: compare each column by itself"
            )
        case ex.Call() if holder.name[0].isalpha():
            return f"{column} is wrapped in {holder.name}(): compare the bare column"
        case ex.BoundOperation(type="COMPARE_IN" | "COMPARE_NOT_IN"):
            return f"{column} is compared with a list that is not constant: pass the values as parameters"
        case ex.BoundOperation(type="OPERATOR_IS_NULL" | "OPERATOR_IS_NOT_NULL"):
            return f"{text} does not restrict {column} to values: compare {column} with = or IN"
        case ex.Call() | ex.BoundOperation() | ex.Case():
            return f"{column} is part of an expression in {text}: compare the bare column"
        case _:
            return f"{text} does not bound {column}: compare {column} with =, IN, <, BETWEEN or LIKE 'prefix%'"


def _first_column(
    whole: ex.AnyExpression, columns: ScanColumns, types: Mapping[str, SqlType]
) -> tuple[str, ex.AnyExpression | None] | None:
    """The first key column in an expression, in the order of its text, and what it stands in."""
    pending: list[tuple[ex.AnyExpression, ex.AnyExpression | None]] = [(whole, None)]
    while pending:
        node, holder = pending.pop()
        column = columns.spelled(node)
        if column is not None and column in types:
            return column, holder
        pending.extend((part, node) for part in reversed(list(parts(node))))
    return None
