"""Jobs on record: they survive their client and their members."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from eventually import eventually

import secateur
from secateur.cluster import Cluster
from secateur.connectors import collect
from secateur.dag import Processor
from secateur.errors import (
    DeadlineError,
    JobCancelledError,
    JobExistsError,
    JobFailedError,
    MemberLostError,
    UnknownJobError,
)


class Endless(Processor):
    def complete(self) -> bool:
        return False


class OneRow(Processor):
    def complete(self) -> bool:
        return self.outbox.offer(pa.RecordBatch.from_pydict({"n": [1]}))


class Broken(Processor):
    def complete(self) -> bool:
        raise ValueError("no such model")


def dag_of(processor: type[Processor]) -> secateur.DAG:
    dag = secateur.DAG()
    dag.new_vertex("read", processor)
    dag.new_vertex("result", collect())
    dag.edge(secateur.between("read", "result").all_to_one().distributed())
    return dag


def running(job: secateur.Job) -> None:
    eventually(lambda: job.status is secateur.JobStatus.RUNNING, f"{job.info}")


@pytest.fixture
def mortal() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded") as cluster:
        yield cluster


def test_a_job_is_found_from_another_connection(cluster: Cluster, conn: secateur.Connection, table_name: str) -> None:
    with cluster.connect() as first:
        job_id = first.submit(dag_of(OneRow), secateur.JobConfig(name=table_name)).job_id
    for name in (job_id, table_name):
        job = conn.job(name)
        assert job.result(timeout_s=30).column("n").to_pylist() == [1, 1, 1]
        assert (job.job_id, job.status, job.members_touched) == (
            job_id,
            secateur.JobStatus.COMPLETED,
            ["m1", "m2", "m3"],
        )
    (entry,) = [entry for entry in conn.jobs() if entry.job_id == job_id]
    assert (entry.name, entry.status, entry.attempt, entry.coordinator, entry.reason) == (
        table_name,
        secateur.JobStatus.COMPLETED,
        1,
        None,
        None,
    )
    assert entry.ended_s is not None
    assert entry.submitted_s <= entry.ended_s


def test_a_job_survives_its_connection(cluster: Cluster, conn: secateur.Connection) -> None:
    with cluster.connect() as first:
        job = first.submit(dag_of(Endless), secateur.JobConfig())
        running(job)
    found = conn.job(job.job_id)
    assert found.status is secateur.JobStatus.RUNNING
    found.cancel()
    with pytest.raises(JobCancelledError, match="was cancelled on request"):
        found.result()
    assert conn.job(job.job_id).status is secateur.JobStatus.CANCELLED


def test_a_name_is_taken_while_its_job_runs(conn: secateur.Connection, table_name: str) -> None:
    config = secateur.JobConfig(name=table_name)
    job = conn.submit(dag_of(Endless), config)
    with pytest.raises(JobExistsError, match=f"a job named '{table_name}' has not ended yet") as caught:
        conn.submit(dag_of(Endless), config)
    assert caught.value.details["job"] == job.job_id
    job.cancel()
    assert conn.submit(dag_of(OneRow), config).result(timeout_s=30).num_rows == 3


def test_of_many_that_ask_at_once_one_starts_the_job(
    cluster: Cluster, conn: secateur.Connection, table_name: str
) -> None:
    def ask(_: int) -> str:
        with cluster.connect() as own:
            return own.new_job_if_absent(table_name, dag_of(Endless), secateur.JobConfig()).job_id

    with ThreadPoolExecutor(8) as threads:
        found = set(threads.map(ask, range(8)))
    assert len(found) == 1
    conn.job(found.pop()).cancel()
    assert conn.new_job_if_absent(table_name, dag_of(OneRow), secateur.JobConfig()).result(timeout_s=30).num_rows == 3


def test_a_failure_is_kept(conn: secateur.Connection) -> None:
    job = conn.submit(dag_of(Broken), secateur.JobConfig())
    for _ in range(2):
        with pytest.raises(
            JobFailedError, match=r"vertex 'read' on member m\d failed in complete\(\): ValueError: no such model"
        ) as caught:
            conn.job(job.job_id).result(timeout_s=30)
        assert 'raise ValueError("no such model")' in caught.value.details["traceback"]
    assert "JobFailedError: vertex 'read'" in str(job.info.reason)
    job.cancel()  # after its end nothing happens
    assert job.status is secateur.JobStatus.FAILED


def test_a_deadline_is_no_cancellation(conn: secateur.Connection) -> None:
    job = conn.submit(dag_of(Endless), secateur.JobConfig(timeout_s=0.1))
    with pytest.raises(DeadlineError, match="longer than its deadline"):
        job.result(timeout_s=30)
    assert job.status is secateur.JobStatus.FAILED


def test_waiting_may_end_before_the_job(conn: secateur.Connection) -> None:
    job = conn.submit(dag_of(Endless), secateur.JobConfig())
    with pytest.raises(DeadlineError, match=r"has not ended within 0\.05 s; it goes on"):
        job.result(timeout_s=0.05)
    assert conn.execute("SELECT 1").fetchall() == [(1,)]
    job.cancel()


def test_an_unknown_job_is_an_error(conn: secateur.Connection) -> None:
    with pytest.raises(UnknownJobError, match="'nobody'"):
        conn.job("nobody")


@pytest.mark.parametrize("victim", ["coordinator", "participant"])
def test_a_job_begins_again_without_a_lost_member(mortal: Cluster, victim: str) -> None:
    with mortal.connect() as conn:
        job = conn.submit(dag_of(Endless), secateur.JobConfig())
        running(job)
        coordinator = str(job.info.coordinator)
        lost = (
            coordinator
            if victim == "coordinator"
            else next(member for member in ("m1", "m2", "m3") if member != coordinator)
        )
        mortal.kill_member(lost)
        eventually(lambda: job.info.attempt > 1 and job.status is secateur.JobStatus.RUNNING, "it has not begun again")
        assert job.info.coordinator != lost
        assert lost in str(job.info.reason)
        job.cancel()
        assert job.status is secateur.JobStatus.CANCELLED


def test_a_job_that_must_not_run_twice_fails_with_its_member(mortal: Cluster) -> None:
    with mortal.connect() as conn:
        job = conn.submit(dag_of(Endless), secateur.JobConfig(on_member_lost="fail"))
        running(job)
        mortal.kill_member(str(job.info.coordinator))
        with pytest.raises(MemberLostError):
            job.result(timeout_s=30)
        assert (job.status, job.info.attempt) == (secateur.JobStatus.FAILED, 1)


def test_rows_are_lost_with_the_member_that_had_them(mortal: Cluster) -> None:
    with mortal.connect() as conn:
        job = conn.submit(dag_of(OneRow), secateur.JobConfig())
        eventually(lambda: job.status.is_final, "it has not ended")
        mortal.kill_member(job._look().result_member)
        with pytest.raises(MemberLostError, match=r"succeeded, but member m., which held its result, was lost"):
            job.result()
        assert job.status is secateur.JobStatus.COMPLETED
