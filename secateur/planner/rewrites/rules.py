"""The rewrite rules in their order, and the function that applies them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from secateur.planner.relations.nodes import Relation
from secateur.planner.rewrites import (
    aggregate_of_group_key,
    common_conjunct,
    constant_propagation,
    derived_table_to_join,
    exists_to_semi_join,
    in_group_by_to_join,
    in_pull_out,
    in_to_exists,
    outer_join_elimination,
    outer_join_reduction,
    scalar_subquery_bounds,
    scalar_subquery_to_left_join,
)
from secateur.planner.rewrites.rule import Rule

RULES: Final[tuple[Rule, ...]] = (
    # First, so that the other rules see inside subqueries in FROM, at every depth.
    derived_table_to_join.RULE,
    # Before the predicates of HAVING are carried anywhere.
    aggregate_of_group_key.RULE,
    # Before the rules that use the conditions of joins.
    common_conjunct.RULE,
    # Before the rules for subqueries: NOT IN becomes NOT EXISTS where no outer join makes a NULL.
    outer_join_reduction.RULE,
    # After derived_table_to_join: it looks at the operators of a subquery in FROM.
    outer_join_elimination.RULE,
    # Before the rules for subqueries, which make joins of them.
    scalar_subquery_bounds.RULE,
    # Before in_pull_out, which would turn these into semi-joins.
    in_group_by_to_join.RULE,
    # Before in_to_exists, which takes every IN: an uncorrelated IN may become an inner join, which passes more.
    in_pull_out.RULE,
    # Before exists_to_semi_join, which takes its output.
    in_to_exists.RULE,
    exists_to_semi_join.RULE,
    # After the rules for subqueries that are TRUE or FALSE: it takes those that return other values.
    scalar_subquery_to_left_join.RULE,
    # Last, when all equalities of a SELECT are in one tree.
    constant_propagation.RULE,
)


def rule_names() -> tuple[str, ...]:
    """All names, in order."""
    return tuple(rule.name for rule in RULES)


def rewritten(roots: Sequence[Relation], disabled: Collection[str]) -> tuple[tuple[Relation, ...], tuple[str, ...]]:
    """Apply the rules.

    Args:
        roots: The relations of a statement.
        disabled: Names of rules to leave out.

    Returns:
        The relations that have come of them, and the names of the rules that changed something.
    """
    trees = list(roots)
    applied: list[str] = []
    for rule in RULES:
        if rule.name not in disabled:
            changed = [rule.applied(tree) for tree in trees]
            if any(before is not after for before, after in zip(trees, changed, strict=True)):
                applied.append(rule.name)
            trees = changed
    return tuple(trees), tuple(applied)
