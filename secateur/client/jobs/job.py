"""Jobs on record from the client's side: the controller knows their members, and coordinators keep their rows."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from html import escape
from typing import Any, Final

import pyarrow as pa

from secateur.client.dbapi.shown_rows import html_records
from secateur.client.jobs.resolved_plan import ResolvedPlan
from secateur.client.jobs.submittable import Params, Submittable, submission
from secateur.client.session import Session
from secateur.errors import DeadlineError, Error, InterfaceError, MemberLostError, UnreachableError
from secateur.protocol import jobs
from secateur.protocol.job_description import JobConfig
from secateur.protocol.jobs import FinishedJob, GetJobLogs, JobInfo, JobSinks, JobStatus
from secateur.tracing import operation_span
from secateur.wire import Answer, decode_table


def read_results(answer: Answer[FinishedJob] | Answer[JobSinks]) -> dict[str, pa.Table]:
    """The rows of each result sink, from a member's answer."""
    return {
        name: decode_table(part, ranges=False) for name, part in zip(answer.message.sinks, answer.parts, strict=False)
    }


def only_result(job_id: str, tables: Mapping[str, pa.Table]) -> pa.Table:
    """The rows of the only result sink; a table without rows and columns if there is none.

    Raises:
        InterfaceError: There are several.
    """
    if len(tables) > 1:
        raise InterfaceError(
            f"job {job_id} has {len(tables)} results ({', '.join(tables)}): results() has all of them, by the name of"
            " the vertex"
        )
    return next(iter(tables.values()), pa.table({}))


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line.

    Attributes:
        time: When, in UTC, by the clock of its member.
        level: Its level by name, such as ``WARNING``.
        member: The member.
        vertex: The vertex.
        attempt: The attempt of the job.
        logger: The name of the logger.
        message: The text, with the traceback of an exception behind it.
    """

    time: datetime
    level: str
    member: str
    vertex: str
    attempt: int
    logger: str
    message: str

    def __str__(self) -> str:
        moment = self.time.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")
        return f"{moment} {self.level} {self.member} {self.vertex}: {self.message}"


@dataclass(frozen=True, slots=True)
class JobLog:
    """The lines of a job by time. It is iterated over as they are; ``str()`` is their text.

    Attributes:
        lines: The lines.
        dropped: Further ones that members have not kept, because the job had logged too much.
        silent: Members that could not be asked.
    """

    lines: tuple[LogLine, ...]
    dropped: int
    silent: tuple[str, ...]

    def __iter__(self) -> Iterator[LogLine]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def __str__(self) -> str:
        return "\n".join(map(str, self.lines))


class SubmittedJob(ABC):
    """What a job on record and a light job have in common: their results, and what they log.

    Attributes:
        job_id: Unique in the cluster.
    """

    def __init__(self, session: Session, job_id: str) -> None:
        self.job_id = job_id
        self._session = session

    def result(self, timeout_s: float | None = None) -> pa.Table:
        """Wait for the job and return the rows of its only result sink; an empty table if it has none.

        Args:
            timeout_s: Seconds to wait; the job goes on when they have passed. None waits for ever.

        Raises:
            DeadlineError: The job still runs, or it took longer than ``JobConfig.timeout_s``.
            JobFailedError: A processor raised; names the vertex and the member.
            JobCancelledError: It was cancelled.
            MemberLostError: A member was lost, of a job on record too often; or the job has succeeded, but the member
                that had its rows was lost since.
            LimitExceededError: Its rows were dropped for newer results.
            InterfaceError: It has several result sinks: see :meth:`results`.
        """
        return only_result(self.job_id, self.results(timeout_s))

    @abstractmethod
    def results(self, timeout_s: float | None = None) -> dict[str, pa.Table]:
        """Wait for the job and return the rows of each result sink by the name of its vertex.

        A table has no columns if its sink has received no batch.

        Raises:
            Error: As :meth:`result`.
        """

    def logs(self) -> JobLog:
        """Return what its processors have logged so far, on the members that are there: the first lines of each.

        Whatever a processor logs through ``logging`` is here, if its logger is enabled for that level; the ``logger``
        of its context is for INFO and above. A member keeps the first 1,000 lines of a job (and 262,144 characters), of
        its newest 256 jobs, as long as its process lives.

        Costs a round trip to each member, one after another.

        Raises:
            Error: A member answers with an error. Those that are not there are named in the result.
        """
        lines: list[LogLine] = []
        dropped, silent = 0, []
        for member in self._session.topology.member_ids:
            try:
                told = self._session.ask_member(member, GetJobLogs(self.job_id)).message
            except (MemberLostError, UnreachableError):
                silent.append(member)
                continue
            dropped += told.dropped
            lines += [
                LogLine(
                    datetime.fromtimestamp(line.time_s, UTC),
                    line.level,
                    member,
                    line.vertex,
                    line.attempt,
                    line.logger,
                    line.message,
                )
                for line in told.lines
            ]
        return JobLog(tuple(sorted(lines, key=lambda line: line.time)), dropped, tuple(silent))

    def _late(self, timeout_s: float | None) -> DeadlineError:
        """The error of a job that still runs after so many seconds."""
        return DeadlineError(
            f"job {self.job_id} has not ended within {timeout_s:g} s; it goes on: call result() again, or cancel()"
        )


_POLL_S: Final = 10.0


class Job(SubmittedJob):
    """A job on record, which survives this connection. Made by :meth:`Connection.submit` and :meth:`Connection.job`.

    Attributes:
        job_id: Unique in the cluster; from another connection, ``conn.job(job_id)`` is the same job.
    """

    def __init__(self, session: Session, job_id: str) -> None:
        super().__init__(session, job_id)
        self._final: jobs.JobState | None = None
        self._tables: dict[str, pa.Table] | None = None

    @property
    def status(self) -> JobStatus:
        """The status of the job. Costs one round trip to the controller, none once the job has ended."""
        return self._look().status

    @property
    def info(self) -> JobInfo:
        """The status of the job with attempt, coordinator and times. Costs as much as :attr:`status`."""
        known = self._look()
        return JobInfo(*(getattr(known, name) for name in JobInfo.__struct_fields__))

    def results(self, timeout_s: float | None = None) -> dict[str, pa.Table]:
        known = self._wait(timeout_s)
        if known.failure is not None:
            raise known.failure.to_error()
        if self._tables is None:
            assert known.result_member is not None, "a job that has succeeded has a member with its rows"
            self._tables = self._fetch(known.result_member)
        return self._tables

    def metrics(self) -> list[dict[str, Any]]:
        """Return the work of each vertex on each member so far, or until the job ended.

        See :class:`secateur.protocol.metrics.VertexMetrics` for the names.

        Costs a round trip to the controller, and while the job runs one to its coordinator, which asks the other
        participants. Between attempts, those of the last one; in the moments of starting and ending a member may be
        missing.
        """
        known = self._look()
        if known.coordinator is not None:
            with suppress(MemberLostError, UnreachableError):
                running = self._session.ask_member(known.coordinator, jobs.GetJobMetrics(self.job_id)).message.metrics
                return [entry.to_dict() for entry in running]
        return [entry.to_dict() for entry in known.metrics]

    def plan(self) -> ResolvedPlan | None:
        """The plan of the job: members, processors, partitions and edges, with their work so far.

        A notebook shows it as a picture.

        Of the attempt that started last; None before the first has started. Costs a round trip to the controller beside
        what :meth:`metrics` costs.
        """
        plan = self._session.ask(jobs.GetJobPlan(self.job_id)).message.plan
        return None if plan is None else ResolvedPlan.of(plan).measured(self.metrics())

    @property
    def members_touched(self) -> list[str]:
        """Wait for the job and return the members of its successful attempt, by id; none after a failure."""
        return self._wait(None).members

    def cancel(self) -> None:
        """Stop the job everywhere and wait until it has stopped. Nothing happens when it has ended."""
        self._session.ask(jobs.CancelJob(self.job_id))
        self._wait(None)

    def _repr_html_(self) -> str:
        """Its status and its plan, as a notebook shows them; only its id if the cluster does not answer."""
        try:
            info, plan = self.info, self.plan()
        except Error:
            return f"<pre>{escape(repr(self))}</pre>"
        head = html_records(
            ("job", "name", "status", "attempt", "coordinator"),
            [(info.job_id, info.name, info.status, info.attempt, info.coordinator)],
        )
        return head if plan is None else f"{head}<pre>{escape(plan.to_text())}</pre>"

    def __repr__(self) -> str:
        return f"<Job {self.job_id}{'' if self._final is None else ' ' + self._final.status}>"

    def _look(self) -> jobs.JobState:
        return self._final or self._note(self._session.ask(jobs.WaitForJob(self.job_id, 0)).message)

    def _note(self, known: jobs.JobState) -> jobs.JobState:
        if known.status.is_final:
            self._final = known
        return known

    def _wait(self, timeout_s: float | None) -> jobs.JobState:
        if self._final is not None:
            return self._final
        for answer in self._session.poll_on_own_channel(self._waits(timeout_s)):
            self._note(answer.message)
            if self._final is not None:
                return self._final
        raise self._late(timeout_s)

    def _waits(self, timeout_s: float | None) -> Iterator[jobs.WaitForJob]:
        """One request after another, until the time is over."""
        end_s = None if timeout_s is None else time.monotonic() + timeout_s
        wait_s = _POLL_S if timeout_s is None else min(_POLL_S, timeout_s)
        while True:
            yield jobs.WaitForJob(self.job_id, wait_s)
            if end_s is not None:
                wait_s = min(_POLL_S, max(end_s - time.monotonic(), 0.0))
                if wait_s == 0.0:
                    return

    def _fetch(self, member_id: str) -> dict[str, pa.Table]:
        try:
            answer = self._session.ask_member_on_own_channel(member_id, jobs.GetJobResult(self.job_id))
        except (MemberLostError, UnreachableError) as error:
            lost = (
                f"job {self.job_id} succeeded, but member {member_id}, which held its result, was lost:"
                " submit it again, or write the result to a table"
            )
            raise MemberLostError(lost, member=member_id) from error
        return read_results(answer)


def submit_job(
    session: Session, dag: Submittable, config: JobConfig | None, params: Params, name: str | None = None
) -> Job:
    """Have the controller take a job on record. It goes on when this connection is closed.

    With a ``name``, it is the job of that name that has not ended, if there is one, and otherwise has that name.

    Raises:
        DagError: The DAG is not valid, or ``required_partitions`` names a partition that its table does not have.
        SerializationError: A function in it cannot be pickled, or the cluster accepts no code.
        JobExistsError: A job of that name has not ended.
        UnknownTableError: ``required_partitions`` names a table that does not exist.
        PartitionLostError: A required partition had its only copy on a member that has left, or no member is left.
    """
    job = submission(session, dag, config, params)
    chosen = job.config if name is None else replace(job.config, name=name)
    asked = jobs.NewJob(job.job_id, chosen, job.params, job.needs, if_absent=name is not None)
    with operation_span("submit") if session.is_traced else nullcontext() as describe:
        job_id = session.ask(asked, job.dag).message.job
        if describe is not None:
            describe({"secateur.job": job_id})
    return Job(session, job_id)


def find_job(session: Session, id_or_name: str) -> Job:
    """The job of that id, or else the newest of that name. One round trip.

    Raises:
        UnknownJobError: There is none, or it ended long ago.
    """
    return Job(session, session.ask(jobs.WaitForJob(id_or_name, 0)).message.job_id)


def list_jobs(session: Session) -> list[JobInfo]:
    """All jobs on record, newest first. One round trip."""
    return session.ask(jobs.ListJobs()).message.jobs
