"""The relations of a bound plan.

As the expressions, they are DuckDB's own nodes. Subqueries are joins already, views and stars are expanded, and each
column is a position.
"""

from __future__ import annotations

from typing import Any

from secateur.planner.tree.expressions import AnyExpression, BoundOrder, BoundValue, Orders, QualifiedName
from secateur.planner.tree.types import LogicalType, Node


class LogicalRelation(Node, frozen=True, kw_only=True, tag_field="type"):
    """Any relation.

    Attributes:
        children: Those that it reads.
    """

    children: tuple[AnyRelation, ...] = ()


class ColumnIndex(Node, frozen=True, kw_only=True):
    """A column of a table, by its place in the definition."""

    index: int = 0
    child_indexes: tuple[Any, ...] = ()


class LogicalScan(LogicalRelation, frozen=True, kw_only=True, tag="LOGICAL_GET"):
    """A table, or a table function."""

    table_index: int = 0
    returned_types: tuple[LogicalType, ...]
    names: tuple[str, ...]
    column_indexes: tuple[ColumnIndex, ...] = ()
    projection_ids: tuple[int, ...] = ()
    table_filters: Any = None
    arguments: tuple[LogicalType, ...] = ()
    qname: QualifiedName
    has_serialize: bool = False
    positional_arguments: int | None = None
    named_arguments: tuple[str, ...] = ()
    function_data: Any = None
    parameters: tuple[BoundValue, ...] = ()
    named_parameters: Any = None
    input_table_types: tuple[LogicalType, ...] = ()
    input_table_names: tuple[str, ...] = ()
    projected_input: tuple[Any, ...] = ()
    table_filters_by_projection: bool = False

    @property
    def table(self) -> str | None:
        """The table's name; None for a table function."""
        return self.function_data["table"] if self.qname.path[-1] == "seq_scan" else None

    @property
    def places(self) -> list[int]:
        """Its columns, by their places in the definition; a place behind these is the number of a row."""
        read = self.column_indexes
        return [column.index for column in [read[index] for index in self.projection_ids] or read]

    @property
    def column_names(self) -> list[str]:
        """The names of its columns; that of the number of a row is empty."""
        return [self.names[place] if place < len(self.names) else "" for place in self.places]


class LogicalNothing(LogicalRelation, frozen=True, kw_only=True, tag="LOGICAL_DUMMY_SCAN"):
    """One row without columns: what SELECT without FROM reads."""

    table_index: int = 0


class LogicalNoRows(LogicalRelation, frozen=True, kw_only=True, tag="LOGICAL_EMPTY_RESULT"):
    """No rows: DuckDB has found a condition that never holds."""

    return_types: tuple[LogicalType, ...]
    bindings: Any = None


class LogicalValues(LogicalRelation, frozen=True, kw_only=True, tag="LOGICAL_EXPRESSION_GET"):
    """VALUES."""

    table_index: int = 0
    expr_types: tuple[LogicalType, ...]
    expressions: tuple[tuple[AnyExpression, ...], ...]


class LogicalChunks(LogicalRelation, frozen=True, kw_only=True, tag="LOGICAL_CHUNK_GET"):
    """Rows of constants."""

    table_index: int = 0
    chunk_types: tuple[LogicalType, ...]
    collection: Any = None


class LogicalFilter(LogicalRelation, frozen=True, kw_only=True, tag="LOGICAL_FILTER"):
    """WHERE, HAVING and QUALIFY."""

    expressions: tuple[AnyExpression, ...]
    projection_map: tuple[int, ...] = ()


class LogicalProject(LogicalRelation, frozen=True, kw_only=True, tag="LOGICAL_PROJECTION"):
    """A list of expressions."""

    table_index: int = 0
    expressions: tuple[AnyExpression, ...]


class LogicalAggregate(LogicalRelation, frozen=True, kw_only=True, tag="LOGICAL_AGGREGATE_AND_GROUP_BY"):
    """GROUP BY: its columns are the groups, the aggregates, and the values of GROUPING."""

    expressions: tuple[AnyExpression, ...] = ()
    groups: tuple[AnyExpression, ...] = ()
    grouping_sets: tuple[tuple[int, ...], ...] = ()
    grouping_functions: tuple[tuple[int, ...], ...] = ()
    group_index: int = 0
    aggregate_index: int = 0
    groupings_index: int = 0


class LogicalWindow(LogicalRelation, frozen=True, kw_only=True, tag="LOGICAL_WINDOW"):
    """The columns below, and one for each call."""

    window_index: int = 0
    expressions: tuple[AnyExpression, ...]


class LogicalUnnestRows(LogicalRelation, frozen=True, kw_only=True, tag="LOGICAL_UNNEST"):
    """The columns below, and the elements of lists."""

    unnest_index: int = 0
    expressions: tuple[AnyExpression, ...]


class LogicalDistinct(LogicalRelation, frozen=True, kw_only=True, tag="LOGICAL_DISTINCT"):
    """DISTINCT, and DISTINCT ON."""

    distinct_type: str
    distinct_targets: tuple[AnyExpression, ...]
    order_by: Orders | None = None


class LogicalSort(LogicalRelation, frozen=True, kw_only=True, tag="LOGICAL_ORDER_BY"):
    """ORDER BY."""

    orders: tuple[BoundOrder, ...]
    projection_map: tuple[int, ...] = ()


class LimitValue(Node, frozen=True, kw_only=True):
    """A number of rows, a share of them, an expression, or nothing."""

    type: str = "UNSET"
    constant_integer: int = 0
    constant_percentage: float = -1.0
    expression: AnyExpression | None = None


class LogicalLimit(LogicalRelation, frozen=True, kw_only=True, tag="LOGICAL_LIMIT"):
    """LIMIT and OFFSET."""

    limit_val: LimitValue
    offset_val: LimitValue


class JoinCondition(Node, frozen=True, kw_only=True):
    """A comparison of a value of the left rows with one of the right rows.

    Each side reads the columns of its own relation. Without a right side, the left one is any condition, on the columns
    of both relations.
    """

    left: AnyExpression
    right: AnyExpression | None = None
    comparison: str = ""


class LogicalJoin(LogicalRelation, frozen=True, kw_only=True, tag="LOGICAL_COMPARISON_JOIN"):
    """A join by comparisons.

    Its type is one of INNER, LEFT, RIGHT, FULL, SEMI, ANTI, MARK, which adds whether there is a match, and SINGLE,
    which fails when there are two.
    """

    join_type: str = "INNER"
    mark_index: int = 0
    mark_types: tuple[LogicalType, ...] = ()
    conditions: tuple[JoinCondition, ...] = ()
    left_projection_map: tuple[int, ...] = ()
    right_projection_map: tuple[int, ...] = ()


class LogicalAsofJoin(LogicalJoin, frozen=True, kw_only=True, tag="LOGICAL_ASOF_JOIN"):
    """ASOF JOIN: the last condition says which row is the nearest."""


class LogicalConditionJoin(LogicalRelation, frozen=True, kw_only=True, tag="LOGICAL_ANY_JOIN"):
    """A join by any condition on the columns of both."""

    join_type: str = "INNER"
    mark_index: int = 0
    condition: AnyExpression
    left_projection_map: tuple[int, ...] = ()
    right_projection_map: tuple[int, ...] = ()


class LogicalCross(LogicalRelation, frozen=True, kw_only=True, tag="LOGICAL_CROSS_PRODUCT"):
    """Each row of the left with each of the right."""


class LogicalPositional(LogicalRelation, frozen=True, kw_only=True, tag="LOGICAL_POSITIONAL_JOIN"):
    """The rows of both by their places."""


class LogicalSetOperation(LogicalRelation, frozen=True, kw_only=True):
    """UNION, EXCEPT or INTERSECT; without ALL a Distinct follows."""

    table_index: int = 0
    column_count: int
    setop_all: bool = True
    allow_out_of_order: bool = True


class LogicalUnion(LogicalSetOperation, frozen=True, kw_only=True, tag="LOGICAL_UNION"):
    """UNION."""


class LogicalExcept(LogicalSetOperation, frozen=True, kw_only=True, tag="LOGICAL_EXCEPT"):
    """EXCEPT."""


class LogicalIntersect(LogicalSetOperation, frozen=True, kw_only=True, tag="LOGICAL_INTERSECT"):
    """INTERSECT."""


class LogicalWith(LogicalRelation, frozen=True, kw_only=True, tag="LOGICAL_MATERIALIZED_CTE"):
    """A relation with a name, then the query that reads it."""

    table_index: int = 0
    column_count: int
    ctename: str
    materialize: str = "CTE_MATERIALIZE_DEFAULT"


class LogicalRecursiveWith(LogicalRelation, frozen=True, kw_only=True, tag="LOGICAL_RECURSIVE_CTE"):
    """WITH RECURSIVE: the first rows, and what makes more of them."""

    table_index: int = 0
    column_count: int
    ctename: str
    union_all: bool = False
    internal_types: tuple[LogicalType, ...] = ()
    ref_recurring: bool = False
    key_targets: Any = None
    payload_aggregates: Any = None


class LogicalWithReference(LogicalRelation, frozen=True, kw_only=True, tag="LOGICAL_CTE_REF"):
    """The rows of a relation with a name."""

    table_index: int = 0
    cte_index: int = 0
    chunk_types: tuple[LogicalType, ...]
    bound_columns: tuple[str, ...]
    is_recurring: bool = False


class LogicalSample(LogicalRelation, frozen=True, kw_only=True, tag="LOGICAL_SAMPLE"):
    """TABLESAMPLE."""

    sample_options: Any


class LogicalStageRows(LogicalRelation, frozen=True, kw_only=True, tag="STAGE_ROWS"):
    """The rows of an earlier stage; DuckDB has none of these."""

    name: str
    names: tuple[str, ...]
    types: tuple[LogicalType, ...]


AnyRelation = (
    LogicalScan
    | LogicalStageRows
    | LogicalNothing
    | LogicalNoRows
    | LogicalValues
    | LogicalChunks
    | LogicalFilter
    | LogicalProject
    | LogicalAggregate
    | LogicalWindow
    | LogicalUnnestRows
    | LogicalDistinct
    | LogicalSort
    | LogicalLimit
    | LogicalJoin
    | LogicalAsofJoin
    | LogicalConditionJoin
    | LogicalCross
    | LogicalPositional
    | LogicalUnion
    | LogicalExcept
    | LogicalIntersect
    | LogicalWith
    | LogicalRecursiveWith
    | LogicalWithReference
    | LogicalSample
)
