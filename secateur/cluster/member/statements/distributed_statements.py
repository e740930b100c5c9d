"""Running a statement as a job of several members, which this one coordinates: the execution mode *distributed*."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from secateur.cluster.member.monitoring.estimate_misses import EstimateMisses
from secateur.cluster.member.statements.open_results import OpenResults, within_bounds
from secateur.cluster.member.statements.read_state import marks_of
from secateur.cluster.member.statements.statement_run import StatementRun, in_some_form
from secateur.engine.runtime.result import JobResult, ResultCollector, ResultQueue
from secateur.engine.runtime.running_job import RunningJob
from secateur.engine.runtime.runtime import JobRuntime
from secateur.engine.sql.kernel_call import KERNEL_TIMES
from secateur.engine.sql.row_stream import JobRowStream
from secateur.engine.sql.select_job import select_dag
from secateur.engine.sql.select_plan import SelectPlan
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.query import Execute, Executed
from secateur.storage.member_store import MemberStore
from secateur.wire import Reply, Request

_BYTES_BEFORE_FIRST: Final = 16 << 20
"""Bytes of a placed statement's result that are made before the first are sent.

Until then the statement can still be run in another form.
"""
_LATE: Final = (
    "rows of the result had been read when this came up, too late to run the statement in a form that evaluates nothing"
    " else than it asks for: if a filter or a join leaves the value out, use TRY_CAST or CASE where it is evaluated"
)


class DistributedStatements:
    """Starts the jobs of statements. Lives on the member's event loop.

    Args:
        member_id: This member.
        store: Its partitions.
        jobs: Its engine.
        misses: Counts the scans whose estimates were badly wrong.
        results: Keeps what clients are still reading.
    """

    def __init__(
        self, member_id: str, store: MemberStore, jobs: JobRuntime, misses: EstimateMisses, results: OpenResults
    ) -> None:
        self._member_id = member_id
        self._store = store
        self._jobs = jobs
        self._misses = misses
        self._results = results

    async def run(self, request: Request[Execute], ran: StatementRun) -> Reply[Executed]:
        """Run a statement, and answer with its rows, or with the first of them.

        Raises:
            Error: The error of the statement, or of a member that works for it.
        """
        asked, plan, partitions, topology = request.message, ran.plan, ran.partitions, ran.topology
        if asked.grant is None:
            with self._results.running(request.peer):
                _, result = await self.result_of(
                    plan, asked, partitions, topology, lambda: ResultCollector(self._results.held_bytes_max)
                )
            return ran.reply(result.table(), self.touched(result))
        grant = within_bounds(asked.grant)

        async def first_rows(plan: SelectPlan) -> Reply[Executed]:
            # Where another form of the statement may be needed, the first part waits for more: the form can be chosen
            # until it is sent. A member that finds keys changed reports it long before.
            before, when_late = (_BYTES_BEFORE_FIRST, _LATE) if plan.gathered else (0, "")
            queue = ResultQueue(max(2 * grant, before))
            job = await self._start(plan, asked, partitions, topology, queue)
            rows = JobRowStream(job, queue, lambda: plan.stages[-1].fragment.schema, before, when_late)
            return await self._results.open(
                request.peer, rows, grant, ran.executed(sorted({self._member_id, *job.plan.job.participants}))
            )

        with self._results.running(request.peer):
            return await in_some_form(plan, first_rows)

    async def result_of(
        self,
        plan: SelectPlan,
        asked: Execute,
        partitions: list[Sequence[int]],
        topology: Topology,
        collector: Callable[[], ResultCollector],
    ) -> tuple[SelectPlan, JobResult]:
        """Run the stages, in the form that has an answer; returns that and the result."""

        async def run(plan: SelectPlan) -> tuple[SelectPlan, JobResult]:
            return plan, await (await self._start(plan, asked, partitions, topology, collector())).result()

        return await in_some_form(plan, run)

    def touched(self, result: JobResult) -> list[str]:
        """The members that have worked for a result, this one included."""
        return sorted({self._member_id, *result.members_touched})

    async def _start(
        self,
        plan: SelectPlan,
        asked: Execute,
        partitions: list[Sequence[int]],
        topology: Topology,
        result: ResultCollector,
    ) -> RunningJob:
        published = {
            scan.table_id: self._store.data_version(scan.table_id).published
            for scan in plan.scans
            if not scan.is_fetched
        }
        dag, config = select_dag(
            plan,
            partitions,
            published=published,
            search_keys=asked.pruning,
            mark=asked.mark,
            since=marks_of(plan, asked),
        )
        job = await self._jobs.start_job(dag, config, asked.params, topology, result=result)
        job.when_done(lambda: self._misses.compare_scans(plan, job.metrics) if job.is_complete else None)
        times = KERNEL_TIMES.get()
        if times is not None:
            job.when_done(lambda: times.extend(entry.offload_s for entry in job.metrics))
        return job
