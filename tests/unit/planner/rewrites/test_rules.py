"""No rule breaks a tree. What each of them makes of a statement is in tests/plans/rewrites."""

from __future__ import annotations

import random
from typing import Any

import pytest

from plan_files import ROOT, Case, read_file
from secateur.planner.relations import (
    Attribute,
    Join,
    Project,
    Relation,
    Scan,
    SetOperation,
    owners,
    postorder,
)
from secateur.planner.rewrites import RULES, rewritten, rule_names


def validate(root: Relation) -> None:
    """Every attribute that a relation takes from an input is one of those that the input has."""
    for relation in postorder(root):
        match relation:
            case Project(input, _, sources):
                _check(sources, input)
            case SetOperation(_, inputs, attributes, sources):
                for input, given in zip(inputs, sources, strict=True):
                    assert len(given) == len(attributes)
                    _check(given, input)
            case Join(_, left, right):
                assert not owners(left) & owners(right)
            case Scan(scan, attributes):
                assert [attribute.name for attribute in attributes] == [column.name for column in scan.table.columns]
            case _:
                pass


def _check(sources: tuple[Attribute | None, ...], input: Relation) -> None:
    known = owners(input)
    # A correlated subquery may show a column of the rows around it.
    assert all(source is None or source.owner in known or source.owner < min(known, default=0) for source in sources)


CASES = read_file(ROOT / "rewrites/trees.sql").cases


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_trees_stay_valid_and_a_rule_that_is_off_changes_nothing(context: Any, case: Case) -> None:
    before = context.relations(case.sql)
    for disabled in ([], [case.rule], [name for name in rule_names() if name != case.rule], rule_names()):
        after, applied = rewritten(before, disabled)
        assert not set(applied) & set(disabled)
        for relation in after:
            validate(relation)
        if len(disabled) == len(RULES):
            assert [*map(id, after)] == [*map(id, before)]


def test_the_order_of_rules_is_the_one_that_is_documented() -> None:
    assert rule_names() == (
        "derived_table_to_join",
        "aggregate_of_group_key",
        "common_conjunct",
        "outer_join_reduction",
        "outer_join_elimination",
        "scalar_subquery_bounds",
        "in_group_by_to_join",
        "in_pull_out",
        "in_to_exists",
        "exists_to_semi_join",
        "scalar_subquery_to_left_join",
        "constant_propagation",
    )


def test_rules_are_stable(context: Any) -> None:
    """Applied to what they have made they find nothing more to do, in whatever order the statements come."""
    statements = [case.sql for case in CASES]
    random.Random(1).shuffle(statements)
    for sql in statements:
        once, _ = rewritten(context.relations(sql), ["constant_propagation"])
        assert rewritten(once, ["constant_propagation"])[1] == ()
