"""EXPLAIN through the whole way: text, JSON to the letter of the contract, ANALYZE."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import secateur
from secateur.cluster import Cluster

QUERY = "SELECT k, count(*) FROM explained WHERE k = ? GROUP BY k"


@pytest.fixture(scope="module")
def explained(cluster: Cluster) -> Iterator[secateur.Connection]:
    with cluster.connect() as conn:
        conn.execute(
            "CREATE TABLE explained (k VARCHAR, n INTEGER, PRIMARY KEY (k, n)) PARTITION BY HASH (k) PARTITIONS 11"
        )
        conn.execute("INSERT INTO explained VALUES ('a', 1), ('a', 2), ('b', 1)")
        conn.table("explained").statistics()
        yield conn


def document(cursor: secateur.Cursor) -> dict[str, Any]:
    ((text,),) = cursor.fetchall()
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@pytest.mark.smoke
def test_the_document_has_every_member_of_the_contract(explained: secateur.Connection) -> None:
    table = explained.table("explained")
    partition = table.partition_of({"k": "a"})
    found = document(explained.execute(f"EXPLAIN (FORMAT JSON) {QUERY}", ["a"]))
    assert found == explained.explain(QUERY, ["a"]).to_dict()
    pruning = found["pruning"]
    assert pruning | {"topology_version": 0} == {
        "enabled": True,
        "applicable": True,
        "reason": None,
        "tree": "explained: ($1)",
        "execution": "local",
        "topology_version": 0,
        "required_members": [table.owner_of(partition)],
        "members_total": 3,
        "scans": [
            {
                "table": "explained",
                "alias": "explained",
                "partitions": [partition],
                "partitions_total": 11,
                "partitioning_key": ["k"],
                "partitioning_key_values": [["a"]],
                "primary_key_bounds": {"lower": ["a"], "upper": ["a"]},
                "columns": ["k"],
                "filter": None,
                "estimated_rows": 2,
                "reason": None,
            }
        ],
        "serving": True,
        "serving_reason": None,
    }
    assert found["dag"]["vertices"][0]["members"] == [table.owner_of(partition)]
    assert set(found["dag"]["vertices"][0]) == {"name", "members", "local_parallelism"}


def test_open_parameters_are_shown_and_said_to_be_open(explained: secateur.Connection) -> None:
    found = explained.explain(QUERY).to_dict()["pruning"]
    (scan,) = found["scans"]
    assert found["tree"] == "explained: ($1)"
    assert scan["partitions"] is None
    assert "parameter" in scan["reason"]


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("lower(k) = 'a'", "lower"),
        ("n = 1", "k"),
        ("k = 'a' OR n = 1", "OR"),
        ("k > 'a'", "k"),
    ],
    ids=["wrapped", "other-column", "open-branch", "range-on-hash"],
)
def test_what_is_not_pruned_has_a_reason(explained: secateur.Connection, where: str, words: str) -> None:
    plan = explained.explain(f"SELECT * FROM explained WHERE {where}")
    (scan,) = plan.to_dict()["pruning"]["scans"]
    assert scan["partitions"] is None
    assert words in scan["reason"]
    assert scan["reason"] in str(plan)


def test_the_edges_of_a_distributed_statement(explained: secateur.Connection) -> None:
    found = explained.explain("SELECT count(*) FROM explained").to_dict()
    assert found["pruning"]["execution"] == "distributed"
    assert found["pruning"]["required_members"] == ["m1", "m2", "m3"]
    names = {vertex["name"] for vertex in found["dag"]["vertices"]}
    for edge in found["dag"]["edges"]:
        assert set(edge) == {"from", "to", "kind", "distributed"}
        assert {edge["from"], edge["to"]} <= names


def test_pruning_off_is_shown(explained: secateur.Connection, cluster: Cluster) -> None:
    with cluster.connect() as conn:
        conn.execute("SET pruning = off")
        found = conn.explain(QUERY, ["a"]).to_dict()["pruning"]
    assert (found["enabled"], found["execution"]) == (False, "distributed")


def test_analyze_adds_what_a_run_cost(explained: secateur.Connection) -> None:
    cursor = explained.execute(f"EXPLAIN ANALYZE {QUERY}", ["a"])
    (last,) = [line for (line,) in cursor.fetchall() if line.startswith("actual")]
    assert last.startswith("actual: local on 1 of 3 members, 1 of 11 partitions, 1 row, ")
    assert cursor.stats is not None
    analyzed = document(explained.execute(f"EXPLAIN ANALYZE (FORMAT JSON) {QUERY}", ["a"]))["analyze"]
    assert (analyzed["execution"], analyzed["rows"], analyzed["members_touched"]) == ("local", 1, 1)


def test_analyze_runs_queries_and_changes_only(explained: secateur.Connection) -> None:
    with pytest.raises(
        secateur.NotSupportedError, match=r"EXPLAIN ANALYZE of DROP is not supported.*\(line 1, column 17\)"
    ):
        explained.execute("EXPLAIN ANALYZE DROP TABLE explained")
    assert explained.execute("SELECT count(*) FROM explained").fetchall() == [(3,)]


SHORT = (
    "SELECT * FROM short WHERE a = ? AND b = ?",
    "SELECT c FROM short WHERE a = ?",
    "SELECT c FROM short WHERE a = ? AND c > ?",
    "SELECT count(*), sum(c) FROM short WHERE a IN (?, ?)",
    "SELECT c, count(*) FROM short WHERE a = ? GROUP BY c ORDER BY c",
    "SELECT c FROM short WHERE a = ? AND b > ?",
    "SELECT c FROM short WHERE a = ? ORDER BY c",
    "SELECT DISTINCT c FROM short WHERE a = ?",
    "SELECT c FROM short WHERE a = ? LIMIT 1",
    "SELECT lower(d) FROM short WHERE a = ?",
    "SELECT s.c, o.c FROM short s JOIN short o ON o.a = s.a AND o.b = s.b WHERE s.a = ?",
    "SELECT s.c, o.c FROM short s JOIN short o ON o.a = s.a AND o.c = s.c WHERE s.a = ?",
    "SELECT count(*) FROM short WHERE c = ?",
)


@pytest.mark.parametrize("sql", SHORT)
def test_what_is_said_of_serving_is_what_members_do(sql: str) -> None:
    with secateur.start(members=1, runtime="embedded") as cluster, cluster.connect() as conn:
        conn.execute("CREATE TABLE short (a INTEGER, b INTEGER, c INTEGER, d VARCHAR, PRIMARY KEY (a, b))")
        conn.execute("INSERT INTO short SELECT r // 4, r, r % 3, 'x' FROM range(40) AS t(r)")
        params = [number + 1 for number in range(sql.count("?"))]
        said = json.loads(conn.execute(f"EXPLAIN (FORMAT JSON) {sql}", params).fetchone()[0])["pruning"]
        conn.execute(sql, params).fetchall()
        (member,) = cluster._runtime._members.values()  # type: ignore[attr-defined]
        made = [program is not None for program in member._statements._programs._programs.values()]
        assert said["serving"] == any(made), (said["serving_reason"], made)
