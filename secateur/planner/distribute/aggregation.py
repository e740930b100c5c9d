"""An aggregation in two: states at the members, and the values that they make at the coordinator.

The parts of each aggregate are in its row of :mod:`secateur.planner.aggregates`.

Source: Gray et al., "Data Cube" (1997), distributive and algebraic aggregates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from msgspec.structs import replace

from secateur.planner.aggregates import AGGREGATES
from secateur.planner.tree import expressions as ex
from secateur.planner.tree import relations as rel
from secateur.planner.tree.columns import column_types
from secateur.planner.tree.rewriting import cast_to, column_of
from secateur.planner.tree.types import LogicalType

_INTEGER = LogicalType("INTEGER")
_BIGINT = LogicalType("BIGINT")
_HUGEINT = LogicalType("HUGEINT")
_DOUBLE = LogicalType("DOUBLE")
_AVERAGE = "DOUBLE"
_CONSTANT = "VALUE_CONSTANT"


MakeRelation: TypeAlias = Callable[[rel.AnyRelation], rel.AnyRelation]


@dataclass(frozen=True, slots=True)
class _Whole:
    """How an aggregate is made of the rows of the partial.

    Attributes:
        calls: The aggregates of these, each of a key of the partial or of a state: whether it is a key, and its number.
        whole: Makes the aggregate of the values of the calls.
    """

    calls: Sequence[tuple[ex.AggregateCall, bool, int]]
    whole: Callable[[Sequence[ex.AnyExpression]], ex.AnyExpression]


def split_aggregation(aggregate: rel.LogicalAggregate) -> tuple[rel.LogicalAggregate, MakeRelation] | None:
    """The parts of an aggregation; None where one of its aggregates has none.

    The partial, at the members, has the groups, further keys for DISTINCT, and states. The final makes the whole of its
    rows.
    """
    further: list[ex.AnyExpression] = []
    states: list[ex.AggregateCall] = []
    groups = len(aggregate.groups)
    made: list[_Whole] = []
    for call in aggregate.expressions:
        if not isinstance(call, ex.AggregateCall):
            return None
        one = _split(call, groups, further, states)
        if one is None:
            return None
        made.append(one)
    keys = (*aggregate.groups, *further)
    partial = replace(
        aggregate,
        groups=keys,
        grouping_sets=(tuple(range(len(keys))),) if keys else (),
        grouping_functions=(),
        expressions=tuple(states),
    )

    def final(rows: rel.AnyRelation) -> rel.AnyRelation:
        types = column_types(rows)
        calls: list[ex.AggregateCall] = []

        def column(is_key: bool, position: int) -> ex.InputColumn:
            index = position if is_key else len(keys) + position
            return column_of(index, types[index])

        def called(call: ex.AggregateCall, is_key: bool, position: int) -> ex.InputColumn:
            calls.append(replace(call, children=(column(is_key, position),)))
            return column_of(groups + len(calls) - 1, call.return_type)

        wholes = [one.whole([called(*call) for call in one.calls]) for one in made]
        whole = replace(
            aggregate,
            children=(rows,),
            groups=tuple(column_of(index, types[index], group.alias) for index, group in enumerate(aggregate.groups)),
            expressions=tuple(calls),
        )
        columns = [column_of(index, type_) for index, type_ in enumerate(column_types(whole))]
        shown = (*columns[:groups], *wholes, *columns[groups + len(calls) :])
        return rel.LogicalProject(children=(whole,), expressions=shown)

    return partial, final


def _split(
    call: ex.AggregateCall, groups: int, keys: list[ex.AnyExpression], states: list[ex.AggregateCall]
) -> _Whole | None:
    """How a call is made of keys and states, which are noted."""
    aggregate = AGGREGATES.get(call.name)
    if aggregate is None or not aggregate.states or call.order_bys is not None or call.state_export:
        return None
    if aggregate.is_quotient and call.return_type.id != _AVERAGE:
        return None
    bare = replace(call, alias="", filter=None, function_data=None)

    def cast_whole(columns: Sequence[ex.AnyExpression]) -> ex.AnyExpression:
        return cast_to(columns[0], call.return_type)

    if call.is_distinct:
        if not aggregate.takes_distinct or len(call.children) != 1:
            return None
        key = groups + _added(keys, _filtered(call))
        return _Whole([(bare, True, key)], cast_whole)
    if len(call.children) > 1:
        return None
    calls = []
    for name in aggregate.states:
        type_ = call.return_type if len(aggregate.states) == 1 else _state_type(name, call)
        state = replace(call, qname=ex.QualifiedName((name,)), return_type=type_, alias="", function_data=None)
        total = replace(
            bare,
            qname=ex.QualifiedName((aggregate.final or aggregate.name,)),
            return_type=_HUGEINT if name.startswith("count") else type_,
        )
        calls.append((total, False, _added(states, state)))
    if aggregate.is_quotient:
        first = calls[0][0].return_type
        return _Whole(calls, lambda columns: _quotient(cast_to(columns[0], first), columns[1]))
    if aggregate.of_nothing is not None:
        nothing = ex.BoundConstant(type=_CONSTANT, value=ex.BoundValue(type=_INTEGER, value=aggregate.of_nothing))
        return _Whole(calls, lambda columns: cast_to(_or_else(columns[0], nothing), call.return_type))
    return _Whole(calls, cast_whole)


def _quotient(left: ex.AnyExpression, right: ex.AnyExpression) -> ex.AnyExpression:
    sides = cast_to(left, _DOUBLE), cast_to(right, _DOUBLE)
    return ex.Call(
        type="BOUND_FUNCTION", return_type=_DOUBLE, qname=ex.QualifiedName(("/",)), children=sides, is_operator=True
    )


def _or_else(value: ex.AnyExpression, default: ex.AnyExpression) -> ex.AnyExpression:
    """A value, or a default where it is NULL."""
    children = value, cast_to(default, value.return_type)
    return ex.BoundOperation(type="OPERATOR_COALESCE", return_type=value.return_type, children=children)


def _added(found: list[ex.AnyExpression] | list[ex.AggregateCall], one: ex.AnyExpression) -> int:
    if one not in found:
        found.append(one)  # type: ignore[arg-type]
    return found.index(one)  # type: ignore[arg-type]


def _filtered(call: ex.AggregateCall) -> ex.AnyExpression:
    """The argument of an aggregate of distinct values, NULL where its filter leaves out the row."""
    (argument,) = call.children
    if call.filter is None:
        return argument
    return ex.Case(
        type="CASE_EXPR",
        return_type=argument.return_type,
        case_checks=(ex.When(when_expr=call.filter, then_expr=argument),),
        else_expr=ex.BoundConstant(type=_CONSTANT, value=ex.BoundValue(type=LogicalType("NULL"), is_null=True)),
    )


def _state_type(name: str, call: ex.AggregateCall) -> LogicalType:
    """The type of a state of an average: DuckDB's sum of its argument, or the count."""
    if name.startswith("count"):
        return _BIGINT
    (argument,) = call.children
    kind = argument.return_type.id
    if kind == "DECIMAL":
        scale = argument.return_type.type_info.scale  # type: ignore[union-attr]
        return LogicalType(f"DECIMAL(38,{scale})")
    return _DOUBLE if kind in ("DOUBLE", "FLOAT") else _HUGEINT
