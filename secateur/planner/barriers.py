"""Barriers: what a statement computes of rows that row policies hide could fail, and the error would tell of them.

DuckDB tests the conditions of a filter in any order: ``CAST(note AS INTEGER) > 0`` may fail on the row of another
tenant before the policy has left that out. So if a statement computes anything that may fail, the fragments that read
the table get its rows behind a barrier: the condition of the policy is applied to them in a statement of its own.

Source: the security barriers of PostgreSQL, whose leak-proof functions are here the expressions that never fail.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from msgspec.structs import replace

from secateur.engine.kernels.fragment import Fragment
from secateur.engine.sql.select_plan import SelectPlan
from secateur.planner.binding.bound_plan import BoundPlan, Unreadable
from secateur.planner.binding.query import Query
from secateur.planner.prune.conditional import never_raises
from secateur.planner.tree import relations as rel
from secateur.planner.tree.columns import expressions_of, relations_in

_F = TypeVar("_F")


def with_barriers(plan: SelectPlan, query: Query, bound: BoundPlan | Unreadable) -> SelectPlan:
    """A plan with barriers where it needs some; itself where it reads no table with policies."""
    guarded = {
        scan.relation: scan.guard.condition.sql(lambda claim: f"${query.parameters.claim_places[claim] + 1}")
        for scan in query.scans
        if scan.guard is not None
    }
    if not guarded or _is_leak_proof(bound):
        return plan
    stages = tuple(replace(stage, fragment=_behind(stage.fragment, guarded)) for stage in plan.stages)
    gathered = tuple(replace(stage, fragment=_behind(stage.fragment, guarded)) for stage in plan.gathered)
    undivided = tuple(replace(stage, fragment=_behind(stage.fragment, guarded)) for stage in plan.undivided)
    return replace(plan, local=_behind(plan.local, guarded), stages=stages, gathered=gathered, undivided=undivided)


def _behind(fragment: Fragment, guarded: Mapping[str, str]) -> Fragment:
    barriers = tuple((name, guarded[name]) for name in fragment.relations if name in guarded)
    return replace(fragment, arrow=None, barriers=barriers) if barriers else fragment


def _is_leak_proof(bound: BoundPlan | Unreadable) -> bool:
    """Whether nothing that a statement computes before its filters may fail.

    What stands above all filters and joins is computed of the rows that are left, whatever it is.
    """
    if isinstance(bound, Unreadable):
        return False
    top: rel.AnyRelation = bound.root
    while isinstance(top, (rel.LogicalProject, rel.LogicalAggregate, rel.LogicalSort, rel.LogicalLimit)):
        (top,) = top.children
    return all(never_raises(one) for relation in relations_in(top) for one in expressions_of(relation))
