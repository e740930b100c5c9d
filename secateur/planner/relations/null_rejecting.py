"""Null rejection: whether a predicate can be TRUE for a row that an outer join has filled with NULLs.

Three-valued logic on partial knowledge: each node has the set of values that it may take when the given attributes are
NULL. Source: "strong" predicates, Galindo-Legaria and Rosenthal, TODS 1997.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from secateur.planner.predicates.predicate import flat
from secateur.planner.relations.attribute import Attribute, occurrence
from secateur.planner.relations.bound_predicate import BoundPredicate

# TRUE, FALSE, NULL.
_ANY: Final = frozenset({True, False, None})
_NULL: Final = frozenset({None})
_NEVER_TRUE: Final = frozenset({False, None})
_COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
# Operators that are NULL when an operand is.
_STRICT: Final = (*_COMPARISONS, exp.Add, exp.Sub, exp.Mul, exp.Like, exp.ILike)

_Truth = frozenset[bool | None]


def rejects_nulls(conjunct: BoundPredicate, is_null: Callable[[Attribute], bool]) -> bool:
    """Whether a predicate is never TRUE where the attributes for which ``is_null`` holds are NULL."""

    def values(node: exp.Expr) -> _Truth:
        node = node.unnest()
        match node:
            case exp.And():
                return _all([values(part) for part in flat(node, exp.And)])
            case exp.Or():
                return _negated(_all([_negated(values(part)) for part in flat(node, exp.Or)]))
            case exp.Not():
                return _negated(values(node.this))
            case exp.Boolean():
                return frozenset({bool(node.this)})
            case exp.Null():
                return _NULL
            case exp.Column():
                attribute = conjunct.binding.get(occurrence(node)) if isinstance(node.this, exp.Identifier) else None
                return _NULL if attribute is not None and is_null(attribute) else _ANY
            case exp.Is() if isinstance(node.expression, exp.Null):
                return frozenset({True}) if values(node.this) == _NULL else _ANY
            case exp.Binary(args={"expression": exp.Any() | exp.All()}):  # ``NULL <> ALL`` over nothing is TRUE
                return _ANY
            case exp.Binary() if isinstance(node, _STRICT):
                return _NULL if values(node.this) == _NULL or values(node.expression) == _NULL else _ANY
            case exp.In() if isinstance(node.args.get("query"), exp.Expr):
                # FALSE over an empty subquery, whatever is looked for in it.
                return _NEVER_TRUE if values(node.this) == _NULL else _ANY
            case exp.In() if node.expressions and not node.args.get("query") and not node.args.get("unnest"):
                return _NULL if values(node.this) == _NULL else _ANY
            case exp.Between():
                return _NULL if values(node.this) == _NULL else _ANY
            case exp.Cast() | exp.Neg():
                return _NULL if values(node.this) == _NULL else _ANY
            case _:
                return _ANY

    return True not in values(conjunct.predicate)


def _all(parts: list[_Truth]) -> _Truth:
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


def _negated(truth: _Truth) -> _Truth:
    return frozenset(None if value is None else not value for value in truth)
