"""The rung *distributed*: a light job over the members that own the partitions; it takes every read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import pyarrow as pa
from msgspec import structs

from secateur.cluster.member.admission.statement_admission import Admissions
from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.monitoring.stored_stats import EstimateMisses
from secateur.cluster.member.statements.open_results import within_bounds
from secateur.cluster.member.statements.prepared_statements import marks_of
from secateur.cluster.member.statements.reads import Deliver, Found, Read, Taken, while_loads_end
from secateur.cluster.statement_profile import job_work
from secateur.engine.runtime.result import ResultCollector, ResultQueue
from secateur.engine.runtime.running_job import RunningJob
from secateur.engine.runtime.runtime import JobRuntime
from secateur.engine.sql.row_stream import JobRowStream, RowStream
from secateur.engine.sql.select_job import select_dag
from secateur.engine.sql.select_plan import SelectPlan
from secateur.engine.threads import WORK, StatementWork
from secateur.errors import DataError
from secateur.protocol.metrics import StageWork, VertexMetrics
from secateur.wire import Reply

T = TypeVar("T")

_BYTES_BEFORE_FIRST: Final = 16 << 20
"""Bytes of a placed statement's result that are made before the first are sent.

Until then the statement can still be run in another form.
"""
_LATE: Final = (
    "rows of the result had been read when this came up, too late to run the statement in a form that evaluates nothing"
    " else than it asks for: if a filter or a join leaves the value out, use TRY_CAST or CASE where it is evaluated"
)


async def in_some_form(plan: SelectPlan, run: Callable[[SelectPlan], Awaitable[T]]) -> T:
    """Run the stages of a plan.

    If an error in the data need not be one of the statement, run other stages, in which it would be.
    """
    try:
        return await while_loads_end(lambda: run(plan))
    except DataError:
        if not plan.gathered:
            raise
        return await while_loads_end(lambda: run(structs.replace(plan, stages=plan.gathered, gathered=())))


class DistributedStatements:
    """Starts the jobs of statements. Lives on the member's event loop.

    Attributes:
        misses: Counts the scans whose estimates were badly wrong.
    """

    def __init__(self, storage: MemberStorage, jobs: JobRuntime, admissions: Admissions) -> None:
        self._member_id = storage.member_id
        self._store = storage.store
        self._results = storage.results
        self._jobs = jobs
        self._admissions = admissions
        self.misses = EstimateMisses(jobs.limits.estimate_miss_factor)

    def take(self, read: Read) -> Taken:
        """As :meth:`~secateur.cluster.member.statements.reads.Rung.take`."""
        return Taken(self._admissions.long, partial(self._run, read))

    async def _run(self, read: Read, deliver: Deliver) -> Reply[Any]:
        grant = read.asked.grant

        async def run_form(plan: SelectPlan) -> Reply[Any]:
            rows: pa.Table | RowStream
            if grant is None:
                job = await self._start(plan, read, ResultCollector(self._results.bytes_max))
                rows = (await job.result()).table()
            else:
                # Where another form of the statement may be needed, the first part waits for more: the form can be
                # chosen until it is sent. A member that finds keys changed reports it long before.
                is_late = plan.gathered and not read.is_profiled
                before, when_late = (_BYTES_BEFORE_FIRST, _LATE) if is_late else (0, "")
                queue = ResultQueue(max(2 * within_bounds(grant), before))
                job = await self._start(plan, read, queue)
                rows = JobRowStream(job, queue, lambda: plan.stages[-1].fragment.schema, before, when_late)

            async def work(_rows: int, _size: int) -> Sequence[StageWork]:
                return job_work(plan, read.partitions, read.topology, (await job.result()).metrics)

            members = sorted({self._member_id, *job.plan.job.participants})
            return await deliver(Found(rows, "distributed", members, work=work))

        return await in_some_form(read.plan, run_form)

    async def _start(self, plan: SelectPlan, read: Read, result: ResultCollector) -> RunningJob:
        asked = read.asked
        published = {
            scan.table_id: self._store.data_version(scan.table_id).published
            for scan in plan.scans
            if not scan.is_fetched
        }
        dag, config = select_dag(
            plan,
            read.partitions,
            published=published,
            search_keys=asked.pruning,
            mark=asked.mark,
            since=marks_of(plan, asked),
        )
        job = await self._jobs.start_job(dag, config, asked.params, read.topology, result=result)
        job.when_done(lambda: self.misses.compare_scans(plan, job.metrics) if job.is_complete else None)
        work = WORK.get()
        if work is not None:
            job.when_done(lambda: _count(work, job.metrics))
        return job


def _count(work: StatementWork, metrics: Sequence[VertexMetrics]) -> None:
    """Count the work of a job, at all members, and the rows that its scans have passed on."""
    work.kernel_times.extend(entry.offload_s for entry in metrics)
    work.processor_times.extend(entry.processor_s + entry.busy_s for entry in metrics)
    work.rows_read += sum(entry.rows_out for entry in metrics if not entry.inputs)
    work.added_late()
