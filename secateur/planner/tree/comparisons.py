"""Comparisons: what DuckDB calls them, those that are NULL where a side is, and new ones."""

from __future__ import annotations

from typing import Final

from secateur.planner.tree import expressions as ex

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


def compared(type_: str, left: ex.AnyExpression, right: ex.AnyExpression) -> ex.Call:
    """A comparison of two expressions of one type."""
    return ex.Call(type=type_, return_type=ex.BOOLEAN, qname=ex.QualifiedName((NAMES[type_],)), children=(left, right))
