"""Clocks and random numbers in statements whose parts are evaluated in several places.

A clock shows one time during a statement: it becomes a parameter, which the coordinator sets when the stages start. A
random number differs at each evaluation, so it may be evaluated anywhere only if it is evaluated once for each row of
the outermost SELECT: in its SELECT list, in WHERE and in ORDER BY.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from sqlglot import exp

from secateur.planner.fragments.qualified import NotDistributable
from secateur.planner.relations.calls import aggregates_in
from secateur.planner.text.folding import folded
from secateur.planner.text.parser_cross_check import DuckDBParse
from secateur.planner.text.trees import nodes_in

__all__ = ["CLOCKS", "is_stable", "settle_unstable"]

CLOCKS: Final = {
    **dict.fromkeys(("now", "current_timestamp", "get_current_timestamp", "transaction_timestamp"), "TIMESTAMPTZ"),
    **dict.fromkeys(("current_date", "today"), "DATE"),
    **dict.fromkeys(("localtimestamp", "current_localtimestamp"), "TIMESTAMP"),
}
"""The clock functions and their types."""

_RANDOM: Final = frozenset({"random", "uuid", "uuidv4", "uuidv7", "gen_random_uuid"})


def settle_unstable(tree: exp.Expr, reading: DuckDBParse, clock: int) -> bool:
    """Make a statement one whose parts can be evaluated anywhere.

    Args:
        tree: The tree of the statement; its clocks are replaced by the parameter.
        reading: DuckDB's reading of it.
        clock: The number of the parameter, counted from 1: the time at which the statement starts, a TIMESTAMPTZ.

    Returns:
        Whether it reads the clock.

    Raises:
        NotDistributable: It has something else that depends on when and where it is evaluated, or has a random number
            elsewhere than in the rows of the outermost SELECT.
    """
    unstable = reading.unstable()
    if not unstable:
        return False
    calls = [(name, node) for node in tree.walk() if (name := _name(node)) in CLOCKS or name in _RANDOM]
    strange = sorted(unstable.keys() - CLOCKS.keys() - _RANDOM)
    if strange or len(calls) != sum(unstable.values()):
        raise NotDistributable(
            f"the result of {', '.join(strange or sorted(unstable))} depends on when and where it is evaluated"
        )
    for name, node in calls:
        if name in _RANDOM and not _is_for_each_row(node, tree, reading):
            raise NotDistributable(
                f"{name}() is not evaluated once for each row of the outermost SELECT: move it there", node
            )
    clocks = [(name, node) for name, node in calls if name in CLOCKS]
    for name, node in clocks:
        shown = exp.cast(exp.Parameter(this=exp.Literal.number(clock)), "TIMESTAMPTZ", dialect="duckdb")
        node.replace(shown if CLOCKS[name] == "TIMESTAMPTZ" else exp.cast(shown, CLOCKS[name], dialect="duckdb"))
    return bool(clocks)


def is_stable(part: exp.Expr, unstable: Collection[str]) -> bool:
    """Whether an expression calls nothing that depends on when and where it is evaluated."""
    return not unstable or not any(_name(node) in unstable for node in part.walk())


def _name(node: exp.Expr) -> str:
    """Return DuckDB's name of a function that a node calls without arguments; empty for anything else."""
    match node:
        case exp.Anonymous():
            return folded(node.name)
        case exp.CurrentTimestamp():
            return "current_timestamp"
        case exp.CurrentDate():
            return "current_date"
        case exp.Localtimestamp():
            return "localtimestamp"
        case _:
            return ""


def _is_for_each_row(node: exp.Expr, tree: exp.Expr, reading: DuckDBParse) -> bool:
    if not isinstance(tree, exp.Select) or node.parent_select is not tree:
        return False
    clause = node
    while clause.parent is not tree:
        assert isinstance(clause.parent, exp.Expr)
        clause = clause.parent
        if isinstance(clause, (exp.Window, exp.Lambda, exp.Comprehension)):
            return False
    return clause.arg_key == "where" or (
        clause.arg_key in ("expressions", "order") and not _is_aggregated(tree, reading)
    )


def _is_aggregated(select: exp.Select, reading: DuckDBParse) -> bool:
    parts = [part for key in ("expressions", "order") for part in nodes_in(select.args.get(key))]
    return bool(select.args.get("group") or select.args.get("having")) or any(
        True for part in parts for _ in aggregates_in(part, reading.aggregates())
    )
