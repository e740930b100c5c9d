"""What Spark's planning process keeps between two reads: a connection, which finds out what has changed meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import secateur
from secateur.cluster import Cluster
from secateur.connectors.spark.endpoint import Endpoint
from secateur.connectors.spark.read_plan import close_kept_sessions, plan_tasks
from secateur.connectors.spark.read_values import ReadOptions, RowsTask
from secateur.errors import UnknownTableError, UnreachableError
from secateur.protocol import decode_table

SQL = "SELECT * FROM t WHERE id = ?"
DDL = "CREATE TABLE t (id BIGINT PRIMARY KEY, v {}) PARTITION BY HASH (id) PARTITIONS 8 BACKUPS 1"


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    close_kept_sessions()
    yield
    close_kept_sessions()


def endpoint(cluster: Cluster) -> Endpoint:
    return Endpoint(cluster.address, cluster.token)


def read(cluster: Cluster, key: int, sql: str = SQL) -> list[dict[str, Any]]:
    tasks = plan_tasks(endpoint(cluster), ReadOptions(sql, None, [key], 1 << 26, 600.0))
    assert all(isinstance(task, RowsTask) for task in tasks)
    tables = [decode_table(task.rows, ranges=False) for task in tasks if isinstance(task, RowsTask)]
    return pa.concat_tables(tables).to_pylist() if tables else []


def test_each_read_has_the_rows_and_the_table_of_its_own_time() -> None:
    with secateur.start(members=3, runtime="embedded") as cluster, cluster.connect() as conn:
        conn.execute(DDL.format("BIGINT"))
        conn.execute("INSERT INTO t SELECT i, i FROM range(100) r(i)")
        assert read(cluster, 7) == [{"id": 7, "v": 7}]
        conn.execute("UPDATE t SET v = -1 WHERE id = 7")
        conn.execute("DELETE FROM t WHERE id = 8")
        assert read(cluster, 7) == [{"id": 7, "v": -1}]
        assert read(cluster, 8) == []
        conn.execute("DROP TABLE t")
        with pytest.raises(UnknownTableError):
            read(cluster, 7)
        conn.execute(DDL.format("VARCHAR"))
        conn.execute("INSERT INTO t VALUES (7, 'seven')")
        assert read(cluster, 7) == [{"id": 7, "v": "seven"}]


def test_partitions_that_move_and_members_that_are_lost_are_followed() -> None:
    with secateur.start(members=3, runtime="embedded") as cluster, cluster.connect() as conn:
        conn.execute(DDL.format("BIGINT"))
        conn.execute("INSERT INTO t SELECT i, i FROM range(100) r(i)")
        expected = [[{"id": key, "v": key}] for key in range(100)]
        assert [read(cluster, key) for key in range(100)] == expected
        cluster.scale(5)
        assert [read(cluster, key) for key in range(100)] == expected
        cluster.kill_member(cluster.members()[0].id)
        assert [read(cluster, key) for key in range(100)] == expected


def test_another_cluster_at_the_same_address_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secateur.client.execution.retry_policy.CONNECT_TIMEOUT_S", 0.5)
    with secateur.start(members=2, runtime="embedded", token="same") as first, first.connect() as conn:
        conn.execute(DDL.format("BIGINT"))
        conn.execute("INSERT INTO t VALUES (7, 7)")
        assert read(first, 7) == [{"id": 7, "v": 7}]
        port = int(first.address.rsplit(":", 1)[1])
    with secateur.start(members=2, runtime="embedded", token="same", port=port) as second, second.connect() as conn:
        assert second.address == first.address
        conn.execute(DDL.format("VARCHAR"))
        conn.execute("INSERT INTO t VALUES (7, 'other')")
        assert read(second, 7) == [{"id": 7, "v": "other"}]
    with pytest.raises(UnreachableError):
        read(second, 7)
