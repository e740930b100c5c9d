"""What a member does for one execution of a statement."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.cluster import Cluster, statements

SQL = "SELECT k, max(v) OVER (PARTITION BY k) AS m FROM {} WHERE k = ? AND n > ?"


def test_keys_that_are_not_there_are_answered_without_a_kernel(lone_cluster: Cluster, table_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with lone_cluster.connect() as conn:
        conn.execute(f"CREATE TABLE {table_name} (k VARCHAR, n BIGINT, v BIGINT, PRIMARY KEY (k, n)) PARTITION BY HASH (k) PARTITIONS 4 BACKUPS 0")
        conn.execute(f"INSERT INTO {table_name} VALUES ('a', 1, 10), ('a', 2, 20)")
        sql = SQL.format(table_name)
        assert conn.execute(sql, ["a", 0]).fetchall() == [("a", 20), ("a", 20)]
        called: list[Any] = []
        real = statements.run
        monkeypatch.setattr(statements, "run", lambda *args, **options: called.append(args) or real(*args, **options))
        gone = conn.execute(sql, ["a", 2])
        assert gone.fetchall() == []
        assert [column[0] for column in gone.description or ()] == ["k", "m"]
        assert gone.stats is not None
        assert gone.stats.execution == "local"
        assert conn.execute(sql, ["b", 0]).fetch_arrow_table().num_rows == 0
        assert called == []
        assert conn.execute(f"SELECT count(*), median(v) FROM {table_name} WHERE k = ? AND n > ?", ["a", 9]).fetchall() == [(0, None)]
        assert called == []
        assert conn.execute(sql, ["a", 1]).fetchall() == [("a", 20)]
        assert len(called) == 1
