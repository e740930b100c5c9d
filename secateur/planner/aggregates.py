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

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Final

from sqlglot import exp

from secateur.engine.kernels.arrow.fragment import AggregateFunction


@dataclass(frozen=True, slots=True)
class SqlAggregate:
    """What the planner knows of an aggregate.

    Attributes:
        name: DuckDB's, in lower case. An alias, such as ``mean``, is another aggregate.
        node: The class of sqlglot of which its calls are made; None where they are calls by name.
        states: The aggregates of the same argument that the partial computes; none: it is not split.
        final: SQL over the columns ``{0}``, ``{1}``, ... of the states. ``{type}`` is the type of the whole,
            ``{state_type}`` that of the first state.
        is_quotient: Whether it is split only where it is a DOUBLE: an average of dates is no sum by a count.
        of_nothing: Its value over no rows; None for NULL.
        depends_on_order: Whether the order of its rows matters.
        takes_distinct: Whether it ignores NULL, and DISTINCT may be split.
        is_chosen: Whether it is one of the values, or NULL; of a column by which rows are grouped, it is that column.
        kernel: What the arrow kernel computes for its node; None: DuckDB does.
    """

    name: str
    node: type[exp.AggFunc] | None = None
    states: tuple[str, ...] = ()
    final: str = "CAST({name}({0}) AS {type})"
    _: KW_ONLY
    is_quotient: bool = False
    of_nothing: int | None = None
    depends_on_order: bool = False
    takes_distinct: bool = False
    is_chosen: bool = False
    kernel: AggregateFunction | None = None

    def final_sql(self, columns: Sequence[str], type_: str, state_type: str) -> str:
        """The final expression over the columns of the states; the types as in ``final``."""
        return self.final.format(*columns, name=self.name, type=type_, state_type=state_type)

    def distinct_sql(self, key: str, type_: str) -> str:
        """The final expression over a key of the partial, whose values are those of all members."""
        return f"CAST({self.name}(DISTINCT {key}) AS {type_})"


_COUNTED: Final = "CAST(coalesce(sum({0}), 0) AS {type})"
_DIVIDED: Final = "CAST(CAST(sum({0}) AS {state_type}) AS DOUBLE) / sum({1})"

_ROWS: Final = (
    SqlAggregate(
        "count", exp.Count, ("count",), _COUNTED, of_nothing=0, takes_distinct=True, kernel=AggregateFunction.COUNT
    ),
    SqlAggregate("count_star", None, ("count_star",), _COUNTED, of_nothing=0),
    SqlAggregate("sum", exp.Sum, ("sum",), takes_distinct=True, kernel=AggregateFunction.SUM),
    SqlAggregate("min", exp.Min, ("min",), takes_distinct=True, is_chosen=True, kernel=AggregateFunction.MIN),
    SqlAggregate("max", exp.Max, ("max",), takes_distinct=True, is_chosen=True, kernel=AggregateFunction.MAX),
    SqlAggregate(
        "avg", exp.Avg, ("sum", "count"), _DIVIDED, is_quotient=True, takes_distinct=True, kernel=AggregateFunction.AVG
    ),
    SqlAggregate("bool_and", None, ("bool_and",)),
    SqlAggregate("bool_or", None, ("bool_or",)),
    SqlAggregate("bit_and", None, ("bit_and",)),
    SqlAggregate("bit_or", None, ("bit_or",)),
    SqlAggregate("bit_xor", None, ("bit_xor",)),
    SqlAggregate("any_value", None, ("any_value",), depends_on_order=True, is_chosen=True),
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

NODES: Final[Mapping[type[exp.Expr], SqlAggregate]] = {
    aggregate.node: aggregate for aggregate in _ROWS if aggregate.node is not None
}
"""The aggregates whose calls sqlglot has a class for; those of all others are ``exp.Anonymous``."""


def called_aggregate(node: exp.Expr) -> SqlAggregate | None:
    """The aggregate that a node calls; None when it calls none of these."""
    return AGGREGATES.get(node.name.lower()) if isinstance(node, exp.Anonymous) else NODES.get(type(node))
