"""The controller's registry of jobs on record: the running ones, and a bounded history of those that have ended."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec.structs import asdict

from secateur.cluster.controller.job_record import JobRecord
from secateur.errors import Error, JobExistsError, LimitExceededError, UnknownJobError
from secateur.protocol.job_description import JobConfig, JobPlacement, JobRequirements, OnMemberLost
from secateur.protocol.jobs import ENDED_JOBS_MAX, JobInfo, JobState, KeptJob
from secateur.protocol.message import Failure
from secateur.protocol.metrics import VertexMetrics
from secateur.tracing import TraceContext

_RUNNING_MAX: Final = 1000
_DAG_BYTES_MAX: Final = 512 << 20
_FAILURE_CHARS_MAX: Final = 16 << 10


@dataclass(slots=True, eq=False)
class RegisteredJob:
    """One job on record.

    Attributes:
        job_id: Unique; made by the client, so that a repeated submission is recognised.
        config: Its arguments.
        needs: Its requirements; they decide the coordinator of each attempt.
        params: The values of its parameters.
        dag: The packed DAG, empty once the job has ended.
        record: The state of the job.
        submitted_s: Seconds since the epoch.
        deadline_s: When it has to have ended, in seconds since the epoch; None without a deadline.
        ended: Set when it has ended, and members keep that.
        ended_s: Seconds since the epoch; None before its end.
        result_member: The member that has its rows; None before its end and after a failure.
        members: Ids of the members that took part in the attempt that succeeded.
        metrics: The work of each vertex on each member, in the attempt that ended last.
        plan: The plan of the attempt that started last; None before.
        trace: The span in which it was submitted; None outside of traces, and after a restart of the controller.
    """

    job_id: str
    config: JobConfig
    needs: JobRequirements
    params: Any
    dag: bytes
    record: JobRecord
    deadline_s: float | None
    submitted_s: float = field(default_factory=time.time)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    ended_s: float | None = None
    result_member: str | None = None
    members: list[str] = field(default_factory=list)
    metrics: list[VertexMetrics] = field(default_factory=list)
    plan: JobPlacement | None = None
    trace: TraceContext | None = None

    def summary(self) -> JobInfo:
        """The description of a job that ``Connection.jobs`` shows."""
        record = self.record
        return JobInfo(
            job_id=self.job_id,
            name=self.config.name,
            status=record.status,
            attempt=record.attempt,
            coordinator=record.coordinator,
            submitted_s=self.submitted_s,
            ended_s=self.ended_s,
            reason=(
                None
                if record.error is None
                else f"{type(record.error).__name__}: {record.error.message}"[:_FAILURE_CHARS_MAX]
            ),
        )

    def state(self) -> JobState:
        """Everything that a client may ask."""
        error = self.record.error if self.record.status.is_final else None
        return JobState(
            **asdict(self.summary()),
            failure=None if error is None else Failure.of(_shortened(error)),
            result_member=self.result_member,
            members=self.members,
            metrics=self.metrics,
        )

    def kept(self, version: int) -> KeptJob:
        """The record of the job that members keep."""
        cause = self.record.cause
        return KeptJob(
            version=version,
            state=self.state(),
            config=self.config,
            params=self.params,
            needs=self.needs,
            deadline_s=self.deadline_s,
            cause=None if cause is None else Failure.of(cause),
            plan=self.plan,
        )

    @classmethod
    def of(cls, kept: KeptJob, dag: bytes) -> RegisteredJob:
        """A job that members have kept."""
        state = kept.state
        record = JobRecord(
            restarts=kept.config.on_member_lost == OnMemberLost.RESTART,
            status=state.status,
            attempt=state.attempt,
            coordinator=state.coordinator,
            error=None if state.failure is None else state.failure.to_error(),
            cause=None if kept.cause is None else kept.cause.to_error(),
        )
        job = cls(state.job_id, kept.config, kept.needs, kept.params, dag, record, kept.deadline_s, state.submitted_s)
        job.result_member, job.members, job.metrics = state.result_member, state.members, state.metrics
        job.plan, job.ended_s = kept.plan, state.ended_s
        return job


class JobRegistry:
    """Finds jobs by id or name. A name belongs to the newest job that has it.

    Args:
        running_max: Jobs that may run at once; one more is refused.
        ended_max: Jobs that are remembered after their end.
        dag_bytes_max: Most bytes of the DAGs of all jobs that have not ended, together.
    """

    def __init__(
        self, running_max: int = _RUNNING_MAX, ended_max: int = ENDED_JOBS_MAX, dag_bytes_max: int = _DAG_BYTES_MAX
    ) -> None:
        self._dag_bytes_max = dag_bytes_max
        self._running_max = running_max
        self._ended_max = ended_max
        self._running: dict[str, RegisteredJob] = {}
        self._ended: OrderedDict[str, RegisteredJob] = OrderedDict()

    @property
    def running(self) -> list[RegisteredJob]:
        """The jobs that have not ended, oldest first."""
        return list(self._running.values())

    def __iter__(self) -> Iterator[RegisteredJob]:
        """All jobs, newest first."""
        return iter(
            sorted([*self._ended.values(), *self._running.values()], key=lambda job: job.submitted_s, reverse=True)
        )

    def active(self, name: str) -> RegisteredJob | None:
        """The job of that name that has not ended."""
        return next((job for job in self._running.values() if job.config.name == name), None)

    def add(self, job: RegisteredJob) -> None:
        """Register a new job.

        Raises:
            JobExistsError: Its name belongs to a job that has not ended.
            LimitExceededError: There are too many, or their DAGs are too large.
        """
        name = job.config.name
        holder = None if name is None else self.active(name)
        if holder is not None:
            raise JobExistsError(
                f"a job named {name!r} has not ended yet (job {holder.job_id}, {holder.record.status}): "
                "wait for it, cancel it, or take it over by new_job_if_absent()",
                job=holder.job_id,
            )
        if len(self._running) >= self._running_max:
            raise LimitExceededError(
                f"{self._running_max} jobs have not ended yet; wait for some, or submit light jobs, which have no"
                " record"
            )
        size = len(job.dag) + sum(len(other.dag) for other in self._running.values())
        if size > self._dag_bytes_max:
            limit = f"{self._dag_bytes_max:,} bytes"
            raise LimitExceededError(
                f"the DAGs of the jobs that have not ended would take {size:,} of {limit}; have processors read large"
                " values from a table"
            )
        self._running[job.job_id] = job

    def restore(self, jobs: Iterable[RegisteredJob]) -> None:
        """Take over the jobs of an earlier controller."""
        for job in sorted(jobs, key=lambda job: (job.ended_s or 0.0, job.submitted_s)):
            if job.record.status.is_final:
                self._remember(job)
                job.ended.set()
            else:
                self._running[job.job_id] = job

    def withdraw(self, job: RegisteredJob) -> None:
        """Forget a job that was not taken after all."""
        self._running.pop(job.job_id, None)

    def end(self, job: RegisteredJob) -> None:
        """A job has ended: keep its summary and drop the rest."""
        self._running.pop(job.job_id, None)
        job.dag, job.params, job.ended_s = b"", None, time.time()
        self._remember(job)

    def _remember(self, job: RegisteredJob) -> None:
        self._ended[job.job_id] = job
        while len(self._ended) > self._ended_max:
            self._ended.popitem(last=False)

    def get(self, job_id: str) -> RegisteredJob | None:
        """The job of that id, if it is known."""
        return self._running.get(job_id) or self._ended.get(job_id)

    def find(self, id_or_name: str) -> RegisteredJob:
        """The job of that id, or else the newest of that name.

        Raises:
            UnknownJobError: There is none.
        """
        job = (
            self.get(id_or_name)
            or self.active(id_or_name)
            or next((ended for ended in reversed(self._ended.values()) if ended.config.name == id_or_name), None)
        )
        if job is None:
            raise UnknownJobError(
                f"no job has the id or name {id_or_name!r}; light jobs have no record, and only the last"
                f" {self._ended_max} ended jobs are remembered"
            )
        return job


def _shortened(error: Error) -> Error:
    """Bound the texts of an error: the text of a user's exception may have any size, and the record is kept."""
    details = {
        name: value[-_FAILURE_CHARS_MAX:] if isinstance(value, str) else value for name, value in error.details.items()
    }
    return type(error)(error.message[:_FAILURE_CHARS_MAX], **details)
