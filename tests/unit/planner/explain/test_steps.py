"""The rung and the text of a query in steps."""

from __future__ import annotations

import pytest

from secateur.partitioning.pruning import (
    All,
    AllOf,
    AnyOf,
    Box,
    Choice,
    Comparison,
    Constraint,
    Keys,
    Node,
    Operand,
    Parameter,
    ParameterComparison,
    ParameterList,
    Partitions,
)
from secateur.planner import PlannedStep
from secateur.planner.explain import ExplainedStep, combined_execution_mode, needs_values
from secateur.protocol import SubqueryUse


def planned(use: SubqueryUse) -> PlannedStep:
    return PlannedStep("", None, use, 10)  # type: ignore[arg-type] # nothing asks for its query


def step(execution: str, *members: str) -> ExplainedStep:
    pruning = {"execution": execution, "required_members": list(members)}
    return ExplainedStep(planned(SubqueryUse.LIST), (1,), "SELECT 1", "", pruning)


def keys(operand: Operand | ParameterList) -> Node:
    return Keys(Box.of({"k": Constraint((Choice(tests=(ParameterComparison(Comparison.IN, (operand,)),)),))}))


@pytest.mark.parametrize(
    ("own", "steps", "expected"),
    [
        pytest.param(("local", ["m2"]), [], ("local", ["m2"]), id="no step"),
        pytest.param(("local", ["m2"]), [step("local", "m2")], ("local", ["m2"]), id="one member for all"),
        pytest.param(("local", ["m2"]), [step("local", "m1")], ("distributed", ["m1", "m2"]), id="a member each"),
        pytest.param(("none", []), [step("none")], ("none", []), id="nobody"),
        pytest.param(("none", []), [step("local", "m3")], ("local", ["m3"]), id="only the step"),
        pytest.param(
            ("local", ["m1"]),
            [step("none"), step("distributed", "m1", "m3")],
            ("distributed", ["m1", "m3"]),
            id="a distributed step",
        ),
    ],
)
def test_the_rung_of_all_steps(
    own: tuple[str, list[str]], steps: list[ExplainedStep], expected: tuple[str, list[str]]
) -> None:
    assert combined_execution_mode(*own, steps, ["m1", "m2", "m3"]) == expected


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param(All(), False, id="all"),
        pytest.param(keys(Parameter(0)), False, id="the user's"),
        pytest.param(keys(Parameter(1)), True, id="a value"),
        pytest.param(keys(ParameterList(1)), True, id="a list"),
        pytest.param(
            AnyOf((Partitions((1,)), AllOf((keys(Parameter(0)), keys(ParameterList(2)))))), True, id="deep inside"
        ),
    ],
)
def test_a_tree_that_depends_on_values_of_subqueries(node: Node, expected: bool) -> None:
    assert needs_values(node, 1) == expected


def test_a_step_is_explained_under_its_parameter() -> None:
    explained = ExplainedStep(
        planned(SubqueryUse.VALUE),
        (3,),
        "SELECT 1\n  FROM t",
        "execution: local\npruning: on\ntree: t: all\ndag:\n  scan",
        {"tree": "t: all"},
    )
    assert explained.lines() == ["runs first, for $4: SELECT 1 FROM t", "  execution: local", "  tree: t: all"]
    assert explained.to_json() == {
        "parameter": 3,
        "values": "value",
        "sql": "SELECT 1\n  FROM t",
        "pruning": {"tree": "t: all"},
    }
