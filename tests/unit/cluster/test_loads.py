"""Publishing loads: both phases, with members that fail in either."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from scripted_members import Failures, ScriptedMembers

from secateur.cluster.controller import LoadPublication, LoadPublisher
from secateur.errors import (
    DuplicateKeyError,
    LoadFailedError,
    MemberLostError,
    OperationalError,
    TopologyChangedError,
)
from secateur.partitioning.schemes import PartitionScheme
from secateur.partitioning.tables import TableDef
from secateur.protocol import (
    AbortStagedLoad,
    Acknowledged,
    ChangeTable,
    CloseForChange,
    LoadDropped,
    Message,
    PreparedRows,
    PrepareLoad,
    PublishPreparedLoad,
    TableUse,
    WorkedOut,
    WorkOutChange,
)

TABLE = TableDef("t", 7, (), (), PartitionScheme())
LOAD = LoadPublication(
    "load", 1, TABLE, "append", {0: [0], 1: [0], 2: [1, 4]}, {"m1": frozenset({0, 1}), "m2": frozenset({1, 2})}
)


REPLIES: dict[type[Message[Any]], Any] = {
    CloseForChange: TableUse(False),
    PrepareLoad: PreparedRows(rows=20, rows_counted=10, rows_removed=0),
    PublishPreparedLoad: Acknowledged(),
    AbortStagedLoad: LoadDropped(True),
}
CLOSED = [CloseForChange] * 2
PREPARED = [PrepareLoad] * 2
PUBLISHED = [PublishPreparedLoad] * 2
ABORTED = [AbortStagedLoad] * 2


def members_of(failures: Failures | None = None) -> ScriptedMembers:
    return ScriptedMembers(REPLIES, failures)


def parts(members: ScriptedMembers) -> dict[str, list[tuple[int, list[int]]]]:
    """What each member was told to prepare."""
    return {member: message.parts for member, message in members.calls if isinstance(message, PrepareLoad)}


def told(members: ScriptedMembers) -> dict[str, int]:
    """How many rows the load changes on all members, as each was told that has published."""
    return {member: message.rows for member, message in members.calls if isinstance(message, PublishPreparedLoad)}


def publish(members: ScriptedMembers) -> int:
    return asyncio.run(LoadPublisher(members, members.is_member).publish(LOAD)).rows


def test_every_member_prepares_what_it_hosts_before_any_publishes() -> None:
    members = members_of()
    assert publish(members) == 20
    assert members.asked == [*PREPARED, *PUBLISHED]
    assert parts(members) == {"m1": [(0, [0]), (1, [0])], "m2": [(1, [0]), (2, [1, 4])]}


def test_a_duplicate_key_on_one_member_publishes_nowhere() -> None:
    members = members_of({("m2", PrepareLoad): DuplicateKeyError("t: key (id=1) is already there", table="t")})
    with pytest.raises(DuplicateKeyError, match="id=1"):
        publish(members)
    assert members.asked == [*PREPARED, *ABORTED]


def test_rows_of_a_partition_that_is_gone_are_not_lost_quietly() -> None:
    members = members_of()
    load = LoadPublication("load", 1, TABLE, "append", {0: [0], 9: [0]}, LOAD.copies)
    with pytest.raises(
        TopologyChangedError,
        match="partition 9 of t, for which load load has rows, is not there any more: nothing was loaded",
    ):
        asyncio.run(LoadPublisher(members, members.is_member).publish(load))
    assert members.asked == ABORTED


def test_a_member_lost_before_it_prepared_fails_the_load() -> None:
    members = members_of(
        {
            ("m1", PrepareLoad): MemberLostError("gone", member="m1"),
            ("m1", AbortStagedLoad): MemberLostError("gone", member="m1"),
        }
    )
    with pytest.raises(LoadFailedError, match="was not published, and the table is unchanged: gone"):
        publish(members)
    assert ("m2", AbortStagedLoad("load")) in members.calls


def test_a_member_lost_after_it_prepared_does_not_undo_the_load() -> None:
    assert publish(members_of({("m2", PublishPreparedLoad): MemberLostError("gone", member="m2")})) == 20


def test_a_load_whose_members_are_lost_before_they_answer_may_have_been_published() -> None:
    """It was said not to be, so the client made the change again, and it was there twice when they came back."""
    lost: Failures = {(name, PublishPreparedLoad): MemberLostError("gone", member=name) for name in ("m1", "m2")}
    with pytest.raises(OperationalError, match=r"every member that had a copy of t has left .* read the table") as told:
        publish(members_of(lost))
    assert not told.value.retry_safe


def test_a_load_that_living_members_have_aborted_is_not_acknowledged() -> None:
    """They could not reach the controller, and whoever had published it has died."""
    members = members_of({("m2", PublishPreparedLoad): LoadFailedError("load load was aborted")})
    with pytest.raises(LoadFailedError, match="was not published, and the table is unchanged: load load was aborted"):
        publish(members)


def test_loads_of_one_table_are_published_one_after_the_other() -> None:
    async def two_at_once() -> list[type[Message[Any]]]:
        members = members_of()
        members.latch, members.held = asyncio.Event(), PrepareLoad
        publisher = LoadPublisher(members, members.is_member)
        first, second = asyncio.create_task(publisher.publish(LOAD)), asyncio.create_task(publisher.publish(LOAD))
        await asyncio.sleep(0)
        members.latch.set()
        await asyncio.gather(first, second)
        return members.asked

    assert asyncio.run(two_at_once()) == [*PREPARED, *PUBLISHED] * 2


def test_a_dropped_table_leaves_nothing_at_the_publisher() -> None:
    async def load_and_drop() -> LoadPublisher:
        publisher = LoadPublisher(members_of(), bool)
        await publisher.publish(LOAD)
        publisher.forget(TABLE)
        publisher.forget(TABLE)
        return publisher

    assert not asyncio.run(load_and_drop())._locks


ASKED = ChangeTable("load", "t", 7, 1, "plan", [5], False, "refused", "returning", True, True)


def working_out(found: WorkedOut, failures: Failures | None = None) -> ScriptedMembers:
    """Members of which one works a change out."""
    return ScriptedMembers({**REPLIES, WorkOutChange: found}, failures)


def change_whole(members: ScriptedMembers) -> WorkedOut:
    load = LoadPublication("load", 1, TABLE, "mixed", {}, LOAD.copies)
    return asyncio.run(LoadPublisher(members, members.is_member).change_whole(load, "m2", ASKED))


def test_a_change_is_worked_out_once_all_gates_are_closed_and_then_published() -> None:
    members = working_out(WorkedOut(3, {1: [0, 2], 0: [1]}))
    assert change_whole(members).rows == 3
    assert members.asked == [*CLOSED, WorkOutChange, *PREPARED, *PUBLISHED]
    assert members.calls[2] == ("m2", WorkOutChange(ASKED))
    assert parts(members) == {"m1": [(0, [1]), (1, [0, 2])], "m2": [(1, [0, 2])]}
    assert told(members) == {"m1": 3, "m2": 3}, "members count a row that moves twice, and one that goes not at all"


@pytest.mark.parametrize("found", [WorkedOut(), WorkedOut(missing_cells=[4, 7])], ids=["no row", "ranges to be made"])
def test_a_change_without_rows_to_write_opens_the_gates(found: WorkedOut) -> None:
    members = working_out(found)
    assert change_whole(members) == found
    assert members.asked == [*CLOSED, WorkOutChange, *ABORTED]


@pytest.mark.parametrize("failing", [("m1", CloseForChange), ("m2", WorkOutChange), ("m2", PrepareLoad)])
def test_a_change_that_fails_opens_the_gates(failing: tuple[str, type[Message[Any]]]) -> None:
    members = working_out(
        WorkedOut(1, {0: [1]}), {failing: DuplicateKeyError("t: key (id=1) is already there", table="t")}
    )
    with pytest.raises(DuplicateKeyError):
        change_whole(members)
    assert members.asked[-2:] == ABORTED


def test_a_member_lost_while_it_works_a_change_out_changes_nothing() -> None:
    members = working_out(WorkedOut(), {("m2", WorkOutChange): MemberLostError("gone", member="m2")})
    with pytest.raises(LoadFailedError, match="the table is unchanged: gone"):
        change_whole(members)


def test_the_rows_of_each_partition_are_counted_once() -> None:
    members = members_of()
    publish(members)
    counted = {member: message.counted for member, message in members.calls if isinstance(message, PrepareLoad)}
    assert counted == {"m1": [0, 1], "m2": [2]}
    assert told(members) == {"m1": 20, "m2": 20}
