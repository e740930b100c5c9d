"""Totals of the statements of a member since its start, by plan and by how they ran; the summary of those listed."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from operator import lt
from typing import Final, TypeAlias

import msgspec

from secateur.protocol.changes import ChangedRows, WorkedOut
from secateur.protocol.query import Executed, ExecutionTotals, PlanExecutions
from secateur.protocol.summaries import LatencyHistogram, ListedExecutions, PlanSummary

EndedStatement: TypeAlias = tuple[int, str, bool, float, float, msgspec.Struct | None, str | None, str]
"""Number, id of the plan, whether it was pruned, seconds since the epoch, seconds that it took, what the answer says,
what went wrong, and the tenant that it was for."""


def _other_way(said: msgspec.Struct | None) -> str:
    """The way in which a statement ran that was no query, by its answer: as in ``secateur.latencies``."""
    return "failed" if said is None else "change"


def has_read_all(said: Executed) -> bool:
    """Whether a query has read all of several partitions."""
    return said.partitions_read == said.partitions_total > 1


def other_members(queries: Iterable[Executed]) -> int:
    """The members that took part beside this one, added up: an answer that names none is this one's alone."""
    return sum(len(said.members) - 1 for said in queries if said.members)


_PLANS_MAX: Final = 4096
"""Plans whose executions are counted; those that have not run for longest are forgotten."""


class StatementSums:
    """Adds ended statements up, many at a time.

    Args:
        is_system: Whether the plan of an id reads system tables only: its executions count as such, however they ran.
    """

    def __init__(self, is_system: Callable[[str], bool] = lambda _: False) -> None:
        self._is_system = is_system
        self._executions: OrderedDict[str, PlanExecutions] = OrderedDict()
        self._totals: dict[str, ExecutionTotals] = {}

    @property
    def executions(self) -> list[PlanExecutions]:
        """The executions of each plan, the one that has run last at the end."""
        return list(self._executions.values())

    @property
    def totals(self) -> list[ExecutionTotals]:
        """All statements by how they ran."""
        return list(self._totals.values())

    def add(self, entries: Sequence[EndedStatement], buckets: Sequence[int]) -> None:
        """Count statements that have not been counted. Costs half a microsecond for each.

        Args:
            entries: The statements.
            buckets: The bucket of the time of each, see :func:`~secateur.protocol.summaries.buckets_of`.
        """
        times_ms = [1000 * entry[4] for entry in entries]
        by_plan: defaultdict[str, list[int]] = defaultdict(list)
        by_execution: defaultdict[str, list[int]] = defaultdict(list)
        for place, entry in enumerate(entries):
            by_plan[entry[1]].append(place)
        for plan_id, places in sorted(by_plan.items(), key=lambda item: item[1][-1]):  # which has run last at the end
            taken_ms = [times_ms[place] for place in places]
            known = self._executions.pop(plan_id, None) or PlanExecutions(plan_id, 0, 0.0, 0.0, LatencyHistogram())
            self._executions[plan_id] = PlanExecutions(
                plan_id,
                known.executions + len(places),
                known.elapsed_ms + sum(taken_ms),
                max(known.elapsed_max_ms, *taken_ms),
                known.latencies.with_buckets([buckets[place] for place in places]),
            )
            if self._is_system(plan_id):
                by_execution["system"] += places
            else:
                for place in places:
                    said = entries[place][5]
                    by_execution[said.execution if type(said) is Executed else _other_way(said)].append(place)
        while len(self._executions) > _PLANS_MAX:
            self._executions.popitem(last=False)
        for execution, places in by_execution.items():
            total = self._totals.get(execution) or ExecutionTotals(execution, 0, 0.0, LatencyHistogram())
            executed = [said for place in places if type(said := entries[place][5]) is Executed]
            self._totals[execution] = ExecutionTotals(
                execution,
                total.statements + len(places),
                total.elapsed_ms + sum([times_ms[place] for place in places]),
                total.latencies.with_buckets([buckets[place] for place in places]),
                total.members_touched + len(places) + other_members(executed),
                total.pruned + sum([said.partitions_read < said.partitions_total for said in executed]),
                total.unpruned + sum(map(has_read_all, executed)),
            )


def summarize_plans(
    executions: Iterable[PlanExecutions], listed: Iterable[EndedStatement], running: Iterable[str]
) -> list[PlanSummary]:
    """The summary of each plan.

    A dashboard asks for this every other second. A thousand entries take a millisecond here; sent one by one to the
    controller, and grouped there, they took thirty times as long.

    Args:
        executions: All that have ended, by plan.
        listed: Those that are listed.
        running: The plan of each statement that runs or waits.
    """
    by_plan: dict[str, list[EndedStatement]] = {}
    for entry in listed:
        by_plan.setdefault(entry[1], []).append(entry)
    counts = Counter(running)
    sums = {counted.plan_id: (counted.executions, counted.elapsed_ms) for counted in executions}
    return [
        PlanSummary(
            plan_id,
            counts[plan_id],
            *sums.get(plan_id, (0, 0.0)),
            _summed(by_plan[plan_id]) if plan_id in by_plan else None,
        )
        for plan_id in dict.fromkeys((*sums, *by_plan, *counts))
    ]


def _summed(entries: Sequence[EndedStatement]) -> ListedExecutions:
    times_ms = [1000 * entry[4] for entry in entries]
    started_s = [entry[3] for entry in entries]
    answers = [entry[5] for entry in entries if entry[5] is not None]
    queries = [said for said in answers if isinstance(said, Executed)]
    rows = [said.rows for said in answers if isinstance(said, (Executed, ChangedRows, WorkedOut))]
    read = [said.partitions_read for said in queries]
    whole = [said.partitions_total for said in queries]
    return ListedExecutions(
        executions=len(entries),
        started=max(started_s),
        failed=len(entries) - len(answers),
        elapsed_ms=sum(times_ms),
        elapsed_max_ms=max(times_ms),
        latencies=LatencyHistogram().with_latencies(times_ms),
        queries=len(queries),
        partitions_read=sum(read),
        partitions_total=max(whole, default=0),
        pruned=sum(map(lt, read, whole)),
        unpruned=sum(map(has_read_all, queries)),
        answered=len(answers),
        members_touched=len(answers) + other_members(queries),
        counted=len(rows),
        rows=sum(rows),
        whole=max(((entry[3], entry[2]) for entry in entries if _was_whole(entry)), default=None),
    )


def _was_whole(entry: EndedStatement) -> bool:
    said = entry[5]
    return not entry[2] or (isinstance(said, Executed) and has_read_all(said))
