"""Jobs on record outlive the controller: a new one goes on with those that run, and knows those that have ended."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import secateur
from secateur.cluster import Cluster
from secateur.connectors import collect
from secateur.dag import Processor
from secateur.errors import (
    JobCancelledError,
    JobExistsError,
    JobFailedError,
    LimitExceededError,
    MemberLostError,
    UnknownJobError,
)


class WhenAsked(Processor):
    """Offers one row once the test says so; the members are in the process of the test."""

    may_end: ClassVar[threading.Event] = threading.Event()

    def complete(self) -> bool:
        return self.may_end.is_set() and self.outbox.offer(pa.record_batch({"n": [1]}))


class Broken(Processor):
    def complete(self) -> bool:
        raise ValueError("no such model")


def dag_of(processor: type[Processor]) -> secateur.DAG:
    dag = secateur.DAG()
    dag.new_vertex("read", processor)
    dag.new_vertex("result", collect())
    dag.edge(secateur.between("read", "result").all_to_one().distributed())
    return dag


@pytest.fixture
def mortal() -> Iterator[Cluster]:
    WhenAsked.may_end.clear()
    with secateur.start(members=3, runtime="embedded") as cluster:
        yield cluster
        WhenAsked.may_end.set()


@pytest.fixture
def conn(mortal: Cluster) -> Iterator[secateur.Connection]:
    with mortal.connect() as connection:
        yield connection


def running(job: secateur.Job, tell: threading.Event) -> None:
    while job.status is not secateur.JobStatus.RUNNING:
        tell.wait(0.01)


@pytest.mark.parametrize("ends", ["before", "after"])
def test_a_running_job_goes_on_and_its_end_is_heard_by_whoever_waits(
    mortal: Cluster, conn: secateur.Connection, ends: str
) -> None:
    job = conn.submit(dag_of(WhenAsked), secateur.JobConfig(name="nightly", on_member_lost="fail"))
    running(job, threading.Event())
    if ends == "before":  # nobody can hear of it until there is a controller again
        runtime: Any = mortal._runtime
        runtime._loop.run(runtime._controller._server.stop())
        WhenAsked.may_end.set()
    mortal.kill_controller()
    if ends == "after":
        with pytest.raises(JobExistsError, match="a job named 'nightly' has not ended yet"):
            conn.submit(dag_of(WhenAsked), secateur.JobConfig(name="nightly"))
        WhenAsked.may_end.set()
    assert job.result(timeout_s=30).column("n").to_pylist() == [1, 1, 1]
    assert (job.status, job.info.attempt) == (secateur.JobStatus.COMPLETED, 1)
    assert conn.job("nightly").job_id == job.job_id


def test_jobs_that_have_ended_are_known_with_their_rows_their_failures_and_their_plans(
    mortal: Cluster, conn: secateur.Connection
) -> None:
    WhenAsked.may_end.set()
    done = conn.submit(dag_of(WhenAsked), secateur.JobConfig(name="done"))
    assert done.result(timeout_s=30).num_rows == 3
    failed = conn.submit(dag_of(Broken), secateur.JobConfig(name="failed"))
    with pytest.raises(JobFailedError, match="no such model"):
        failed.result(timeout_s=30)
    before = conn.jobs()
    for _ in range(2):
        mortal.kill_controller()
        assert conn.jobs() == before
    assert conn.job("done").result(timeout_s=30).num_rows == 3
    with pytest.raises(JobFailedError, match="no such model"):
        conn.job("failed").result(timeout_s=30)


def test_a_job_that_was_cancelled_stays_so(mortal: Cluster, conn: secateur.Connection) -> None:
    job = conn.submit(dag_of(WhenAsked), secateur.JobConfig())
    running(job, threading.Event())
    job.cancel()
    mortal.kill_controller()
    with pytest.raises(JobCancelledError, match="was cancelled on request"):
        job.result(timeout_s=30)
    other = conn.submit(dag_of(WhenAsked), secateur.JobConfig())
    running(other, threading.Event())
    mortal.kill_controller()
    other.cancel()
    with pytest.raises(JobCancelledError, match="was cancelled on request"):
        other.result(timeout_s=30)


def test_a_member_that_came_later_keeps_the_jobs_as_well(mortal: Cluster, conn: secateur.Connection) -> None:
    WhenAsked.may_end.set()
    job = conn.submit(dag_of(WhenAsked), secateur.JobConfig(name="early"))
    assert job.result(timeout_s=30).num_rows == 3
    mortal.scale(4)
    for member_id in [member.id for member in mortal.members()][:3]:
        mortal.kill_member(member_id)
    mortal.kill_controller()
    assert conn.job("early").status is secateur.JobStatus.COMPLETED


def durable(directory: Path) -> Cluster:
    return secateur.start(members=3, runtime="embedded", data_directory=directory, token="secret")


def test_jobs_are_known_after_everything_was_started_anew(tmp_path: Path) -> None:
    """Those that ran begin again if they may; of the others it is said why they have failed, and what to do."""
    WhenAsked.may_end.clear()
    with durable(tmp_path) as cluster, cluster.connect() as conn:
        failed = conn.submit(dag_of(Broken), secateur.JobConfig(name="failed"))
        with pytest.raises(JobFailedError, match="no such model"):
            failed.result(timeout_s=30)
        for name, lost in (("once", "fail"), ("again", "restart"), ("stopped", "fail")):
            job = conn.submit(dag_of(WhenAsked), secateur.JobConfig(name=name, on_member_lost=lost))
            running(job, threading.Event())
        conn.job("stopped").cancel()
        with pytest.raises(JobCancelledError):
            conn.job("stopped").result(timeout_s=30)
        before = {row.name: row for row in conn.jobs()}
    WhenAsked.may_end.set()
    with durable(tmp_path) as cluster, cluster.connect() as conn:
        after = {row.name: row for row in conn.jobs()}
        assert after.keys() == before.keys()
        assert [after[name] for name in ("failed", "stopped")] == [before[name] for name in ("failed", "stopped")]
        with pytest.raises(JobFailedError, match="no such model"):
            conn.job("failed").result(timeout_s=30)
        with pytest.raises(MemberLostError, match=r"all processes of the cluster ended while job .* submit it again"):
            conn.job("once").result(timeout_s=30)
        assert conn.job("again").result(timeout_s=30).column("n").to_pylist() == [1, 1, 1]
        assert conn.job("again").info.attempt == 2
        new = conn.submit(dag_of(WhenAsked), secateur.JobConfig(name="once"))
        assert new.result(timeout_s=30).num_rows == 3
    with durable(tmp_path) as cluster, cluster.connect() as conn:
        assert conn.job("once").job_id == new.job_id
        assert conn.job("once").status is secateur.JobStatus.COMPLETED
        with pytest.raises(LimitExceededError, match="for as long as its process lives"):
            conn.job("once").result(timeout_s=30)


def test_a_job_file_that_is_damaged_costs_nothing_that_other_members_have(tmp_path: Path) -> None:
    WhenAsked.may_end.set()
    with durable(tmp_path) as cluster, cluster.connect() as conn:
        assert conn.submit(dag_of(WhenAsked), secateur.JobConfig(name="done")).result(timeout_s=30).num_rows == 3
    files = sorted(tmp_path.glob("m*/job-*"))
    assert len(files) == 3
    for file in files[:2]:
        file.write_bytes(file.read_bytes()[:-1])
    with durable(tmp_path) as cluster, cluster.connect() as conn:
        assert conn.job("done").status is secateur.JobStatus.COMPLETED
    for file in sorted(tmp_path.glob("m*/job-*")):
        file.write_bytes(b"")
    with durable(tmp_path) as cluster, cluster.connect() as conn, pytest.raises(UnknownJobError):
        conn.job("done")
