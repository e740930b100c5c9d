"""Light jobs from the client's side: send a DAG straight to a member, wait for its result, cancel it.

No record of them is kept.
"""

from __future__ import annotations

import threading
from contextlib import nullcontext
from contextvars import copy_context
from typing import Any, Final, Self

import pyarrow as pa

from secateur.client.jobs.job import SubmittedJob, read_results
from secateur.client.jobs.submittable import Params, Submittable, coordinators_of, submission
from secateur.client.session import Session
from secateur.errors import Error, InterfaceError, JobCancelledError, MemberLostError, UnreachableError
from secateur.protocol.job_description import JobConfig
from secateur.protocol.jobs import FinishedJob, GetJobMetrics, JobStatus, StopJob, SubmitJob
from secateur.tracing import operation_span
from secateur.wire import Answer

_BREAK_S: Final = 5.0


class LightJob(SubmittedJob):
    """A job without a record.

    Made by :meth:`Connection.submit` with ``light=True``; it runs, waited for or not, until its connection is closed.

    A lost member fails it.
    """

    def __init__(self, session: Session, member_id: str, asked: SubmitJob, dag: bytes) -> None:
        super().__init__(session, asked.job)
        self._member_id = member_id
        self._answer: Answer[FinishedJob] | None = None
        self._failure: BaseException | None = None
        self._thread = threading.Thread(
            target=copy_context().run, args=(self._run, asked, dag), name=f"secateur-job-{self.job_id[:8]}", daemon=True
        )

    def start(self) -> Self:
        """Send the job off; called once, by :func:`submit_light`."""
        self._thread.start()
        return self

    @property
    def status(self) -> JobStatus:
        """The status of the job. Costs nothing."""
        if self._thread.is_alive():
            return JobStatus.RUNNING
        if self._failure is None:
            return JobStatus.COMPLETED
        return JobStatus.CANCELLED if isinstance(self._failure, JobCancelledError) else JobStatus.FAILED

    def results(self, timeout_s: float | None = None) -> dict[str, pa.Table]:
        return read_results(self._wait(timeout_s))

    def metrics(self) -> list[dict[str, Any]]:
        """Return the work of each vertex on each member so far, or until the job ended.

        See :class:`secateur.protocol.metrics.VertexMetrics` for the names.

        One round trip while it runs, none afterwards.

        Raises:
            Error: Why it failed: a light job leaves no metrics then.
        """
        if self._thread.is_alive():
            running = self._session.ask_member(self._member_id, GetJobMetrics(self.job_id)).message.metrics
            return [entry.to_dict() for entry in running]
        return [entry.to_dict() for entry in self._wait(None).message.metrics]

    @property
    def members_touched(self) -> list[str]:
        """Wait for the job and return the ids of the members that took part."""
        return self._wait(None).message.members

    def cancel(self) -> None:
        """Stop the job everywhere and wait until it has stopped. Nothing happens when it has ended."""
        while self._thread.is_alive():
            try:
                self._session.ask_member(self._member_id, StopJob(self.job_id))
            except (MemberLostError, UnreachableError):
                self._thread.join(_BREAK_S)  # the member has ended, and the job with it: its own connection breaks too
                if self._thread.is_alive():
                    raise
            self._thread.join(0.05)  # the request to stop may have overtaken the job itself

    def __repr__(self) -> str:
        return f"<LightJob {self.job_id} {self.status}>"

    def _run(self, asked: SubmitJob, dag: bytes) -> None:
        try:
            with operation_span("job") if self._session.is_traced else nullcontext() as describe:
                if describe is not None:
                    describe({"secateur.job": self.job_id})
                self._answer = self._session.ask_member_on_own_channel(self._member_id, asked, dag)
        except BaseException as error:
            self._failure = error

    def _wait(self, timeout_s: float | None) -> Answer[FinishedJob]:
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise self._late(timeout_s)
        if self._answer is None:
            raise (
                self._failure
                if isinstance(self._failure, Error)
                else InterfaceError(f"job {self.job_id} was lost: {self._failure!r}")
            ) from self._failure
        return self._answer


def submit_light(session: Session, dag: Submittable, config: JobConfig | None, params: Params) -> LightJob:
    """Hand a job to one of the members that it needs, which coordinates it.

    Raises:
        DagError: The DAG is not valid, or ``required_partitions`` names a partition that its table does not have.
        SerializationError: A function in it cannot be pickled.
        UnknownTableError: ``required_partitions`` names a table that does not exist.
        PartitionLostError: A required partition had its only copy on a member that has left, or no member is left.
    """
    job = submission(session, dag, config, params)
    members = coordinators_of(session, job)
    return LightJob(
        session, members[session.turn() % len(members)], SubmitJob(job.job_id, job.config, job.params), job.dag
    ).start()
