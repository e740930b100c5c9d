"""Short work goes on while as many statements as there are kernel threads, and more, never end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import pyarrow as pa
import pytest

import secateur
from secateur.cluster import Cluster

ENDLESS = (
    "SELECT count(*), max(a.v * b.v + c.v) FROM {table} a, {table} b, {table} c, {table} d WHERE a.v + b.v = c.v + d.v"
    " AND a.id > ?"
)


@pytest.fixture(scope="module", params=[pytest.param(1, marks=pytest.mark.slow), 3])
def busy_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with (
        secateur.start(members=request.param, runtime="embedded", kernel_threads=2) as cluster,
        cluster.connect() as conn,
    ):
        for name, rows in (("large", 150_000), ("small", 5_000)):
            conn.execute(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS 8")
            conn.table(name).load(pa.table({"id": range(rows), "v": range(rows)}))
        yield cluster


@contextmanager
def endless(cluster: Cluster, table: str, count: int) -> Iterator[list[BaseException]]:
    """Statements that work for as long as the block, on all members; yields how they ended, which none should
    before.
    """
    ended: list[BaseException] = []

    def run(conn: secateur.Connection) -> None:
        try:
            conn.execute(ENDLESS.format(table=table), [7]).fetchall()
        except secateur.Error as error:
            ended.append(error)

    def executions() -> int:
        return sum(member.executions for member in cluster.members())

    with ExitStack() as stack:
        connections = [
            stack.enter_context(closing(secateur.connect(cluster.address, timeout_s=None))) for _ in range(count)
        ]
        threads = [threading.Thread(target=run, args=(conn,)) for conn in connections]
        before = executions()
        for thread in threads:
            thread.start()
        deadline_s = time.monotonic() + 30
        while executions() < before + count:
            assert time.monotonic() < deadline_s
            threading.Event().wait(0.01)
        yield ended
        assert not ended
        for conn in connections:
            conn.close()
        for thread in threads:
            thread.join(30)


@pytest.mark.parametrize("held_by", ["large", "small"])
def test_short_work_does_not_wait_for_long_statements(busy_cluster: Cluster, table_name: str, held_by: str) -> None:
    with secateur.connect(busy_cluster.address, timeout_s=60) as conn:
        conn.execute(f"CREATE TABLE {table_name} (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS 8")
        with endless(busy_cluster, held_by, 5):
            conn.table(table_name).load(pa.table({"id": range(1000), "v": range(1000)}))
            conn.table(table_name).load(pa.table({"id": range(2000), "v": [1] * 2000}), mode="upsert")
            conn.execute(f"INSERT INTO {table_name} VALUES (5000, 1)")
            conn.execute(f"UPDATE {table_name} SET v = v + 1 WHERE id = 5000")
            conn.execute(f"UPDATE {table_name} SET v = (v * 2) % 1000 WHERE id < 100")
            conn.execute(
                f"MERGE INTO {table_name} t USING (SELECT 5000 AS id, 7 AS v) s ON t.id = s.id WHEN MATCHED THEN UPDATE"
                " SET v = s.v"
            )
            conn.execute(f"DELETE FROM {table_name} WHERE id BETWEEN 1500 AND 1600")
            assert conn.execute(
                f"SELECT median(v), string_agg(v::VARCHAR, ',') FROM {table_name} WHERE id = ?", [5000]
            ).fetchall() == [(7.0, "7")]
            assert conn.execute(f"SELECT count(*), median(v) FROM {table_name}").fetchall() == [(1900, 1.0)]
            assert conn.execute("SELECT median(v) FROM large WHERE id IN (?, ?)", [3, 5]).fetchall() == [(4.0,)]
            assert conn.execute("SELECT v % 10, count(*) FROM small GROUP BY 1 ORDER BY 1 LIMIT 1").fetchall() == [
                (0, 500)
            ]


@pytest.mark.smoke
def test_writes_go_on_while_a_load_is_computed(busy_cluster: Cluster, table_name: str) -> None:
    """A load of rows that are being written to is right, whenever the writes come."""
    with busy_cluster.connect() as conn, busy_cluster.connect() as other:
        conn.execute(f"CREATE TABLE {table_name} (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS 2")
        stop = threading.Event()
        written: list[int] = []

        def write() -> None:
            number = 100_000
            while not stop.is_set():
                other.execute(f"INSERT INTO {table_name} VALUES (?, ?)", [number, number])
                written.append(number)
                number += 1

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for round_ in range(10):
                conn.table(table_name).load(pa.table({"id": range(20_000), "v": [round_] * 20_000}), mode="upsert")
                conn.table(table_name).load(pa.table({"id": range(-1 - round_, -round_), "v": [round_]}))
        finally:
            stop.set()
            writer.join(30)
        assert written
        assert conn.execute(
            f"SELECT count(*), min(v), max(v) FROM {table_name} WHERE id BETWEEN 0 AND 19999"
        ).fetchall() == [(20_000, 9, 9)]
        assert conn.execute(f"SELECT count(*) FROM {table_name} WHERE id < 0").fetchall() == [(10,)]
        assert conn.execute(f"SELECT count(*), count(DISTINCT id) FROM {table_name} WHERE id >= 100000").fetchall() == [
            (len(written), len(written))
        ]
