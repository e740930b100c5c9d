"""Random numbers in statements whose parts are evaluated in several places.

A random number differs at each evaluation, so it may be evaluated anywhere only if it is evaluated once for each row of
the outermost SELECT: in its SELECT list, in WHERE and in ORDER BY. Functions of the clock have become a parameter
before (:mod:`secateur.planner.binding.clocks`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from sqlglot import exp

from secateur.partitioning.tables.identifier import folded
from secateur.planner.fragments.qualified import NotDistributable
from secateur.planner.relations.calls import aggregates_in
from secateur.planner.text.parser_cross_check import DuckDBParse
from secateur.planner.text.trees import nodes_in

_RANDOM: Final = frozenset({"random", "uuid", "uuidv4", "uuidv7", "gen_random_uuid"})


def check_unstable(tree: exp.Expr, reading: DuckDBParse) -> None:
    """Check that the parts of a statement can be evaluated anywhere.

    Raises:
        NotDistributable: It has something that depends on when and where it is evaluated, or has a random number
            elsewhere than in the rows of the outermost SELECT.
    """
    unstable = reading.unstable()
    if not unstable:
        return
    calls = [(name, node) for node in tree.walk() if (name := _name(node)) in _RANDOM]
    strange = sorted(unstable.keys() - _RANDOM)
    if strange or len(calls) != sum(unstable.values()):
        raise NotDistributable(
            f"the result of {', '.join(strange or sorted(unstable))} depends on when and where it is evaluated"
        )
    for name, node in calls:
        if not _is_for_each_row(node, tree, reading):
            raise NotDistributable(
                f"{name}() is not evaluated once for each row of the outermost SELECT: move it there", node
            )


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
