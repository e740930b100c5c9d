"""Jobs from the client's side: hand a DAG to a member, wait for its result, stop it."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, Protocol, Self

import pyarrow as pa

from secateur.client.session import Session
from secateur.errors import DagError, DeadlineError, Error, InterfaceError, JobCancelledError, MemberLostError, ParameterError, UnreachableError
from secateur.wire import Answer, decode_table, pack

__all__ = ["Job", "JobStatus", "Submittable", "SubmittableConfig", "submit"]


_BREAK_S: Final = 5.0


class Submittable(Protocol):
    """A DAG, as far as a client has to know it."""

    def freeze(self) -> Submittable:
        """The complete and valid DAG."""

    def to_wire(self) -> dict[str, Any]:
        """The DAG as plain data; functions in it by cloudpickle."""


class SubmittableConfig(Protocol):
    """The arguments of a job, as far as a client has to know them."""

    @property
    def required_partitions(self) -> Mapping[str, frozenset[int]] | None:
        """By table name or affinity group; None when the job does not say."""

    def to_wire(self) -> dict[str, Any]:
        """Plain data."""


class JobStatus(StrEnum):
    """Where a job is."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Job:
    """A job that was submitted. Made by :meth:`Connection.submit`; it runs whether anybody waits for it or not, until its connection is closed."""

    def __init__(self, session: Session, member_id: str, args: dict[str, Any], dag: bytes) -> None:
        self.job_id: str = args["job"]
        self._session = session
        self._member_id = member_id
        self._answer: Answer | None = None
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(args, dag), name=f"secateur-job-{self.job_id[:8]}", daemon=True)

    def start(self) -> Self:
        """Send the job off; called once, by :func:`submit`."""
        self._thread.start()
        return self

    @property
    def status(self) -> JobStatus:
        """Where the job is now. Costs nothing."""
        if self._thread.is_alive():
            return JobStatus.RUNNING
        if self._failure is None:
            return JobStatus.COMPLETED
        return JobStatus.CANCELLED if isinstance(self._failure, JobCancelledError) else JobStatus.FAILED

    def result(self, timeout_s: float | None = None) -> pa.Table:
        """Wait for the job and return the rows of its only result sink.

        Args:
            timeout_s: Seconds to wait; the job goes on when they have passed. None waits for ever.

        Raises:
            DeadlineError: The job still runs.
            JobFailedError: A processor raised; names the vertex and the member.
            JobCancelledError: It was cancelled.
            InterfaceError: It has several result sinks, or none that received rows: see :meth:`results`.
        """
        tables = self.results(timeout_s)
        if len(tables) != 1:
            raise InterfaceError(f"job {self.job_id} has {len(tables)} results ({', '.join(tables) or 'none'}): read Job.results(), which names them by vertex")
        return next(iter(tables.values()))

    def results(self, timeout_s: float | None = None) -> dict[str, pa.Table]:
        """Wait for the job and return the rows of each result sink by the name of its vertex; a sink that received no batch has no entry.

        Raises:
            Error: As :meth:`result`.
        """
        answer = self._wait(timeout_s)
        return {name: decode_table(part) for name, part in zip(answer.header["sinks"], answer.parts, strict=False)}

    def metrics(self) -> list[dict[str, Any]]:
        """Wait for the job and return what each vertex did on each member: batches, rows, bytes and busy seconds."""
        metrics: list[dict[str, Any]] = self._wait(None).header["metrics"]
        return metrics

    @property
    def members_touched(self) -> list[str]:
        """Wait for the job and return the ids of the members that took part."""
        members: list[str] = self._wait(None).header["members"]
        return members

    def cancel(self) -> None:
        """Stop the job everywhere and wait until it has stopped. Nothing happens when it has ended."""
        while self._thread.is_alive():
            try:
                self._session.ask_member(self._member_id, "job_stop", {"job": self.job_id})
            except (MemberLostError, UnreachableError):
                self._thread.join(_BREAK_S)  # the member has ended, and the job with it: its own connection breaks too
                if self._thread.is_alive():
                    raise
            self._thread.join(0.05)  # the request to stop may have overtaken the job itself

    def __repr__(self) -> str:
        return f"<Job {self.job_id} {self.status}>"

    def _run(self, args: dict[str, Any], dag: bytes) -> None:
        try:
            self._answer = self._session.ask_member_alone(self._member_id, "job_submit", args, dag)
        except BaseException as error:
            self._failure = error

    def _wait(self, timeout_s: float | None) -> Answer:
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise DeadlineError(f"job {self.job_id} has not ended within {timeout_s:g} s; it goes on: call result() again, or cancel()")
        if self._answer is None:
            raise self._failure if isinstance(self._failure, Error) else InterfaceError(f"job {self.job_id} was lost: {self._failure!r}") from self._failure
        return self._answer


def submit(session: Session, dag: Submittable, config: SubmittableConfig, params: Sequence[Any] | Mapping[str, Any]) -> Job:
    """Hand a job to one of the members that own a partition it requires, which coordinates it.

    Raises:
        DagError: The DAG is not valid, or ``required_partitions`` names a partition that its table does not have.
        SerializationError: A function in it cannot be pickled.
        UnknownTableError: ``required_partitions`` names a table that does not exist.
        PartitionLostError: A required partition had its only copy on a member that has left, or no member is left.
    """
    session.check_open()
    if not hasattr(dag, "freeze") or not hasattr(config, "to_wire"):
        raise ParameterError("submit takes a secateur.DAG and a secateur.JobConfig")
    plan = pack(dag.freeze().to_wire())
    owners = _owners(session, config.required_partitions)
    topology = session.topology
    topology.check_any()
    topology.check_live(owners)
    members = owners or list(topology.member_ids)
    values = dict(params) if isinstance(params, Mapping) else list(params)
    args = {"job": uuid.uuid4().hex, "config": config.to_wire(), "params": values}
    return Job(session, members[session.turn() % len(members)], args, plan).start()


def _owners(session: Session, required: Mapping[str, frozenset[int]] | None) -> list[str]:
    owners: set[str] = set()
    for name, partitions in (required or {}).items():
        group = name if name in session.topology.owners else session.table(name).scheme.affinity_group()
        ownership = session.topology.owners.get(group)
        if ownership is None:
            continue
        unknown = sorted(partition for partition in partitions if partition >= ownership.partitions)
        if unknown:
            raise DagError(f"JobConfig.required_partitions: {name} has the partitions 0 to {ownership.partitions - 1}, not {', '.join(map(str, unknown[:10]))}")
        owners.update(ownership.primaries(sorted(partitions)))
    return sorted(owners)
