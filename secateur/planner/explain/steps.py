"""EXPLAIN of a query in steps: each step with an explanation of its own, beside that of the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from secateur.partitioning.pruning.nodes import Node, boxes_of
from secateur.partitioning.pruning.operand import parameters_of
from secateur.protocol.steps import SubqueryUse


@dataclass(frozen=True, slots=True)
class ExplainedStep:
    """A step with its explanation.

    Attributes:
        parameters: The indexes of the parameters that its values become.
        use: The use that the rest of the query makes of it.
        sql: The text of the user, or of the planner, with parameters numbered.
        text: The explanation for people.
        pruning: The part of that for programs.
        values_max: With more values than this the statement runs undivided.
        estimate: The estimated number of values; None where there is no estimate.
    """

    parameters: tuple[int, ...]
    use: SubqueryUse
    sql: str
    text: str
    pruning: dict[str, Any]
    values_max: int
    estimate: int | None

    def to_json(self) -> dict[str, Any]:
        reckoned = (
            {}
            if self.estimate is None
            else {"parameters": list(self.parameters), "estimate": self.estimate, "values_max": self.values_max}
        )
        return {
            "parameter": self.parameters[0],
            "values": self.use.value,
            "sql": self.sql,
            **reckoned,
            "pruning": self.pruning,
        }

    def lines(self) -> list[str]:
        names = ", ".join(f"${index + 1}{'' if self.use is SubqueryUse.VALUE else '[]'}" for index in self.parameters)
        reckoned = (
            []
            if self.estimate is None
            else [
                (
                    f"  join keys: about {self.estimate:,} expected; with more than {self.values_max:,}, "
                    "the statement runs without them"
                )
            ]
        )
        explained = self.text.partition("\ndag:")[0].splitlines()
        lines = [f"  {line}" for line in explained if not line.startswith("pruning:")]
        return [f"runs first, for {names}: {' '.join(self.sql.split())}", *reckoned, *lines]


def needs_values(node: Node, parameter_count: int) -> bool:
    """Whether a partition tree depends on values of subqueries: the parameters after those of the user."""
    for box in boxes_of(node):
        for _, constraint in box.constraints:
            for test in constraint.tests:
                if any(index >= parameter_count for operand in test.operands for index in parameters_of(operand)):
                    return True
    return False


def combined_execution_mode(
    execution: str, members: Sequence[str], steps: Sequence[ExplainedStep], member_ids: Sequence[str]
) -> tuple[str, list[str]]:
    """The execution mode and the members of a query with its steps: local when one member does all of it."""
    if not steps:
        return execution, list(members)
    needed = {*members, *(member for step in steps for member in step.pruning["required_members"])}
    listed = [member for member in member_ids if member in needed]
    executions = {execution, *(step.pruning["execution"] for step in steps)}
    if executions == {"none"}:
        return "none", listed
    return ("distributed" if "distributed" in executions or len(listed) > 1 else "local"), listed
