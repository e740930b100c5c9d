"""The parts of a query that is run in several: plans that run first, and rows of several owners that the client merges.

The client sends the steps with its request. The member that it asks, the coordinator, runs them; it and the members
that run a part of the query know the plans by their ids.

How rows are merged is data, so that a client needs no kernel for it. Only what Python does exactly as the kernels do
has a form here: rows one after the other, groups and aggregates of values that Python has exactly, and their order.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import msgspec


class SubqueryUse(StrEnum):
    """The use that a statement makes of a subquery that runs first."""

    LIST = "list"
    """The distinct values of its one column, NULL among them: ``x IN (subquery)``."""
    VALUE = "value"
    """Its one value, NULL when it has no row: ``x = (subquery)``."""
    KEYS = "keys"
    """The distinct values of each of its columns, a list each: a query of the planner for the keys that one side of a
    join has.
    """


class QueryPart(msgspec.Struct, frozen=True, array_like=True):
    """A part of a query in steps, which may have steps itself.

    Attributes:
        plan: The id of the plan that runs it undivided.
        steps: The way to run it in steps; None where it has none.
    """

    plan: str
    steps: SteppedQuery | None = None


class QueryStep(msgspec.Struct, frozen=True, array_like=True):
    """A query that runs first.

    Attributes:
        query: The query; its parameters are those of the whole query, then those of the steps before it.
        use: The use that the rest makes of its values.
        values_max: With more rows than this the whole query runs undivided.
        estimate: The expected number of rows; None where there is no estimate.
    """

    query: QueryPart
    use: SubqueryUse
    values_max: int
    estimate: int | None = None


class SteppedQuery(msgspec.Struct, frozen=True, array_like=True):
    """A query in steps.

    Attributes:
        steps: In the order of their parameters.
        outer: The rest; its parameters are those of the whole query, then those of each step.
        watched: The scans of ``outer`` in whose rows the steps have found what is true only as long as they are the
            same; None where it does not matter.
    """

    steps: tuple[QueryStep, ...]
    outer: QueryPart
    watched: tuple[int, ...] | None = None


class StepResult(NamedTuple):
    """The values that a step of a query found. A NamedTuple because answers with it are written in one call.

    Attributes:
        values: The number of values.
        used: Whether the rest ran with them; it did not where they were too many, could not be sent, or had changed.
    """

    values: int
    used: bool


class ReadRequirements(msgspec.Struct, frozen=True):
    """The partitions and members that a query has to read.

    Attributes:
        partitions: The number of partitions over all scans.
        members: Their owners, by id; empty where any member can run the query.
    """

    partitions: int
    members: tuple[str, ...]


class NarrowedScans(msgspec.Struct, frozen=True):
    """The reading requirements of a query without and with the values found at run time.

    Attributes:
        before: The requirements of the whole query without these values.
        after: The requirements of the rest of the query with them.
    """

    before: ReadRequirements
    after: ReadRequirements


class MergeFunction(StrEnum):
    """The function that makes one value from those of all owners; each skips NULL, and is NULL for no value."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"


class MergedColumn(msgspec.Struct, frozen=True, array_like=True):
    """A column of the merged rows.

    Attributes:
        source: The index of the column of the owners' rows from which it is made.
        function: How the values of one group are merged; None for a column by which rows are grouped, and for every
            column of rows that are not grouped.
        type: The SQL type of its values.
    """

    source: int
    function: MergeFunction | None
    type: str


class MergedOrder(msgspec.Struct, frozen=True, array_like=True):
    """A term of the order of the merged rows.

    Attributes:
        column: The index of the merged column.
        descending: Whether larger values come first.
        nulls_first: Whether NULL comes first.
    """

    column: int
    descending: bool
    nulls_first: bool


class RowMerge(msgspec.Struct, frozen=True, cache_hash=True, array_like=True):
    """The merging of the owners' rows into the answer.

    Attributes:
        columns: The merged columns.
        is_grouped: Whether rows that agree in the columns without a function become one. Where all columns have one,
            all rows become one.
        outputs: For each column of the answer the index of the merged column.
        counts: The outputs that are 0 where their value is NULL.
        order: The order of the answer, the most significant term first; empty for any.
        limit: The most rows of the answer; None for all.
        offset: Rows that are left out at its start.
        partitions_max: A client asks the owners itself for at most so many partitions.
    """

    columns: tuple[MergedColumn, ...]
    is_grouped: bool
    outputs: tuple[int, ...]
    counts: tuple[int, ...]
    order: tuple[MergedOrder, ...]
    limit: int | None
    offset: int
    partitions_max: int
