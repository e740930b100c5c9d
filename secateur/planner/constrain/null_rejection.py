"""Null rejection: whether a condition can be TRUE for a row that an outer join has filled with NULL.

Three-valued logic on partial knowledge: each node has the set of values that it may take when the given columns are
what they are. Source: "strong" predicates, Galindo-Legaria and Rosenthal, TODS 1997.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from secateur.planner.constrain.condition import Condition
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.comparisons import STRICT
from secateur.planner.tree.rewriting import bare_column

Truths: TypeAlias = frozenset[bool | None]

_ANY: Final[Truths] = frozenset({True, False, None})
NULL: Final[Truths] = frozenset({None})
NOT_TRUE: Final[Truths] = frozenset({False, None})
NOT_NULL: Final[Truths] = frozenset({True, False})
_STRICT_FUNCTIONS: Final = frozenset({"__cast", "+", "-", "*", "~~", "!~~", "~~*", "!~~*"})


def is_never_true(condition: Condition, known: Mapping[int, Truths]) -> bool:
    """Whether a condition is never TRUE where columns are what is known of them."""
    return True not in _values(condition.expression, known)


def rejected(
    conditions: Iterable[Condition], columns: Iterable[int], never_null: Mapping[int, Truths]
) -> frozenset[int]:
    """Those of some columns that are not NULL in a row for which conditions hold.

    A condition that need not hold where a column is NULL rejects nothing.
    """
    held = [one for one in conditions if one.unless_null is None]
    return frozenset(
        column
        for column in columns
        if any(column in one.columns and is_never_true(one, {**never_null, column: NULL}) for one in held)
    )


def _values(node: ex.AnyExpression, known: Mapping[int, Truths]) -> Truths:
    column = bare_column(node)
    if column is not None:
        return known.get(column.index, _ANY)
    match node:
        case ex.Conjunction(type="CONJUNCTION_AND", children=parts):
            return _all([_values(part, known) for part in parts])
        case ex.Conjunction(children=parts):
            return _negated(_all([_negated(_values(part, known)) for part in parts]))
        case ex.BoundOperation(type="OPERATOR_NOT", children=(inner,)):
            return _negated(_values(inner, known))
        case ex.BoundConstant(value=value):
            if value.is_null:
                return NULL
            return frozenset({value.value}) if isinstance(value.value, bool) else _ANY
        case ex.BoundOperation(type="OPERATOR_IS_NULL", children=(inner,)):
            return frozenset(value is None for value in _values(inner, known))
        case ex.BoundOperation(type="OPERATOR_IS_NOT_NULL", children=(inner,)):
            return frozenset(value is not None for value in _values(inner, known))
        case ex.Call(type="COMPARE_NOT_DISTINCT_FROM" | "COMPARE_DISTINCT_FROM", children=(left, right)):
            same = _same(_values(left, known), _values(right, known))
            return same if node.type == "COMPARE_NOT_DISTINCT_FROM" else _negated(same)
        case ex.BoundOperation(type="COMPARE_IN" | "COMPARE_NOT_IN", children=(first, *_)):
            return NULL if _values(first, known) == NULL else _ANY
        case ex.BoundOperation(type="OPERATOR_COALESCE", children=parts):
            return NULL if all(_values(part, known) == NULL for part in parts) else _ANY
        case ex.Call(type="COMPARE_BETWEEN", children=(value, _, _)):
            return NULL if _values(value, known) == NULL else _ANY
        case ex.Call(children=parts) if node.type in STRICT or node.name in _STRICT_FUNCTIONS:
            return NULL if any(_values(part, known) == NULL for part in parts) else _ANY
        case ex.Written(sql="({0} = ANY({1}))", children=(needle, _)):
            # FALSE for a list without elements, whatever is looked for in it.
            return NOT_TRUE if _values(needle, known) == NULL else _ANY
        case _:
            return _ANY


def _same(left: Truths, right: Truths) -> Truths:
    """IS NOT DISTINCT FROM, which is never NULL."""
    if left == right == NULL:
        return frozenset({True})
    is_different = (left == NULL and None not in right) or (right == NULL and None not in left)
    return frozenset({False}) if is_different else NOT_NULL


def _all(parts: Sequence[Truths]) -> Truths:
    """AND: FALSE where some part is, else NULL where some part is."""
    if any(part == frozenset({False}) for part in parts):
        return frozenset({False})
    found: set[bool | None] = set()
    if any(False in part for part in parts):
        found.add(False)
    if any(None in part for part in parts) and all(part & {True, None} for part in parts):
        found.add(None)
    if all(True in part for part in parts):
        found.add(True)
    return frozenset(found)


def _negated(truth: Truths) -> Truths:
    return frozenset(None if value is None else not value for value in truth)
