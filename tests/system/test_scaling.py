"""Members come, and members leave without taking a row with them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from eventually import eventually
from healed import balanced, create
from stored_copies import copies_of
from together import together

import secateur
from secateur.cluster import Cluster
from secateur.cluster.peers import Peers
from secateur.errors import OperationalError
from secateur.protocol import BuildCopies, DrainMembers, GetRebalancing, ReportMemberLost

ROWS = 400


@pytest.fixture
def mortal() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded", member_silence_s=3.0) as cluster:
        yield cluster


def test_scale_checks_its_argument(mortal: Cluster) -> None:
    with pytest.raises(secateur.errors.ProgrammingError, match="members=0"):
        mortal.scale(0)
    mortal.scale(3)
    assert [member.id for member in mortal.members()] == ["m1", "m2", "m3"]


@pytest.fixture
def moving(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """An event when the first copies are to be built, and one for which they wait."""
    begun, go_on = threading.Event(), threading.Event()
    call = Peers.call

    async def held(self: Peers, member_id: str, message: Any, payload: Any = b"") -> Any:
        if isinstance(message, BuildCopies) and not go_on.is_set():
            begun.set()
            await asyncio.to_thread(go_on.wait, 20)
        return await call(self, member_id, message, payload)

    monkeypatch.setattr(Peers, "call", held)
    yield begun, go_on
    go_on.set()


@pytest.mark.parametrize("forgets", ["by its end", "by another request"])
def test_members_leave_without_a_row_although_the_controller_forgets_it(
    mortal: Cluster, moving: tuple[threading.Event, threading.Event], forgets: str
) -> None:
    begun, go_on = moving

    def forget() -> None:
        assert begun.wait(20)
        if forgets == "by its end":
            mortal.kill_controller()
        else:
            mortal._ask(DrainMembers([]))
        go_on.set()

    with mortal.connect() as conn:
        create(conn, "t", partitions=40, backups=0)
        conn.table("t").load(pa.table({"id": range(ROWS), "v": [1] * ROWS}))
        together(lambda: mortal.scale(1), forget)
        assert [member.id for member in mortal.members() if member.is_alive] == ["m1"]
        assert conn.execute("SELECT count(*), sum(v) FROM t").fetchall() == [(ROWS, ROWS)]


def test_a_table_that_is_created_while_a_member_leaves_takes_rows(
    mortal: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Members were told other owners than clients; seed 3490 of the simulation found it."""
    runtime: Any = mortal._runtime
    stop = runtime.stop_member
    rows = pa.table({"id": range(ROWS), "v": [1] * ROWS})

    def create_and_stop(member_id: str) -> None:
        create(conn, "new", partitions=11)
        conn.table("new").load(rows)
        stop(member_id)

    monkeypatch.setattr(runtime, "stop_member", create_and_stop)
    with mortal.connect() as conn:
        mortal.scale(2)
        assert conn.execute("SELECT count(*), sum(v) FROM new").fetchall() == [(ROWS, ROWS)]
        assert {len(copies) for copies in copies_of(mortal, "new").values()} == {2}


def test_a_member_that_is_drained_gets_nothing_whoever_wishes_what(
    mortal: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another call, or a cold start, between the ends of two members does; seed 376 of the simulation found it."""
    runtime: Any = mortal._runtime
    stop = runtime.stop_member
    got: list[int] = []

    def stop_and_forget(member_id: str) -> None:
        stop(member_id)
        if not got:
            mortal._ask(ReportMemberLost(member_id))
            mortal._ask(DrainMembers([]))
            eventually(lambda: mortal._ask(GetRebalancing()).moves == 0, "partitions are not where they belong")
            got.extend(member.partitions_primary for member in mortal.members() if member.id == "m3")

    monkeypatch.setattr(runtime, "stop_member", stop_and_forget)
    with mortal.connect() as conn:
        create(conn, "t", partitions=40, backups=0)
        conn.table("t").load(pa.table({"id": range(ROWS), "v": [1] * ROWS}))
        mortal._ask(DrainMembers(["m2", "m3"]))
        eventually(lambda: mortal._ask(GetRebalancing()).drained == ("m2", "m3"), "they keep what they have")
        mortal.scale(1)
        assert got == [0]
        assert conn.execute("SELECT count(*), sum(v) FROM t").fetchall() == [(ROWS, ROWS)]
        assert [(member.id, member.is_alive) for member in mortal.members()] == [("m1", True)]
        events = conn.execute("SELECT kind, member FROM secateur.events WHERE kind LIKE 'member_%'").fetchall()
        assert [event for event in events if event[0] != "member_joined"] == [
            *(("member_drained", member) for member in ("m2", "m3")),
            *(("member_left", member) for member in ("m2", "m3")),
        ]


def test_members_that_are_to_leave_are_shown(mortal: Cluster) -> None:
    everybody = ["m1", "m2", "m3"]

    def shown(conn: secateur.Connection) -> list[str]:
        listed = [member.id for member in mortal.members() if member.draining]
        found = conn.execute("SELECT id FROM secateur.members WHERE draining ORDER BY id").fetchall()
        assert [member_id for (member_id,) in found] == listed
        return listed

    with mortal.connect() as conn:
        create(conn, "t", partitions=40, backups=0)
        assert shown(conn) == []
        mortal._ask(DrainMembers(everybody))  # there is nobody to take what they have
        assert shown(conn) == everybody
        assert [member.id for member in mortal.members() if member.is_alive] == everybody
        mortal._ask(DrainMembers([]))
        assert shown(conn) == []
        mortal._ask(DrainMembers(["m3"]))
        assert shown(conn) == ["m3"]
        eventually(lambda: mortal._ask(GetRebalancing()).drained == ("m3",), "m3 keeps what it has")
        assert shown(conn) == ["m3"]


def test_a_controller_that_is_started_anew_knows_who_is_drained(mortal: Cluster) -> None:
    with mortal.connect() as conn:
        create(conn, "t", partitions=40, backups=0)
        conn.table("t").load(pa.table({"id": range(ROWS), "v": [1] * ROWS}))
        mortal._ask(DrainMembers(["m3"]))
        eventually(lambda: mortal._ask(GetRebalancing()).drained == ("m3",), "m3 keeps what it has")
        mortal.kill_controller()
        mortal._ask(DrainMembers([]))
        conn.execute("CREATE TABLE u (id BIGINT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 30")
        eventually(lambda: mortal._ask(GetRebalancing()).moves == 0, "partitions are not where they belong")
        assert {member.id: bool(member.partitions_primary) for member in mortal.members()} == {
            "m1": True,
            "m2": True,
            "m3": False,
        }
        assert mortal._ask(GetRebalancing()).drained == ("m3",)
        mortal.scale(3)
        assert [member.id for member in mortal.members()] == ["m1", "m2", "m4"]
        assert conn.execute("SELECT count(*), sum(v) FROM t").fetchall() == [(ROWS, ROWS)]


def test_growing_ends_what_a_call_that_was_lost_has_begun(
    mortal: Cluster, moving: tuple[threading.Event, threading.Event]
) -> None:
    begun, go_on = moving
    with mortal.connect() as conn:
        create(conn, "t", partitions=40)
        mortal._ask(DrainMembers(["m3"]))
        assert begun.wait(20)
        together(lambda: mortal.scale(4), go_on.set)
        assert [member.id for member in mortal.members()] == ["m1", "m2", "m3", "m4"]
        assert mortal._ask(GetRebalancing()).draining == ()
        eventually(lambda: balanced(mortal), "m3 gets nothing any more")


def test_two_calls_of_scale_do_not_fight(mortal: Cluster, moving: tuple[threading.Event, threading.Event]) -> None:
    begun, go_on = moving
    failed: list[OperationalError] = []

    def scale() -> None:
        try:
            mortal.scale(2)
        except OperationalError as error:
            failed.append(error)

    def other() -> None:
        assert begun.wait(20)
        mortal._ask(DrainMembers(["m2"]))
        eventually(lambda: bool(failed), "the first call goes on")
        go_on.set()

    with mortal.connect() as conn:
        create(conn, "t")
        together(scale, other)
        assert "another call of scale() has m2 leave" in str(failed[0])
        assert len(mortal.members()) == 3
        mortal.scale(2)
        assert len(mortal.members()) == 2


def test_a_cold_start_ends_who_is_drained(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"runtime": "embedded", "data_directory": tmp_path, "cluster_id": "c"}
    with secateur.start(members=3, **settings) as cluster, cluster.connect() as conn:
        create(conn, "t", partitions=31, backups=0)
        conn.table("t").load(pa.table({"id": range(ROWS), "v": [1] * ROWS}))
        cluster._ask(DrainMembers(["m3"]))
        eventually(lambda: cluster._ask(GetRebalancing()).drained == ("m3",), "m3 keeps what it has")
    with secateur.start(members=2, **settings) as cluster, cluster.connect() as conn:
        assert [(member.id, member.is_alive) for member in cluster.members()] == [("m1", True), ("m2", True)]
        assert conn.execute("SELECT count(*), sum(v) FROM t").fetchall() == [(ROWS, ROWS)]


def test_after_a_cold_start_nobody_is_to_leave(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"members": 3, "runtime": "embedded", "data_directory": tmp_path, "cluster_id": "c"}
    everybody = ("m1", "m2", "m3")  # they keep what they own, since nobody stays
    with secateur.start(**settings) as cluster, cluster.connect() as conn:
        create(conn, "t", partitions=31)
        cluster._ask(DrainMembers(list(everybody)))
        eventually(lambda: cluster._ask(GetRebalancing()).moves == 0, "they have nowhere to move it")
        assert cluster._ask(GetRebalancing()).draining == everybody
    with secateur.start(**settings) as cluster:
        assert cluster._ask(GetRebalancing()).draining == ()
