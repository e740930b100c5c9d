"""Clients of a table with many partitions fetch the owners that their statements need, whatever becomes of these."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from requests_of import requests_of

import secateur
from secateur import Pipeline
from secateur.cluster import Cluster
from secateur.connectors import collect
from secateur.partitioning.topology import OWNERS_PAGE
from secateur.processors import count_rows
from secateur.protocol import Operation

PARTITIONS = 5 * OWNERS_PAGE
ROWS = 3000


@pytest.fixture(scope="module")
def own() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded") as cluster, cluster.connect() as conn:
        conn.execute(
            f"CREATE TABLE t (k BIGINT, v BIGINT, PRIMARY KEY (k)) PARTITION BY HASH (k) PARTITIONS {PARTITIONS}"
            " BACKUPS 1"
        )
        conn.table("t").load(pa.table({"k": range(ROWS), "v": range(ROWS)}))
        yield cluster


@pytest.fixture
def conn(own: Cluster) -> Iterator[secateur.Connection]:
    """A connection that knows no owners yet."""
    with own.connect() as connection:
        assert known(connection) == 0
        yield connection


def known(conn: secateur.Connection) -> int:
    """The number of partitions of the table whose owners a connection knows."""
    (ownership,) = [owners for owners in conn._session.topology.owners.values() if owners.partitions == PARTITIONS]
    return int((ownership.owners < len(ownership.members)).sum())


def test_a_look_up_fetches_one_page_of_owners_once(own: Cluster, conn: secateur.Connection) -> None:
    with requests_of(own, {Operation.GET_OWNER_PAGES, Operation.EXECUTE}) as seen:
        for _ in range(3):
            assert conn.execute("SELECT v FROM t WHERE k = ?", [7]).fetchall() == [(7,)]
    assert seen == [Operation.GET_OWNER_PAGES, *[Operation.EXECUTE] * 3]
    assert known(conn) == OWNERS_PAGE


def test_a_scan_of_everything_needs_no_owners(own: Cluster, conn: secateur.Connection) -> None:
    with requests_of(own, {Operation.GET_OWNER_PAGES}) as seen:
        assert conn.execute("SELECT count(*) FROM t").fetchall() == [(ROWS,)]
    assert seen == []


def test_every_way_to_the_owners_fetches_what_it_needs(own: Cluster) -> None:
    def read(conn: secateur.Connection) -> None:
        assert conn.execute("SELECT sum(v) FROM t WHERE k IN (1, 2, 3, 4)").fetchall() == [(10,)]

    def change(conn: secateur.Connection) -> None:
        assert conn.execute("UPDATE t SET v = v WHERE k = ?", [5]).rowcount == 1
        assert conn.execute("UPDATE t SET v = v WHERE k IN (5, 6, 7)").rowcount == 3

    def write(conn: secateur.Connection) -> None:
        assert conn.execute("INSERT INTO t VALUES (?, ?)", [ROWS, 1]).rowcount == 1
        assert conn.execute("DELETE FROM t WHERE k = ?", [ROWS]).rowcount == 1

    def load(conn: secateur.Connection) -> None:
        rows = pa.table({"k": range(ROWS), "v": range(ROWS)})
        assert conn.table("t").load(rows.to_reader(), mode="upsert") == ROWS

    def look(conn: secateur.Connection) -> None:
        table = conn.table("t")
        assert {table.owner_of(partition) for partition in range(0, PARTITIONS, 7)} == {"m1", "m2", "m3"}

    def run(conn: secateur.Connection) -> None:
        for light in (False, True):
            dag = Pipeline().read_table("t", where="k < ?", params=[20]).aggregate(n=count_rows()).write_to(collect())
            job = conn.submit(dag, light=light)
            assert job.result(timeout_s=30).to_pylist() == [{"n": 20}]
            assert conn.plan(dag).to_dict()

    for use in (read, change, write, load, look, run):
        with own.connect() as conn:
            use(conn)


def test_owners_known_stay_while_other_tables_come_and_go(own: Cluster, conn: secateur.Connection) -> None:
    look_up = "SELECT v FROM t WHERE k = ?"
    assert conn.execute(look_up, [7]).fetchall() == [(7,)]
    with own.connect() as other:
        other.execute("CREATE TABLE u (k BIGINT, PRIMARY KEY (k)) PARTITION BY HASH (k) PARTITIONS 7")
    before = conn._session.topology.version
    conn.execute("SELECT count(*) FROM u")
    assert conn._session.topology.version > before
    with requests_of(own, {Operation.GET_OWNER_PAGES}) as seen:
        assert conn.execute(look_up, [7]).fetchall() == [(7,)]
    assert seen == []
    conn.execute("DROP TABLE u")


@pytest.mark.smoke
def test_owners_that_changed_are_fetched_again() -> None:
    with secateur.start(members=3, runtime="embedded", member_silence_s=2.0) as cluster, cluster.connect() as conn:
        conn.execute(
            f"CREATE TABLE t (k BIGINT, v BIGINT, PRIMARY KEY (k)) PARTITION BY HASH (k) PARTITIONS {PARTITIONS}"
            " BACKUPS 1"
        )
        conn.table("t").load(pa.table({"k": range(100), "v": range(100)}))
        for k in range(100):
            assert conn.execute("SELECT v FROM t WHERE k = ?", [k]).fetchall() == [(k,)]
        cluster._runtime.kill_member("m2")
        for k in range(100):
            assert conn.execute("SELECT v FROM t WHERE k = ?", [k]).fetchall() == [(k,)]
        assert "m2" not in conn._session.topology.member_ids
