"""What a job requires, and who may coordinate it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from secateur.errors import DagError, PartitionLostError, ProtocolError
from secateur.partitioning.topology import MemberAddress, Ownership, Topology
from secateur.protocol import JobRequirements, coordinators, decode, encode, pack

SOME = JobRequirements({"t": frozenset({1, 2}), "g": frozenset()}, frozenset({"m1"}))


def test_needs_add_up() -> None:
    assert SOME | JobRequirements({"t": frozenset({5})}, frozenset({"m2"})) == JobRequirements(
        {"t": frozenset({1, 2, 5}), "g": frozenset()}, frozenset({"m1", "m2"})
    )


def test_needs_travel() -> None:
    assert decode(encode(SOME), JobRequirements) == SOME


@pytest.mark.parametrize("data", [7, [{"t": [-1]}, []], [{"t": ["1"]}, []], [{"t": 1}, []], [[], []]])
def test_what_is_none_of_ours_is_refused(data: list[Any]) -> None:
    with pytest.raises(ProtocolError, match="JobRequirements cannot be read"):
        decode(pack(data), JobRequirements)


OWNERS = {"g": Ownership.of(("m1", "m2", "m3"), np.array([[0, 1, 2, 1]], dtype=np.uint16))}
ALL = Topology(1, tuple(MemberAddress(member, "h", 1) for member in ("m1", "m2", "m3")), OWNERS)
WITHOUT_M3 = Topology(2, ALL.members[:2], OWNERS)


@pytest.mark.parametrize(
    ("needs", "expected"),
    [
        pytest.param(JobRequirements(), ["m1", "m2", "m3"], id="nobody in particular"),
        pytest.param(JobRequirements({"t": frozenset({1, 3})}), ["m2"], id="by table"),
        pytest.param(JobRequirements({"g": frozenset({2, 0})}), ["m1", "m3"], id="by group"),
        pytest.param(JobRequirements({"t": frozenset()}), ["m1", "m2", "m3"], id="no partition"),
        pytest.param(JobRequirements({"replicated": frozenset({0})}), ["m1", "m2", "m3"], id="a table without owners"),
        pytest.param(JobRequirements(members=frozenset({"m3", "m9"})), ["m3"], id="members by name"),
        pytest.param(
            JobRequirements({"t": frozenset({0})}, frozenset({"m3"})), ["m1", "m3"], id="partitions and members"
        ),
    ],
)
def test_who_takes_part_coordinates(needs: JobRequirements, expected: list[str]) -> None:
    assert coordinators(needs, ALL, {"t": "g", "replicated": "r"}.__getitem__) == expected


def test_a_partition_that_is_not_there_is_refused() -> None:
    with pytest.raises(DagError, match="t has the partitions 0 to 3, not 4, 7"):
        coordinators(JobRequirements({"t": frozenset({7, 4, 0})}), ALL, lambda _: "g")


def test_a_lost_partition_is_refused() -> None:
    with pytest.raises(PartitionLostError, match=r"last copies .* were on m3"):
        coordinators(JobRequirements({"t": frozenset({2})}), WITHOUT_M3, lambda _: "g")


def test_without_members_nobody_coordinates() -> None:
    with pytest.raises(PartitionLostError, match="no member is left"):
        coordinators(JobRequirements(), Topology(3, (), OWNERS), lambda _: "g")
