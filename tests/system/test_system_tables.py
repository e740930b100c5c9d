"""System tables: pictures of the cluster that SQL can join, filter and group, on one member and on three."""

from __future__ import annotations

from typing import Any

import pytest
from eventually import eventually

import secateur
from secateur.cluster import Cluster
from secateur.errors import NotSupportedError, UnknownTableError


@pytest.fixture(params=["cluster", "lone_cluster"])
def running(request: pytest.FixtureRequest) -> Cluster:
    found: Cluster = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def table(running: Cluster, table_name: str) -> str:
    name = f"system_{table_name}"
    with running.connect() as conn:
        conn.execute(
            f"CREATE TABLE IF NOT EXISTS {name} (k INTEGER PRIMARY KEY, s VARCHAR) PARTITION BY HASH (k) PARTITIONS 7"
        )
        conn.execute(f"INSERT OR REPLACE INTO {name} SELECT range, 'x' FROM range(100)")
    return name


def rows(cluster: Cluster, sql: str, params: Any = ()) -> list[tuple[Any, ...]]:
    with cluster.connect() as conn:
        return conn.execute(sql, params).fetchall()


def test_members(running: Cluster) -> None:
    told = [(m.id, m.address, m.is_alive, m.partitions_primary) for m in running.members()]
    sql = "SELECT id, address, state IN ('active', 'suspect'), partitions_primary FROM secateur.members ORDER BY id"
    assert rows(running, sql) == told


def test_settings_are_those_of_the_cluster(running: Cluster) -> None:
    told = {name: found for name, *found in rows(running, "SELECT * FROM secateur.settings")}
    assert told["members"][:2] == [str(len(running.members())), "3"]
    assert told["token"][:2] == ["(hidden)", None]
    assert told["fsync"][:2] == ["interval", "interval"]
    assert told["block_rows"][:2] == ["4194304"] * 2
    assert all(description for *_, description in told.values())
    assert "secret" not in told


def test_a_setting_that_was_changed_shows_its_value(lone_cluster: Cluster) -> None:
    sql = "SELECT value, \"default\" FROM secateur.settings WHERE name = 'pruning'"
    with lone_cluster.connect() as conn:
        conn.execute("SET GLOBAL pruning = verify")
        try:
            assert conn.execute(sql).fetchall() == [("verify", "on")]
        finally:
            conn.execute("SET GLOBAL pruning = on")


def test_tables_say_what_they_have_and_how_to_make_them(running: Cluster, table: str) -> None:
    (found,) = rows(
        running,
        "SELECT table_type, primary_key, partitioning, partitions, replicated, rows, sql FROM secateur.tables WHERE"
        " table_name = ?",
        [table],
    )
    assert found[:-1] == ("BASE TABLE", ["k"], 'HASH ("k") PARTITIONS 7', 7, False, 100)
    again = f"{table}_again"
    with running.connect() as conn:
        conn.execute(found[-1].replace(f'"{table}"', again))
        assert conn.table(again).scheme == conn.table(table).scheme
        conn.execute(f"DROP TABLE {again}")


@pytest.mark.smoke
def test_partitions_add_up(running: Cluster, table: str) -> None:
    sql = """
        SELECT count(*), sum(p.rows), count(DISTINCT m.id), sum(p.rows) = (SELECT count(*) FROM {table}),
          min(p.bytes) > 0
        FROM secateur.partitions p JOIN secateur.members m ON p.primary_member = m.id WHERE p.table_name = ?"""
    expected = [(7, 100, len(running.members()), True, True)]
    # A member that is too busy to answer is left out.
    eventually(lambda: rows(running, sql.format(table=table), [table]) == expected)


def test_they_join_with_tables(running: Cluster, table: str) -> None:
    sql = f"SELECT count(DISTINCT m.id), count(*) FROM {table} t, secateur.members m WHERE t.k < 10"
    assert rows(running, sql) == [(len(running.members()), 10 * len(running.members()))]
    partitions = (
        f"SELECT t.k FROM {table} t LEFT JOIN secateur.partitions p ON p.partition = t.k AND p.table_name ="
        f" '{table}' WHERE p.rows IS NULL"
    )
    assert len(rows(running, partitions)) == 93


def test_columns_say_which_are_keys(running: Cluster, table: str) -> None:
    sql = (
        "SELECT column_name, data_type, is_nullable, key_position, partitioning_position FROM secateur.columns WHERE"
        " table_name = ? ORDER BY position"
    )
    assert rows(running, sql, [table]) == [("k", "INTEGER", False, 1, 1), ("s", "VARCHAR", True, None, None)]


def test_a_statement_is_told_with_its_text(running: Cluster, table: str) -> None:
    sql = f"SELECT s FROM {table} WHERE k = ?"
    with running.connect() as conn:
        stats = conn.execute(sql, [3]).stats
        conn.execute(sql, [3])
        assert stats is not None
        told = conn.execute(
            "SELECT state, execution, rows, error FROM secateur.statements WHERE statement = ?", [sql]
        ).fetchall()
        running_now = conn.execute("SELECT statement FROM secateur.statements WHERE state = 'running'").fetchall()
    assert told == [("done", "local", 1, None)] * 2
    assert running_now == [("SELECT statement FROM secateur.statements WHERE state = 'running'",)]


@pytest.mark.parametrize(
    "where", ["WHERE k = 3", "WHERE k IN (1, 2, 3, 4, 5)", "", "ORDER BY s, k"], ids=["local", "few", "all", "sorted"]
)
def test_a_statement_is_told_with_the_number_of_its_members(running: Cluster, table: str, where: str) -> None:
    sql = f"SELECT k, s FROM {table} {where}"
    with running.connect() as conn:
        conn.execute(sql)  # members_touched of the client is of a statement whose plan is cached
        stats = conn.execute(sql).stats
        assert stats is not None
        told = conn.execute(
            "SELECT members_touched, members_total, len(members) FROM secateur.statements WHERE statement = ?"
            " ORDER BY started DESC LIMIT 1",
            [sql],
        ).fetchone()
    assert told == (stats.members_touched, stats.members_total, stats.members_touched)


def test_a_change_is_told_with_its_text(running: Cluster, table: str) -> None:
    sql = f"UPDATE {table} SET s = 'y' WHERE k = 3"
    with running.connect() as conn:
        conn.execute(sql)
        assert conn.execute("SELECT state, rows FROM secateur.statements WHERE statement = ?", [sql]).fetchall() == [
            ("done", 1)
        ]


def test_their_rows_are_of_the_moment(running: Cluster, table: str) -> None:
    sql = "SELECT rows FROM secateur.tables WHERE table_name = ?"
    with running.connect() as conn:
        assert conn.execute(sql, [table]).fetchall() == [(100,)]
        conn.execute(f"DELETE FROM {table} WHERE k < 50")
        cursor = conn.execute(sql, [table])
        assert cursor.fetchall() == [(50,)]
        assert cursor.stats is not None
        assert cursor.stats.plan_cached


def test_views_may_read_them(running: Cluster, table: str) -> None:
    with running.connect() as conn:
        conn.execute(f"CREATE VIEW v_{table} AS SELECT table_name, rows FROM secateur.tables WHERE rows > 0")
        assert conn.execute(f"SELECT rows FROM v_{table} WHERE table_name = ?", [table]).fetchall() == [(100,)]
        assert conn.execute(
            "SELECT table_type, rows FROM secateur.tables WHERE table_name = ?", [f"v_{table}"]
        ).fetchall() == [("VIEW", None)]
        conn.execute(f"DROP VIEW v_{table}")


def test_what_is_told_can_be_kept(running: Cluster, table: str) -> None:
    with running.connect() as conn:
        conn.execute(
            f"INSERT OR REPLACE INTO {table} SELECT position, column_name FROM secateur.columns WHERE table_name = ?",
            [table],
        )
        assert conn.execute(f"SELECT k, s FROM {table} WHERE k IN (1, 2) ORDER BY k").fetchall() == [(1, "k"), (2, "s")]


def test_jobs(running: Cluster) -> None:
    assert rows(running, "SELECT count(*) FROM secateur.jobs WHERE status = 'nothing of the kind'") == [(0,)]


@pytest.mark.parametrize(
    ("sql", "kind", "message"),
    [
        ("SELECT * FROM secateur.member", UnknownTableError, "did you mean members?"),
        ("SELECT nope FROM secateur.members", secateur.Error, "column 'nope' does not exist"),
        ("INSERT INTO secateur.members VALUES (1)", NotSupportedError, "schema"),
        ("SELECT * FROM members", UnknownTableError, "table 'members' does not exist"),
    ],
)
def test_mistakes(conn: secateur.Connection, sql: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message.replace("?", r"\?")):
        conn.execute(sql)


@pytest.mark.parametrize("name", ["secateur.members", "information_schema.tables", '"secateur"."tables"'])
def test_they_are_described_by_their_names(conn: secateur.Connection, name: str) -> None:
    columns = [one[:2] for one in conn.execute(f"DESCRIBE SELECT * FROM {name}").fetchall()]
    for asked in (f"DESCRIBE {name}", f"SHOW COLUMNS FROM {name}"):
        assert [(column, kind) for column, kind, *_ in conn.execute(asked).fetchall()] == columns
    summary = conn.execute(f"SUMMARIZE {name}").fetchall()
    assert [(column, kind) for column, kind, *_ in summary] == columns


def test_a_change_does_not_read_them(running: Cluster, table: str) -> None:
    with running.connect() as conn, pytest.raises(NotSupportedError, match="pass their values as parameters"):
        conn.execute(f"DELETE FROM {table} WHERE k IN (SELECT rows FROM secateur.tables)")


def test_explain_says_what_is_read(conn: secateur.Connection) -> None:
    text = str(conn.explain("SELECT * FROM secateur.members"))
    assert "scan members: system table, its rows are computed when the statement runs" in text
