"""EXPLAIN of a query in steps: the subqueries that run first, each with an explanation of its own, beside that of the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from secateur.partitioning.nodes import Node, boxes_of
from secateur.partitioning.operand import parameters_of
from secateur.planner.statement import SubqueryUse

__all__ = ["ExplainedStep", "needs_values", "rung_in_all"]


@dataclass(frozen=True, slots=True)
class ExplainedStep:
    """A step and how it would run.

    Attributes:
        parameter: The index of the parameter that its values become.
        use: What the rest needs of it.
        sql: What the user wrote, parameters numbered.
        text: The explanation for people.
        pruning: The part of that for programs.
    """

    parameter: int
    use: SubqueryUse
    sql: str
    text: str
    pruning: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"parameter": self.parameter, "values": self.use.value, "sql": self.sql, "pruning": self.pruning}

    def lines(self) -> list[str]:
        name = f"?{self.parameter}{'[]' if self.use is SubqueryUse.LIST else ''}"
        explained = self.text.partition("\ndag:")[0].splitlines()
        return [f"before that, {name} from: {' '.join(self.sql.split())}", *(f"  {line}" for line in explained if not line.startswith("pruning:"))]


def needs_values(node: Node, parameter_count: int) -> bool:
    """Whether a partition tree depends on values of subqueries: the parameters behind those of the user."""
    for box in boxes_of(node):
        for _, constraint in box.constraints:
            for test in (test for choice in constraint.choices for test in choice.tests):
                if any(index >= parameter_count for operand in test.operands for index in parameters_of(operand)):
                    return True
    return False


def rung_in_all(execution: str, members: Sequence[str], steps: Sequence[ExplainedStep], member_ids: Sequence[str]) -> tuple[str, list[str]]:
    """The rung and the members of a query with its steps: local when one member does all of it."""
    if not steps:
        return execution, list(members)
    needed = {*members, *(member for step in steps for member in step.pruning["required_members"])}
    listed = [member for member in member_ids if member in needed]
    executions = {execution, *(step.pruning["execution"] for step in steps)}
    if executions == {"none"}:
        return "none", listed
    return ("distributed" if "distributed" in executions or len(listed) > 1 else "local"), listed
