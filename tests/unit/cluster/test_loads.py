"""Publishing loads: both phases, with members that fail in either."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from secateur.cluster.controller import CoordinatedChange, CoordinatedChangeResult, LoadPublication, LoadPublisher
from secateur.errors import DuplicateKeyError, LoadFailedError, MemberLostError, TopologyChangedError
from secateur.partitioning.schemes import PartitionScheme
from secateur.partitioning.tables import TableDef

TABLE = TableDef("t", 7, (), (), PartitionScheme())
LOAD = LoadPublication(
    "load", 1, TABLE, "append", {0: [0], 1: [0], 2: [1, 4]}, {"m1": frozenset({0, 1}), "m2": frozenset({1, 2})}
)


class Members:
    """Members that answer from a script and remember what they were asked."""

    def __init__(self, failures: dict[tuple[str, str], Exception] | None = None) -> None:
        self.calls: list[tuple[str, str]] = []
        self.parts: dict[str, Any] = {}
        self.failures = failures or {}
        self.latch: asyncio.Event | None = None

    def is_member(self, member_id: str) -> bool:
        """A member that fails otherwise than by an answer is lost."""
        return not any(
            name == member_id and isinstance(failure, MemberLostError) for (name, _), failure in self.failures.items()
        )

    async def call(self, member_id: str, op: str, args: dict[str, Any]) -> dict[str, Any]:
        self.calls.append((member_id, op))
        if self.latch is not None and op == "load_prepare":
            await self.latch.wait()
        if (member_id, op) in self.failures:
            raise self.failures[member_id, op]
        if op == "load_prepare":
            self.parts[member_id] = args["parts"]
        return {"rows_primary": 10, "rows": 20, "rows_removed": 0}


def publish(members: Members) -> int:
    return asyncio.run(LoadPublisher(members, members.is_member).publish(LOAD)).rows


def test_every_member_prepares_what_it_hosts_before_any_publishes() -> None:
    members = Members()
    assert publish(members) == 20
    assert [op for _, op in members.calls] == ["load_prepare"] * 2 + ["load_publish"] * 2
    assert members.parts == {"m1": [[0, [0]], [1, [0]]], "m2": [[1, [0]], [2, [1, 4]]]}


def test_a_duplicate_key_on_one_member_publishes_nowhere() -> None:
    members = Members({("m2", "load_prepare"): DuplicateKeyError("t: key (id=1) is already there", table="t")})
    with pytest.raises(DuplicateKeyError, match="id=1"):
        publish(members)
    assert [op for _, op in members.calls] == ["load_prepare"] * 2 + ["load_abort"] * 2


def test_rows_of_a_partition_that_is_gone_are_not_lost_quietly() -> None:
    members = Members()
    load = LoadPublication("load", 1, TABLE, "append", {0: [0], 9: [0]}, LOAD.copies)
    with pytest.raises(
        TopologyChangedError,
        match="partition 9 of t, for which load load has rows, is not there any more: nothing was loaded",
    ):
        asyncio.run(LoadPublisher(members, members.is_member).publish(load))
    assert [op for _, op in members.calls] == ["load_abort"] * 2


def test_a_member_lost_before_it_prepared_fails_the_load() -> None:
    members = Members(
        {
            ("m1", "load_prepare"): MemberLostError("gone", member="m1"),
            ("m1", "load_abort"): MemberLostError("gone", member="m1"),
        }
    )
    with pytest.raises(LoadFailedError, match="was not published, and the table is unchanged: gone"):
        publish(members)
    assert ("m2", "load_abort") in members.calls


def test_a_member_lost_after_it_prepared_does_not_undo_the_load() -> None:
    assert publish(Members({("m2", "load_publish"): MemberLostError("gone", member="m2")})) == 20


def test_loads_of_one_table_are_published_one_after_the_other() -> None:
    async def two_at_once() -> list[tuple[str, str]]:
        members = Members()
        members.latch = asyncio.Event()
        publisher = LoadPublisher(members, members.is_member)
        first, second = asyncio.create_task(publisher.publish(LOAD)), asyncio.create_task(publisher.publish(LOAD))
        await asyncio.sleep(0)
        members.latch.set()
        await asyncio.gather(first, second)
        return members.calls

    assert [op for _, op in asyncio.run(two_at_once())] == (["load_prepare"] * 2 + ["load_publish"] * 2) * 2


def test_a_dropped_table_leaves_nothing_at_the_publisher() -> None:
    async def load_and_drop() -> LoadPublisher:
        publisher = LoadPublisher(Members(), bool)
        await publisher.publish(LOAD)
        publisher.forget(TABLE.table_id)
        publisher.forget(TABLE.table_id)
        return publisher

    assert not asyncio.run(load_and_drop())._locks


class Workers(Members):
    """Members of which one works a change out."""

    def __init__(self, found: dict[str, Any], failures: dict[tuple[str, str], Exception] | None = None) -> None:
        super().__init__(failures)
        self.found = found

    async def call(self, member_id: str, op: str, args: dict[str, Any]) -> dict[str, Any]:
        answer = await super().call(member_id, op, args)
        return self.found if op == "change_work_out" else answer


def change_whole(members: Members) -> CoordinatedChangeResult:
    load = LoadPublication("load", 1, TABLE, "mixed", {}, LOAD.copies)
    return asyncio.run(
        LoadPublisher(members, members.is_member).change_whole(CoordinatedChange(load, "m2", {"plan": "p"}))
    )


def test_a_change_is_worked_out_once_all_gates_are_closed_and_then_published() -> None:
    members = Workers({"rows": 3, "parts": {1: [0, 2], 0: [1]}})
    assert change_whole(members).rows == 3
    closed, published = ["change_close"] * 2, ["load_prepare"] * 2 + ["load_publish"] * 2
    assert [op for _, op in members.calls] == [*closed, "change_work_out", *published]
    assert ("m2", "change_work_out") in members.calls
    assert members.parts == {"m1": [[0, [1]], [1, [0, 2]]], "m2": [[1, [0, 2]]]}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"rows": 0, "parts": {}}, CoordinatedChangeResult(0)),
        ({"missing_cells": [4, 7]}, CoordinatedChangeResult(0, (4, 7))),
    ],
    ids=["no row", "ranges to be made"],
)
def test_a_change_without_rows_to_write_opens_the_gates(
    found: dict[str, Any], expected: CoordinatedChangeResult
) -> None:
    members = Workers(found)
    assert change_whole(members) == expected
    assert [op for _, op in members.calls] == ["change_close"] * 2 + ["change_work_out"] + ["load_abort"] * 2


@pytest.mark.parametrize("failing", [("m1", "change_close"), ("m2", "change_work_out"), ("m2", "load_prepare")])
def test_a_change_that_fails_opens_the_gates(failing: tuple[str, str]) -> None:
    members = Workers(
        {"rows": 1, "parts": {0: [1]}}, {failing: DuplicateKeyError("t: key (id=1) is already there", table="t")}
    )
    with pytest.raises(DuplicateKeyError):
        change_whole(members)
    assert [op for _, op in members.calls][-2:] == ["load_abort"] * 2


def test_a_member_lost_while_it_works_a_change_out_changes_nothing() -> None:
    members = Workers({}, {("m2", "change_work_out"): MemberLostError("gone", member="m2")})
    with pytest.raises(LoadFailedError, match="the table is unchanged: gone"):
        change_whole(members)
