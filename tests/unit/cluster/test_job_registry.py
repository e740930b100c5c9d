"""Jobs are found by id and name; what is kept is bounded."""

from __future__ import annotations

import pytest

from secateur.cluster.controller import JobRecord, JobRegistry, RegisteredJob
from secateur.dag import JobConfig
from secateur.errors import JobExistsError, JobFailedError, LimitExceededError, UnknownJobError
from secateur.protocol import JobRequirements


def job(job_id: str, name: str | None = None) -> RegisteredJob:
    return RegisteredJob(job_id, JobConfig(name=name), JobRequirements(), [], b"dag", JobRecord(restarts=True), None)


def test_a_name_belongs_to_one_job_that_has_not_ended() -> None:
    book = JobRegistry()
    first = job("1", "nightly")
    book.add(first)
    with pytest.raises(JobExistsError, match="a job named 'nightly' has not ended yet"):
        book.add(job("2", "nightly"))
    book.end(first)
    second = job("3", "nightly")
    book.add(second)
    assert book.find("nightly") is second
    book.end(second)
    assert book.find("nightly") is second
    assert book.find("1") is first


def test_jobs_without_a_name_do_not_exclude_each_other() -> None:
    book = JobRegistry()
    book.add(job("1"))
    book.add(job("2"))
    assert [entry.job_id for entry in book] == ["2", "1"]


def test_an_unknown_job_says_why_it_may_be_unknown() -> None:
    with pytest.raises(UnknownJobError, match="no job has the id or name 'x'; light jobs have no record"):
        JobRegistry().find("x")


def test_history_is_bounded() -> None:
    book = JobRegistry(ended_max=2)
    jobs = [job(str(number)) for number in range(4)]
    for entry in jobs:
        book.add(entry)
        book.end(entry)
    assert [entry.job_id for entry in book] == ["3", "2"]
    assert book.get("0") is None
    assert jobs[3].dag == b""


def test_running_jobs_are_bounded() -> None:
    book = JobRegistry(running_max=1)
    book.add(job("1"))
    with pytest.raises(LimitExceededError, match="1 jobs have not ended yet"):
        book.add(job("2"))


def test_the_dags_of_running_jobs_are_bounded() -> None:
    book = JobRegistry(dag_bytes_max=5)
    book.add(job("1"))
    with pytest.raises(LimitExceededError, match="the DAGs of the jobs that have not ended would take 6 of 5 bytes"):
        book.add(job("2"))


def test_a_kept_failure_has_a_bounded_text() -> None:
    entry = job("1")
    entry.record.chosen(1, "m1")
    entry.record.ended(1, JobFailedError("m" * 100_000, traceback="t" * 100_000, vertex="v"))
    failure = entry.state().failure
    assert failure is not None
    assert (len(failure.message), len(failure.details["traceback"]), failure.details["vertex"]) == (16384, 16384, "v")
