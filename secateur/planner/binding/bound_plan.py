"""The bound plan of a query: what DuckDB would execute, before any optimization.

Which parameters may decide about its types is read from it as well.

The text that is bound has each parameter in a cast to the type of its value, because DuckDB does not guess. The texts
that are printed from the tree have the bare parameter again, so that a value of another type is converted as the user's
own text would convert it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, auto
from typing import Any, Final
from uuid import UUID

import msgspec

from secateur.engine.kernels.duckdb.kernel import DuckDBKernel
from secateur.partitioning.types.column_type import SqlType
from secateur.planner.binding.normalise import normalised
from secateur.planner.text.parameters import TypeUses, UnknownValue, read_parameters
from secateur.planner.text.tokens import tokenize
from secateur.planner.tree import expressions as ex
from secateur.planner.tree import relations as rel
from secateur.planner.tree.columns import expressions_of, relations_in
from secateur.planner.tree.comparisons import CONTAINS
from secateur.planner.tree.expression_sql import BoundText, is_of_between
from secateur.planner.tree.relations import AnyRelation
from secateur.planner.tree.rewriting import cast_of, conditions_of, parts
from secateur.protocol.codec import json_decoder

_TYPES: Final[Mapping[type, str]] = {
    float: "DOUBLE",
    str: "VARCHAR",
    bytes: "BLOB",
    date: "DATE",
    time: "TIME",
    timedelta: "INTERVAL",
    UUID: "UUID",
}
_BYTES_MAX: Final = 4_194_304
"""Of a plan. DuckDB computes some constants when it binds them, such as a text that is repeated."""
_INTEGERS: Final = (("INTEGER", 32), ("BIGINT", 64), ("HUGEINT", 128))
_WRITTEN: Final = frozenset({"INNER", "LEFT", "RIGHT", "FULL", "OUTER"})
"""The joins that are written as such; the others are subqueries."""
_ROWS: Final = frozenset({"row", "list_value"})


class _Answer(msgspec.Struct):
    error: bool
    plans: tuple[AnyRelation, ...] = ()
    error_message: str = ""


_decode: Final = json_decoder(_Answer).decode


@dataclass(frozen=True, slots=True)
class BoundPlan:
    """A bound query.

    Attributes:
        root: Its tree, in its plainer form (:func:`~secateur.planner.binding.normalise.normalised`).
        text: What was bound.
        whole: Why no stages can be made of it, although it is known; None where they can.
    """

    root: AnyRelation
    text: BoundText
    whole: str | None = None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A query whose plan DuckDB does not show, or shows in a form that is not known here."""

    reason: str


def bind_to_plan(
    kernel: DuckDBKernel,
    sql: str,
    relations: Mapping[str, Mapping[str, SqlType | str]],
    values: Sequence[Any],
) -> BoundPlan | Unreadable:
    """Bind a query.

    Args:
        kernel: DuckDB.
        sql: The query, over ``relations``; parameters are ``$1`` to ``$n``.
        relations: Relation name to column name to SQL type.
        values: A value of each parameter, for its type; None for any.

    Cost: half a millisecond for a short text.
    """
    _, parameters = read_parameters(sql, tokenize(sql))
    types = [type_of(value) for value in values]
    tries = [types]
    # Where not even the place says of which type a NULL is, it is of none: plans are made for the classes of values, of
    # which NULL is one.
    nulls = [_null_type_of(value) for value in values]
    if any(nulls):
        tries.append([null or kind for null, kind in zip(nulls, types, strict=True)])
    if "VARCHAR" in types:
        # A text is compared with a number or a date as one of these, and a cast to VARCHAR is not.
        tries.append([None if kind == "VARCHAR" else kind for kind in types])
    refused: list[Unreadable] = []
    for tried in tries:
        found = _bound(kernel, sql, parameters.spans, relations, tried)
        if isinstance(found, BoundPlan):
            return found
        refused.append(found)
    return refused[0]


def _bound(
    kernel: DuckDBKernel,
    sql: str,
    spans: Sequence[tuple[int, int, int]],
    relations: Mapping[str, Mapping[str, SqlType | str]],
    types: Sequence[str | None],
) -> BoundPlan | Unreadable:
    text, end = "", 0
    places = set()
    for start, stop, index in spans:
        text += sql[end:start]
        kind = types[index] if index < len(types) else None
        written = f"${index + 1}" if kind is None else f"CAST(${index + 1} AS {kind})"
        places.add((len(text.encode()), len(written)))
        text, end = text + written, stop
    text += sql[end:]
    answer = kernel.plan(text, relations)
    if len(answer) > _BYTES_MAX:
        return Unreadable("its plan is large, with lists or constants of megabytes: pass them as parameters")
    try:
        found = _decode(answer)
        root = normalised(found.plans[0]) if len(found.plans) == 1 else None
    except msgspec.DecodeError as error:
        return Unreadable(f"its plan is not known here: {error}")
    except RecursionError:
        return Unreadable("it is nested too deeply to be divided: write it flatter")
    if root is None:
        return Unreadable(f"DuckDB does not show its plan: {found.error_message}")
    whole = None
    if b'"collation":' in answer:
        whole = "a collation decides which texts are equal, and stages do not exchange it: leave out COLLATE"
    elif b"BOUND_COLUMN_REF" in answer:
        whole = "its plan is not known here: a table function reads the columns of other tables"
    bound = (one for relation in relations_in(found.plans[0]) for one in expressions_of(relation))
    return BoundPlan(root, BoundText.of(text, frozenset(places), bound), whole)


def _null_type_of(value: Any) -> str | None:
    """The type of NULL, or of a list that has nothing else; None for any other value."""
    if value is None:
        return '"NULL"'
    return '"NULL"[]' if isinstance(value, list) and all(one is None for one in value) else None


def type_of(value: Any) -> str | None:
    """The type that DuckDB gives a value; None where that depends on the place."""
    match value:
        case UnknownValue():
            return value.type
        case bool():
            return "BOOLEAN"
        case int():
            return next((name for name, bits in _INTEGERS if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)), None)
        case datetime():
            return "TIMESTAMP" if value.tzinfo is None else "TIMESTAMP WITH TIME ZONE"
        case Decimal():
            _, digits, exponent = value.as_tuple()
            if not isinstance(exponent, int):
                return None
            scale = max(-exponent, 0)
            width = max(len(digits) + max(exponent, 0), scale + 1 if scale < 38 else scale)
            return f"DECIMAL({width},{scale})" if width <= 38 else None
        case list():
            kinds = {type_of(one) for one in value if one is not None}
            kind = kinds.pop() if len(kinds) == 1 else next((n for n, _ in reversed(_INTEGERS) if n in kinds), None)
            return None if kind is None else f"{kind}[]"
        case _:
            return _TYPES.get(type(value))


class _Place(Enum):
    """The use of a part of an expression."""

    FREE = auto()
    """Its type may become the type of something else."""
    COMPARED = auto()
    """It is a side of a comparison, or one of the values of a row or list there."""
    CAST = auto()
    """It is the value of a cast of the user's, or such a value is computed from it in each row."""


def type_uses_in(plan: BoundPlan) -> TypeUses:
    """Find out on the types of which parameters the types in a query may depend.

    A parameter counts as compared only if it is itself an operand of the comparison: with ``k = $1 + 1`` the planner
    may do arithmetic of its own.
    """
    needed: set[int] = set()
    unneeded: set[int] = set()
    pending: list[tuple[ex.AnyExpression, _Place]] = []
    for relation in relations_in(plan.root):
        compared = isinstance(relation, rel.LogicalLimit)
        pending += ((one, _Place.COMPARED if compared else _Place.FREE) for one in _apart(relation))
    while pending:
        node, place = pending.pop()
        if isinstance(node, ex.BoundParameter):
            is_free = place is _Place.FREE and plan.text.is_bare(node)
            (needed if is_free else unneeded).add(int(node.identifier) - 1)
            continue
        inner = _inside(node, place, plan.text)
        pending.extend((part, inner) for part in parts(node))
    return TypeUses(frozenset(needed), frozenset(unneeded - needed))


def _apart(relation: rel.AnyRelation) -> list[ex.AnyExpression]:
    """The expressions of a relation; the sides of a comparison in ON are one."""
    if isinstance(relation, rel.LogicalJoin | rel.LogicalConditionJoin) and relation.join_type in _WRITTEN:
        return conditions_of(relation)
    return expressions_of(relation)


def _inside(node: ex.AnyExpression, place: _Place, text: BoundText) -> _Place:
    """The use of the parts of a node."""
    match node:
        case ex.Call() if is_of_between(node) and (text.is_between_open or any(map(text.is_typed, parts(node)))):
            return _Place.FREE
        case ex.Call() if node.type.startswith("COMPARE_") or node.name in CONTAINS:
            return _Place.COMPARED
        case ex.BoundOperation(type="COMPARE_IN" | "COMPARE_NOT_IN") | ex.Written(sql="({0} = ANY({1}))"):
            return _Place.COMPARED
        case ex.Call() if cast_of(node) is not None:
            return place if text.is_implicit(node) or text.is_typed(node) else _Place.CAST
        case _ if text.has_cast(node):
            return _Place.CAST
        case ex.Call() if place is _Place.COMPARED:
            return place if node.name in _ROWS else _Place.FREE
        case ex.Call() if "lambda_expr" not in (node.function_data or ()):
            return place
        case ex.Case() | ex.BoundOperation() if place is _Place.CAST:
            return place
        case _:
            return _Place.FREE
