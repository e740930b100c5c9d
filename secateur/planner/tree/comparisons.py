"""Comparisons and tests of texts: what DuckDB calls them, those that are NULL where a side is, and new ones."""

from __future__ import annotations

from typing import Final

from secateur.partitioning.pruning.comparison import Comparison
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.types import LogicalType

NAMES: Final = {
    "COMPARE_EQUAL": "=",
    "COMPARE_NOTEQUAL": "!=",
    "COMPARE_DISTINCT_FROM": "IS DISTINCT FROM",
    "COMPARE_NOT_DISTINCT_FROM": "IS NOT DISTINCT FROM",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
}
"""What comparisons are called, by the type of the call."""

STRICT: Final = frozenset(NAMES) - {"COMPARE_DISTINCT_FROM", "COMPARE_NOT_DISTINCT_FROM"}
"""Those that are NULL where a side is."""
COMPARISONS: Final = {
    "COMPARE_EQUAL": Comparison.IN,
    "COMPARE_NOTEQUAL": Comparison.NOT_IN,
    "COMPARE_LESSTHAN": Comparison.LESS,
    "COMPARE_LESSTHANOREQUALTO": Comparison.LESS_EQUAL,
    "COMPARE_GREATERTHAN": Comparison.GREATER,
    "COMPARE_GREATERTHANOREQUALTO": Comparison.GREATER_EQUAL,
    "COMPARE_DISTINCT_FROM": Comparison.DISTINCT,
    "COMPARE_NOT_DISTINCT_FROM": Comparison.DISTINCT,
}
"""The comparison that a call is, by the call's type."""
PATTERNS: Final = {
    "~~": Comparison.LIKE,
    "!~~": Comparison.NOT_LIKE,
    "like_escape": Comparison.LIKE,
    "not_like_escape": Comparison.NOT_LIKE,
    "~~*": Comparison.ILIKE,
    "!~~*": Comparison.NOT_ILIKE,
    "ilike_escape": Comparison.ILIKE,
    "not_ilike_escape": Comparison.NOT_ILIKE,
    "~~~": Comparison.GLOB,
    "regexp_full_match": Comparison.SIMILAR_TO,
    "regexp_matches": Comparison.MATCHES,
    "^@": Comparison.STARTS_WITH,
    "starts_with": Comparison.STARTS_WITH,
    "prefix": Comparison.STARTS_WITH,
}
"""The tests of a text with a pattern, by the function's name."""
CONTAINS: Final = frozenset({"list_contains", "list_has", "array_contains", "array_has", "contains"})
"""The functions that search a list, where that is their first argument."""
LENGTHS: Final = frozenset({"length", "len", "char_length", "character_length", "strlen"})
"""The functions of a text that are never less than its number of characters."""

_TEXT: Final = LogicalType("VARCHAR")


def compared(type_: str, left: ex.AnyExpression, right: ex.AnyExpression) -> ex.Call:
    """A comparison of two expressions of one type."""
    return ex.Call(type=type_, return_type=ex.BOOLEAN, qname=ex.QualifiedName((NAMES[type_],)), children=(left, right))


def are_texts(call: ex.Call) -> bool:
    """Whether the arguments of a call are texts without a collation, which tells it from overloads of other types."""
    return all(child.return_type == _TEXT for child in call.children)


def nullif_of(case: ex.Case) -> tuple[ex.AnyExpression, ex.AnyExpression] | None:
    """The arguments of NULLIF, which is bound as a CASE."""
    match case.case_checks:
        case (ex.When(when_expr=ex.Call(type="COMPARE_EQUAL", children=(left, right)), then_expr=then),):
            inner = then.children[0] if isinstance(then, ex.Call) and then.name == "__cast" else then
            is_null = isinstance(inner, ex.BoundConstant) and inner.value.is_null
            return (left, right) if is_null and left == case.else_expr else None
        case _:
            return None


def is_closed(between: ex.Call) -> bool:
    """Whether both bounds of BETWEEN belong to it."""
    data = between.function_data or {}
    return data.get("lower_inclusive") is True and data.get("upper_inclusive") is True
