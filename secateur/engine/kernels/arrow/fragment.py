"""A fragment for the arrow kernel: one pass over one relation or a join, stage by stage, as pure data.

Its expressions are five kinds of typed nodes. Only what can be evaluated exactly as in DuckDB has a node;
``planner/arrow/form.py`` decides which.

``WHERE -> GROUP BY and aggregates -> HAVING -> outputs -> DISTINCT -> ORDER BY -> OFFSET, LIMIT``. Without aggregation
the outputs read the relation's columns. With it, they read the group keys and then the aggregates, which are columns
named by their position: ``#0``, ``#1`` and so on (:func:`slot_name`). What reads columns of a relation reads columns of
the join, if there is one (:class:`ArrowSource`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, ClassVar, Final

import msgspec

from secateur.partitioning.types.column_type import WORD_INTEGERS, SqlType, TypeKind

_SEARCHED: Final = WORD_INTEGERS | {TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ, TypeKind.VARCHAR}


class AggregateFunction(Enum):
    """All but COUNT_ROWS skip NULL; all but the counts are NULL for no value."""

    COUNT_ROWS = "count_rows"
    COUNT = "count"
    COUNT_DISTINCT = "count_distinct"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    AVG = "avg"


class ArrowAggregate(msgspec.Struct, frozen=True, array_like=True):
    """One aggregate: its function, its argument, which COUNT_ROWS alone has not, and the type of its result."""

    function: AggregateFunction
    argument: Expression | None
    type: SqlType


class OrderTerm(msgspec.Struct, frozen=True, array_like=True):
    """One ORDER BY term over the same columns as the outputs.

    Under DISTINCT it is over the outputs as ``#0``, ``#1``.
    """

    expression: Expression
    descending: bool = False
    nulls_first: bool = False


class ArrowFragment(msgspec.Struct, frozen=True, omit_defaults=True, dict=True):
    """A statement over one relation, or a join.

    Attributes:
        outputs: Name and expression of each result column.
        where: Rows for which it is true are read; None for all.
        keys: Group keys; empty with aggregates for one group of all rows (which exists even without rows); None without
            aggregation.
        aggregates: The aggregates of each group.
        having: Groups for which it is true are kept, over ``#0``, ``#1``.
        distinct: Whether equal result rows are merged.
        order: Sort keys, the first the most significant.
        limit: Most rows in the result: a constant or a parameter; None for all.
        offset: Rows left out at the start.
        sources: The relations of a join, at least two; nothing for one relation.
    """

    outputs: tuple[tuple[str, Expression], ...]
    where: Expression | None = None
    keys: tuple[Expression, ...] | None = None
    aggregates: tuple[ArrowAggregate, ...] = ()
    having: Expression | None = None
    distinct: bool = False
    order: tuple[OrderTerm, ...] = ()
    limit: Expression | None = None
    offset: Expression | None = None
    sources: tuple[ArrowSource, ...] = ()
    program: ClassVar[Any] = None
    """The closure that the kernel compiled from a fragment. It is kept with it, not looked up by its value: that would
    hash the whole tree in each call.
    """
    plain_program: ClassVar[Any] = None
    """The same over plain values."""
    types: ClassVar[Any] = None
    """Name and Arrow type of each column that is read; made by the kernel, and kept in the same way."""

    @property
    def is_row_by_row(self) -> bool:
        """Whether each row of the result comes from one row of the relation, in its order."""
        is_cut = self.limit is not None or self.offset is not None
        return self.keys is None and not self.distinct and not self.order and not is_cut and not self.sources

    @property
    def searched_relations(self) -> frozenset[str]:
        """The relations in which a join finds rows by binary search, so that their number of rows costs little."""
        return frozenset(source.relation for source in self.sources if source.is_searched)


def slot_name(position: int) -> str:
    """The name of the column at a position among group keys and aggregates, or among outputs."""
    return f"#{position}"


class SourceJoin(Enum):
    """The kind of join between a relation and those before it."""

    INNER = "inner"
    LEFT = "left"
    SEMI = "semi"
    """Rows with a match are kept, once; the columns of the relation are gone."""
    ANTI = "anti"
    """Rows without a match are kept."""


class ArrowSource(msgspec.Struct, frozen=True, omit_defaults=True):
    """One relation of a join, which is left-deep: each relation is joined to all before it.

    Columns of a join are named by relation and column, ``s0.customer_id`` (:func:`source_column`).

    Attributes:
        relation: Its name.
        where: Which of its rows take part, over its own columns; None for all.
        kind: How it is joined; of no meaning for the first.
        keys: The equalities of the join, at least one, but none for the first: an expression over the relations before,
            and one of the same type over this relation. A NULL matches nothing.
        condition: The condition that a pair of rows with equal keys has to satisfy in order to match; None for none.
        is_searched: Whether the second expression of the first key is a column in whose order the rows of each chunk
            are, without NULLs.
    """

    relation: str
    where: Expression | None = None
    kind: SourceJoin = SourceJoin.INNER
    keys: tuple[tuple[Expression, Expression], ...] = ()
    condition: Expression | None = None
    is_searched: bool = False


def source_column(relation: str, column: str) -> str:
    """The name of a column of a relation among those of a join."""
    return f"{relation}.{column}"


def can_search(type_: SqlType) -> bool:
    """Whether values of a type are found by binary search in a column that is in order of them."""
    return type_.kind in _SEARCHED


class ScalarFunction(Enum):
    """The function of a :class:`CallExpression`.

    A NULL argument gives NULL, except for AND and OR (three-valued logic), IS_NULL, COALESCE, CASE, and IN, which
    behaves like a chain of OR.
    """

    EQUAL = "="
    NOT_EQUAL = "<>"
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    AND = "and"
    OR = "or"
    NOT = "not"
    IS_NULL = "is_null"
    IN = "in"
    """The first argument is in the list of the others, which are constants and parameters of its type, or one
    :class:`ParameterListExpression`.
    """
    ADD = "+"
    """In the type of the operands, as the other arithmetic: what overflows is left to DuckDB."""
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    """Division of two DOUBLEs."""
    NEGATE = "neg"
    CAST = "cast"
    """To the call's type: from an integer to an integer, or from an integer, FLOAT or DECIMAL to DOUBLE."""
    COALESCE = "coalesce"
    """The first argument, or where it is NULL the second, a constant of its type."""
    CASE = "case"
    """Conditions and values by turns, and perhaps a last value: the value behind the first condition that is true, else
    the last one, or NULL. All values are of one type.
    """
    STARTS_WITH = "starts_with"
    ENDS_WITH = "ends_with"
    CONTAINS = "contains"
    UPPER = "upper"
    """Of a text of ASCII, as LOWER: any other is left to DuckDB, which changes the case of some letters otherwise."""
    LOWER = "lower"
    CONCATENATE = "||"


class ColumnExpression(msgspec.Struct, frozen=True, array_like=True, tag="column", tag_field="kind"):
    """A column of the scope, by its exact name."""

    name: str
    type: SqlType


class ConstantExpression(msgspec.Struct, frozen=True, array_like=True, tag="constant", tag_field="kind"):
    """A value of the statement's text, canonical for its type (``partitioning.types.coerce``).

    It is never NULL and never NaN.
    """

    value: Any
    type: SqlType


class ParameterExpression(msgspec.Struct, frozen=True, array_like=True, tag="parameter", tag_field="kind"):
    """The value of ``$number``, which has to be one of ``type`` exactly; any other sends the call to DuckDB."""

    number: int
    type: SqlType


class ParameterListExpression(msgspec.Struct, frozen=True, array_like=True, tag="elements", tag_field="kind"):
    """The elements of ``$number``, a list of one or more values, each exactly of ``type``.

    Any other value sends the call to DuckDB.
    """

    number: int
    type: SqlType


class CallExpression(msgspec.Struct, frozen=True, array_like=True, tag="call", tag_field="kind"):
    """A function of expressions; ``type`` is the type of the result."""

    function: ScalarFunction
    arguments: tuple[Expression, ...]
    type: SqlType


Expression = ColumnExpression | ConstantExpression | ParameterExpression | ParameterListExpression | CallExpression


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything below it, top down."""
    yield expression
    if isinstance(expression, CallExpression):
        for argument in expression.arguments:
            yield from walk(argument)


def conjuncts(condition: Expression | None) -> Iterator[Expression]:
    """The conditions that AND joins, in their order; the condition itself if it joins none; nothing for None."""
    if isinstance(condition, CallExpression) and condition.function is ScalarFunction.AND:
        for argument in condition.arguments:
            yield from conjuncts(argument)
    elif condition is not None:
        yield condition


def columns_in(expressions: Iterable[Expression]) -> dict[str, SqlType]:
    """Name and type of each column that some expressions read."""
    return {
        node.name: node.type
        for expression in expressions
        for node in walk(expression)
        if isinstance(node, ColumnExpression)
    }
