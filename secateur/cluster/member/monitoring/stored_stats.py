"""The tables and counters of a member, as it reports them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from secateur.cluster.member.admission.statement_admission import Admissions
from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.process_vitals import process_vitals
from secateur.engine.runtime.runtime import JobRuntime
from secateur.engine.sql.select_job import vertex_names
from secateur.engine.sql.select_plan import SelectPlan
from secateur.native import native_module
from secateur.protocol.catalog import LookAtStatistics, StoredStatistics
from secateur.protocol.membership import GetMemberStats, GetVitals, MemberStats, StoredTable, UsedTable, Vitals
from secateur.protocol.metrics import VertexMetrics
from secateur.protocol.query import ExecutionTotals
from secateur.protocol.query_parts import QueryStep
from secateur.storage.table_summary import summarize
from secateur.wire import Reply, Request


@dataclass(slots=True)
class WorkCounts:
    """Counts since the member is there, as in ``MemberCounters``; changed on its event loop."""

    executions: int = 0
    frames_received: int = 0


class StoredStats:
    """Answers ``get_member_stats``, ``get_vitals`` and ``look_at_statistics``. Lives on the member's event loop.

    Args:
        statement_totals: Gives what its statements have come to.
    """

    def __init__(
        self,
        storage: MemberStorage,
        counts: WorkCounts,
        jobs: JobRuntime,
        admissions: Admissions,
        statement_totals: Callable[[], list[ExecutionTotals]],
    ) -> None:
        self._storage = storage
        self._counts = counts
        self._jobs = jobs
        self._admissions = admissions
        self._statement_totals = statement_totals

    def tell_vitals(self, _: Request[GetVitals]) -> Reply[Vitals]:
        """The totals of the statements, and the time and memory that the process takes. Costs 50 microseconds."""
        process_id, cpu_s, resident_bytes = process_vitals()
        return Reply(
            Vitals(self._statement_totals(), process_id, cpu_s, resident_bytes, self._storage.memory.used_bytes)
        )

    async def summary(self, request: Request[LookAtStatistics]) -> Reply[StoredStatistics]:
        """The summary of some partitions of a table, as they are now.

        Looks at the rows in a thread that no kernel call waits for.

        Raises:
            UnknownTableError: The table is not here.
            TopologyChangedError: A partition is not here.
        """
        store, table_id = self._storage.store, request.message.table_id
        table = store.table(table_id)
        snapshots = [store.partition(table_id, partition).snapshot() for partition in request.message.partitions]
        return Reply(StoredStatistics(await asyncio.to_thread(summarize, table, snapshots)))

    def tell(self, request: Request[GetMemberStats]) -> Reply[MemberStats]:
        """The tables and counters of the member. Costs a look at each partition."""
        tables = [
            StoredTable(
                stats.table_id,
                dict(stats.partition_rows),
                dict(stats.partition_bytes),
                stats.nbytes,
                stats.partitions,
            )
            for stats in self._storage.store.stats()
        ]
        used = self._storage.store.hits() if request.message.with_hits else []
        long, quick = self._admissions.long, self._admissions.quick
        return Reply(
            MemberStats(
                tables=tables,
                **asdict(self._counts),
                running_jobs=self._jobs.running_executions,
                open_results=self._storage.results.count,
                open_result_bytes=self._storage.results.held_bytes,
                memory_limit=self._storage.memory_limit,
                memory_used=self._storage.memory.used_bytes,
                running_statements=long.running + quick.running,
                waiting_statements=long.waiting + quick.waiting,
                refused_statements=long.refused + quick.refused,
                serving="closures" if native_module() is None else "native",
                used=[UsedTable(hits.table_id, dict(hits.reads), dict(hits.writes)) for hits in used],
            )
        )


_NOISE: Final = 10
"""Added to compared numbers: between one value and a few, no plan is much better than another."""


class EstimateMisses:
    """Counts the misses. Lives on the member's event loop.

    The member tells the controller with its lease, which has the statistics of such a table collected anew if rows were
    written since the last time; see :mod:`secateur.cluster.controller.statistics_cache`. Compared are numbers that are
    counted anyway: the values of steps, and the rows that scans send to other stages. A statement that one member
    answers by itself has neither, and does not pay for the comparison.

    Args:
        factor: A number of values or rows that is more than this many times the estimate, or less than the estimate by
            the same factor, is a miss.
    """

    def __init__(self, factor: float) -> None:
        self._factor = factor
        self._by_table: Counter[int] = Counter()

    def compare(self, step: QueryStep, plan: SelectPlan, found: int) -> None:
        """Count a miss for each table that a step reads, if it found far more or far fewer values than its estimate.

        Args:
            step: The step.
            plan: Its plan.
            found: The number of values that it found, one more than its ``values_max`` if there are more.
        """
        if step.estimate is None:
            return
        # A step stops at the first value too many, so the factor says nothing then.
        if found > step.values_max or self._is_far(step.estimate, found):
            self._by_table.update({scan.table_id for scan in plan.scans})

    def compare_scans(self, plan: SelectPlan, metrics: Sequence[VertexMetrics]) -> None:
        """Count a miss for each table of which a scan found far more or far fewer rows than its estimate.

        Args:
            plan: The plan of a statement that several members have answered.
            metrics: The metrics of its job, which has run to its end.
        """
        for name, stage in zip(vertex_names(plan), plan.stages, strict=True):
            found = [entry for entry in metrics if entry.vertex == name]
            if stage.estimate is None or not found:
                continue
            # Every consumer is offered the same rows.
            rows = sum(max((output.rows for output in entry.outputs), default=0) for entry in found)
            if self._is_far(stage.estimate, rows):
                self._by_table.update({plan.scans[number].table_id for number in stage.scans})

    def _is_far(self, estimate: int, found: int) -> bool:
        low, high = sorted((estimate, found))
        return high + _NOISE > self._factor * (low + _NOISE)

    def by_table(self) -> dict[int, int]:
        """The number of misses since the member started, by table id; tables without any are left out."""
        return dict(self._by_table)

    def forget_dropped(self, is_there: Callable[[int], bool]) -> None:
        """Forget tables that are not there any more: each lease that the member asks for brings the others."""
        for table_id in [table_id for table_id in self._by_table if not is_there(table_id)]:
            del self._by_table[table_id]
