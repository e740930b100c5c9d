"""A job that is read and ended over HTTP."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec
import pyarrow as pa

from secateur.client.jobs.job import JobLog, LogLine
from secateur.client.jobs.submittable import Submittable
from secateur.errors import ParameterError
from secateur.http.http_statement import HttpResult, Items, Submitted, batches_at, read_result
from secateur.http.http_transport import HttpTransport
from secateur.protocol.jobs import JobInfo, JobStatus


class JobAnswer(msgspec.Struct, frozen=True):
    """A job as the server describes it."""

    id: str
    status: JobStatus
    attempt: int
    submitted: datetime
    name: str | None = None
    coordinator: str | None = None
    ended: datetime | None = None
    reason: str | None = None

    def to_info(self) -> JobInfo:
        """The same, as the Python client has it."""
        ended_s = None if self.ended is None else self.ended.timestamp()
        return JobInfo(
            self.id,
            self.name,
            self.status,
            self.attempt,
            self.coordinator,
            self.submitted.timestamp(),
            ended_s,
            self.reason,
        )


class _Lines(msgspec.Struct, frozen=True):
    items: list[LogLine]
    dropped: int
    silent: list[str]


class HttpJob(Submitted[JobInfo]):
    """A job of the cluster, or a statement that runs as one. Made by :class:`HttpClient`, on which it depends.

    Attributes:
        job_id: Unique; for a DAG ``conn.job(job_id)`` of the Python client is the same job.
    """

    def __init__(self, transport: HttpTransport, job_id: str) -> None:
        super().__init__(transport, f"/api/v1/jobs/{job_id}", f"job {job_id}")
        self.job_id = job_id

    @property
    def status(self) -> JobStatus:
        """Its status. Costs as much as :attr:`info`."""
        return self.info.status

    def result(self, timeout_s: float | None = None, *, sink: str | None = None) -> HttpResult:
        """Wait until it has completed, and return the rows that it has collected.

        Args:
            timeout_s: Seconds to wait; None waits for ever.
            sink: The vertex that has collected them, if there are several.

        Raises:
            DeadlineError: It has not ended by then, or took longer than ``JobConfig.timeout_s``.
            JobFailedError: A processor raised; names the vertex and the member.
            JobCancelledError: It was cancelled.
            ProgrammingError: It has several results and none was picked, or none of that name.
            Error: Why it failed otherwise, or why its rows are gone.
        """
        self.wait(timeout_s)
        return read_result(self._transport, f"{self._path}/result", {"sink": sink})

    def batches(self, timeout_s: float | None = None, *, sink: str | None = None) -> Iterator[pa.RecordBatch]:
        """As :meth:`result`, but yield the rows as they arrive: one batch is in memory at a time."""
        self.wait(timeout_s)
        yield from batches_at(self._transport, f"{self._path}/result", {"sink": sink})

    def metrics(self) -> list[dict[str, Any]]:
        """The work of each vertex on each member so far, as :meth:`secateur.client.Job.metrics` has it."""
        return self._transport.read("GET", f"{self._path}/metrics", Items[dict[str, Any]]).items

    def logs(self, limit: int = 1000) -> JobLog:
        """Return the lines that its processors have logged so far.

        Args:
            limit: Lines, the first ones, from 1 to 10,000.
        """
        found = self._transport.read("GET", f"{self._path}/logs", _Lines, query={"limit": limit})
        return JobLog(tuple(found.items), found.dropped, tuple(found.silent))

    def cancel(self) -> JobInfo:
        """Stop it on every member, wait until it has stopped, and return how it ended."""
        return self._noted("DELETE")

    def __repr__(self) -> str:
        return f"<HttpJob {self.job_id}{'' if self._final is None else ' ' + self._final.status}>"

    def _asked(self, method: str, **how: Any) -> tuple[JobInfo, bool]:
        info = self._transport.read(method, self._path, JobAnswer, **how).to_info()
        return info, info.status.is_final


def job_body(job: str | Submittable | Mapping[str, Any]) -> dict[str, Any]:
    """Describe a job in the body of the request that submits it.

    Args:
        job: The text of a statement; a :class:`secateur.DAG` or a :class:`secateur.Pipeline`; or the ``dag`` of
            docs/http.md as plain data.

    Raises:
        ParameterError: It is none of them.
        DagError: The DAG is not valid.
        SerializationError: A function in it cannot be pickled.
    """
    if isinstance(job, str):
        return {"sql": job}
    if isinstance(job, Mapping):
        return {"dag": job}
    if hasattr(job, "freeze"):
        return {"encoded_dag": base64.b64encode(job.freeze().encoded()).decode("ascii")}
    raise ParameterError(
        f"a {type(job).__name__} is not a job: submit the text of a statement, a secateur.DAG, a secateur.Pipeline that"
        " ends with write_to(...), or a mapping as in docs/http.md"
    )
