"""EXPLAIN ANALYZE: the figures of a run, against what DuckDB counts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import secateur
from secateur.cluster import Cluster
from secateur.drawing import count_text

SALES = "SELECT n AS id, n % 10 AS g, CASE WHEN n % 7 = 0 THEN NULL ELSE n::DOUBLE END AS v FROM range(20000) t(n)"


@pytest.fixture(scope="module")
def oracle() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute(f"CREATE TABLE sales AS {SALES}")
    con.execute("CREATE TABLE groups AS SELECT n AS g, 'g' || n AS name FROM range(5) t(n)")
    con.execute("CREATE TABLE nothing AS SELECT * FROM sales LIMIT 0")
    return con


@pytest.fixture(scope="module", params=[pytest.param(1, marks=pytest.mark.sampled(one_in=3)), 3])
def analyzed(request: pytest.FixtureRequest, oracle: duckdb.DuckDBPyConnection) -> Iterator[Cluster]:
    with secateur.start(members=request.param, runtime="embedded") as cluster:
        with cluster.connect() as conn:
            conn.execute(
                "CREATE TABLE sales (id BIGINT PRIMARY KEY, g BIGINT, v DOUBLE) PARTITION BY HASH (id) PARTITIONS 12"
            )
            conn.execute(
                "CREATE TABLE nothing (id BIGINT PRIMARY KEY, g BIGINT, v DOUBLE) PARTITION BY HASH (id) PARTITIONS 12"
            )
            conn.execute("CREATE TABLE groups (g BIGINT PRIMARY KEY, name VARCHAR) REPLICATED")
            conn.table("sales").load(oracle.sql("FROM sales").to_arrow_table())
            conn.table("groups").load(oracle.sql("FROM groups").to_arrow_table())
        yield cluster


def document(conn: secateur.Connection, sql: str, params: Any = ()) -> dict[str, Any]:
    ((text,),) = conn.execute(f"EXPLAIN ANALYZE (FORMAT JSON) {sql}", params).fetchall()
    found: dict[str, Any] = json.loads(text)["analyze"]
    return found


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM sales",
        "SELECT * FROM sales WHERE v > 19000",
        "SELECT g, sum(v), count(*) FROM sales GROUP BY g",
        "SELECT count(v) FROM sales",
        "SELECT * FROM sales JOIN groups USING (g) WHERE v < 1000",
        "SELECT DISTINCT g FROM sales ORDER BY g DESC LIMIT 3",
        "SELECT * FROM sales WHERE id = (SELECT max(g) FROM groups)",
        "SELECT * FROM nothing",
        "SELECT count(*) FROM nothing",
        "SELECT * FROM sales WHERE id = 3 AND id = 4",
        "SELECT id, row_number() OVER (PARTITION BY g ORDER BY v) FROM sales",
    ],
)
def test_rows_are_those_of_duckdb(analyzed: Cluster, oracle: duckdb.DuckDBPyConnection, sql: str) -> None:
    expected = oracle.sql(sql).to_arrow_table().num_rows
    with analyzed.connect() as conn:
        found = document(conn, sql)
        assert found["rows"] == expected
        if found["stages"]:
            assert found["stages"][-1]["rows"] == expected
        members = {member.id for member in analyzed.members()}
        worked = {work["member"] for stage in found["stages"] for work in stage["members"]}
        assert worked | set(found["skipped_members"]) == members
        assert not worked & set(found["skipped_members"])
        assert len(worked) == found["members_touched"]
        assert found["planning_ms"] >= 0
        lines = [line for (line,) in conn.execute(f"EXPLAIN ANALYZE {sql}").fetchall()]
        assert any(line.startswith("actual: ") and f", {count_text(expected, 'row')}, " in line for line in lines)


def test_what_each_member_reads_makes_and_sends(analyzed: Cluster) -> None:
    with analyzed.connect() as conn:
        found = document(conn, "SELECT g, sum(v) FROM sales GROUP BY g")
    stages = {stage["name"]: stage for stage in found["stages"]}
    if len(analyzed.members()) == 1:
        (work,) = stages["local"]["members"]
        assert (work["partitions"], work["rows_in"], work["rows_out"], work["sent_bytes"]) == (12, 20_000, 10, 0)
        assert found["exchange_bytes"] == 0
        return
    assert list(stages) == ["scan sales", "final"]
    scans = stages["scan sales"]["members"]
    assert [(work["member"], work["partitions"], work["rows_out"]) for work in scans] == [
        ("m1", 4, 10),
        ("m2", 4, 10),
        ("m3", 4, 10),
    ]
    (final,) = stages["final"]["members"]
    assert (final["rows_in"], final["rows_out"]) == (30, 10)
    senders = [work["member"] for work in scans if work["sent_bytes"]]
    assert senders == [work["member"] for work in scans if work["member"] != final["member"]]
    assert found["exchange_bytes"] == sum(work["sent_bytes"] for work in scans) > 0


def test_steps_and_skipped_members_are_named(analyzed: Cluster) -> None:
    with analyzed.connect() as conn:
        lines = [
            line
            for (line,) in conn.execute(
                "EXPLAIN ANALYZE SELECT * FROM sales WHERE id = (SELECT max(g) FROM groups)"
            ).fetchall()
        ]
        found = document(conn, "SELECT * FROM sales WHERE id = ?", [7])
    assert any(line.strip().startswith("stage step 1: local: 1 row, ") for line in lines)
    assert len(found["skipped_members"]) == len(analyzed.members()) - 1
    assert found["partitions_read"] == 1


def test_two_runs_that_are_compared_have_no_stages(analyzed: Cluster) -> None:
    with analyzed.connect() as conn:
        conn.execute("SET pruning = verify")
        found = document(conn, "SELECT count(*) FROM sales WHERE id = 7")
        assert (found["rows"], "stages" in found) == (1, False)
        lines = [line for (line,) in conn.execute("EXPLAIN ANALYZE SELECT count(*) FROM sales WHERE id = 7").fetchall()]
    assert lines[-1].startswith("actual: ")


CHANGES = [
    pytest.param("UPDATE changed SET v = -v WHERE id = 7", [], 1, ["update changed"], id="an update of one key"),
    pytest.param(
        "UPDATE changed SET v = v + ? WHERE g < ?",
        [1.5, 3],
        60,
        ["update changed", "publish"],
        id="an update of several partitions",
    ),
    pytest.param("DELETE FROM changed WHERE id = 3 AND id = 4", [], 0, [], id="a delete that cannot find anything"),
    pytest.param(
        "DELETE FROM changed WHERE g = 9", [], 20, ["delete changed", "publish"], id="a delete of several partitions"
    ),
    pytest.param(
        "INSERT INTO changed VALUES (1000, 1, NULL)", [], 1, ["insert into changed"], id="an insert of one row"
    ),
    pytest.param(
        "INSERT INTO changed SELECT id + 2000, g, v FROM changed WHERE g = 0",
        [],
        20,
        ["change changed", "publish"],
        id="an insert of own rows",
    ),
    pytest.param(
        "INSERT INTO changed SELECT g + 2000, g, 1 FROM groups WHERE g < 5",
        [],
        5,
        ["insert into changed", "publish"],
        id="an insert of a query",
    ),
    pytest.param(
        "INSERT INTO changed VALUES (7, 1, 1) ON CONFLICT DO UPDATE SET v = excluded.v",
        [],
        1,
        ["change changed"],
        id="an insert that meets a row of its key",
    ),
    pytest.param(
        "MERGE INTO changed USING groups ON id = groups.g WHEN MATCHED THEN UPDATE SET v = 0 WHEN NOT MATCHED BY SOURCE"
        " AND g = 1 THEN DELETE",
        [],
        24,
        ["change changed", "publish"],
        id="a merge",
    ),
]


@pytest.mark.parametrize(("sql", "params", "rows", "stages"), CHANGES)
def test_a_change_is_made_and_measured(
    analyzed: Cluster, sql: str, params: list[Any], rows: int, stages: list[str]
) -> None:
    with analyzed.connect() as conn:
        conn.execute(
            "CREATE TABLE changed (id BIGINT PRIMARY KEY, g BIGINT, v DOUBLE) PARTITION BY HASH (id) PARTITIONS 12"
        )
        conn.execute("INSERT INTO changed SELECT * FROM sales WHERE id < 200")
        beside = duckdb.connect()
        beside.register("held", conn.execute("FROM changed").fetch_arrow_table())
        beside.register("held_groups", conn.execute("FROM groups").fetch_arrow_table())
        beside.execute(
            "CREATE TABLE changed (id BIGINT PRIMARY KEY, g BIGINT, v DOUBLE); INSERT INTO changed FROM held; CREATE"
            " TABLE groups AS FROM held_groups"
        )
        try:
            found = document(conn, sql, params)
            ((changed,),) = beside.execute(sql, params).fetchall()
            assert (found["rows"], changed) == (rows, rows)
            assert sorted(conn.execute("FROM changed").fetchall(), key=str) == sorted(
                beside.execute("FROM changed").fetchall(), key=str
            )
        finally:
            conn.execute("DROP TABLE changed")
    names = [stage["name"] for stage in found["stages"]]
    copied = names[-1:] == ["copy changed"]
    assert copied == (len(analyzed.members()) > 1 and stages in (["update changed"], ["change changed"]))
    made = names[:-1] if copied else names
    assert made[len(made) - len(stages) :] == stages
    by_name = {stage["name"]: stage for stage in found["stages"]}
    if stages:
        assert by_name[stages[0]]["rows"] == rows
    if "publish" in stages:  # rows that a backup has count as well
        assert by_name["publish"]["rows"] == rows * min(2, len(analyzed.members()))
    worked = {work["member"] for stage in found["stages"] for work in stage["members"]}
    assert worked | set(found["skipped_members"]) == {member.id for member in analyzed.members()}


@pytest.mark.parametrize("members", [1, 3])
def test_a_large_result_is_counted_and_not_sent(members: int) -> None:
    with (
        secateur.start(members=members, runtime="embedded", result_bytes_max=1 << 20) as cluster,
        cluster.connect() as conn,
    ):
        conn.execute("CREATE TABLE wide (id BIGINT PRIMARY KEY, s VARCHAR) PARTITION BY HASH (id) PARTITIONS 12")
        rows = duckdb.sql("SELECT n AS id, repeat('x', 200) AS s FROM range(50000) t(n)").to_arrow_table()
        conn.table("wide").load(rows)
        found = document(conn, "SELECT * FROM wide")
        assert found["rows"] == 50_000
        assert found["result_bytes"] > 10 << 20
