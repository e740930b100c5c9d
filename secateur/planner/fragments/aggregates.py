"""Aggregates split into a partial part at each owner and a final part at the coordinator, exactly.

==================  ==================  =============================================
aggregate           partial             final
==================  ==================  =============================================
count               count               the sum of counts, 0 without any
sum                 sum                 the sum of sums
min, max            min, max            the least, the greatest of them
avg                 sum and count       the sum as DOUBLE by the count, as DuckDB does
bool_and, bool_or   the same            the same of them
bit_and, _or, _xor  the same            the same of them
any_value           any_value           any of them
DISTINCT            its argument, as a  the aggregate over the distinct values
                    further key
==================  ==================  =============================================

The final part is cast to the type of the whole aggregate: the sum of HUGEINT sums, and the like. Sums of DOUBLE depend
on the order of addition, as in DuckDB itself.

Source: Gray et al., "Data Cube" (1997), distributive and algebraic aggregates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from secateur.planner.fragments.qualified import NotDistributable
from secateur.planner.text.dialect import to_sql

_SAME: Final = frozenset({"sum", "min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor", "any_value"})
"""Aggregates whose partial and final functions are the aggregate itself."""

_DISTINCT: Final = frozenset({"count", "sum", "avg", "min", "max"})
"""Aggregates that accept DISTINCT and ignore NULL."""

AVERAGE_TYPE: Final = "DOUBLE"
"""The type of an average that is a quotient of a sum and a count."""

AGGREGATES: Final = _SAME | {"count", "count_star", "avg"}
"""DuckDB's names of the aggregates that are split; a statement with any other is not."""


@dataclass(slots=True)
class PartialColumns:
    """The columns of the partial beside its keys; equal ones are computed once.

    Attributes:
        by_sql: The SQL of each aggregate with its name, ``a0``, ``a1``, ...
        further_keys: The SQL of each further key with its name, ``d0``, ``d1``, ...
    """

    by_sql: dict[str, str] = field(default_factory=dict)
    further_keys: dict[str, str] = field(default_factory=dict)

    def column(self, sql: str) -> str:
        """The name of the partial column that computes ``sql``."""
        return self.by_sql.setdefault(sql, f"a{len(self.by_sql)}")

    def further_key(self, sql: str) -> str:
        """The name of the key by which the partial groups beside those of the statement."""
        return self.further_keys.setdefault(sql, f"d{len(self.further_keys)}")


def combine(node: exp.Expr, partial: PartialColumns, type_of: Callable[[str], str]) -> str | None:
    """The final expression for an aggregate, or None when the node is none.

    Args:
        node: In a qualified SELECT.
        partial: Gets the columns that the final needs.
        type_of: The SQL type text of an expression over the scanned relation.

    Raises:
        NotDistributable: An aggregate that cannot be split: ORDER BY inside, more arguments than one, or over a type
            whose average is not a quotient.
    """
    call = node.this if isinstance(node, exp.Filter) else node
    name = aggregate_name(call)
    if name is None:
        return None
    whole = to_sql(node)
    if isinstance(call.this, exp.Distinct) and name in _DISTINCT:
        return _distinct(node, call, name, partial, type_of)
    suffix = f" FILTER ({to_sql(node.expression).strip()})" if isinstance(node, exp.Filter) else ""
    argument = _row_count(call) if name == "count_star" else _argument(call)
    if name in ("count", "count_star"):
        column = partial.column(f"count({argument}){suffix}")
        return f"CAST(coalesce(sum({column}), 0) AS {type_of(whole)})"
    if name == "avg":
        if type_of(whole) != AVERAGE_TYPE:
            raise NotDistributable(f"{whole} is not a quotient of a sum and a count")
        total = partial.column(f"sum({argument}){suffix}")
        count = partial.column(f"count({argument}){suffix}")
        return f"CAST(CAST(sum({total}) AS {type_of(f'sum({argument})')}) AS DOUBLE) / sum({count})"
    if name not in _SAME:
        raise NotDistributable(f"{whole} has no partial aggregation: GROUP BY the partitioning key")
    column = partial.column(f"{name}({argument}){suffix}")
    return f"CAST({name}({column}) AS {type_of(whole)})"


def aggregate_name(node: exp.Expr) -> str | None:
    """The name of the aggregate, one of :data:`AGGREGATES`, that a node calls; None when it calls none.

    A call behind the name of a schema, ``main.sum(x)``, is none: it is only the end of its expression.
    """
    if isinstance(node, (exp.Count, exp.Sum, exp.Min, exp.Max, exp.Avg)):
        return node.sql_name().lower()
    if isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES and not isinstance(node.parent, exp.Dot):
        return node.name.lower()
    return None


def _distinct(node: exp.Expr, call: exp.Expr, name: str, partial: PartialColumns, type_of: Callable[[str], str]) -> str:
    """Split an aggregate of distinct values: the partial groups by the value as well, so each member sends it once."""
    extra = [key for key, value in call.args.items() if value and key not in ("this", "big_int")]
    if extra or len(call.this.expressions) != 1 or call.this.args.get("on"):
        raise NotDistributable(f"{to_sql(node)} has no partial aggregation: GROUP BY the partitioning key")
    argument = to_sql(call.this.expressions[0])
    if isinstance(node, exp.Filter):
        condition = node.expression.this if isinstance(node.expression, exp.Where) else node.expression
        argument = f"CASE WHEN {to_sql(condition)} THEN {argument} END"
    return f"CAST({name}(DISTINCT {partial.further_key(argument)}) AS {type_of(to_sql(node))})"


def _row_count(call: exp.Expr) -> str:
    """The argument with which ``count`` does what ``count_star()`` does."""
    if call.expressions:
        raise NotDistributable(f"{to_sql(call)} has an argument")
    return "*"


def _argument(call: exp.Expr) -> str:
    """The one argument of an aggregate, as SQL."""
    operands = call.expressions if isinstance(call, exp.Anonymous) else [call.this] if call.this is not None else []
    extra = (
        ()
        if isinstance(call, exp.Anonymous)
        else [key for key, value in call.args.items() if value and key not in ("this", "big_int")]
    )
    if not operands or isinstance(operands[0], exp.Star):
        if isinstance(call, exp.Count) and not extra:
            return "*"
        raise NotDistributable(f"{to_sql(call)} has no argument")
    if (
        extra
        or len(operands) > 1
        or isinstance(operands[0], (exp.Distinct, exp.Order, exp.Limit, exp.IgnoreNulls, exp.RespectNulls))
    ):
        raise NotDistributable(f"{to_sql(call)} has no partial aggregation: GROUP BY the partitioning key")
    return to_sql(operands[0])
