"""ALTER TABLE on all members: both phases, with members that fail in either."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from secateur.cluster.controller import RangeChanger
from secateur.errors import (
    DeadlineError,
    Error,
    InternalError,
    LoadFailedError,
    MemberLostError,
    SchemeError,
    UnreachableError,
)
from secateur.partitioning.schemes import PartitionScheme
from secateur.partitioning.tables import TableDef
from secateur.wire import Payload

TABLE = TableDef("t", 7, (), (), PartitionScheme(), version=2)
HOSTED = {"m1": [0, 1], "m2": [1, 2]}


class Members:
    def __init__(self, failures: dict[tuple[str, str], Exception]) -> None:
        self.calls: list[tuple[str, str]] = []
        self.failures = failures

    async def call(self, member_id: str, op: str, args: dict[str, Any], payload: Payload = b"") -> dict[str, Any]:
        self.calls.append((member_id, op))
        assert (args["table_id"], args["version"]) == (7, 2)
        assert bool(payload) == (op == "alter_prepare")
        if op == "alter_prepare":
            assert args["partitions"] == HOSTED[member_id]
        if (member_id, op) in self.failures:
            raise self.failures[member_id, op]
        return {}


def ops(failures: dict[tuple[str, str], Exception], raises: type[Error] | None = None) -> list[str]:
    members = Members(failures)
    change = RangeChanger(members).change(TABLE, HOSTED)
    if raises is None:
        asyncio.run(change)
    else:
        with pytest.raises(raises):
            asyncio.run(change)
    return [op for _, op in members.calls]


COMMITTED = ["alter_prepare"] * 2 + ["alter_commit"] * 2
ABORTED = ["alter_prepare"] * 2 + ["alter_abort"] * 2


def test_every_member_prepares_before_any_commits() -> None:
    assert ops({}) == COMMITTED


@pytest.mark.parametrize("failure", [SchemeError("the catch-all has rows"), DeadlineError("too slow")])
def test_a_member_that_cannot_prepare_ends_it_for_all(failure: Error) -> None:
    assert ops({("m2", "alter_prepare"): failure}, type(failure)) == ABORTED


def test_a_member_that_is_gone_owns_nothing_new() -> None:
    members = Members({("m2", op): UnreachableError("nobody there") for op in ("alter_prepare", "alter_abort")})
    with pytest.raises(
        MemberLostError, match="member m2 left the cluster while the ranges of t were changed; nothing was changed"
    ) as raised:
        asyncio.run(RangeChanger(members).change(TABLE, HOSTED))
    assert raised.value.details == {"member": "m2"}
    assert [op for _, op in members.calls] == ABORTED


def test_a_member_lost_after_it_prepared_stops_nobody() -> None:
    assert ops({("m1", "alter_commit"): MemberLostError("gone", member="m1")}) == COMMITTED


def test_what_cannot_fail_and_does_is_our_bug() -> None:
    assert ops({("m1", "alter_commit"): InternalError("bug")}, InternalError) == COMMITTED


def test_what_members_have_given_up_is_not_changed() -> None:
    """They had not heard from the controller for too long: all of them, or those that say so have asked all others."""
    assert (
        ops({(member, "alter_commit"): LoadFailedError("given up") for member in HOSTED}, LoadFailedError) == COMMITTED
    )
