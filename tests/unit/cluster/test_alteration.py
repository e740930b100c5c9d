"""ALTER TABLE on all members: both phases, with members that fail in either."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import Any

import pytest
from scripted_members import Failures, ScriptedMembers

from secateur.cluster.controller import alter_table
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
from secateur.partitioning.tables import TableDef, TableDefinition
from secateur.protocol import AbortAlter, Acknowledged, CommitAlter, Message, PrepareAlter, encode

TABLE = TableDef("t", 7, (), (), PartitionScheme(), version=2)
HOSTED = {"m1": [0, 1], "m2": [1, 2]}


REPLIES: dict[type[Message[Any]], Any] = {kind: Acknowledged() for kind in (PrepareAlter, CommitAlter, AbortAlter)}
PREPARED = [PrepareAlter] * 2
COMMITTED = [*PREPARED, *[CommitAlter] * 2]
ABORTED = [*PREPARED, *[AbortAlter] * 2]


def change(members: ScriptedMembers) -> None:
    """Change the ranges, and check that every request says which change of which table it belongs to."""
    try:
        asyncio.run(alter_table(members, TABLE, HOSTED))
    finally:
        load_id = members.calls[0][1].load_id
        for member, message in members.calls:
            assert (
                message
                == {
                    PrepareAlter: PrepareAlter(load_id, encode(TableDefinition.of(TABLE)), HOSTED[member]),
                    CommitAlter: CommitAlter(load_id),
                    AbortAlter: AbortAlter(load_id),
                }[type(message)]
            )


def asked(failures: Failures, raises: type[Error] | None = None) -> list[type[Message[Any]]]:
    members = ScriptedMembers(REPLIES, failures)
    with nullcontext() if raises is None else pytest.raises(raises):
        change(members)
    return members.asked


def test_every_member_prepares_before_any_commits() -> None:
    assert asked({}) == COMMITTED


@pytest.mark.parametrize("failure", [SchemeError("the catch-all has rows"), DeadlineError("too slow")])
def test_a_member_that_cannot_prepare_ends_it_for_all(failure: Error) -> None:
    assert asked({("m2", PrepareAlter): failure}, type(failure)) == ABORTED


def test_a_member_that_is_gone_owns_nothing_new() -> None:
    members = ScriptedMembers(
        REPLIES, {("m2", kind): UnreachableError("nobody there") for kind in (PrepareAlter, AbortAlter)}
    )
    with pytest.raises(
        MemberLostError, match="member m2 left the cluster while table t was altered; nothing was changed"
    ) as raised:
        change(members)
    assert raised.value.details == {"member": "m2"}
    assert members.asked == ABORTED


def test_a_member_lost_after_it_prepared_stops_nobody() -> None:
    assert asked({("m1", CommitAlter): MemberLostError("gone", member="m1")}) == COMMITTED


def test_what_cannot_fail_and_does_is_our_bug() -> None:
    assert asked({("m1", CommitAlter): InternalError("bug")}, InternalError) == COMMITTED


def test_what_members_have_given_up_is_not_changed() -> None:
    """They had not heard from the controller for too long: all of them, or those that say so have asked all others."""
    assert (
        asked({(member, CommitAlter): LoadFailedError("given up") for member in HOSTED}, LoadFailedError) == COMMITTED
    )
