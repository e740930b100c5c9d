"""Jobs on record from the client's side: the controller knows where they are, the member that coordinated one has its
rows.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from secateur.client.jobs.job_results import only_result, read_results
from secateur.client.jobs.job_status import JobStatus
from secateur.client.jobs.resolved_plan import ResolvedPlan
from secateur.client.jobs.submittable import Params, Submittable, SubmittableConfig, submission
from secateur.client.session import Session
from secateur.errors import DeadlineError, MemberLostError, UnreachableError, from_wire

__all__ = ["Job", "JobInfo", "find_job", "list_jobs", "submit_job", "submit_job_if_absent"]

_POLL_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class JobInfo:
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

    @classmethod
    def from_wire(cls, data: dict[str, Any]) -> JobInfo:
        known = {name: data[name] for name in cls.__dataclass_fields__}
        return cls(**{**known, "status": JobStatus(data["status"])})


class Job:
    """A job on record, which survives this connection. Made by :meth:`Connection.submit` and :meth:`Connection.job`.

    Attributes:
        job_id: Unique in the cluster; from another connection, ``conn.job(job_id)`` is the same job.
    """

    def __init__(self, session: Session, job_id: str) -> None:
        self.job_id = job_id
        self._session = session
        self._final: dict[str, Any] | None = None
        self._tables: dict[str, pa.Table] | None = None

    @property
    def status(self) -> JobStatus:
        """Where the job is now. One round trip to the controller, none once it has ended."""
        return JobStatus(self._look()["status"])

    @property
    def info(self) -> JobInfo:
        """Where it is now, with attempt, coordinator and times. Costs as much as :attr:`status`."""
        return JobInfo.from_wire(self._look())

    def result(self, timeout_s: float | None = None) -> pa.Table:
        """Wait for the job and return the rows of its only result sink; a table without rows and columns if it has
        none.

        Args:
            timeout_s: Seconds to wait; the job goes on when they have passed. None waits for ever.

        Raises:
            DeadlineError: The job still runs, or it took longer than ``JobConfig.timeout_s``.
            JobFailedError: A processor raised; names the vertex and the member.
            JobCancelledError: It was cancelled.
            MemberLostError: A member was lost too often; or the job has succeeded, but the member that had its rows was
                lost since.
            LimitExceededError: Its rows were dropped for newer results.
            InterfaceError: It has several result sinks: see :meth:`results`.
        """
        return only_result(self.job_id, self.results(timeout_s))

    def results(self, timeout_s: float | None = None) -> dict[str, pa.Table]:
        """Wait for the job and return the rows of each result sink by the name of its vertex; without columns, if no
        batch told the sink what they are.

        Raises:
            Error: As :meth:`result`.
        """
        known = self._wait(timeout_s)
        if known["failure"] is not None:
            raise from_wire(known["failure"])
        if self._tables is None:
            self._tables = self._fetch(known["result_member"])
        return self._tables

    def metrics(self) -> list[dict[str, Any]]:
        """What each vertex has done on each member so far, or did until the job ended: see
        :class:`secateur.engine.runtime.metrics.VertexMetrics` for the names.

        Costs a round trip to the controller, and while the job runs one to its coordinator, which asks the other
        participants. Between attempts, those of the last one; in the moments of starting and ending a member may be
        missing.
        """
        known = self._look()
        if known["coordinator"] is not None:
            with contextlib.suppress(MemberLostError, UnreachableError):
                known = self._session.ask_member(known["coordinator"], "job_metrics", {"job": self.job_id}).header
        metrics: list[dict[str, Any]] = known["metrics"]
        return metrics

    def plan(self) -> ResolvedPlan | None:
        """Where the job runs, or ran: members, processors, partitions and edges, with what they have done so far.

        A notebook shows it as a picture.

        Of the attempt that started last; None before the first has started. Costs a round trip to the controller beside
        what :meth:`metrics` costs.
        """
        plan = self._session.ask("job_plan", {"job": self.job_id}).header["plan"]
        return None if plan is None else ResolvedPlan.from_wire(plan).measured(self.metrics())

    @property
    def members_touched(self) -> list[str]:
        """Wait for the job and return the ids of the members that took part in the attempt that succeeded; none after a
        failure.
        """
        members: list[str] = self._wait(None)["members"]
        return members

    def cancel(self) -> None:
        """Stop the job everywhere and wait until it has stopped. Nothing happens when it has ended."""
        self._session.ask("job_cancel", {"job": self.job_id})
        self._wait(None)

    def __repr__(self) -> str:
        return f"<Job {self.job_id}{'' if self._final is None else ' ' + self._final['status']}>"

    def _look(self) -> dict[str, Any]:
        return self._final or self._note(self._session.ask("job_wait", {"job": self.job_id, "wait_s": 0}).header)

    def _note(self, known: dict[str, Any]) -> dict[str, Any]:
        if JobStatus(known["status"]).is_final:
            self._final = known
        return known

    def _wait(self, timeout_s: float | None) -> dict[str, Any]:
        if self._final is not None:
            return self._final
        end_s = None if timeout_s is None else time.monotonic() + timeout_s
        args: dict[str, Any] = {"job": self.job_id, "wait_s": _POLL_S if timeout_s is None else min(_POLL_S, timeout_s)}
        for answer in self._session.poll_on_own_channel("job_wait", args):
            self._note(answer.header)
            if self._final is not None:
                return self._final
            if end_s is not None:
                args["wait_s"] = min(_POLL_S, max(end_s - time.monotonic(), 0.0))
                if args["wait_s"] == 0.0:
                    break
        raise DeadlineError(
            f"job {self.job_id} has not ended within {timeout_s:g} s; it goes on: call result() again, or cancel()"
        )

    def _fetch(self, member_id: str) -> dict[str, pa.Table]:
        try:
            answer = self._session.ask_member_on_own_channel(member_id, "job_result", {"job": self.job_id})
        except (MemberLostError, UnreachableError) as error:
            lost = (
                f"job {self.job_id} has succeeded, but member {member_id}, which had its rows, was lost since: submit"
                " it again, or write rows to a table"
            )
            raise MemberLostError(lost, member=member_id) from error
        return read_results(answer)


def submit_job(session: Session, dag: Submittable, config: SubmittableConfig | None, params: Params) -> Job:
    """Have the controller take a job on record. It goes on when this connection is closed.

    Raises:
        DagError: The DAG is not valid, or ``required_partitions`` names a partition that its table does not have.
        SerializationError: A function in it cannot be pickled, or the cluster accepts no code.
        JobExistsError: A job of that name has not ended.
        UnknownTableError: ``required_partitions`` names a table that does not exist.
        PartitionLostError: A required partition had its only copy on a member that has left, or no member is left.
    """
    job = submission(session, dag, config, params)
    return _take(session, {**job.args, "needs": job.needs.to_wire(), "if_absent": False}, job.dag)


def submit_job_if_absent(
    session: Session, name: str, dag: Submittable, config: SubmittableConfig | None, params: Params
) -> Job:
    """The job of that name that has not ended; if there is none, as :func:`submit_job` with that name.

    Raises:
        Error: As :func:`submit_job`.
    """
    job = submission(session, dag, config, params)
    args = {**job.args, "config": {**job.args["config"], "name": name}, "needs": job.needs.to_wire(), "if_absent": True}
    return _take(session, args, job.dag)


def find_job(session: Session, id_or_name: str) -> Job:
    """The job of that id, or else the newest of that name. One round trip.

    Raises:
        UnknownJobError: There is none, or it ended long ago.
    """
    known = session.ask("job_wait", {"job": id_or_name, "wait_s": 0}).header
    return Job(session, known["job_id"])


def list_jobs(session: Session) -> list[JobInfo]:
    """All jobs on record, newest first. One round trip."""
    return [JobInfo.from_wire(job) for job in session.ask("jobs").header["jobs"]]


def _take(session: Session, args: dict[str, Any], plan: bytes) -> Job:
    """Repeated once when the connection broke: the controller recognises the id."""
    try:
        return Job(session, session.ask("job_new", args, plan).header["job"])
    except MemberLostError:
        return Job(session, session.ask("job_new", args, plan).header["job"])
