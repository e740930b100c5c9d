"""``SET disabled_rules``: a setting of one session that plans depend on, at the controller and in the client."""

from __future__ import annotations

import pytest

import secateur
from secateur.cluster import Cluster

QUERY = "SELECT count(*) FROM rules_a WHERE k = (SELECT max(v) FROM rules_b)"


@pytest.fixture
def conn(cluster: Cluster) -> secateur.Connection:
    conn = cluster.connect()
    for name in ("rules_a", "rules_b"):
        conn.execute(
            f"CREATE TABLE IF NOT EXISTS {name} (k INTEGER PRIMARY KEY, v INTEGER) PARTITION BY HASH (k) PARTITIONS 8"
        )
        conn.execute(f"INSERT OR REPLACE INTO {name} VALUES (1, 1), (2, 2), (3, 3)")
    return conn


def test_a_rule_is_switched_off_and_on_again(conn: secateur.Connection) -> None:
    for setting, partitions in (
        ("", 9),
        ("materialize_subquery", 16),
        ("join_keys_first", 9),
        ("join_keys_first, materialize_subquery", 16),
        ("", 9),
    ):
        conn.execute(f"SET disabled_rules = '{setting}'")
        answer = conn.execute(QUERY)
        assert (answer.fetchall(), answer.stats.partitions_read) == ([(1,)], partitions), setting


def test_it_is_the_sessions_own(cluster: Cluster, conn: secateur.Connection) -> None:
    conn.execute("SET disabled_rules = 'materialize_subquery'")
    with cluster.connect() as other:
        assert other.execute(QUERY).stats.partitions_read == 9
    assert conn.execute(QUERY).stats.partitions_read == 16


def test_explain_says_which_queries_run_first_and_what_is_co_located(conn: secateur.Connection) -> None:
    explained = conn.explain(QUERY)
    assert "rewrites: materialize_subquery" in str(explained)
    assert explained.to_dict()["pruning"]["rewrites"] == ["materialize_subquery"]
    conn.execute("SET disabled_rules = 'materialize_subquery'")
    assert "rewrites" not in conn.explain(QUERY).to_dict()["pruning"]
    joined = conn.explain("SELECT count(*) FROM rules_a a JOIN rules_b b USING (k)").to_dict()["pruning"]
    assert joined["co_located"] == [["a", "b"]]


def test_an_unknown_rule_is_refused(conn: secateur.Connection) -> None:
    with pytest.raises(secateur.ProgrammingError, match="there is no rule 'in_pull_out'; there is"):
        conn.execute("SET disabled_rules = 'in_pull_out'")
