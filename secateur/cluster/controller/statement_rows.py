"""The rows of ``secateur.statements`` and of those of its kind: what members list, and what is known of its plans.

Three members list 3,300 statements of some hundred plans, and a dashboard asks for them again and again while the
controller has other work. So the rows are made column by column, and what belongs to a plan once for each plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, Final, TypeAlias

import pyarrow as pa

from secateur.cluster.controller.running_requests import CONTROLLER, RunningRequest
from secateur.planner.explain.statement_facts import StatementFacts
from secateur.protocol.query import PlanExecutions, StatementEntry, Statements
from secateur.protocol.summaries import LatencyHistogram, ListedExecutions, PlanSummary

_NEVER_EXECUTED: Final[Mapping[str, Any]] = {"executions": 0}
_OF_PLANS: Final = (
    *("plan_id", "statement", "fingerprint", "system", "tree", "prunable"),
    *("executions", "mean_ms", "p50_ms", "p99_ms", "max_ms"),
)
_ENDED: Final = frozenset({"done", "failed"})
_LISTED: Final = tuple(name for name in StatementEntry.__struct_fields__ if name not in ("plan_id", "started"))


def statement_table(
    answers: Sequence[tuple[str, Statements]],
    requests: Iterable[RunningRequest],
    facts_of: Callable[[str], StatementFacts | None],
    members_total: int,
    now_s: float,
    schema: pa.Schema,
) -> pa.Table:
    """The requests of the controller, then the statements of each member.

    Args:
        answers: The answer of each member.
        requests: On which the controller works.
        facts_of: The statement of a plan by the plan's id, as long as it is known.
        members_total: How many members the cluster has.
        now_s: Seconds since the epoch.
        schema: The columns, those of ``secateur.statements`` or some of them.

    Returns:
        Some 5 us for each statement have made it.
    """
    own = pa.Table.from_pylist([_request_row(request, members_total, now_s) for request in requests], schema=schema)
    entries = [entry for _, answer in answers for entry in answer.statements]
    members = [member_id for member_id, answer in answers for _ in answer.statements]
    places = {plan_id: place for place, plan_id in enumerate(dict.fromkeys(entry.plan_id for entry in entries))}
    facts = {plan_id: facts_of(plan_id) for plan_id in places}
    plans = _plan_table(answers, facts, facts_of, schema)
    of_plans = plans.take(pa.array([places[entry.plan_id] for entry in entries], pa.int32()))
    columns: dict[str, Any] = {
        **{name: list(map(attrgetter(name), entries)) for name in _LISTED},
        "member": members,
        "id": [f"{member_id}:{entry.number}" for member_id, entry in zip(members, entries, strict=True)],
        "started": [round(1e6 * entry.started) for entry in entries],
        "members_touched": [None if entry.members is None else len(entry.members) for entry in entries],
        "members_total": [members_total] * len(entries),
        "ended": [entry.state in _ENDED for entry in entries],
        "pruned": [
            None
            if entry.partitions_read is None or entry.partitions_total is None
            else entry.partitions_read < entry.partitions_total
            for entry in entries
        ],
        "reason": [reason_of(entry, facts[entry.plan_id]) for entry in entries],
        **{name: of_plans.column(name) for name in plans.column_names},
    }
    return pa.concat_tables([own, pa.table([columns[field.name] for field in schema], schema=schema)])


def reason_of(entry: StatementEntry, facts: StatementFacts | None) -> str | None:
    """The reason why an execution left no partition out; None if it left one out."""
    read, whole = entry.partitions_read, entry.partitions_total
    if entry.pruning is not False and read is not None and whole is not None and read < whole:
        return None
    if entry.pruning is False or (read == whole and read is not None and read > 1):
        return why_whole(facts, pruning=entry.pruning is not False)
    return None if facts is None else facts.reason


def why_whole(facts: StatementFacts | None, *, pruning: bool) -> str:
    """Why an execution has read all of several partitions.

    Args:
        facts: Of its statement, if they are known.
        pruning: Whether it was asked to read only the required ones.
    """
    if not pruning:
        return "pruning is off: SET pruning = on"
    if facts is not None and facts.reason is not None:
        return facts.reason
    return "the values of this execution need every partition: EXPLAIN with them says why"


def _request_row(request: RunningRequest, members_total: int, now_s: float) -> Mapping[str, Any]:
    return {
        "member": CONTROLLER,
        "number": request.number,
        "id": f"{CONTROLLER}:{request.number}",
        "state": request.state.value,
        "ended": False,
        "statement": request.statement,
        "started": datetime.fromtimestamp(request.started_s, UTC).replace(tzinfo=None),
        "elapsed_ms": 1000 * (now_s - request.started_s),
        "members_total": members_total,
    }


def _plan_table(
    answers: Sequence[tuple[str, Statements]],
    facts: Mapping[str, StatementFacts | None],
    facts_of: Callable[[str], StatementFacts | None],
    schema: pa.Schema,
) -> pa.Table:
    """A row for each plan of which a member lists a statement; ``executions`` are those of its text in all plans."""
    known = dict(facts)
    executions: dict[str, list[PlanExecutions]] = {}  # by the text, or by the id of a plan whose text is forgotten
    for _, answer in answers:
        for counted in answer.executions:
            if counted.plan_id not in known:
                known[counted.plan_id] = facts_of(counted.plan_id)
            executions.setdefault(_text_or_id(counted.plan_id, known), []).append(counted)
    wanted = dict.fromkeys(_text_or_id(plan_id, facts) for plan_id in facts)
    times = {text: times_row(executions[text]) if text in executions else _NEVER_EXECUTED for text in wanted}
    rows = [
        {"plan_id": plan_id, **_facts_row(known_facts), **times[_text_or_id(plan_id, facts)]}
        for plan_id, known_facts in facts.items()
    ]
    return pa.Table.from_pylist(
        rows, schema=pa.schema([schema.field(name) for name in _OF_PLANS if name in schema.names])
    )


def _text_or_id(plan_id: str, facts: Mapping[str, StatementFacts | None]) -> str:
    known = facts[plan_id]
    return plan_id if known is None else known.statement


def _facts_row(facts: StatementFacts | None) -> Mapping[str, Any]:
    if facts is None:
        return {}
    return {
        "statement": facts.statement,
        "fingerprint": facts.fingerprint,
        "system": facts.is_system,
        "tree": facts.tree,
        "prunable": facts.is_prunable,
    }


def times_row(executions: Sequence[PlanExecutions | ListedExecutions]) -> Mapping[str, Any]:
    """The durations of the executions on all members, at least one, as columns of a row."""
    count = sum(each.executions for each in executions)
    longest_ms = max(each.elapsed_max_ms for each in executions)
    latencies = LatencyHistogram.merged(each.latencies for each in executions)
    return {
        "executions": count,
        "mean_ms": sum(each.elapsed_ms for each in executions) / count,
        "p50_ms": min(latencies.percentile_ms(0.5), longest_ms),
        "p99_ms": min(latencies.percentile_ms(0.99), longest_ms),
        "max_ms": longest_ms,
    }


_OfPlan: TypeAlias = tuple[StatementFacts, PlanSummary]


def statement_summary_rows(
    answers: Sequence[tuple[str, Statements]],
    facts_of: Callable[[str], StatementFacts | None],
    members_total: int,
) -> list[Mapping[str, Any]]:
    """A row for each fingerprint of which a member lists a statement or runs one.

    Args:
        answers: The answer of each member.
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
        "system": newest.is_system,
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
    """The reason why the newest unpruned execution left no partition out; None if every one left some out."""
    whole = [(each.whole, facts) for facts, each in listed if each.whole is not None]
    if whole:
        (_, pruning), facts = max(whole, key=lambda one: one[0])
        return why_whole(facts, pruning=pruning)
    return next((facts.reason for facts, each in listed if facts.reason and each.pruned < each.executions), None)


def _mean(total: int, count: int) -> float | None:
    return total / count if count else None
