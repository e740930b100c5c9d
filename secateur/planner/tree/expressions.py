"""The expressions of a bound plan: typed, with every overload resolved and every cast written out.

A node is DuckDB's own, decoded without a change: an input column is a position among the columns of the relation below.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from secateur.planner.tree.types import LogicalType, Node

Place: TypeAlias = tuple[int | None, int | None]
"""Offset and length in the text that was bound, in bytes; None where something has none."""

BOOLEAN = LogicalType("BOOLEAN")


class Expression(Node, frozen=True, kw_only=True, tag_field="expression_class"):
    """Any expression.

    Attributes:
        type: DuckDB's kind of the expression.
        alias: The name of its column, empty where none is given.
        query_location: Where it begins in the text.
        query_location_length: Its length there.
    """

    type: str
    alias: str = ""
    query_location: int | None = None
    query_location_length: int | None = None

    @property
    def place(self) -> Place:
        """Where it stands in the text."""
        return self.query_location, self.query_location_length


class InputColumn(Expression, frozen=True, kw_only=True, tag="BOUND_REF"):
    """A column of the relation below, or of the two below a join, the left one's first."""

    return_type: LogicalType
    index: int = 0


class ColumnBinding(Node, frozen=True, kw_only=True):
    """A column of the relation that has an index."""

    table_index: int = 0
    column_index: int = 0


class UnresolvedColumn(Expression, frozen=True, kw_only=True, tag="BOUND_COLUMN_REF"):
    """A column that DuckDB has not yet made a position: below a table function over rows."""

    return_type: LogicalType
    binding: ColumnBinding
    depth: int = 0


class BoundValue(Node, frozen=True, kw_only=True):
    """A constant's value; a part of a nested one has no type of its own."""

    type: LogicalType | None = None
    is_null: bool = False
    value: Any = None


class BoundConstant(Expression, frozen=True, kw_only=True, tag="BOUND_CONSTANT"):
    """A literal."""

    value: BoundValue

    @property
    def return_type(self) -> LogicalType:
        """Its type."""
        assert self.value.type is not None
        return self.value.type


class BoundParameter(Expression, frozen=True, kw_only=True, tag="BOUND_PARAMETER"):
    """A parameter of the statement."""

    identifier: str
    return_type: LogicalType
    parameter_data: Any = None


class QualifiedName(Node, frozen=True):
    """A name with the catalog and schema before it."""

    path: tuple[str, ...]


class Call(Expression, frozen=True, kw_only=True, tag="BOUND_FUNCTION"):
    """A call of a scalar function; comparisons and casts are calls as well.

    Attributes:
        return_type: Its type.
        qname: The function.
        children: The arguments, cast to what the overload takes.
        arguments: The types that the overload takes.
        is_operator: Whether it is written as an operator.
        function_data: What its binding found, beside the types.
    """

    return_type: LogicalType
    qname: QualifiedName
    children: tuple[AnyExpression, ...] = ()
    arguments: tuple[LogicalType, ...] = ()
    is_operator: bool = False
    has_serialize: bool = False
    function_data: Any = None
    positional_arguments: int | None = None
    named_arguments: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The function's name."""
        return self.qname.path[-1]


class BoundOperation(Expression, frozen=True, kw_only=True, tag="BOUND_OPERATOR"):
    """IN, NOT, IS NULL, IS NOT NULL, COALESCE and TRY."""

    return_type: LogicalType
    children: tuple[AnyExpression, ...]


class Conjunction(Expression, frozen=True, kw_only=True, tag="BOUND_CONJUNCTION"):
    """AND and OR."""

    children: tuple[AnyExpression, ...]

    @property
    def return_type(self) -> LogicalType:
        """BOOLEAN."""
        return BOOLEAN


class When(Node, frozen=True, kw_only=True):
    """A branch of CASE."""

    when_expr: AnyExpression
    then_expr: AnyExpression


class Case(Expression, frozen=True, kw_only=True, tag="BOUND_CASE"):
    """CASE; NULLIF and IF are one."""

    return_type: LogicalType
    case_checks: tuple[When, ...]
    else_expr: AnyExpression


class BoundOrder(Node, frozen=True, kw_only=True):
    """A term of ORDER BY."""

    type: str
    null_order: str
    expression: AnyExpression


class Orders(Node, frozen=True, kw_only=True):
    """An ORDER BY inside of a call."""

    orders: tuple[BoundOrder, ...] = ()


class AggregateCall(Expression, frozen=True, kw_only=True, tag="BOUND_AGGREGATE"):
    """A call of an aggregate function."""

    return_type: LogicalType
    qname: QualifiedName
    children: tuple[AnyExpression, ...] = ()
    arguments: tuple[LogicalType, ...] = ()
    aggregate_type: str
    filter: AnyExpression | None = None
    order_bys: Orders | None = None
    has_serialize: bool = False
    positional_arguments: int | None = None
    named_arguments: tuple[str, ...] = ()
    function_data: Any = None
    state_export: str = ""

    @property
    def name(self) -> str:
        """The function's name."""
        return self.qname.path[-1]

    @property
    def is_distinct(self) -> bool:
        """Whether equal arguments count once."""
        return self.aggregate_type == "DISTINCT"


class WindowCall(Expression, frozen=True, kw_only=True, tag="BOUND_WINDOW"):
    """A function over a window."""

    return_type: LogicalType
    qname: QualifiedName | None = None
    children: tuple[AnyExpression, ...] = ()
    arguments: tuple[LogicalType, ...] = ()
    partitions: tuple[AnyExpression, ...] = ()
    orders: tuple[BoundOrder, ...] = ()
    arg_orders: tuple[BoundOrder, ...] = ()
    ignore_nulls: bool = False
    distinct: bool = False
    start: str
    end: str
    start_expr: AnyExpression | None = None
    end_expr: AnyExpression | None = None
    exclude_clause: str
    filters: AnyExpression | None = None
    has_serialize: bool = False
    positional_arguments: int | None = None
    named_arguments: tuple[str, ...] = ()
    function_data: Any = None


class Unnest(Expression, frozen=True, kw_only=True, tag="BOUND_UNNEST"):
    """The elements of a list, a row each."""

    return_type: LogicalType
    child: AnyExpression


class Lambda(Expression, frozen=True, kw_only=True, tag="BOUND_LAMBDA"):
    """A function as an argument."""

    return_type: LogicalType
    lambda_expr: AnyExpression
    parameter_count: int
    parameter_names: tuple[str, ...] = ()


class Written(Expression, frozen=True, kw_only=True, tag="WRITTEN"):
    """SQL with ``{0}``, ``{1}``, ... for its parts: what the planner adds to a statement; DuckDB has none of these."""

    type: str = "WRITTEN"
    sql: str
    return_type: LogicalType
    children: tuple[AnyExpression, ...] = ()


AnyExpression = (
    InputColumn
    | UnresolvedColumn
    | BoundConstant
    | BoundParameter
    | Call
    | BoundOperation
    | Conjunction
    | Case
    | AggregateCall
    | WindowCall
    | Unnest
    | Lambda
    | Written
)
