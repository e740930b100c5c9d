"""The aggregates of SQL that plans tell apart, one row each. DuckDB computes all others, where all of their rows are.

==================  ==================  =============================================
aggregate           partial             final
==================  ==================  =============================================
count               count               the sum of counts, 0 without any
sum, min, max, ...  the same            the same of them
avg                 sum and count       the sum as DOUBLE by the count, as DuckDB does
DISTINCT            its argument, as a  the aggregate over the distinct values, which
                    further key         needs no state
==================  ==================  =============================================

The final part is cast to the type of the whole aggregate: the sum of HUGEINT sums, and the like. Sums of DOUBLE depend
on the order of addition, as in DuckDB itself.

Source: Gray et al., "Data Cube" (1997), distributive and algebraic aggregates. What a row says of values, NULL and
    order is what DuckDB does; ``tests/unit/planner/test_aggregates.py`` asks it about every row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Final

from secateur.engine.kernels.arrow.fragment import AggregateFunction


@dataclass(frozen=True, slots=True)
class SqlAggregate:
    """What the planner knows of an aggregate.

    Attributes:
        name: DuckDB's, in lower case. An alias, such as ``mean``, is another aggregate.
        states: The aggregates of the same argument that the partial computes; none: it is not split.
        final: The aggregate of each state that the final computes; empty for the aggregate itself.
        is_quotient: Whether it is the quotient of its states. It is split only where that is a DOUBLE: an average of
            dates is no sum by a count.
        of_nothing: Its value over no rows; None for NULL.
        depends_on_order: Whether the order of its rows matters.
        takes_distinct: Whether it ignores NULL, and DISTINCT may be split.
        is_chosen: Whether it is one of the values, or NULL; of a column by which rows are grouped, it is that column.
        kernel: What the arrow kernel computes for it; None: DuckDB does.
        distinct_kernel: The same with DISTINCT.
    """

    name: str
    states: tuple[str, ...] = ()
    final: str = ""
    _: KW_ONLY
    is_quotient: bool = False
    of_nothing: int | None = None
    depends_on_order: bool = False
    takes_distinct: bool = False
    is_chosen: bool = False
    kernel: AggregateFunction | None = None
    distinct_kernel: AggregateFunction | None = None


_ROWS: Final = (
    SqlAggregate(
        "count",
        ("count",),
        "sum",
        of_nothing=0,
        takes_distinct=True,
        kernel=AggregateFunction.COUNT,
        distinct_kernel=AggregateFunction.COUNT_DISTINCT,
    ),
    SqlAggregate("count_star", ("count_star",), "sum", of_nothing=0, kernel=AggregateFunction.COUNT_ROWS),
    SqlAggregate("sum", ("sum",), takes_distinct=True, kernel=AggregateFunction.SUM),
    SqlAggregate("min", ("min",), takes_distinct=True, is_chosen=True, kernel=AggregateFunction.MIN),
    SqlAggregate("max", ("max",), takes_distinct=True, is_chosen=True, kernel=AggregateFunction.MAX),
    SqlAggregate("avg", ("sum", "count"), "sum", is_quotient=True, takes_distinct=True, kernel=AggregateFunction.AVG),
    SqlAggregate("bool_and", ("bool_and",)),
    SqlAggregate("bool_or", ("bool_or",)),
    SqlAggregate("bit_and", ("bit_and",)),
    SqlAggregate("bit_or", ("bit_or",)),
    SqlAggregate("bit_xor", ("bit_xor",)),
    SqlAggregate("any_value", ("any_value",), depends_on_order=True, is_chosen=True),
    SqlAggregate("arbitrary", depends_on_order=True, is_chosen=True),
    SqlAggregate("first", depends_on_order=True, is_chosen=True),
    SqlAggregate("last", depends_on_order=True, is_chosen=True),
    SqlAggregate("count_if"),
    SqlAggregate("mean"),
    SqlAggregate("median"),
)
AGGREGATES: Final[Mapping[str, SqlAggregate]] = {aggregate.name: aggregate for aggregate in _ROWS}
"""The rows by name."""

SPLIT: Final = frozenset(aggregate.name for aggregate in _ROWS if aggregate.states)
"""The aggregates that are split; a statement with any other is not."""

ORDERLESS: Final = frozenset(aggregate.name for aggregate in _ROWS if not aggregate.depends_on_order)
