"""An aggregation in two: states at the members, and the values that they make at the coordinator.

The parts of each aggregate are in its row of :mod:`secateur.planner.aggregates`.

Source: Gray et al., "Data Cube" (1997), distributive and algebraic aggregates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec.structs import replace

from secateur.planner.aggregates import AGGREGATES, SqlAggregate
from secateur.planner.tree import expressions as ex
from secateur.planner.tree import relations as rel
from secateur.planner.tree.columns import column_types
from secateur.planner.tree.rewriting import column_of
from secateur.planner.tree.types import LogicalType

_BIGINT = LogicalType("BIGINT")
_AVERAGE = "DOUBLE"


@dataclass(slots=True)
class SplitAggregation:
    """The two parts of an aggregation.

    Attributes:
        partial: At the members: the groups, further keys for DISTINCT, and states.
        final: Makes the whole of the rows of the partial.
    """

    partial: rel.LogicalAggregate
    final: Callable[[rel.AnyRelation], rel.AnyRelation]


@dataclass(slots=True)
class _States:
    keys: list[ex.AnyExpression] = field(default_factory=list)
    states: list[ex.AggregateCall] = field(default_factory=list)


def split_aggregation(aggregate: rel.LogicalAggregate) -> SplitAggregation | None:
    """The parts of an aggregation; None where one of its aggregates has none."""
    states = _States()
    made: list[tuple[str, list[tuple[bool, int]], LogicalType]] = []
    for call in aggregate.expressions:
        if not isinstance(call, ex.AggregateCall):
            return None
        one = _split(call, states)
        if one is None:
            return None
        made.append(one)
    groups = len(aggregate.groups)
    keys = (*aggregate.groups, *states.keys)
    partial = replace(
        aggregate,
        groups=keys,
        grouping_sets=(tuple(range(len(keys))),) if keys else (),
        grouping_functions=(),
        expressions=tuple(states.states),
    )
    first_state = len(keys)

    def final(rows: rel.AnyRelation) -> rel.AnyRelation:
        types = column_types(rows)

        def column(is_key: bool, position: int) -> ex.InputColumn:
            index = groups + position if is_key else first_state + position
            return column_of(index, types[index])

        return replace(
            aggregate,
            children=(rows,),
            groups=tuple(column_of(index, types[index], group.alias) for index, group in enumerate(aggregate.groups)),
            expressions=tuple(
                ex.Written(sql=sql, return_type=type_, children=tuple(column(*part) for part in used))
                for sql, used, type_ in made
            ),
        )

    return SplitAggregation(partial, final)


def _split(call: ex.AggregateCall, states: _States) -> tuple[str, list[tuple[bool, int]], LogicalType] | None:
    """The final text of a call, the keys and states that it names, and its type."""
    aggregate = AGGREGATES.get(call.name)
    if aggregate is None or not aggregate.states or call.order_bys is not None or call.state_export:
        return None
    if aggregate.is_quotient and call.return_type.id != _AVERAGE:
        return None
    if call.is_distinct:
        if not aggregate.takes_distinct or len(call.children) != 1:
            return None
        key = _added(states.keys, _filtered(call))
        return aggregate.distinct_sql("{0}", call.return_type.sql), [(True, key)], call.return_type
    if len(call.children) > 1:
        return None
    used = []
    for name in aggregate.states:
        state = replace(
            call,
            qname=ex.QualifiedName((name,)),
            return_type=call.return_type if len(aggregate.states) == 1 else _state_type(name, call, aggregate),
            alias="",
            function_data=None,
        )
        used.append((False, _added(states.states, state)))
    marks = [f"{{{index}}}" for index in range(len(used))]
    state_type = _state_type(aggregate.states[0], call, aggregate).sql
    return aggregate.final_sql(marks, call.return_type.sql, state_type), used, call.return_type


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
        else_expr=ex.BoundConstant(type="VALUE_CONSTANT", value=ex.BoundValue(type=LogicalType("NULL"), is_null=True)),
    )


def _state_type(name: str, call: ex.AggregateCall, aggregate: SqlAggregate) -> LogicalType:
    """The type of a state of an average: DuckDB's sum of its argument."""
    if name.startswith("count"):
        return _BIGINT
    if not aggregate.is_quotient:
        return call.return_type
    (argument,) = call.children
    kind = argument.return_type.id
    if kind == "DECIMAL":
        scale = argument.return_type.type_info.scale  # type: ignore[union-attr]
        return LogicalType(f"DECIMAL(38,{scale})")
    return LogicalType("DOUBLE" if kind in ("DOUBLE", "FLOAT") else "HUGEINT")
