"""The line of EXPLAIN about a distributed statement whose owners may be asked without a job."""

from __future__ import annotations

from collections.abc import Sequence

from secateur.engine.sql.client_merge import row_merge_of
from secateur.engine.sql.scatter import is_scattered
from secateur.engine.sql.select_plan import SelectPlan
from secateur.planner.explain.scan_facts import ScanExplanation


def scatters(plan: SelectPlan, facts: Sequence[ScanExplanation], *, enabled: bool) -> bool | None:
    """Whether a distributed statement is scattered while its owners have few rows; None if the parameters decide."""
    if not (enabled and plan.scatter_partitions_max):
        return False
    if not all(fact.known for fact in facts):
        return None
    return is_scattered(plan, [fact.possible for fact in facts])


def scatters_text(plan: SelectPlan, scattered: bool | None, *, in_steps: bool) -> list[str]:
    """The line that says so; none for a statement that always runs as a job."""
    if scattered is False:
        return []
    who = "one" if in_steps or row_merge_of(plan) is None else "the client"
    known = "" if scattered else f" where at most {plan.scatter_partitions_max} partitions are left"
    return [f"scatter: each owner is asked once{known}, and {who} combines their rows; no job, unless they are many"]
