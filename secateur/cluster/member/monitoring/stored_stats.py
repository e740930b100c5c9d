"""The tables and counters of a member, as it reports them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from secateur.cluster.member.admission.memory_admission import MemoryAdmission
from secateur.cluster.member.admission.statement_admission import Admissions
from secateur.cluster.member.statements.open_results import OpenResults
from secateur.cluster.process_vitals import process_vitals
from secateur.engine.runtime.runtime import JobRuntime
from secateur.native import native_module
from secateur.protocol.membership import GetMemberStats, GetVitals, MemberStats, StoredTable, UsedTable, Vitals
from secateur.protocol.query import ExecutionTotals
from secateur.storage.member_store import MemberStore
from secateur.wire import Reply, Request


@dataclass(slots=True)
class WorkCounts:
    """Counts since the member is there; changed on its event loop.

    Attributes:
        executions: Statements, changes and jobs that it was asked to run, or to run a part of.
        frames_received: Frames of statements, jobs, loads and data; housekeeping does not count.
    """

    executions: int = 0
    frames_received: int = 0


class StoredStats:
    """Answers ``get_member_stats`` and ``get_vitals``. Lives on the member's event loop.

    Args:
        store: The member's partitions.
        counts: The counts of its requests.
        jobs: Its engine.
        results: The results that clients read.
        memory_limit: The bytes that it may take.
        memory: The memory that it takes.
        admissions: The statements that run and wait.
        statement_totals: Gives what its statements have come to.
    """

    def __init__(
        self,
        store: MemberStore,
        counts: WorkCounts,
        jobs: JobRuntime,
        results: OpenResults,
        memory_limit: int,
        memory: MemoryAdmission,
        admissions: Admissions,
        statement_totals: Callable[[], list[ExecutionTotals]],
    ) -> None:
        self._store = store
        self._counts = counts
        self._jobs = jobs
        self._results = results
        self._memory_limit = memory_limit
        self._memory = memory
        self._admissions = admissions
        self._statement_totals = statement_totals

    def tell_vitals(self, _: Request[GetVitals]) -> Reply[Vitals]:
        """The totals of the statements, and the time and memory that the process takes. Costs 50 microseconds."""
        process_id, cpu_s, resident_bytes = process_vitals()
        return Reply(Vitals(self._statement_totals(), process_id, cpu_s, resident_bytes, self._memory.used_bytes))

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
            for stats in self._store.stats()
        ]
        used = self._store.hits() if request.message.with_hits else []
        long, quick = self._admissions.long, self._admissions.quick
        return Reply(
            MemberStats(
                tables=tables,
                executions=self._counts.executions,
                frames_received=self._counts.frames_received,
                running_jobs=self._jobs.running_executions,
                open_results=self._results.count,
                open_result_bytes=self._results.held_bytes,
                memory_limit=self._memory_limit,
                memory_used=self._memory.used_bytes,
                running_statements=long.running + quick.running,
                waiting_statements=long.waiting + quick.waiting,
                refused_statements=long.refused + quick.refused,
                serving="closures" if native_module() is None else "native",
                used=[UsedTable(hits.table_id, dict(hits.reads), dict(hits.writes)) for hits in used],
            )
        )
