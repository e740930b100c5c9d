"""When a statement is tried again: failures and what the client sees go in, the next action comes out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from secateur.client.execution.retry_policy import Action, GiveUp, ProbeMember, RefreshOwners, RetryPolicy, TryAgain
from secateur.errors import (
    Error,
    LoadFailedError,
    MemberLostError,
    PartitionLostError,
    TopologyChangedError,
    UnknownTableError,
    UnreachableError,
)

DEADLINE_S = 10.0
AGAIN = TryAgain(prepare=True, pause_s=0.0)


def policy() -> RetryPolicy:
    return RetryPolicy("statement", DEADLINE_S)


def lost(member: str = "m1") -> MemberLostError:
    return MemberLostError("the connection broke", member=member)


def refused() -> Error:
    return UnreachableError("nobody answers", address="127.0.0.1:1")


@pytest.mark.parametrize(
    ("error", "member"),
    [
        pytest.param(TopologyChangedError("moved"), None, id="moved"),
        pytest.param(UnknownTableError("no such table"), None, id="a table that is gone"),
        pytest.param(LoadFailedError("given up"), None, id="a publication that was given up"),
        pytest.param(refused(), "m1", id="refused"),
    ],
)
def test_with_the_owners_known_the_plan_is_made_again(error: Error, member: str | None) -> None:
    tries = policy()
    assert tries.failed(error, member, 0.0) == RefreshOwners(member)
    assert tries.refreshed(known=3, topology_version=4) == AGAIN


def test_pauses_grow_until_the_owners_change() -> None:
    tries = policy()
    pauses = []
    for version in (3, 3, 3, 3, 3, 3, 3, 4):
        tries.failed(TopologyChangedError("moved"), None, 0.0)
        action = tries.refreshed(known=3, topology_version=version)
        assert isinstance(action, TryAgain)
        pauses.append(action.pause_s)
    assert pauses == [0.02, 0.04, 0.08, 0.16, 0.32, 0.5, 0.5, 0.0]


@pytest.mark.parametrize("error", [TopologyChangedError("moved"), refused(), lost()], ids=["moved", "refused", "lost"])
def test_after_the_deadline_there_is_no_further_try(error: Error) -> None:
    tries = policy()
    action = tries.failed(error, "m1", DEADLINE_S)
    if isinstance(action, ProbeMember):
        action = tries.probed(has_ended=False, now_s=DEADLINE_S)
    assert action == GiveUp(error)


def test_without_the_controller_there_is_no_further_try() -> None:
    error = UnreachableError("the controller is gone", retry_safe=False)
    assert policy().failed(error, None, 0.0) == GiveUp(error)


def test_a_member_without_a_lease_says_nothing_of_the_plan() -> None:
    tries = policy()
    tries.failed(TopologyChangedError("its lease has ended", lease_ended=True), None, 0.0)
    assert tries.refreshed(known=3, topology_version=3) == TryAgain(prepare=False, pause_s=0.02)


def test_a_lost_partition_is_final_once_the_newest_owners_say_so() -> None:
    tries = policy()
    error = PartitionLostError("all copies are lost")
    assert tries.failed(error, None, 0.0) == RefreshOwners(None)
    assert tries.refreshed(known=3, topology_version=4) == TryAgain(prepare=False, pause_s=0.0)
    tries.failed(error, None, 0.0)
    assert tries.refreshed(known=4, topology_version=4) == GiveUp(error)


def test_a_member_that_does_not_know_of_new_owners_yet_is_asked_again_for_a_while() -> None:
    tries = policy()
    error = PartitionLostError("all copies are lost", topology_version=3)
    for _ in range(3):
        assert tries.failed(error, None, 0.0) == RefreshOwners(None)
        action = tries.refreshed(known=4, topology_version=4)
        assert isinstance(action, TryAgain)
        assert action.pause_s > 0
    for _ in range(2):
        tries.failed(error, None, DEADLINE_S)
        action = tries.refreshed(known=4, topology_version=4)
    assert action == GiveUp(error)


def test_owners_that_another_thread_has_learned_meanwhile_are_tried_too() -> None:
    """The try failed by owners that are known no more, though this refresh brings nothing new."""
    tries = policy()
    tries.failed(PartitionLostError("all copies are lost"), None, 0.0)
    assert tries.refreshed(known=4, topology_version=4) == TryAgain(prepare=False, pause_s=0.0)


def losing(*members: str, ended: Callable[[str], bool]) -> Action:
    """What is to be done after the last of some losses."""
    tries = policy()
    for member in members:
        action = tries.failed(lost(member), member, 0.0)
        if isinstance(action, ProbeMember):
            action = tries.probed(has_ended=ended(action.member), now_s=0.0)
        last = action
        tries.refreshed(known=3, topology_version=4)
    return last


def test_a_statement_may_cost_one_member_and_not_two() -> None:
    assert losing("m1", ended=lambda _: True) == RefreshOwners("m1")
    action = losing("m1", "m2", ended=lambda _: True)
    assert isinstance(action, GiveUp)
    assert isinstance(action.error, MemberLostError)
    assert "m1 and m2 ended" in action.error.message
    assert action.error.details["members"] == ["m1", "m2"]


@pytest.mark.parametrize(
    ("members", "ended"),
    [
        pytest.param(["m1", "m1", "m1"], {"m1"}, id="the same one"),
        pytest.param(["m1", "m2", "m3"], set(), id="connections that broke"),
        pytest.param(["m1", "m2", "m3"], {"m2"}, id="one of them"),
    ],
)
def test_only_members_that_ended_count_and_each_once(members: list[str], ended: set[str]) -> None:
    assert losing(*members, ended=ended.__contains__) == RefreshOwners(members[-1])


def test_a_cluster_of_which_nobody_answers_is_waited_for_as_long_as_its_controller() -> None:
    error = UnreachableError("refused", address="h:1")
    tries = policy()
    began_s, pauses_s = 1.0, [0.0]
    while (action := tries.failed(error, None, began_s + sum(pauses_s))) == RefreshOwners(None):
        again = tries.nobody_answered(began_s + sum(pauses_s), 20.0)
        assert isinstance(again, TryAgain)
        assert not again.prepare
        pauses_s.append(again.pause_s)
    assert action == GiveUp(error)
    assert 20.0 <= sum(pauses_s) < 21.0
    assert max(pauses_s) == 0.5


def test_a_cluster_is_not_waited_for_where_its_controller_is_not() -> None:
    error = UnreachableError("refused", address="h:1")
    tries = policy()
    assert tries.failed(error, None, 1.0) == RefreshOwners(None)
    assert tries.nobody_answered(1.0, 0.0) == GiveUp(error)
