"""A member or the controller is killed between the phases of a change, of new ranges, and of a move of partitions."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from eventually import eventually
from healed import healed
from stored_copies import copies_of

import secateur
from secateur.cluster import Cluster
from secateur.errors import Error
from secateur.protocol import Operation

ROWS = 200
VICTIMS = ["m1", "m2", "m3", "controller"]


pytestmark = pytest.mark.sampled(one_in=3)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded", member_silence_s=2.0) as cluster:
        yield cluster


def kill_at(cluster: Cluster, operation: Operation, victim: str) -> list[str]:
    """Kill a process once, when the first request of an operation reaches a member; returns what was killed."""
    runtime: Any = cluster._runtime
    killed: list[str] = []
    dying: list[Any] = []

    def guarded(handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
        async def handle(request: Any) -> Any:
            if not killed:
                killed.append(victim)
                controller, loop = runtime._controller, asyncio.get_running_loop()
                if victim == "controller":
                    dying.append(loop.run_in_executor(None, cluster.kill_controller))
                    while not controller._peers._is_cut:  # noqa: ASYNC110 -- its tasks end only when this one has
                        await asyncio.sleep(0.001)
                else:
                    await asyncio.shield(loop.run_in_executor(None, cluster.kill_member, victim))
            answer = handler(request)
            return await answer if inspect.isawaitable(answer) else answer

        return handle

    for member in runtime._members.values():
        member.handlers[operation] = guarded(member.handlers[operation])
    return killed


def all_equal(cluster: Cluster, name: str) -> None:
    for partition, copies in copies_of(cluster, name).items():
        assert len(copies) == 2
        assert copies[0] == copies[1], f"the copies of partition {partition} differ"


def create(conn: secateur.Connection) -> None:
    conn.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS 12 BACKUPS 1")
    conn.table("t").load(pa.table({"id": range(ROWS), "v": [0] * ROWS}))


@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("operation", [Operation.STAGE_CHANGE, Operation.PREPARE_LOAD, Operation.PUBLISH_PREPARED_LOAD])
def test_a_change_of_several_partitions_is_made_once_or_not_at_all(
    cluster: Cluster, operation: Operation, victim: str
) -> None:
    with cluster.connect() as conn, cluster.connect() as other:
        create(conn)
        killed = kill_at(cluster, operation, victim)
        made, unknown = 0, 0
        for _ in range(3):
            try:
                assert conn.execute("UPDATE t SET v = v + 1").rowcount == ROWS
                made += 1
            except Error as error:
                unknown += not error.retry_safe
        assert killed == [victim]
        assert made >= 2
        ((count, low, high),) = other.execute("SELECT count(*), min(v), max(v) FROM t").fetchall()
        assert (count, low) == (ROWS, high), "a part of the change is missing"
        assert made <= low <= made + unknown
        healed(conn)
        all_equal(cluster, "t")


def test_rows_of_returning_are_answered_by_a_controller_that_was_started_anew(cluster: Cluster) -> None:
    with cluster.connect() as conn:
        create(conn)
        killed = kill_at(cluster, Operation.PUBLISH_PREPARED_LOAD, "controller")
        changed = conn.execute("UPDATE t SET v = v + id + 1 RETURNING id, v")
        assert killed == ["controller"]
        assert sorted(changed.fetchall()) == [(key, key + 1) for key in range(ROWS)]
        assert conn.execute("SELECT min(v - id), max(v - id) FROM t").fetchall() == [(1, 1)]


def test_a_change_that_is_asked_for_again_says_how_many_rows_it_has_changed(cluster: Cluster) -> None:
    """Rows that it removes, moves and adds each count once, as in its first answer, which was lost."""
    merge = (
        "MERGE INTO t USING (SELECT range AS id FROM range(150, 250)) AS s ON t.id = s.id"
        " WHEN MATCHED AND s.id < 170 THEN DELETE WHEN MATCHED THEN UPDATE SET id = -t.id"
        " WHEN NOT MATCHED THEN INSERT VALUES (s.id, 1)"
    )
    with cluster.connect() as conn:
        create(conn)
        killed = kill_at(cluster, Operation.PUBLISH_PREPARED_LOAD, "controller")
        assert conn.execute(merge).rowcount == 100
        assert killed == ["controller"]
        assert conn.execute("SELECT count(*), sum(id < 0) FROM t").fetchall() == [(ROWS + 50 - 20, 30)]


@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("operation", [Operation.PREPARE_ALTER, Operation.COMMIT_ALTER])
@pytest.mark.parametrize("has_catch_all", [False, True], ids=["no default partition", "a default partition is cut"])
def test_new_ranges_are_there_or_not(cluster: Cluster, operation: Operation, victim: str, has_catch_all: bool) -> None:
    with cluster.connect() as conn, cluster.connect() as other:
        rest = ", DEFAULT PARTITION" if has_catch_all else ""
        conn.execute(
            f"CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY RANGE (id)"
            f" (PARTITION 0 <= VALUES < 10{rest}) BACKUPS 1"
        )
        conn.execute("INSERT INTO t VALUES (1, 1)")
        killed = kill_at(cluster, operation, victim)
        for _ in range(5):
            try:
                conn.execute("ALTER TABLE t ADD PARTITION 10 <= VALUES < 20")
            except Error as error:
                if "overlap" in str(error):  # the one before has made them
                    break
                if not error.retry_safe:
                    raise
            else:
                break
        assert killed == [victim]
        for writer, key in ((conn, 11), (other, 12)):
            writer.execute("INSERT INTO t VALUES (?, 1)", [key])
        assert other.execute("SELECT count(*) FROM t").fetchall() == [(3,)]
        assert conn.execute("SELECT v FROM t WHERE id = 12").fetchall() == [(1,)]
        conn.execute("ALTER TABLE t ADD PARTITION 20 <= VALUES < 30")
        healed(conn)
        all_equal(cluster, "t")


@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("operation", [Operation.CLOSE_FOR_CHANGE, Operation.PREPARE_ALTER, Operation.COMMIT_ALTER])
def test_a_new_column_is_there_or_not(cluster: Cluster, operation: Operation, victim: str) -> None:
    with cluster.connect() as conn, cluster.connect() as other:
        create(conn)
        other.execute("SELECT * FROM t WHERE id = ?", [1]).fetchall()
        killed = kill_at(cluster, operation, victim)
        for _ in range(5):
            try:
                conn.execute("ALTER TABLE t ADD COLUMN w BIGINT DEFAULT 5")
            except Error as error:
                if "already" in str(error):  # the one before has added it
                    break
                if not error.retry_safe:
                    raise
            else:
                break
        assert killed == [victim]
        assert other.execute("SELECT * FROM t WHERE id = ?", [1]).fetchall() == [(1, 0, 5)]
        assert other.execute("UPDATE t SET w = w + 1").rowcount == ROWS
        assert other.execute("UPDATE t SET w = w + 1 WHERE id = 2").rowcount == 1
        assert conn.execute("SELECT count(*), sum(v), sum(w) FROM t").fetchall() == [(ROWS, 0, 6 * ROWS + 1)]
        healed(conn)
        all_equal(cluster, "t")


@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("operation", [Operation.OPEN_COPIES, Operation.COUNT_COPIES, Operation.DROP_COPIES])
def test_partitions_that_move_lose_no_row(cluster: Cluster, operation: Operation, victim: str) -> None:
    with cluster.connect() as conn:
        create(conn)
        conn.execute("UPDATE t SET v = id")
        killed = kill_at(cluster, operation, victim)
        for _ in range(3):
            try:
                cluster.scale(5)
                break
            except Error as error:
                if not error.retry_safe:
                    raise
        eventually(lambda: killed == [victim], "nothing was killed")
        conn.execute("INSERT OR REPLACE INTO t VALUES (0, 1000)")
        assert conn.execute("SELECT count(*), sum(v) FROM t").fetchall() == [(ROWS, sum(range(ROWS)) + 1000)]
        healed(conn)
        all_equal(cluster, "t")
