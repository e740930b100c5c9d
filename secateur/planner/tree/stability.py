"""Which expressions and relations are the same, wherever and whenever they are evaluated."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Final

from secateur.engine.kernels.duckdb.kernel import default_kernel
from secateur.partitioning.types.sql_text import CLOCKS
from secateur.planner.aggregates import ORDERLESS
from secateur.planner.tree import expressions as ex
from secateur.planner.tree import relations as rel
from secateur.planner.tree.columns import expressions_of, relations_in
from secateur.planner.tree.rewriting import within

_PURE_TABLE_FUNCTIONS: Final = frozenset({"range", "generate_series", "repeat"})
"""Table functions whose rows depend on their arguments alone; DuckDB says nothing of their stability."""

_AGE: Final = ("age", 1)


def is_repeatable(root: rel.AnyRelation) -> bool:
    """Whether equal rows and parameters give equal answers, wherever and whenever a part of it is evaluated."""
    for relation in relations_in(root):
        if isinstance(relation, rel.LogicalSample):
            return False
        if (
            isinstance(relation, rel.LogicalScan)
            and relation.table is None
            and relation.qname.path[-1] not in _PURE_TABLE_FUNCTIONS
        ):
            return False
        if unstable_call(expressions_of(relation)) is not None:
            return False
    return True


def depends_on_order(root: rel.AnyRelation) -> bool:
    """Whether its rows may depend on the order in which rows are read, which is not fixed."""
    pending = [root]
    while pending:
        relation = pending.pop()
        match relation:
            case rel.LogicalWindow() | rel.LogicalPositional() | rel.LogicalLimit():
                return True
            case rel.LogicalDistinct() if relation.distinct_type != "DISTINCT":
                return True
            case rel.LogicalProject(
                expressions=(ex.Case(case_checks=(ex.When(then_expr=ex.Call(name="error")),)),),
                children=(rel.LogicalAggregate(groups=()) as first,),
            ):
                # A scalar subquery: the first row of one, or an error.
                pending += first.children
            case rel.LogicalAggregate(groups=(), expressions=(ex.AggregateCall(name="count_star"),)):
                # EXISTS: whether there is a row is asked by a LIMIT.
                pending += [
                    below.children[0] if isinstance(below, rel.LogicalLimit) else below for below in relation.children
                ]
            case rel.LogicalAggregate():
                if any(
                    not isinstance(call, ex.AggregateCall) or call.name not in ORDERLESS
                    for call in relation.expressions
                ):
                    return True
                pending += relation.children
            case _:
                pending += relation.children
    return False


def unstable_call(nodes: Iterable[ex.AnyExpression]) -> ex.Call | None:
    """The first call in expressions whose value depends on when and where it is evaluated.

    DuckDB says of each overload whether it is CONSISTENT. One that is so WITHIN_QUERY reads the clock where it has no
    arguments; with arguments it reads a setting such as the time zone, and settings are the same everywhere: each
    database of secateur is in UTC and locked. The age of an instant is the one that has an argument and reads a clock.
    """
    return next(
        (
            one
            for node in nodes
            for one in within(node)
            if isinstance(one, ex.Call) and one.name != "error" and is_unstable(one.name, len(one.children))
        ),
        None,
    )


def is_unstable(name: str, arguments: int) -> bool:
    """Whether a call of a function, by its name in lower case, may have another value elsewhere or at another time."""
    if name in CLOCKS:
        return True
    forms = _unstable().get(name, frozenset())
    return arguments in forms or -1 in forms or (name, arguments) == _AGE


@cache
def _unstable() -> dict[str, frozenset[int]]:
    """The numbers of arguments with which functions are unstable; -1 for any."""
    answer = default_kernel().run(
        "SELECT DISTINCT lower(function_name) AS name, len(parameters) AS arguments, varargs IS NOT NULL AS more"
        " FROM duckdb_functions() WHERE function_type = 'scalar' AND (stability = 'VOLATILE'"
        " OR (stability = 'CONSISTENT_WITHIN_QUERY' AND len(parameters) = 0 AND varargs IS NULL))",
        {},
    )
    found: dict[str, set[int]] = {}
    for row in answer.to_pylist():
        found.setdefault(row["name"], set()).add(-1 if row["more"] else row["arguments"])
    return {name: frozenset(forms) for name, forms in found.items()}
