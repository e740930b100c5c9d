"""CREATE INDEX on a cluster: who may see it, and what it spares."""

from __future__ import annotations

import pyarrow as pa
import pytest

import secateur
from secateur.cluster import Cluster
from secateur.errors import TableExistsError, UnknownTableError

ROWS = 20_000


@pytest.fixture
def numbers(conn: secateur.Connection, table_name: str) -> str:
    conn.execute(f"CREATE TABLE {table_name} (k BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (k) PARTITIONS 3")
    conn.table(table_name).load(
        pa.table({"k": pa.array(range(ROWS)), "v": pa.array([key * 7 % ROWS for key in range(ROWS)])})
    )
    return table_name


def test_an_index_comes_and_goes(cluster: Cluster, conn: secateur.Connection, numbers: str) -> None:
    sql = f"SELECT k FROM {numbers} WHERE v = 14"
    assert "index" not in str(conn.explain(sql))
    before = conn.execute(sql).fetchall()
    conn.execute(f"CREATE INDEX {numbers}_v ON {numbers} (v)")
    assert f"  index {numbers}_v: v = (14)" in str(conn.explain(sql))
    assert conn.execute(sql).fetchall() == before == [(2,)]
    listed = f"SELECT * FROM secateur.indexes WHERE table_name = '{numbers}'"
    assert conn.execute(listed).fetchall() == [(f"{numbers}_v", numbers, ["v"])]
    with pytest.raises(TableExistsError, match="exists already"):
        conn.execute(f"CREATE INDEX {numbers}_V ON {numbers} (k)")
    conn.execute(f"CREATE INDEX IF NOT EXISTS {numbers}_v ON {numbers} (v)")
    with cluster.connect() as other:
        other.execute(f"DROP INDEX {numbers}_v")
    assert conn.execute(listed).fetchall() == []
    assert conn.execute(sql).fetchall() == before
    assert "index" not in str(conn.explain(sql))
    with pytest.raises(UnknownTableError, match="does not exist"):
        conn.execute(f"DROP INDEX {numbers}_v")
    conn.execute(f"DROP INDEX IF EXISTS {numbers}_v")


@pytest.mark.smoke
def test_it_is_right_after_loads_changes_and_replacement(conn: secateur.Connection, numbers: str) -> None:
    conn.execute(f"CREATE INDEX {numbers}_v ON {numbers} (v)")
    sql = f"SELECT k FROM {numbers} WHERE v = ? ORDER BY k"
    assert conn.execute(sql, [7]).fetchall() == [(1,)]
    conn.execute(f"UPDATE {numbers} SET v = 7 WHERE k IN (5, 6)")
    conn.execute(f"DELETE FROM {numbers} WHERE k = 1")
    assert conn.execute(sql, [7]).fetchall() == [(5,), (6,)]
    conn.table(numbers).load({"k": [ROWS], "v": [7]}, mode="upsert")
    assert conn.execute(sql, [7]).fetchall() == [(5,), (6,), (ROWS,)]
    conn.table(numbers).load({"k": [1, 2], "v": [7, 8]}, mode="overwrite")
    assert conn.execute(sql, [7]).fetchall() == [(1,)]


def test_members_count_its_bytes(cluster: Cluster, conn: secateur.Connection, numbers: str) -> None:
    conn.execute(f"CREATE INDEX {numbers}_v ON {numbers} (v)")
    before = sum(member.bytes for member in cluster.members())
    conn.execute(f"SELECT k FROM {numbers} WHERE v = 14").fetchall()
    assert sum(member.bytes for member in cluster.members()) >= before + ROWS * 16
