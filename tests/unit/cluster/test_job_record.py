"""The record of one job: each message lost, repeated or late."""

from __future__ import annotations

import pytest

from secateur.cluster.controller import (
    RESTARTS_MAX,
    AwaitAttemptEnd,
    CancelAttempt,
    Effect,
    FinishRecord,
    JobRecord,
    StartAttempt,
)
from secateur.errors import (
    DeadlineError,
    Error,
    JobCancelledError,
    JobFailedError,
    MemberLostError,
    TopologyChangedError,
)
from secateur.protocol import JobStatus

CANCELLED = JobCancelledError("on request")
LATE = DeadlineError("too late")
FAILED = JobFailedError("user code")
LOST = MemberLostError("m2 was lost", member="m2")


def running(*, restarts: bool = True) -> JobRecord:
    record = JobRecord(restarts=restarts)
    assert record.submitted() == [StartAttempt(1, 0.0)]
    assert record.waits_for(1)
    record.chosen(1, "m1")
    record.started(1)
    assert (record.status, record.coordinator) == (JobStatus.RUNNING, "m1")
    return record


def restarting() -> JobRecord:
    record = running()
    assert record.ended(1, LOST) == [StartAttempt(2, 0.05)]
    return record


@pytest.mark.parametrize(
    ("error", "status"),
    [
        pytest.param(None, JobStatus.COMPLETED, id="success"),
        pytest.param(FAILED, JobStatus.FAILED, id="user code raised"),
        pytest.param(LATE, JobStatus.FAILED, id="deadline at the coordinator"),
    ],
)
def test_the_end_of_the_only_attempt_is_the_end_of_the_job(error: Error | None, status: JobStatus) -> None:
    record = running()
    assert record.ended(1, error) == [FinishRecord(error)]
    assert (record.status, record.error, record.coordinator) == (status, error, None)


def test_the_end_may_overtake_the_answer_that_it_runs() -> None:
    record = JobRecord(restarts=True)
    record.chosen(1, "m1")
    assert record.status is JobStatus.STARTING
    assert record.ended(1, None) == [FinishRecord(None)]
    assert record.started(1) == []
    assert record.status is JobStatus.COMPLETED


@pytest.mark.parametrize(
    "error",
    [LOST, TopologyChangedError("moved"), JobCancelledError("m2 is shutting down")],
    ids=lambda error: type(error).__name__,
)
def test_bad_luck_begins_it_again_from_the_beginning(error: Error) -> None:
    record = running()
    assert record.ended(1, error) == [StartAttempt(2, 0.05)]
    assert (record.status, record.coordinator, record.error) == (JobStatus.RESTARTING, None, error)
    record.chosen(2, "m3")
    record.started(2)
    assert record.ended(2, None) == [FinishRecord(None)]
    assert (record.status, record.error) == (JobStatus.COMPLETED, None)


def test_bad_luck_ends_a_job_that_must_not_run_twice() -> None:
    record = running(restarts=False)
    assert record.ended(1, LOST) == [FinishRecord(LOST)]
    assert record.status is JobStatus.FAILED


def test_restarts_have_an_end() -> None:
    record = running()
    for attempt in range(1, RESTARTS_MAX + 1):
        (start,) = record.ended(attempt, LOST)
        assert isinstance(start, StartAttempt)
        assert start.delay_s <= 1.0
        record.chosen(attempt + 1, "m1")
    assert record.ended(RESTARTS_MAX + 1, LOST) == [FinishRecord(LOST)]


def test_the_loss_of_the_coordinator_moves_the_job() -> None:
    record = running()
    assert record.member_lost("m2") == []
    assert record.member_lost("m1") == [StartAttempt(2, 0.05)]
    assert record.member_lost("m1") == []  # heard twice
    assert "m1, which coordinated the job" in str(record.error)


def test_a_coordinator_that_does_not_answer_is_told_to_stop() -> None:
    record = JobRecord(restarts=True)
    record.chosen(1, "m1")
    assert record.unsure(1, LOST) == [CancelAttempt("m1", 1, LOST), StartAttempt(2, 0.05)]
    assert record.unsure(1, LOST) == []


@pytest.mark.parametrize("late", ["ended well", "ended badly", "started", "unsure"])
def test_an_attempt_that_was_given_up_changes_nothing(late: str) -> None:
    record = restarting()
    record.chosen(2, "m3")
    effects: list[Effect] = {
        "ended well": lambda: record.ended(1, None),
        "ended badly": lambda: record.ended(1, FAILED),
        "started": lambda: record.started(1),
        "unsure": lambda: record.unsure(1, LOST),
    }[late]()
    assert effects == []
    assert (record.status, record.attempt, record.coordinator) == (JobStatus.STARTING, 2, "m3")


def test_a_start_that_was_overtaken_is_not_waited_for() -> None:
    record = restarting()
    assert not record.waits_for(1)
    assert record.waits_for(2)
    assert record.cancel(CANCELLED) == [FinishRecord(CANCELLED)]  # between attempts nobody has to be told
    assert not record.waits_for(2)
    assert record.chosen(2, "m3") == []
    assert record.status is JobStatus.CANCELLED


@pytest.mark.parametrize(
    ("cause", "status"), [(CANCELLED, JobStatus.CANCELLED), (LATE, JobStatus.FAILED)], ids=["cancelled", "deadline"]
)
def test_a_stop_waits_for_the_coordinator(cause: Error, status: JobStatus) -> None:
    record = running()
    assert record.cancel(cause) == [CancelAttempt("m1", 1, cause), AwaitAttemptEnd()]
    assert record.status is JobStatus.COMPLETING
    assert record.cancel(JobCancelledError("again")) == []
    assert record.ended(1, JobCancelledError("the coordinator's words")) == [FinishRecord(cause)]
    assert (record.status, record.error) == (status, cause)
    assert record.cancel_wait_over() == []


def test_a_coordinator_that_is_silent_is_not_waited_for_for_ever() -> None:
    record = running()
    record.cancel(CANCELLED)
    assert record.cancel_wait_over() == [FinishRecord(CANCELLED)]
    assert record.ended(1, None) == []


def test_a_job_that_succeeded_before_it_heard_of_the_stop_has_succeeded() -> None:
    record = running()
    record.cancel(CANCELLED)
    assert record.ended(1, None) == [FinishRecord(None)]
    assert record.status is JobStatus.COMPLETED


def test_a_lost_coordinator_has_stopped() -> None:
    record = running()
    record.cancel(CANCELLED)
    assert record.member_lost("m1") == [FinishRecord(CANCELLED)]


def test_a_stop_that_nobody_asked_for_ends_nothing() -> None:
    record = running()
    assert record.cancel_wait_over() == []
    assert record.status is JobStatus.RUNNING


def test_after_the_end_nothing_happens() -> None:
    record = running()
    record.ended(1, FAILED)
    assert [
        record.ended(1, None),
        record.member_lost("m1"),
        record.cancel(CANCELLED),
        record.cancel_wait_over(),
        record.unsure(1, LOST),
    ] == [[]] * 5
    assert record.status is JobStatus.FAILED


def lost(member: str) -> MemberLostError:
    return MemberLostError(f"{member} was lost", member=member)


def test_a_job_that_costs_a_second_member_is_not_begun_on_a_third() -> None:
    record = running()
    assert record.member_lost("m1") == [StartAttempt(2, 0.05)]
    record.chosen(2, "m2")
    record.started(2)
    (finish,) = record.member_lost("m2")
    assert isinstance(finish, FinishRecord)
    assert isinstance(finish.error, MemberLostError)
    assert "members m1 and m2 ended while they ran this job" in finish.error.message
    assert record.status is JobStatus.FAILED
    assert record.member_lost("m3") == []


def test_a_second_participant_that_was_lost_may_be_noticed_late() -> None:
    record = running()
    record.member_lost("m2")
    assert record.ended(1, lost("m2")) == [StartAttempt(2, 0.05)]
    record.chosen(2, "m1")
    assert record.ended(2, lost("m3")) == [StartAttempt(3, 0.1)]  # it may be alive
    record.chosen(3, "m1")
    cancel, finish = record.member_lost("m3")
    assert (cancel.member, cancel.attempt) == ("m1", 3) if isinstance(cancel, CancelAttempt) else False
    assert isinstance(finish, FinishRecord)
    assert record.ended(3, None) == []


def test_broken_connections_and_losses_of_others_are_not_counted() -> None:
    record = running()
    for attempt, member in enumerate(("m2", "m3", "m4"), 1):
        assert isinstance(record.ended(attempt, lost(member))[0], StartAttempt)
        record.chosen(attempt + 1, "m1")
    for bystander in ("m5", "m6", "m7"):
        assert record.member_lost(bystander) == []
    record.unsure(4, lost("m1"))
    assert record.member_lost("m1") == []  # the first of those that it was on
    assert isinstance(record.member_lost("m2")[-1], FinishRecord)
