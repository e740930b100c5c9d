"""What the planner knows of tables, in a running cluster."""

from __future__ import annotations

import pyarrow as pa
import pytest

from secateur.cluster import Cluster
from secateur.errors import UnknownTableError


@pytest.mark.parametrize("placed", ["PARTITION BY HASH (id) PARTITIONS 13", "REPLICATED"])
def test_every_row_counts_once(cluster: Cluster, table_name: str, placed: str) -> None:
    with cluster.connect() as conn:
        conn.execute(f"CREATE TABLE {table_name} (id BIGINT PRIMARY KEY, kind VARCHAR) {placed}")
        table = conn.table(table_name)
        assert table.statistics().rows == 0
        table.load(
            pa.table({"id": list(range(500)), "kind": [None if n % 5 == 0 else f"k{n % 7}" for n in range(500)]})
        )
        conn.execute(f"INSERT INTO {table_name} VALUES (1000, 'new')")
        conn.execute(f"DELETE FROM {table_name} WHERE id = 3")
        statistics = table.statistics()
        assert statistics.rows == 500
        assert (
            statistics.columns["id"].distinct,
            statistics.columns["id"].minimum,
            statistics.columns["id"].maximum,
        ) == (500, 0, 1000)
        assert (statistics.columns["kind"].distinct, statistics.columns["kind"].nulls) == (8, 100)


def test_an_unknown_table_has_none(cluster: Cluster, table_name: str) -> None:
    with cluster.connect() as conn:
        conn.execute(f"CREATE TABLE {table_name} (id BIGINT PRIMARY KEY)")
        table = conn.table(table_name)
        conn.execute(f"DROP TABLE {table_name}")
        with pytest.raises(UnknownTableError):
            table.statistics()


def test_looking_at_rows_is_no_statement(cluster: Cluster, table_name: str) -> None:
    with cluster.connect() as conn:
        conn.execute(f"CREATE TABLE {table_name} (id BIGINT PRIMARY KEY)")
        table = conn.table(table_name)
        before = [member.frames_received for member in cluster.members()]
        table.statistics()
        assert [member.frames_received for member in cluster.members()] == before
