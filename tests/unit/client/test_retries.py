"""When a statement is tried again: failures and what the client sees of the cluster go in, what follows comes out."""

from __future__ import annotations

from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import pytest

from secateur.client.execution import execute
from secateur.client.execution.execute import Retries
from secateur.client.member_calls import Sign
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
NOBODY = UnreachableError("nobody answers")


class Cluster:
    """The session of a client in a cluster, and its clock.

    Attributes:
        versions: The versions of the topology that are fetched, one after the other; of the last one there is no end.
            An error where nobody answers.
        ended: Members that have ended.
        silent: Members that do not answer, for so many looks.
    """

    def __init__(self, *versions: int | Error, ended: Collection[str] = ()) -> None:
        self.versions = list(versions)
        self.ended = ended
        self.silent = 0
        self.now_s = 0.0
        self.pauses_s: list[float] = []
        self.topology = SimpleNamespace(version=3)
        self.retry_s = DEADLINE_S
        self.controller_wait_s = 20.0

    def refresh_topology(self) -> Any:
        newest = self.versions.pop(0) if len(self.versions) > 1 else self.versions[0]
        if isinstance(newest, Error):
            raise newest
        self.topology = SimpleNamespace(version=newest)
        return self.topology

    def member_named_by(self, error: Error) -> str | None:
        return error.details.get("member")

    def sign_of(self, member: str) -> Sign:
        if member in self.ended:
            return Sign.GONE
        self.silent -= 1
        return Sign.SILENT if self.silent >= 0 else Sign.ANSWERS

    def sleep(self, pause_s: float) -> None:
        self.pauses_s.append(pause_s)
        self.now_s += pause_s

    def check_control(self) -> None: ...


@pytest.fixture
def retries(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes the retries of a statement in a cluster."""

    def of(cluster: Any) -> Retries:
        monkeypatch.setattr(execute, "time", SimpleNamespace(monotonic=lambda: cluster.now_s))
        return Retries(cluster, "statement")

    return of


def lost(member: str = "m1") -> MemberLostError:
    return MemberLostError("the connection broke", member=member)


def refused() -> Error:
    return UnreachableError("nobody answers", address="127.0.0.1:1", member="m1")


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(TopologyChangedError("moved"), id="moved"),
        pytest.param(UnknownTableError("no such table"), id="a table that is gone"),
        pytest.param(LoadFailedError("given up"), id="a publication that was given up"),
        pytest.param(refused(), id="refused"),
    ],
)
def test_with_the_owners_known_the_plan_is_made_again(error: Error, retries: Any) -> None:
    cluster = Cluster(4)
    assert retries(cluster).after(error) is True
    assert cluster.topology.version == 4
    assert not cluster.pauses_s


def test_pauses_grow_until_the_owners_change(retries: Any) -> None:
    cluster = Cluster(3, 3, 3, 3, 3, 3, 3, 4)
    tries = retries(cluster)
    for _ in range(8):
        tries.after(TopologyChangedError("moved"))
    assert cluster.pauses_s == [0.02, 0.04, 0.08, 0.16, 0.32, 0.5, 0.5]


@pytest.mark.parametrize("error", [TopologyChangedError("moved"), refused(), lost()], ids=["moved", "refused", "lost"])
def test_after_the_deadline_there_is_no_further_try(error: Error, retries: Any) -> None:
    cluster = Cluster(4)
    tries = retries(cluster)
    cluster.now_s = DEADLINE_S
    assert tries.after(error) is error


def test_without_the_controller_there_is_no_further_try(retries: Any) -> None:
    error = UnreachableError("the controller is gone", retry_safe=False)
    assert retries(Cluster(4)).after(error) is error


def test_a_member_without_a_lease_says_nothing_of_the_plan(retries: Any) -> None:
    cluster = Cluster(3)
    assert retries(cluster).after(TopologyChangedError("its lease has ended", lease_ended=True)) is False
    assert cluster.pauses_s == [0.02]


def test_a_silent_member_is_not_asked_before_it_is_replaced(retries: Any) -> None:
    cluster = Cluster(3, 3, 3, 4)
    cluster.silent = 4  # at the loss, and three times until the owners change
    assert retries(cluster).after(lost()) is True
    assert cluster.topology.version == 4


def test_a_lost_partition_is_final_once_the_newest_owners_say_so(retries: Any) -> None:
    cluster, error = Cluster(4), PartitionLostError("all copies are lost")
    tries = retries(cluster)
    assert tries.after(error) is False
    assert not cluster.pauses_s
    assert tries.after(error) is error


def test_a_member_that_does_not_know_of_new_owners_yet_is_asked_again_for_a_while(retries: Any) -> None:
    cluster, error = Cluster(4), PartitionLostError("all copies are lost", topology_version=3)
    tries = retries(cluster)
    for _ in range(3):
        assert tries.after(error) is False
    assert len(cluster.pauses_s) == 3
    cluster.now_s = DEADLINE_S
    assert tries.after(error) is False
    assert tries.after(error) is error


def test_owners_that_another_thread_has_learned_meanwhile_are_tried_too(retries: Any) -> None:
    """The try failed by owners that are known no more, though this refresh brings nothing new."""
    cluster = Cluster(3)
    assert retries(cluster).after(PartitionLostError("all copies are lost")) is False
    assert not cluster.pauses_s


def losing(tries: Retries, *members: str) -> bool | Error:
    """What follows the last of some losses."""
    return [tries.after(lost(member)) for member in members][-1]


def test_a_statement_may_cost_one_member_and_not_two(retries: Any) -> None:
    assert losing(retries(Cluster(4, ended=["m1"])), "m1") is True
    error = losing(retries(Cluster(4, ended=["m1", "m2"])), "m1", "m2")
    assert isinstance(error, MemberLostError)
    assert "m1 and m2 ended" in error.message
    assert error.details["members"] == ["m1", "m2"]


@pytest.mark.parametrize(
    ("members", "ended"),
    [
        pytest.param(["m1", "m1", "m1"], ["m1"], id="the same one"),
        pytest.param(["m1", "m2", "m3"], [], id="connections that broke"),
        pytest.param(["m1", "m2", "m3"], ["m2"], id="one of them"),
    ],
)
def test_only_members_that_ended_count_and_each_once(members: list[str], ended: list[str], retries: Any) -> None:
    assert losing(retries(Cluster(4, ended=ended)), *members) is True


def test_a_cluster_of_which_nobody_answers_is_waited_for_as_long_as_its_controller(retries: Any) -> None:
    cluster, error = Cluster(NOBODY), UnreachableError("refused", address="h:1")
    tries = retries(cluster)
    while (decided := tries.after(error)) is not error:
        assert decided is False
    assert 20.0 <= sum(cluster.pauses_s) < 21.0
    assert max(cluster.pauses_s) == 0.5


def test_a_cluster_is_not_waited_for_where_its_controller_is_not(retries: Any) -> None:
    cluster, error = Cluster(NOBODY), UnreachableError("refused", address="h:1")
    cluster.controller_wait_s = 0.0
    assert retries(cluster).after(error) is error
