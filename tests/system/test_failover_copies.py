"""A member or the controller dies at the worst moment of a change: what was acknowledged stays, copies are equal, and
the table takes writes again.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from eventually import eventually
from held_requests import Held

import secateur
from secateur.cluster import Cluster
from secateur.errors import Error
from secateur.partitioning.topology import Topology
from secateur.protocol import Operation

DDL = "CREATE TABLE t (id BIGINT, v BIGINT, PRIMARY KEY (id)) PARTITION BY HASH (id) PARTITIONS 8 BACKUPS {backups}"


@pytest.fixture
def mortal() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded", member_silence_s=2.0) as cluster:
        yield cluster


def members_of(cluster: Cluster) -> dict[str, Any]:
    members: dict[str, Any] = cluster._runtime._members  # type: ignore[attr-defined]
    return members


def key_of(conn: secateur.Connection, primary: str) -> int:
    table = conn.table("t")
    return next(key for key in range(1000) if table.owner_of(table.partition_of({"id": key})) == primary)


def rows_on(cluster: Cluster, member: str, conn: secateur.Connection, key: int) -> list[dict[str, int]]:
    """The rows of the partition of a key as one member has them, primary or not."""
    handle = conn.table("t")

    async def read() -> list[dict[str, int]]:
        store = members_of(cluster)[member]._storage.store
        table: pa.Table = store.relation(store.tables()[0].table_id, [handle.partition_of({"id": key})])
        return table.to_pylist()

    return cluster._runtime._loop.run(read())  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize(
    ("change", "before", "after"),
    [
        pytest.param("INSERT INTO t VALUES (?, 42)", [], [(42,)], id="insert"),
        pytest.param("UPDATE t SET v = v + 1 WHERE id = ?", [(1,)], [(2,)], id="update"),
        pytest.param("DELETE FROM t WHERE id = ?", [(1,)], [], id="delete"),
    ],
)
@pytest.mark.smoke
def test_a_change_whose_primary_dies_between_two_copies_survives_the_next_loss(
    mortal: Cluster, change: str, before: list[Any], after: list[Any]
) -> None:
    with mortal.connect() as conn, mortal.connect() as other, ThreadPoolExecutor(1) as pool:
        conn.execute(DDL.format(backups=2))
        key = key_of(conn, "m1")
        if before:
            conn.execute("INSERT INTO t VALUES (?, ?)", [key, before[0][0]])
        topology = conn._session.topology
        primary, first, second = topology.ownership(conn.table("t").scheme.affinity_group()).holders(
            conn.table("t").partition_of({"id": key})
        )
        assert primary == "m1"
        held = Held(mortal, members_of(mortal)[second].handlers, Operation.WRITE_COPY)
        changing = pool.submit(other.execute, change, [key])
        assert held.arrived.wait(20)
        expected = [{"id": key, "v": v} for (v,) in after]
        eventually(lambda: rows_on(mortal, first, conn, key) == expected, "the first backup has the change")
        assert rows_on(mortal, second, conn, key) == [{"id": key, "v": v} for (v,) in before]
        mortal.kill_member("m1")
        held.drop()
        changing.result(30)
        assert rows_on(mortal, second, conn, key) == expected
        mortal.kill_member(first)
        assert conn.execute("SELECT v FROM t WHERE id = ?", [key]).fetchall() == after


def test_copies_are_equal_after_a_failover_when_the_client_has_gone_too(mortal: Cluster) -> None:
    with mortal.connect() as conn, ThreadPoolExecutor(1) as pool:
        conn.execute(DDL.format(backups=2))
        key = key_of(conn, "m1")
        conn.execute("SELECT v FROM t WHERE id = ?", [key]).fetchall()
        _, first, second = conn._session.topology.ownership(conn.table("t").scheme.affinity_group()).holders(
            conn.table("t").partition_of({"id": key})
        )
        held = Held(mortal, members_of(mortal)[second].handlers, Operation.WRITE_COPY)
        client = mortal.connect()
        writing = pool.submit(client.execute, "INSERT INTO t VALUES (?, 42)", [key])
        assert held.arrived.wait(20)
        client.close()
        with pytest.raises(Error):
            writing.result(30)
        eventually(lambda: bool(rows_on(mortal, first, conn, key)), "the first backup has the row")
        mortal.kill_member("m1")
        held.drop()
        eventually(lambda: rows_on(mortal, second, conn, key) == [{"id": key, "v": 42}], "the other copy gets the row")
        assert conn.execute("SELECT v FROM t WHERE id = ?", [key]).fetchall() == [(42,)]


def crash_controller(cluster: Cluster) -> None:
    """End the controller without a word to anybody: what it would say at its end reaches nobody."""
    runtime: Any = cluster._runtime

    async def crash() -> None:
        runtime._controller._peers.update(Topology(0, (), {}))
        await runtime._controller.stop()

    runtime._loop.run(crash())


def test_a_table_takes_writes_again_when_the_controller_dies_in_the_middle_of_a_change(mortal: Cluster) -> None:
    with mortal.connect() as conn, mortal.connect() as other, ThreadPoolExecutor(1) as pool:
        conn.execute(DDL.format(backups=1))
        upsert = "INSERT OR REPLACE INTO t VALUES (?, ?)"
        for key in range(20):
            conn.execute(upsert, [key, 0])
        select = "SELECT v FROM t WHERE id = ?"
        for key in range(20):
            conn.execute(select, [key]).fetchall()  # every member has the plan, and can answer without the controller
        held = [Held(mortal, member.handlers, Operation.WORK_OUT_CHANGE) for member in members_of(mortal).values()]
        merge = "MERGE INTO t USING (SELECT 1 AS id, 7 AS v) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v"
        other._session.controller_wait_s = 1.0
        changing = pool.submit(other.execute, merge)
        eventually(lambda: any(work_out.arrived.is_set() for work_out in held), "the change is worked out")
        crash_controller(mortal)
        with pytest.raises(Error):
            changing.result(30)
        for key in range(20):
            conn.execute(upsert, [key, 1])  # of each partition, at each primary
        assert [conn.execute(select, [key]).fetchall() for key in range(20)] == [[(1,)]] * 20
        for work_out in held:
            work_out.drop()


def test_a_load_that_some_members_have_published_when_the_controller_dies_is_published_by_all(mortal: Cluster) -> None:
    with mortal.connect() as conn, mortal.connect() as other, ThreadPoolExecutor(1) as pool:
        conn.execute(DDL.format(backups=1))
        select = "SELECT v FROM t WHERE id = ?"
        for key in range(20):
            assert conn.execute(select, [key]).fetchall() == []
        held = Held(mortal, members_of(mortal)["m2"].handlers, Operation.PUBLISH_PREPARED_LOAD)
        rows = pa.table({"id": range(100), "v": [1] * 100})
        other._session.controller_wait_s = 1.0
        loading = pool.submit(other.table("t").load, rows)
        assert held.arrived.wait(20)
        eventually(lambda: members_of(mortal)["m3"]._storage.store.stats()[0].rows > 0, "m3 has published")
        crash_controller(mortal)
        with pytest.raises(Error):
            loading.result(30)
        held.drop()
        eventually(
            lambda: (
                not members_of(mortal)["m2"]
                ._storage.places.latch(members_of(mortal)["m2"]._storage.store.tables()[0].table_id)
                .is_closed
            ),
            "the gate of m2 opens",
        )
        assert [conn.execute(select, [key]).fetchall() for key in range(20)] == [[(1,)]] * 20
        counts = [member._storage.store.stats()[0].partition_rows for member in members_of(mortal).values()]
        assert sum(sum(count.values()) for count in counts) == 2 * 100  # the primaries and their backups
