"""Calls of aggregates split into a partial part at each owner and a final part at the coordinator, exactly.

The parts of each aggregate are in its row of :mod:`secateur.planner.aggregates`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from secateur.planner.aggregates import AGGREGATES, SqlAggregate, called_aggregate
from secateur.planner.fragments.qualified import NotDistributable
from secateur.planner.text.dialect import to_sql

AVERAGE_TYPE: Final = "DOUBLE"
"""The type of an average that is a quotient of a sum and a count."""


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
    aggregate = split_aggregate(call)
    if aggregate is None:
        return None
    whole = to_sql(node)
    if isinstance(call.this, exp.Distinct) and aggregate.takes_distinct:
        return aggregate.distinct_sql(partial.further_key(_distinct_key(node, call)), type_of(whole))
    suffix = f" FILTER ({to_sql(node.expression).strip()})" if isinstance(node, exp.Filter) else ""
    # DuckDB has refused count_star with an argument.
    aggregate, argument = (AGGREGATES["count"], "*") if aggregate.name == "count_star" else (aggregate, _argument(call))
    type_ = type_of(whole)
    if aggregate.is_quotient and type_ != AVERAGE_TYPE:
        raise NotDistributable(f"{whole} is not a quotient of a sum and a count")
    columns = [partial.column(f"{state}({argument}){suffix}") for state in aggregate.states]
    state_type = type_of(f"{aggregate.states[0]}({argument})") if "{state_type}" in aggregate.final else ""
    return aggregate.final_sql(columns, type_, state_type)


def split_aggregate(node: exp.Expr) -> SqlAggregate | None:
    """The aggregate that a node calls, if it is one that is split.

    A call behind the name of a schema, ``main.sum(x)``, is none: it is only the end of its expression.
    """
    if isinstance(node, exp.Anonymous) and isinstance(node.parent, exp.Dot):
        return None
    aggregate = called_aggregate(node)
    return aggregate if aggregate is not None and aggregate.states else None


def _distinct_key(node: exp.Expr, call: exp.Expr) -> str:
    """The argument of an aggregate of distinct values; the partial groups by it, so each member sends a value once."""
    extra = [key for key, value in call.args.items() if value and key not in ("this", "big_int")]
    if extra or len(call.this.expressions) != 1 or call.this.args.get("on"):
        raise NotDistributable(f"{to_sql(node)} has no partial aggregation: GROUP BY the partitioning key")
    argument = to_sql(call.this.expressions[0])
    if isinstance(node, exp.Filter):
        condition = node.expression.this if isinstance(node.expression, exp.Where) else node.expression
        argument = f"CASE WHEN {to_sql(condition)} THEN {argument} END"
    return argument


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
