"""The engine of one member: coordinates the jobs that are started here, and takes part in others."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from secateur import errors
from secateur.dag.dag import DAG, FrozenDAG
from secateur.dag.processor import Params
from secateur.engine.exchange.exchange import Outgoing, Payload, RunNotice, Transport
from secateur.engine.execution_plan.member_plan import MemberPlan, decode_plan, encode_plan
from secateur.engine.execution_plan.plan_builder import ExecutionPlan, ExecutionPlanBuilder
from secateur.engine.failure import located, lost_member
from secateur.engine.kernels.duckdb.cancellation import Cancellation
from secateur.engine.runtime.early_messages import EarlyMessages
from secateur.engine.runtime.execution import Execution
from secateur.engine.runtime.job_logs import JobLogs
from secateur.engine.runtime.result import ResultCollector
from secateur.engine.runtime.running_job import FinishJob, RunningJob
from secateur.engine.runtime.services import GatherBudget, JobKernel, MemberServices, PlannedQuery
from secateur.engine.runtime.tasklet import Tasklet
from secateur.engine.scheduler import Scheduler, TimedRunnable
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.codec import encode
from secateur.protocol.job_description import JobConfig
from secateur.protocol.jobs import CancelRun, CreditRows, EndRun, ExchangeRows, JobAttempt, MessagesLost, StartRun
from secateur.protocol.message import Failure, Notice
from secateur.protocol.metrics import VertexMetrics
from secateur.tracing import ServedSpan, TraceContext, carried, in_this_trace, is_traced

_PARTICIPANT_GRACE_S: Final = 5.0
"""Seconds after a deadline at which a participant acts by itself, since its coordinator is silent."""


class JobRuntime:
    """The engine of one member. Make it on the member's event loop; every method belongs to that loop.

    Attributes:
        logs: The log lines of the processors of jobs here.
    """

    def __init__(self, member_id: str, services: MemberServices, transport: Transport) -> None:
        self.member_id = member_id
        self.services = services
        self.limits = services.limits
        self.loop = asyncio.get_running_loop()
        self._scheduler = Scheduler(self.loop, self.limits.slice_s, _report_long_turn)
        self._outgoing = Outgoing(member_id, transport, self._send_failed)
        self._early = EarlyMessages(self.limits.early_bytes_max, self.limits.early_wait_s)
        self._executions: dict[str, Execution] = {}
        self._unclosed: dict[str, asyncio.Future[None]] = {}
        self._jobs: dict[str, RunningJob] = {}
        self._starts = itertools.count()
        # A member that comes back under its old id must not reuse the ids of its former life.
        self._incarnation = os.urandom(4).hex()
        self._is_closed = False
        self.logs = JobLogs()

    @property
    def running_executions(self) -> int:
        """Jobs in which this member takes part now."""
        return len(self._executions)

    @property
    def jobs(self) -> Mapping[str, RunningJob]:
        """The jobs that this member coordinates now, by id."""
        return self._jobs

    async def start_job(
        self,
        dag: DAG | FrozenDAG,
        config: JobConfig,
        params: Params,
        topology: Topology,
        *,
        result: ResultCollector | None = None,
        logged_as: JobAttempt | None = None,
    ) -> RunningJob:
        """Start a job and return at once; one message goes to each participant other than this member.

        Args:
            dag: The DAG to run.
            config: How.
            params: Its parameters.
            topology: Members and owners.
            result: Takes the rows of its result; None collects them for :meth:`RunningJob.result`.
            logged_as: Under which name the members keep what its processors log; None keeps none.

        Raises:
            DagError: The DAG is not valid or cannot run as configured. Nothing was started.
            SerializationError: A vertex is code and this cluster accepts none, or it cannot be pickled. Nothing was
                started.
            LimitExceededError: This member already runs as many jobs as it may. Nothing was started.
        """
        builder = await self._plan_builder(dag, config, params, topology)
        try:
            plan = await self._build(builder, logged_as)
            packed = self._pack(plan)
            collector = ResultCollector(config.result_bytes_max) if result is None else result
            local = (
                self._make_execution(plan.members[self.member_id], collector)
                if self.member_id in plan.members
                else None
            )
        except BaseException as error:
            builder.close(error)
            raise
        job = RunningJob(
            self.services,
            builder,
            plan,
            collector,
            self._cancel_member,
            on_end=lambda job_id: self._jobs.pop(job_id, None),
        )
        self._jobs[job.job_id] = job
        trace = carried() if packed else None
        for member, data in packed.items():
            self._outgoing.post(member, StartRun(job.job_id, self.member_id, trace), data)
        job.begin()
        if local is not None and not job.done:
            self._start_execution(local)
        return job

    async def resolve(
        self, dag: DAG | FrozenDAG, config: JobConfig, params: Params, topology: Topology
    ) -> ExecutionPlan:
        """The plan of a job as this member would start it now.

        Meta-suppliers are initialised and closed; nothing is started and no message sent.

        Raises:
            DagError: The DAG is not valid or cannot run as configured.
            Error: A meta-supplier refused, with the vertex named.
        """
        builder = await self._plan_builder(dag, config, params, topology)
        try:
            return await self._build(builder)
        finally:
            if builder.close_is_cooperative:
                builder.close(None)
            else:
                await self.loop.run_in_executor(self.services.quick, builder.close, None)

    def on_message(self, notice: Notice, payload: Payload) -> None:
        """Take a message of another member.

        Raises:
            ProtocolError: It is not one of ours. No job is harmed.
        """
        match notice:
            case ExchangeRows() | CreditRows():
                execution = self._executions.get(notice.job)
                if execution is not None:
                    execution.receive(notice, payload)
                elif not self._early.keep(notice, payload, self.loop.time()):
                    full = (
                        f"member {self.member_id} holds more than {self.limits.early_bytes_max:,} bytes of rows for"
                        " jobs that have not started there"
                    )
                    cancelled = CancelRun(notice.job, self.member_id, Failure.of(errors.LimitExceededError(full)))
                    self._outgoing.post(notice.sender, cancelled)
            case StartRun(job, sender, trace):
                self._start_from_message(job, sender, payload, trace)
            case EndRun(job_id, sender, failure, metrics):
                job_here = self._jobs.get(job_id)
                if job_here is not None:
                    job_here.member_ended(sender, None if failure is None else failure.to_error(), metrics)
            case CancelRun(job_id, _, failure):
                execution = self._executions.get(job_id)
                if execution is not None:
                    execution.fail(failure.to_error())
                else:
                    self._early.end(job_id)
            case MessagesLost(sender):
                self._messages_lost(sender)
            case _:
                raise errors.ProtocolError(f"a {type(notice).__name__} is no message of a job")

    def member_lost(self, member: str, cause: BaseException | None = None) -> None:
        """A member has left: fail every job in which it still takes part.

        Jobs that pruned it do not notice.
        """
        self._outgoing.discard(member)
        self._fail_jobs_with(member, cause)

    def connection_lost(self, member: str, cause: BaseException) -> None:
        """A connection to a member broke, or cannot be made: what was sent over it may be lost.

        Every job in which it still takes part fails, here and, once it can be reached, there.
        """
        self._outgoing.broken(member)
        self._fail_jobs_with(member, cause)

    def metrics(self, job_id: str) -> list[VertexMetrics]:
        """Return the work of a job on this member so far; nothing when it does not run here."""
        execution = self._executions.get(job_id)
        return [] if execution is None else execution.metrics()

    async def close(self) -> None:
        """End every job of this member, wait a bounded time for calls in threads, and send no more."""
        self._is_closed = True
        error = errors.MemberLostError(f"member {self.member_id} is shutting down", member=self.member_id)
        for job in list(self._jobs.values()):
            job.stop(error)
        for execution in list(self._executions.values()):
            execution.fail(error)
        if self._unclosed:
            await asyncio.wait(self._unclosed.values(), timeout=self.limits.cancel_wait_s)
        await asyncio.sleep(0)  # lets what was just posted go out on connections that are still good
        await self._outgoing.close()
        for job in list(self._jobs.values()):
            job.apply([FinishJob(error)])

    def _fail_jobs_with(self, member: str, cause: BaseException | None) -> None:
        for job in list(self._jobs.values()):
            job.member_lost(member, cause)
        self._fail_executions_with(member, cause)

    def _fail_executions_with(self, member: str, cause: BaseException | None) -> None:
        for execution in list(self._executions.values()):
            if member == execution.plan.job.coordinator or member in execution.plan.job.participants:
                execution.fail(lost_member(member, cause))

    def _messages_lost(self, sender: str) -> None:
        """Another member has sent what may not have arrived: it may wait for an answer, or have ended."""
        cause = errors.MemberLostError(f"its connection to {self.member_id} broke", member=sender)
        for job in list(self._jobs.values()):
            if sender in job.running_members:
                lost = lost_member(sender, cause)
                job.member_lost(sender, cause)  # what it would say of its end may be what was lost
                self._outgoing.post(sender, CancelRun(job.job_id, self.member_id, Failure.of(lost)))
        self._fail_executions_with(sender, cause)

    def _cancel_member(self, member: str, job_id: str, error: errors.Error) -> None:
        """Tell one participant of a job that is coordinated here to stop."""
        if member != self.member_id:
            self._outgoing.post(member, CancelRun(job_id, self.member_id, Failure.of(error)))
            return
        execution = self._executions.get(job_id)
        if execution is not None:
            execution.fail(error)

    async def _queries_planned(self, dag: FrozenDAG, config: JobConfig, params: Params) -> dict[str, PlannedQuery]:
        """The plans of the SELECTs that the sources of a job read, by the name of the vertex."""
        planned = {}
        for vertex in dag.vertices:
            try:
                query = vertex.meta_supplier.query(params)
                if query is not None:
                    planned[vertex.name] = await self.services.plan_query(replace(query, pruning=config.pruning))
            except Exception as error:
                raise located(error, vertex.name, self.member_id, "the query of its meta-supplier") from error
        return planned

    async def _plan_builder(
        self, dag: DAG | FrozenDAG, config: JobConfig, params: Params, topology: Topology
    ) -> ExecutionPlanBuilder:
        self._check_open()
        frozen = dag.freeze()
        planned = await self._queries_planned(frozen, config, params)
        return ExecutionPlanBuilder(
            frozen,
            config,
            job_id=f"{self.member_id}-{self._incarnation}-{next(self._starts)}",
            coordinator=self.member_id,
            topology=topology,
            params=params,
            table=self.services.table,
            planned=planned,
        )

    async def _build(self, builder: ExecutionPlanBuilder, logged_as: JobAttempt | None = None) -> ExecutionPlan:
        return (
            builder.build(logged_as)
            if builder.init_is_cooperative
            else await self.loop.run_in_executor(self.services.quick, builder.build, logged_as)
        )

    def _pack(self, plan: ExecutionPlan) -> dict[str, bytes]:
        others = {member: member_plan for member, member_plan in plan.members.items() if member != self.member_id}
        if not others:
            return {}
        shared = encode(plan.job)
        return {
            member: encode_plan(member_plan, shared, allow_code=self.services.allow_code)
            for member, member_plan in others.items()
        }

    def _start_from_message(self, job_id: str, sender: str, data: Payload, trace: TraceContext | None) -> None:
        if job_id in self._executions or self._early.has_ended(job_id):
            return
        try:
            self._check_open()
            plan = decode_plan(data, allow_code=self.services.allow_code)
            if plan.member != self.member_id:
                raise errors.DagError(
                    f"member {self.member_id} was sent the plan of member {plan.member}; the coordinator's topology"
                    " is old"
                )
            execution = self._make_execution(plan, None) if trace is None else self._make_traced(plan, trace)
        except Exception as error:  # whatever it is, a coordinator that hears nothing would wait for ever
            failure = (
                error
                if isinstance(error, errors.Error)
                else errors.InternalError(
                    f"member {self.member_id} cannot start a job: {type(error).__name__}: {error}"
                )
            )
            self._early.end(job_id)
            self._outgoing.post(sender, EndRun(job_id, self.member_id, Failure.of(failure), []))
            return
        self._start_execution(execution)

    def _check_open(self) -> None:
        if self._is_closed:
            raise errors.TopologyChangedError(f"member {self.member_id} is shutting down and starts no more jobs")
        if len(self._executions) >= self.limits.executions_max:
            raise errors.LimitExceededError(
                f"member {self.member_id} already runs {self.limits.executions_max} jobs, its executions_max; try again"
                " when some have ended"
            )

    def _make_traced(self, plan: MemberPlan, trace: TraceContext) -> Execution:
        """The part of a job that another member coordinates, in a span of its own."""
        described = {"secateur.member": self.member_id, "secateur.operation": "start_run"}
        span = ServedSpan(trace, "secateur.member", described)
        return span.context.run(self._make_execution, plan, None, span.end)

    def _make_execution(
        self,
        plan: MemberPlan,
        collector: ResultCollector | None,
        ended: Callable[[errors.Error | None], None] = lambda _: None,
    ) -> Execution:
        job_id = plan.job.job_id
        cancellation = Cancellation()
        extra: dict[type, Any] = {
            Cancellation: cancellation,
            GatherBudget: GatherBudget(self.services.gathered_bytes_max),
        }
        if collector is not None:
            extra[ResultCollector] = collector
        services, kernel = self.services, None
        if plan.job.kernel_bytes_max is not None:
            kernel = JobKernel(plan.job.kernel_bytes_max, services.spill_directory)
            services = replace(services, run_fragment=kernel.run)
        if is_traced():
            services = replace(
                services,
                run_fragment=in_this_trace(services.run_fragment),
                open_answer=in_this_trace(services.open_answer),
            )

        def on_ended(error: errors.Error | None) -> None:
            ended(error)
            self._execution_ended(job_id, error, cancellation)

        return Execution(
            plan,
            services,
            extra,
            self._scheduler,
            self._outgoing.post,
            on_ended=on_ended,
            on_closed=lambda: self._execution_closed(job_id, kernel),
            logs=self.logs,
        )

    def _execution_closed(self, job_id: str, kernel: JobKernel | None) -> None:
        self._unclosed.pop(job_id).set_result(None)
        if kernel is not None:
            self.services.quick.submit(kernel.close)

    def _start_execution(self, execution: Execution) -> None:
        job = execution.plan.job
        self._executions[job.job_id] = execution
        self._unclosed[job.job_id] = self.loop.create_future()
        if job.timeout_s is not None and job.coordinator != self.member_id:
            silent = (
                f"job {job.job_id} is past its deadline of {job.timeout_s} s and its coordinator {job.coordinator} is"
                " silent"
            )
            execution.arm_deadline(job.timeout_s + _PARTICIPANT_GRACE_S, lambda: errors.DeadlineError(silent))
        execution.start()
        for notice, payload in self._early.take(job.job_id):
            execution.receive(notice, payload)

    def _execution_ended(self, job_id: str, error: errors.Error | None, cancellation: Cancellation) -> None:
        execution = self._executions.pop(job_id)
        if error is not None:
            cancellation.cancel_until(lambda: job_id not in self._unclosed, self.loop)
        self._early.end(job_id)
        job = self._jobs.get(job_id)
        if job is not None:
            job.member_ended(self.member_id, error, execution.metrics())
        elif execution.plan.job.coordinator != self.member_id:
            failure = None if error is None else Failure.of(error)
            self._outgoing.post(
                execution.plan.job.coordinator, EndRun(job_id, self.member_id, failure, execution.metrics())
            )

    def _send_failed(self, member: str, notice: RunNotice, error: Exception) -> None:
        """Fail the job of a message that cannot be encoded, or every job of a member that cannot be reached."""
        if isinstance(error, (errors.LimitExceededError, errors.ProgrammingError)):
            self._fail_job(notice.job, error)
        elif isinstance(error, errors.Error) and not isinstance(error, errors.InternalError):
            self.connection_lost(member, error)
        else:
            self._fail_job(
                notice.job,
                errors.InternalError(
                    f"a {type(notice).__name__} to member {member} could not be sent: {type(error).__name__}: {error}"
                ),
            )

    def _fail_job(self, job_id: str, error: errors.Error) -> None:
        job = self._jobs.get(job_id)
        if job is not None:
            job.stop(error)
        execution = self._executions.get(job_id)
        if execution is not None:
            execution.fail(error)


def _report_long_turn(runnable: TimedRunnable, turn_s: float) -> None:
    if isinstance(runnable, Tasklet):
        runnable.report_long_turn(turn_s)
