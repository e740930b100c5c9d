"""The tables of a statement as the sources of an arrow fragment: in which order they are joined, and by what.

Joined are tables alone: inner and left joins by equality, and semi and anti joins, which EXISTS and IN of a query over
one table are. Conditions on one table are applied before its join, unless it is the inner side of a left join.

Inner joins may be done in any order; they begin with a table that a key restricts, if there is one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from secateur.engine.kernels.arrow.fragment import (
    ArrowSource,
    CallExpression,
    ColumnExpression,
    Expression,
    ScalarFunction,
    SourceJoin,
    can_search,
    columns_in,
    source_column,
)
from secateur.planner.arrow.constants import DeclineError, KernelDeclined, sql_type
from secateur.planner.arrow.values import Column, all_of
from secateur.planner.tree import relations as rel
from secateur.planner.tree.columns import column_types
from secateur.planner.tree.types import LogicalType


@dataclass(frozen=True, slots=True)
class JoinInput:
    """What is known of a table in a join.

    Attributes:
        order: The column in whose order the rows of each chunk are, if all rows are read; else None.
        is_restricted: Whether its rows are restricted by a key.
    """

    order: str | None = None
    is_restricted: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One table, and the conditions of its own join.

    Attributes:
        relation: Its relation, such as ``s0``.
        input: What is known of it.
        order: The column of the join in whose order its rows are; None where there is none.
        kind: How it is joined to the tables before it.
        conditions: The conditions of its join; those of an inner join are among those of WHERE.
    """

    relation: str
    input: JoinInput
    order: ColumnExpression | None = None
    kind: SourceJoin = SourceJoin.INNER
    conditions: tuple[Expression, ...] = ()


def read_table(
    leaf: rel.LogicalScan | rel.LogicalStageRows, inputs: Mapping[str, JoinInput] | None
) -> tuple[tuple[Column, ...], Step]:
    """The columns of a table, and the step that reads it.

    Args:
        leaf: The table.
        inputs: What is known of each table of a join; None where one table is read alone.

    Raises:
        DeclineError: It is no table.
    """
    if isinstance(leaf, rel.LogicalStageRows):
        relation, names = leaf.name, list(leaf.names)
    elif leaf.table is None:
        raise DeclineError(f"{leaf.qname.path[-1]} in FROM is left to DuckDB")
    else:
        relation, names = leaf.table, leaf.column_names
    of = None if inputs is None else relation
    columns = tuple(_column(of, name, type_) for name, type_ in zip(names, column_types(leaf), strict=True))
    known = JoinInput() if inputs is None else inputs[relation]
    ordered = columns[names.index(known.order)] if known.order in names else None
    return columns, Step(relation, known, ordered if isinstance(ordered, ColumnExpression) else None)


def _column(relation: str | None, name: str, type_: LogicalType) -> Column:
    if not name:
        return KernelDeclined("the number of a row")
    try:
        return ColumnExpression(name if relation is None else source_column(relation, name), sql_type(type_))
    except DeclineError as declined:
        return KernelDeclined(str(declined))


def never_null(conditions: Sequence[Expression]) -> list[ColumnExpression]:
    """The columns that are not NULL in a row for which conditions hold, as far as they say nothing else."""
    found = (_said_present(condition) for condition in conditions)
    return [column for column in found if column is not None]


def _said_present(condition: Expression) -> ColumnExpression | None:
    """The column of which a condition says only that it is not NULL."""
    match condition:
        case CallExpression(ScalarFunction.EQUAL, (ColumnExpression() as left, right)) if left == right:
            return left
        case CallExpression(
            ScalarFunction.NOT, (CallExpression(ScalarFunction.IS_NULL, (ColumnExpression() as column,)),)
        ):
            return column
        case _:
            return None


def sources_of(
    steps: Sequence[Step], conditions: Sequence[Expression]
) -> tuple[tuple[ArrowSource, ...], Expression | None]:
    """The sources of a fragment, and its WHERE.

    Args:
        steps: The tables, as they are joined.
        conditions: Those of inner joins and of WHERE, which may be applied at any place where their columns are.

    Raises:
        DeclineError: One is joined otherwise than the kernel joins.
    """
    if len(steps) == 1:
        return (), all_of(conditions)
    if len({step.relation for step in steps}) < len(steps):
        raise DeclineError("a table that is read twice under one name")
    waiting = list(conditions)
    sources = tuple(_sources(_in_order(steps, conditions), waiting))
    return sources, all_of(waiting)


def _sources(steps: Sequence[Step], waiting: list[Expression]) -> Iterator[ArrowSource]:
    """Each source; the conditions of inner joins that it applies are taken from those that wait."""
    before: set[str] = set()
    for step in steps:
        relation = step.relation
        pool = waiting if step.kind is SourceJoin.INNER else list(step.conditions)
        own = [part for part in pool if _relations_in(part) == {relation}]
        keys = [(part, key) for part in pool if before and (key := _key_of(part, before, relation)) is not None]
        if before and not keys:
            raise DeclineError("a join without an equality of its two sides")
        used = set(map(id, [*own, *(part for part, _ in keys)]))
        rest = [part for part in pool if id(part) not in used]
        condition = None
        if step.kind is SourceJoin.INNER:
            waiting[:] = rest
        else:
            condition = all_of(rest)
        before.add(relation)
        if condition is not None and not _relations_in(condition) <= before:
            raise DeclineError("a condition on relations that are joined later")
        yield _source(step, [key for _, key in keys], own, condition)


def _source(
    step: Step,
    keys: Sequence[tuple[Expression, Expression]],
    own: Sequence[Expression],
    condition: Expression | None,
) -> ArrowSource:
    """One table, the key in whose order it is first."""
    ordered = step.order
    is_searched = ordered is not None and can_search(ordered.type) and any(right == ordered for _, right in keys)
    if is_searched:
        keys = sorted(keys, key=lambda key: key[1] != ordered)
    matched = [right for _, right in keys]  # a NULL matches nothing
    where = all_of([part for part in own if _said_present(part) not in matched])
    return ArrowSource(step.relation, where, step.kind, tuple(keys), condition, is_searched)


def _in_order(steps: Sequence[Step], conditions: Sequence[Expression]) -> list[Step]:
    """The tables in the order in which they are joined.

    Those before the first join of another kind begin with one that is restricted; each is behind another with an
    equality to it.
    """
    inner = list(takewhile(lambda step: step.kind is SourceJoin.INNER, steps))
    waiting = list(inner)
    ordered: list[Step] = []
    following: Step | None = next((step for step in waiting if step.input.is_restricted), waiting[0])
    while following is not None:
        waiting.remove(following)
        ordered.append(following)
        before = {step.relation for step in ordered}
        following = next(
            (
                step
                for step in sorted(waiting, key=lambda step: not step.input.is_restricted)
                if any(_key_of(part, before, step.relation) is not None for part in conditions)
            ),
            waiting[0] if waiting else None,
        )
    return [*ordered, *steps[len(inner) :]]


def _key_of(part: Expression, before: Collection[str], relation: str) -> tuple[Expression, Expression] | None:
    """The two sides of an equality between the relations joined before and one more; None for any other condition."""
    if not isinstance(part, CallExpression) or part.function is not ScalarFunction.EQUAL:
        return None
    for left, right in (part.arguments, part.arguments[::-1]):
        read = _relations_in(left)
        if read and read <= set(before) and _relations_in(right) == {relation}:
            return left, right
    return None


def _relations_in(expression: Expression) -> set[str]:
    return {name.partition(".")[0] for name in columns_in([expression])}
