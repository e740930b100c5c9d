"""Requests and replies of jobs: on record at the controller, at their members, and between members."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

import msgspec

from secateur.protocol.changes import Count
from secateur.protocol.job_description import JobConfig, JobPlacement, JobRequirements
from secateur.protocol.message import Acknowledged, Failure, Message, Notice
from secateur.protocol.metrics import VertexMetrics
from secateur.tracing import TraceContext

ENDED_JOBS_MAX: Final = 1000
"""Jobs on record that are remembered after their end."""


# -- at the controller


class JobName(msgspec.Struct, frozen=True):
    """The id of a job."""

    job: str


class NewJob(Message[JobName], frozen=True):
    """Take a job on record; its DAG is the payload.

    Attributes:
        job: Its id, made by the client.
        config: How it is to run.
        params: The values of its parameters.
        needs: The partitions and members that it needs.
        if_absent: Whether a job of its name that has not ended stands for it.
    """

    job: str
    config: JobConfig
    params: list[Any] | dict[str, Any]
    needs: JobRequirements
    if_absent: bool


class JobStatus(StrEnum):
    """The status of a job; the last three are final.

    A light job is only ever ``running`` or in a final status.
    """

    NOT_RUNNING = "not_running"
    """Accepted; no member has been asked to run it yet."""
    STARTING = "starting"
    """The coordinator is building its plan."""
    RUNNING = "running"
    RESTARTING = "restarting"
    """A member was lost or partitions moved; it is about to begin again, from the beginning."""
    COMPLETING = "completing"
    """The coordinator was asked to stop the job and has not yet reported that it has stopped."""
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether the status will not change any more."""
        return self in (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED)


class JobInfo(msgspec.Struct, frozen=True):
    """A job as the controller saw it at one moment.

    Attributes:
        job_id: Unique in the cluster.
        name: Its name, None when it has none.
        status: Where it was.
        attempt: How often it was begun.
        coordinator: Id of the member that runs it, None between attempts and after its end.
        submitted_s: Seconds since the epoch.
        ended_s: Seconds since the epoch, None while it has not ended.
        reason: Class and message of the error that ended it, or for which it began again last; None when there was
            none.
    """

    job_id: str
    name: str | None
    status: JobStatus
    attempt: int
    coordinator: str | None
    submitted_s: float
    ended_s: float | None
    reason: str | None


class JobState(JobInfo, frozen=True, kw_only=True):
    """Everything that a client may ask about a job.

    Attributes:
        failure: Why it failed; None before its end and after a success.
        result_member: The member that has its rows.
        members: The members that took part in the attempt that succeeded.
        metrics: The work of each vertex on each member, in the attempt that ended last.
    """

    failure: Failure | None = None
    result_member: str | None = None
    members: list[str] = []
    metrics: list[VertexMetrics] = []


class WaitForJob(Message[JobState], frozen=True):
    """Ask for the state of a job once it has ended, or so many seconds have passed."""

    job: str
    wait_s: float


class CancelJob(Message[Acknowledged], frozen=True):
    """Stop a job; the answer does not wait for that."""

    job: str


class JobPlan(msgspec.Struct, frozen=True):
    """The placement of the last attempt of a job; None before there is one."""

    plan: JobPlacement | None


class GetJobPlan(Message[JobPlan], frozen=True):
    """Ask where a job runs."""

    job: str


class Jobs(msgspec.Struct, frozen=True):
    """All jobs on record, newest first."""

    jobs: list[JobInfo]


class ListJobs(Message[Jobs], frozen=True):
    """All jobs on record."""


class ReportJobEnded(Message[Acknowledged], frozen=True):
    """A member reports how an attempt ended.

    Attributes:
        job: The job.
        attempt: The number of the attempt.
        member: The member that reports.
        failure: Why it failed; None for a success.
        members: The members that took part.
        metrics: The work of each vertex on each member.
    """

    job: str
    attempt: int
    member: str
    failure: Failure | None
    members: list[str]
    metrics: list[VertexMetrics]


# -- at members


class KeptJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job on record as members keep it for a controller that starts anew.

    Attributes:
        version: Of two of one job, the one of the higher version is newer; also across controllers.
        state: What clients may ask.
        config: How it is to run.
        params: The values of its parameters; None once it has ended.
        needs: The partitions and members that it needs.
        deadline_s: When it has to have ended, in seconds since the epoch; None without a deadline.
        cause: Why it is being stopped; None while nobody wants that.
        plan: Where the attempt that started last runs or ran; None before.
    """

    version: int
    state: JobState
    config: JobConfig
    params: list[Any] | dict[str, Any] | None
    needs: JobRequirements
    deadline_s: float | None
    cause: Failure | None
    plan: JobPlacement | None


class KeepJob(Message[Acknowledged], frozen=True):
    """Keep a job for a controller that starts anew; an older version of it changes nothing.

    The payload is the DAG. An empty one leaves the DAG that the member has, until the job has ended.
    """

    job: KeptJob


class KeptJobs(msgspec.Struct, frozen=True):
    """The versions of the jobs that a member keeps, by id."""

    versions: dict[str, int]


class ListKeptJobs(Message[KeptJobs], frozen=True):
    """A controller that starts anew asks which jobs a member keeps."""


class GetKeptJob(Message[KeptJob], frozen=True):
    """A controller that starts anew asks for a job that a member keeps; the payload of the answer is its DAG."""

    job: str


class FinishedJob(msgspec.Struct, frozen=True):
    """The outcome of a job.

    Each part of the answer has the rows of one result sink as its payload, in the order of ``sinks``.
    """

    sinks: list[str]
    members: list[str]
    metrics: list[VertexMetrics]


class SubmitJob(Message[FinishedJob], frozen=True):
    """Run a job without a record; its DAG is the payload."""

    job: str
    config: JobConfig
    params: list[Any] | dict[str, Any]


class ResolvedJob(msgspec.Struct, frozen=True):
    """The placement of a job that runs or could run."""

    plan: JobPlacement


class ResolveJob(Message[ResolvedJob], frozen=True):
    """Resolve where a job would run if it were submitted here now; its DAG is the payload."""

    config: JobConfig
    params: list[Any] | dict[str, Any]


class StopJob(Message[Acknowledged], frozen=True):
    """Stop a job without a record, also one that is still on its way here."""

    job: str


class RunAttempt(Message[ResolvedJob], frozen=True):
    """Run an attempt of a job on record; its DAG is the payload.

    Attributes:
        job: The job.
        attempt: The number of the attempt.
        config: How it is to run.
        params: The values of its parameters.
        trace: The span in which it was submitted; None outside of traces.
    """

    job: str
    attempt: int
    config: JobConfig
    params: list[Any] | dict[str, Any]
    trace: TraceContext | None = None


class HaltAttempt(Message[Acknowledged], frozen=True):
    """Stop an attempt, also one that is on its way here."""

    job: str
    attempt: int
    error: Failure


class JobMetrics(msgspec.Struct, frozen=True):
    """The work of each vertex of a job so far, on each member or on the one that is asked."""

    metrics: list[VertexMetrics]


class GetJobMetrics(Message[JobMetrics], frozen=True):
    """Ask a job's coordinator for its work so far."""

    job: str


class JobAttempt(msgspec.Struct, frozen=True, array_like=True):
    """A job by the id that its client knows, and the number of its attempt; jobs without a record have one."""

    job: str
    attempt: int = 1


class JobLogLine(msgspec.Struct, frozen=True, array_like=True):
    """A line that a processor of a job has logged.

    Attributes:
        time_s: Seconds since the epoch.
        level: Its level by name, such as ``WARNING``.
        logger: The name of the logger.
        vertex: The vertex.
        attempt: The attempt of the job.
        message: The text, with the traceback of an exception behind it.
    """

    time_s: float
    level: str
    logger: str
    vertex: str
    attempt: int
    message: str


class JobLogLines(msgspec.Struct, frozen=True):
    """The lines of a job on one member, in their order; ``dropped`` further ones were not kept."""

    lines: list[JobLogLine]
    dropped: int


class GetJobLogs(Message[JobLogLines], frozen=True):
    """Ask a member what the processors of a job have logged there."""

    job: str


class GetJobCounters(Message[JobMetrics], frozen=True):
    """Ask for a job's work on one member so far."""

    job: str


class JobSinks(msgspec.Struct, frozen=True):
    """The result sinks of a job; each part of the answer has the rows of one as its payload."""

    sinks: list[str]


class GetJobResult(Message[JobSinks], frozen=True):
    """The rows of a job on record, from the member that coordinated it."""

    job: str


# -- between the members of a running job


class StartRun(Notice, frozen=True, array_like=True):
    """Run your part of a job: the payload is the plan.

    It carries its trace itself: as a notice it is sent behind others of a queue, so no frame of a trace can precede it.

    Attributes:
        job: The job.
        sender: The member that coordinates it.
        trace: The span in which that member runs it; None outside of traces.
    """

    job: str
    sender: str
    trace: TraceContext | None = None


class RowsPiece(msgspec.Struct, frozen=True, array_like=True):
    """Consecutive rows of an exchange payload and the consumers they are for.

    Attributes:
        consumers: Local indexes of the processors of the destination vertex; each receives all the rows.
        rows: How many rows.
        size: Bytes that each consumer acknowledges when it takes them.
    """

    consumers: tuple[int, ...]
    rows: Count
    size: Count


class ExchangeRows(Notice, frozen=True, array_like=True):
    """Rows of one edge from one member to another, which are the payload.

    Attributes:
        job: Job id.
        sender: Member id.
        edge: Index of the edge in the plan.
        sequence: Counts the messages of this edge between these members from 0.
        pieces: How the rows are dealt, in order.
        is_last: Whether this is the end of the edge from this member.
    """

    job: str
    sender: str
    edge: int
    sequence: int
    pieces: tuple[RowsPiece, ...]
    is_last: bool


class CreditRows(Notice, frozen=True, array_like=True):
    """The consumers on ``sender`` have taken ``size`` more bytes of an edge: its producer may send as many again."""

    job: str
    sender: str
    edge: int
    size: int


class EndRun(Notice, frozen=True):
    """A participant has ended: ``failure`` is the reason, None for success; ``metrics`` is its work."""

    job: str
    sender: str
    failure: Failure | None
    metrics: list[VertexMetrics]


class CancelRun(Notice, frozen=True):
    """Stop. ``failure`` is the first cause, with which the supplier of every processor is closed."""

    job: str
    sender: str
    failure: Failure


class MessagesLost(Notice, frozen=True):
    """A connection from ``sender`` broke, and what it had sent over it may not have arrived.

    It comes first on the next connection. Nobody repeats those messages, so every job ends in which both take part.
    """

    sender: str
