"""Barriers: what a statement computes of rows that row policies hide could fail, and the error would tell of them.

DuckDB tests the conditions of a filter in any order: ``CAST(note AS INTEGER) > 0`` may fail on the row of another
tenant before the policy has left that out. So if a statement computes anything that may fail, the fragments that read
the table get its rows behind a barrier: the condition of the policy is applied to them in a statement of its own.

Source: the security barriers of PostgreSQL, whose leak-proof functions are here the expressions that never fail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from secateur.engine.kernels.fragment import Fragment, SecurityBarrier
from secateur.engine.sql.select_plan import SelectPlan
from secateur.engine.sql.stage import QueryStage
from secateur.planner.binding.bound_plan import BoundPlan, Unreadable
from secateur.planner.binding.query import Query, TableReference
from secateur.planner.binding.session_claims import claim_text
from secateur.planner.prune.conditional import never_raises
from secateur.planner.tree import relations as rel
from secateur.planner.tree.columns import expressions_of, relations_in
from secateur.protocol.access import RowCondition


def needs_barriers(query: Query, bound: BoundPlan | Unreadable) -> bool:
    """Whether a statement reads tables with policies, and computes something that may fail before its filters."""
    return any(scan.guard is not None for scan in query.scans) and not _is_leak_proof(bound)


def with_barriers(plan: SelectPlan, query: Query, sql: str) -> SelectPlan:
    """A plan whose fragments read tables with policies behind barriers.

    Args:
        plan: The plan.
        query: What it answers.
        sql: Its text without the conditions of the policies, which the barriers have applied when it runs undivided:
            DuckDB binds it once, where one with a parameter is bound in each run.
    """
    places = query.parameters.claim_places
    guarded = {
        scan.relation: _barrier(scan, scan.guard.condition, places) for scan in query.scans if scan.guard is not None
    }

    def behind(fragment: Fragment) -> Fragment:
        barriers = tuple(guarded[name] for name in fragment.relations if name in guarded)
        return replace(fragment, arrow=None, barriers=barriers) if barriers else fragment

    def all_behind(stages: Sequence[QueryStage]) -> tuple[QueryStage, ...]:
        return tuple(replace(stage, fragment=behind(stage.fragment)) for stage in stages)

    return replace(
        plan,
        local=replace(behind(plan.local), sql=sql),
        stages=all_behind(plan.stages),
        gathered=all_behind(plan.gathered),
        undivided=all_behind(plan.undivided),
    )


def _barrier(scan: TableReference, condition: RowCondition, places: Mapping[str, int]) -> SecurityBarrier:
    text = condition.sql(lambda claim: claim_text(claim, places))
    column = condition.compared_text(scan.table)
    if column is None or condition.claims[0] not in places:
        return SecurityBarrier(scan.relation, text)
    return SecurityBarrier(scan.relation, text, column, places[condition.claims[0]])


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
