"""The coordinator's state machine: one test for each way in which a job can go."""

from __future__ import annotations

import itertools
import random

import pytest

from secateur.engine import lost_member
from secateur.engine.runtime import AwaitCancelled, CancelMember, Effect, FinishJob, JobStateMachine
from secateur.errors import DataError, Error, JobCancelledError

BAD = DataError("bad")
WORSE = DataError("worse")


def started(*members: str) -> JobStateMachine:
    job = JobStateMachine(members)
    assert job.start() == []
    return job


def test_a_job_without_participants_is_finished_at_once() -> None:
    assert JobStateMachine(()).start() == [FinishJob(None)]


def test_a_job_finishes_when_all_have_ended() -> None:
    job = started("m1", "m2")
    assert job.member_ended("m2", None) == []
    assert job.member_ended("m1", None) == [FinishJob(None)]
    assert job.is_finished


def test_the_first_failure_stops_the_others_and_is_the_one_reported() -> None:
    job = started("m1", "m2", "m3")
    assert job.member_ended("m2", BAD) == [CancelMember("m1", BAD), CancelMember("m3", BAD), AwaitCancelled()]
    assert job.member_ended("m1", WORSE) == []
    assert job.member_ended("m3", BAD) == [FinishJob(BAD)]


def test_a_failure_of_the_last_one_needs_no_cancel() -> None:
    job = started("m1", "m2")
    job.member_ended("m1", None)
    assert job.member_ended("m2", BAD) == [FinishJob(BAD)]


def test_a_lost_member_fails_the_job_and_is_not_told() -> None:
    job = started("m1", "m2")
    lost = lost_member("m2", None)
    assert job.member_ended("m2", lost) == [CancelMember("m1", lost), AwaitCancelled()]
    assert job.member_ended("m1", lost) == [FinishJob(lost)]


@pytest.mark.parametrize("member", ["m3", "m9"])
def test_a_member_that_takes_no_part_any_more_is_lost_without_notice(member: str) -> None:
    job = started("m1", "m3")
    job.member_ended("m3", None)
    assert job.member_ended(member, lost_member(member, None)) == []
    assert job.member_ended("m1", None) == [FinishJob(None)]


def test_cancel_stops_everybody_once() -> None:
    job = started("m1", "m2")
    stop = JobCancelledError("stop")
    assert job.cancel(stop) == [CancelMember("m1", stop), CancelMember("m2", stop), AwaitCancelled()]
    assert job.cancel(JobCancelledError("again")) == []
    assert job.member_ended("m1", stop) == []
    assert job.member_ended("m2", None) == [FinishJob(stop)]


def test_those_who_do_not_answer_a_cancel_are_given_up() -> None:
    job = started("m1", "m2")
    assert job.cancel_wait_over() == []  # nobody was told to stop
    job.cancel(BAD)
    assert job.cancel_wait_over() == [FinishJob(BAD)]


def test_nothing_follows_the_end() -> None:
    job = started("m1")
    job.member_ended("m1", None)
    assert [
        job.cancel(BAD),
        job.member_ended("m1", BAD),
        job.member_ended("m1", lost_member("m1", None)),
        job.cancel_wait_over(),
    ] == [[], [], [], []]


@pytest.mark.parametrize("seed", range(200))
def test_every_order_of_events_ends_exactly_once(seed: int) -> None:
    """Invariants under random events: one Finish, last; nobody is told to stop twice or after it has ended; the first
    cause is the outcome.
    """
    chance = random.Random(seed)
    members = ["m1", "m2", "m3"]
    job = JobStateMachine(members)
    effects: list[Effect] = job.start()
    told: set[str] = set()
    ended: set[str] = set()
    first_cause: Error | None = None
    for step in itertools.count():
        cause = DataError(f"cause {step}")
        match chance.choice(["end", "fail", "lose", "cancel", "give up"]):
            case "end":
                member = chance.choice(members)
                new = job.member_ended(member, None)
                ended.add(member)
            case "fail":
                member = chance.choice(members)
                first_cause = first_cause or (cause if member not in ended and not job.is_finished else None)
                ended.add(member)
                new = job.member_ended(member, cause)
            case "lose":
                member = chance.choice(members)
                lost = lost_member(member, None)
                first_cause = first_cause or (lost if member not in ended and not job.is_finished else None)
                ended.add(member)
                new = job.member_ended(member, lost)
            case "cancel":
                first_cause = first_cause or (cause if not job.is_finished else None)
                new = job.cancel(cause)
            case _:
                new = job.cancel_wait_over()
        for effect in new:
            if isinstance(effect, CancelMember):
                assert effect.member not in told | ended
                told.add(effect.member)
        effects += new
        if job.is_finished:
            break
    finishes = [effect for effect in effects if isinstance(effect, FinishJob)]
    assert len(finishes) == 1
    assert effects[-1] is finishes[0]
    assert finishes[0].error is first_cause
