"""Views on a cluster: who has an old plan of a view is told, and never answers from it."""

from __future__ import annotations

import pytest

import secateur
from secateur.cluster import Cluster
from secateur.errors import UnknownTableError


@pytest.mark.smoke
def test_other_sessions_see_a_replaced_view_at_once(cluster: Cluster, table_name: str) -> None:
    view = f"v_{table_name}"
    with cluster.connect() as one, cluster.connect() as other:
        one.execute(f"CREATE TABLE {table_name} (k INTEGER PRIMARY KEY, n INTEGER)")
        one.execute(f"INSERT INTO {table_name} VALUES (1, 10), (2, 20)")
        one.execute(f"CREATE VIEW {view} AS SELECT k, n FROM {table_name} WHERE k = 1")
        questions = [f"SELECT n FROM {view}", f"SELECT n FROM {view} WHERE k = 2"]
        assert [other.execute(sql).fetchall() for sql in questions] == [[(10,)], []]
        assert [other.execute(sql).fetchall() for sql in questions] == [[(10,)], []]
        one.execute(f"CREATE OR REPLACE VIEW {view} AS SELECT k, -n AS n FROM {table_name} WHERE k = 2")
        assert [other.execute(sql).fetchall() for sql in questions] == [[(-20,)], [(-20,)]]
        one.execute(f"DROP VIEW {view}")
        with pytest.raises(UnknownTableError, match=f"table '{view}' does not exist"):
            other.execute(questions[0])


def test_a_view_is_pruned_to_one_member(conn: secateur.Connection, table_name: str) -> None:
    conn.execute(f"CREATE TABLE {table_name} (k INTEGER PRIMARY KEY, n INTEGER)")
    conn.execute(f"CREATE VIEW v_{table_name} AS SELECT k AS key, n FROM {table_name} WHERE n > 0")
    stats = conn.execute(f"SELECT * FROM v_{table_name} WHERE key = ?", [7]).stats
    assert stats is not None
    assert (stats.execution, stats.members_touched, stats.partitions_read) == ("local", 1, 1)
