"""``SET disabled_rules``: a setting of one session that plans depend on, at the controller and in the client."""

from __future__ import annotations

import pytest

import secateur
from secateur.cluster import Cluster

QUERY = "SELECT count(*) FROM rules_a a WHERE EXISTS (SELECT 1 FROM rules_b b WHERE b.k = a.k AND b.k = 3)"


@pytest.fixture
def conn(cluster: Cluster) -> secateur.Connection:
    conn = cluster.connect()
    for name in ("rules_a", "rules_b"):
        conn.execute(f"CREATE TABLE IF NOT EXISTS {name} (k INTEGER PRIMARY KEY) PARTITION BY HASH (k) PARTITIONS 8")
        conn.execute(f"INSERT OR REPLACE INTO {name} VALUES (1), (2), (3)")
    return conn


def test_a_rule_is_switched_off_and_on_again(conn: secateur.Connection) -> None:
    for setting, partitions in (
        ("", 2),
        ("exists_to_semi_join", 9),
        ("in_pull_out", 2),
        ("in_pull_out, exists_to_semi_join", 9),
        ("", 2),
    ):
        conn.execute(f"SET disabled_rules = '{setting}'")
        answer = conn.execute(QUERY)
        assert (answer.fetchall(), answer.stats.partitions_read) == ([(1,)], partitions), setting


def test_it_is_the_sessions_own(cluster: Cluster, conn: secateur.Connection) -> None:
    conn.execute("SET disabled_rules = 'exists_to_semi_join'")
    with cluster.connect() as other:
        assert other.execute(QUERY).stats.partitions_read == 2
    assert conn.execute(QUERY).stats.partitions_read == 9


def test_the_number_of_combinations_is_set_beside_the_rules(conn: secateur.Connection) -> None:
    sql = "SELECT count(*) FROM rules_a WHERE k IN (?, ?, ?, ?, ?, ?, ?, ?, ?)"
    read = lambda: conn.execute(sql, [3] * 8 + [1]).stats.partitions_read  # noqa: E731
    distinct = lambda: conn.execute(sql, list(range(9))).fetchall()  # noqa: E731
    assert (read(), distinct()) == (2, [(3,)])
    conn.execute("SET combinations_per_partition = 1")
    conn.execute("SET disabled_rules = 'in_pull_out'")
    assert (read(), distinct(), conn.execute(sql, list(range(9))).stats.partitions_read) == (2, [(3,)], 8)


def test_explain_says_what_was_rewritten_and_what_is_co_located(conn: secateur.Connection) -> None:
    explained = conn.explain(QUERY)
    assert "rewrites: exists_to_semi_join" in str(explained)
    assert explained.to_dict()["pruning"]["rewrites"] == ["exists_to_semi_join"]
    assert explained.to_dict()["pruning"]["co_located"] == [["a", "b"]]
    conn.execute("SET disabled_rules = 'exists_to_semi_join'")
    explained = conn.explain(QUERY)
    assert "rewrites:" not in str(explained)
    assert not {"rewrites", "co_located"} & explained.to_dict()["pruning"].keys()


def test_an_unknown_rule_is_refused(conn: secateur.Connection) -> None:
    with pytest.raises(secateur.ProgrammingError, match="did you mean exists_to_semi_join"):
        conn.execute("SET disabled_rules = 'exists_to_semijoin'")
