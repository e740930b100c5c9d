"""The rows of ``secateur.statement_summaries``: what members have added up by plan, by the fingerprint of its text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from secateur.cluster.controller.statement_rows import times_row, why_whole
from secateur.planner.explain.statement_facts import StatementFacts
from secateur.protocol.plan_summary import ListedExecutions, PlanSummary
from secateur.protocol.query import Statements

_OfPlan: TypeAlias = tuple[StatementFacts, PlanSummary]


def statement_summary_rows(
    answers: Sequence[tuple[str, Statements]],
    facts_of: Callable[[str], StatementFacts | None],
    members_total: int,
) -> list[Mapping[str, Any]]:
    """A row for each fingerprint of which a member lists a statement or runs one.

    Args:
        answers: What each member has told.
        facts_of: The statement of a plan by the plan's id, as long as it is known.
        members_total: How many members the cluster has.
    """
    facts: dict[str, StatementFacts | None] = {}
    groups: dict[str, list[_OfPlan]] = {}
    for _, answer in answers:
        for summary in answer.summaries:
            plan_id = summary.plan_id
            if plan_id not in facts:
                facts[plan_id] = facts_of(plan_id)
            known = facts[plan_id]
            if known is not None:
                groups.setdefault(known.fingerprint, []).append((known, summary))
    return [
        _row(fingerprint, group, members_total)
        for fingerprint, group in groups.items()
        if any(summary.listed is not None or summary.running for _, summary in group)
    ]


def _row(fingerprint: str, group: Sequence[_OfPlan], members_total: int) -> Mapping[str, Any]:
    listed = [(facts, summary.listed) for facts, summary in group if summary.listed is not None]
    newest = max(listed, key=lambda one: one[1].started, default=(group[0][0], None))[0]
    return {
        "fingerprint": fingerprint,
        "statement": newest.statement,
        "tree": newest.tree,
        "prunable": any(facts.is_prunable for facts, _ in group),
        "reason": _reason(listed),
        "executions": sum(summary.executions for _, summary in group),
        "total_ms": sum(summary.elapsed_ms for _, summary in group),
        "running": sum(summary.running for _, summary in group),
        "members_total": members_total,
        **_listed_row([found for _, found in listed]),
    }


def _listed_row(listed: Sequence[ListedExecutions]) -> Mapping[str, Any]:
    queries = sum(each.queries for each in listed)
    times = dict(times_row(listed)) if listed else {}
    return {
        "listed": times.pop("executions", 0),
        "failed": sum(each.failed for each in listed),
        "pruned": sum(each.pruned for each in listed),
        "unpruned": sum(each.unpruned for each in listed),
        "partitions_read": _mean(sum(each.partitions_read for each in listed), queries),
        "partitions_total": max(each.partitions_total for each in listed) if queries else None,
        "members_touched": _mean(sum(each.members_touched for each in listed), sum(each.answered for each in listed)),
        "rows": _mean(sum(each.rows for each in listed), sum(each.counted for each in listed)),
        **times,
    }


def _reason(listed: Sequence[tuple[StatementFacts, ListedExecutions]]) -> str | None:
    """Why the newest execution that left nothing out did not; None if every one did."""
    whole = [(each.whole, facts) for facts, each in listed if each.whole is not None]
    if whole:
        (_, pruning), facts = max(whole, key=lambda one: one[0])
        return why_whole(facts, pruning=pruning)
    return next((facts.reason for facts, each in listed if facts.reason and each.pruned < each.executions), None)


def _mean(total: int, count: int) -> float | None:
    return total / count if count else None
