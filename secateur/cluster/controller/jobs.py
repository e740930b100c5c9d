"""Jobs on record at the controller: accepts them, assigns coordinators, restarts them, and reports on them.

No rows and no user code reach the controller: a DAG is bytes that a member unpacks, and a result stays at the member
that coordinated the job.

Members keep the jobs for a controller that starts anew: each holds all of them, in memory and in its data directory, in
the state that was last acknowledged to anybody. That controller asks the coordinators of the running ones to go on; an
attempt that has ended meanwhile is reported to it again. If the members were started anew as well, attempts have ended
with them.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, assert_never

from secateur import errors
from secateur.cluster.controller import job_record
from secateur.cluster.controller.cluster_state import ClusterState
from secateur.cluster.controller.job_registry import JobRegistry, RegisteredJob
from secateur.cluster.controller.recovery import first_of
from secateur.cluster.loop_thread import BackgroundTasks
from secateur.cluster.peers import Peers
from secateur.dag.codec import carries_code
from secateur.protocol import jobs as protocol
from secateur.protocol.job_description import JobRequirements, OnMemberLost, coordinators
from secateur.protocol.message import Acknowledged, Failure
from secateur.tracing import carried
from secateur.wire import Reply, Request

_log = logging.getLogger(__name__)

_WAIT_MAX_S: Final = 20.0
_STOP_WAIT_S: Final = 10.0
"""Longer than a coordinator waits for its participants."""
_DEADLINE_GRACE_S: Final = 2.0
"""The coordinator, which can say who still runs, is the first to act on a deadline."""


class ControllerJobs:
    """Answers ``new_job``, ``wait_for_job``, ``cancel_job``, ``get_job_plan``, ``list_jobs`` and ``report_job_ended``.

    Lives on the controller's event loop.

    Args:
        allow_code: Whether DAGs may carry functions.
    """

    def __init__(self, state: ClusterState, peers: Peers, *, allow_code: bool) -> None:
        self._state = state
        self._peers = peers
        self._allow_code = allow_code
        self._registry = JobRegistry()
        self._version = 0
        self._turns = itertools.count()
        self._background = BackgroundTasks()

    async def restore(self, epoch: int, *, is_cold_start: bool) -> None:
        """Go on with the jobs that members have kept for an earlier controller, in a new epoch.

        Of members that are lost meanwhile, others keep the same.

        Args:
            epoch: The epoch.
            is_cold_start: Whether all processes have ended meanwhile: then no attempt runs any more. A job that had
                been started begins again, or has failed, as its ``on_member_lost`` says.
        """
        self._version = first_of(epoch)
        holders: dict[str, tuple[int, str]] = {}
        members = self._state.topology.member_ids
        lists = await asyncio.gather(
            *(self._peers.call(member, protocol.ListKeptJobs()) for member in members), return_exceptions=True
        )
        for member, listed in zip(members, lists, strict=True):
            if not isinstance(listed, BaseException):
                for job_id, version in listed.versions.items():
                    holders[job_id] = max(holders.get(job_id, (0, "")), (version, member))
        jobs = []
        for job_id, (_, member) in holders.items():
            try:
                answer = await self._peers.ask(member, protocol.GetKeptJob(job_id))
            except errors.Error as error:
                _log.warning("job %s, which member %s keeps, could not be taken over: %s", job_id, member, error)
                continue
            jobs.append(RegisteredJob.of(answer.message, bytes(answer.payload)))
        self._registry.restore(jobs)
        for job in self._registry.running:
            self._limit_time(job)
            if is_cold_start and job.record.coordinator is not None:
                self._apply(job, job.record.ended(job.record.attempt, _all_ended(job)))
            else:
                self._apply(job, job.record.resumed(self._state.topology.member_ids))

    def member_joined(self, member: str) -> None:
        """A member is new: it keeps the jobs as well."""
        for job in self._registry:
            self._background.start(self._keep(job, [member], job.dag), f"job {job.job_id} to a new member")

    async def new(self, request: Request[protocol.NewJob]) -> Reply[protocol.JobName]:
        """Take a job, or name the one that has its name already.

        The same id again is the same job: a client may repeat the request.

        Raises:
            JobExistsError: The name belongs to a job that has not ended, and ``if_absent`` is false.
            DagError: Its required partitions do not exist.
            SerializationError: It carries code and the cluster accepts none.
            PartitionLostError: A required partition, or every member, is lost.
        """
        asked = request.message
        config, needs = asked.config, asked.needs
        known = self._registry.get(asked.job)
        if known is None and asked.if_absent and config.name is not None:
            known = self._registry.active(config.name)
        if known is not None:
            return Reply(protocol.JobName(known.job_id))
        if not (self._allow_code and request.peer.authenticated) and carries_code(request.payload):
            raise errors.SerializationError(
                "the DAG carries Python functions, and this cluster accepts no code; start it with allow_code=True and"
                " a token"
            )
        self._coordinators(needs)
        deadline_s = None if config.timeout_s is None else time.time() + config.timeout_s
        record = job_record.JobRecord(restarts=config.on_member_lost == OnMemberLost.RESTART)
        job = RegisteredJob(asked.job, config, needs, asked.params, bytes(request.payload), record, deadline_s)
        job.trace = carried()
        self._registry.add(job)
        try:
            await self._keep(job, self._state.topology.member_ids, job.dag)
        except BaseException:
            self._registry.withdraw(job)
            raise
        self._limit_time(job)
        self._apply(job, job.record.submitted())
        return Reply(protocol.JobName(job.job_id))

    def _limit_time(self, job: RegisteredJob) -> None:
        if job.deadline_s is not None:
            delay_s = max(0.0, job.deadline_s - time.time()) + _DEADLINE_GRACE_S
            self._later(job, delay_s, lambda: job.record.cancel(_late(job)))

    async def wait(self, request: Request[protocol.WaitForJob]) -> Reply[protocol.JobState]:
        """The description of a job, once the job has ended or the wait is over.

        Raises:
            UnknownJobError: There is no such job.
        """
        job = self._registry.find(request.message.job)
        wait_s = min(request.message.wait_s, _WAIT_MAX_S)
        if wait_s > 0 and not job.ended.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(job.ended.wait(), wait_s)
        return Reply(job.state())

    async def cancel(self, request: Request[protocol.CancelJob]) -> Reply[Acknowledged]:
        """Stop a job; the answer does not wait for that.

        Raises:
            UnknownJobError: There is no such job.
        """
        self.end(request.message.job)
        await self._kept(self._registry.find(request.message.job))
        return Reply(Acknowledged())

    def end(self, id_or_name: str) -> None:
        """Stop a job, without waiting until it has.

        Raises:
            UnknownJobError: There is no such job.
        """
        job = self._registry.find(id_or_name)
        self._apply(
            job,
            job.record.cancel(errors.JobCancelledError(f"job {job.job_id} was cancelled on request", job=job.job_id)),
        )

    def plan(self, request: Request[protocol.GetJobPlan]) -> Reply[protocol.JobPlan]:
        """The plan of the attempt of a job that started last.

        Raises:
            UnknownJobError: There is no such job.
        """
        return Reply(protocol.JobPlan(self._registry.find(request.message.job).plan))

    def summaries(self, _: Request[protocol.ListJobs]) -> Reply[protocol.Jobs]:
        """All jobs, newest first."""
        return Reply(protocol.Jobs(self.rows()))

    def rows(self) -> list[protocol.JobInfo]:
        """One row for each job, newest first."""
        return [job.summary() for job in self._registry]

    async def ended(self, request: Request[protocol.ReportJobEnded]) -> Reply[Acknowledged]:
        """A member tells how an attempt ended; it is asked no more once members keep what follows from that."""
        told = request.message
        job = self._registry.get(told.job)
        if job is not None and told.attempt == job.record.attempt and not job.record.status.is_final:
            job.metrics = told.metrics
            if told.failure is None:
                job.result_member, job.members = told.member, told.members
            self._apply(job, job.record.ended(told.attempt, None if told.failure is None else told.failure.to_error()))
            await self._kept(job)
        return Reply(Acknowledged())

    def member_lost(self, member: str) -> None:
        """A member has left: jobs that it coordinated begin again."""
        for job in self._registry.running:
            self._apply(job, job.record.member_lost(member))

    async def close(self) -> None:
        """Give up everything that is under way."""
        await self._background.close()

    def _apply(self, job: RegisteredJob, effects: list[job_record.Effect]) -> None:
        for effect in effects:
            match effect:
                case job_record.StartAttempt(attempt, delay_s):
                    self._background.start(self._start(job, attempt, delay_s))
                case job_record.AskAttempt(member, attempt):
                    self._background.start(self._ask(job, member, attempt))
                case job_record.CancelAttempt(member, attempt, error):
                    self._background.start(self._cancel_attempt(job, member, attempt, error))
                case job_record.AwaitAttemptEnd():
                    self._later(job, _STOP_WAIT_S, job.record.cancel_wait_over)
                case job_record.FinishRecord():
                    self._registry.end(job)
                    self._background.start(self._settle(job))
                case _:
                    assert_never(effect)

    async def _start(self, job: RegisteredJob, attempt: int, delay_s: float) -> None:
        record = job.record
        lost = None if record.error is None else record.error.details.get("member")
        if isinstance(lost, str):
            await self._state.check_member(lost)
        await asyncio.sleep(delay_s)
        if not record.waits_for(attempt):
            return
        try:
            members = self._coordinators(job.needs)
        except errors.Error as error:
            self._apply(job, record.ended(attempt, error))
            return
        member = members[next(self._turns) % len(members)]
        self._apply(job, record.chosen(attempt, member))
        await self._kept(job)  # a controller that starts anew has to know who may run it
        await self._ask(job, member, attempt)

    def _coordinators(self, needs: JobRequirements) -> list[str]:
        state = self._state
        return coordinators(needs, state.topology, lambda table: state.catalog.table(table).scheme.affinity_group())

    async def _ask(self, job: RegisteredJob, member: str, attempt: int) -> None:
        record = job.record
        if attempt != record.attempt or record.coordinator != member:
            return
        try:
            config = replace(job.config, timeout_s=_remaining_s(job))
        except errors.Error as error:
            self._apply(job, record.ended(attempt, error))
            return
        try:
            answer = await self._peers.call(
                member, protocol.RunAttempt(job.job_id, attempt, config, job.params, job.trace), job.dag
            )
        except (errors.MemberLostError, errors.DeadlineError, errors.ProtocolError) as error:
            self._apply(job, record.unsure(attempt, error))
        except errors.Error as error:
            self._apply(job, record.ended(attempt, error))
        except Exception as error:  # a job that nobody follows would never end
            self._apply(
                job,
                record.unsure(
                    attempt,
                    errors.InternalError(f"job {job.job_id} could not be started: {type(error).__name__}: {error}"),
                ),
            )
        else:
            if attempt == record.attempt:
                job.plan = answer.plan
            self._apply(job, record.started(attempt))

    async def _settle(self, job: RegisteredJob) -> None:
        """Tell whoever waits for the end of a job, once members keep it."""
        await self._keep_everywhere(job)
        job.ended.set()

    async def _kept(self, job: RegisteredJob) -> None:
        """Return once members keep the state that a job has now."""
        if job.record.status.is_final:
            await job.ended.wait()
        else:
            await self._keep_everywhere(job)

    async def _keep_everywhere(self, job: RegisteredJob) -> None:
        try:
            await self._keep(job, self._state.topology.member_ids)
        except errors.Error as error:
            _log.warning("no member keeps what became of job %s: %s", job.job_id, error)

    async def _keep(self, job: RegisteredJob, members: Sequence[str], dag: bytes = b"") -> None:
        """Have members keep the state that a job has now; one is enough, the others may be on their way out.

        Raises:
            Error: None does.
        """
        self._version += 1
        kept = protocol.KeepJob(job.kept(self._version))
        outcomes = await asyncio.gather(
            *(self._peers.call(member, kept, dag) for member in members), return_exceptions=True
        )
        failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        if failures and len(failures) == len(members):
            raise failures[0]

    async def _cancel_attempt(self, job: RegisteredJob, member: str, attempt: int, error: errors.Error) -> None:
        try:
            await self._peers.call(member, protocol.HaltAttempt(job.job_id, attempt, Failure.of(error)))
        except errors.OperationalError:
            await self._state.check_member(member)  # a dead coordinator has stopped

    def _later(self, job: RegisteredJob, delay_s: float, event: Callable[[], list[job_record.Effect]]) -> None:
        async def happen() -> None:
            try:
                await asyncio.wait_for(job.ended.wait(), delay_s)
            except TimeoutError:
                self._apply(job, event())

        self._background.start(happen())


def _remaining_s(job: RegisteredJob) -> float | None:
    if job.deadline_s is None:
        return None
    remaining_s = job.deadline_s - time.time()
    if remaining_s <= 0:
        raise _late(job)
    return remaining_s


def _all_ended(job: RegisteredJob) -> errors.MemberLostError:
    return errors.MemberLostError(
        f"all processes of the cluster ended while job {job.job_id} ran; what it had written may be there in part:"
        ' submit it again, or have jobs that may run twice begin anew by themselves (on_member_lost="restart")',
        job=job.job_id,
    )


def _late(job: RegisteredJob) -> errors.DeadlineError:
    return errors.DeadlineError(
        f"job {job.job_id} took longer than its deadline of {job.config.timeout_s} s, in {job.record.attempt} attempts",
        job=job.job_id,
    )
