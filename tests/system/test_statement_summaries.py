"""What members add up of their statements is what their statements say one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import secateur
from secateur.errors import Error

ONE = "SELECT s FROM orders WHERE k = ?"
ALL = "SELECT count(*) FROM orders WHERE lower(s) = 'x'"
FAILING = "SELECT CAST(s AS INTEGER) FROM orders WHERE k = 3"
LITERAL = "SELECT k FROM orders WHERE k = {}"
CHANGE = "UPDATE orders SET s = 'x' WHERE k = ?"

BY_FINGERPRINT = """
SELECT fingerprint, arg_max(statement, started) AS statement, arg_max(tree, started) AS tree,
  bool_or(prunable) AS prunable, arg_max(reason, started) FILTER (WHERE reason IS NOT NULL) AS reason,
  bool_or(system) AS system, count(*) AS executions, sum(elapsed_ms) AS total_ms, 0 AS running, count(*) AS listed,
  count(*) FILTER (WHERE state = 'failed') AS failed, avg(elapsed_ms) AS mean_ms,
  quantile_disc(elapsed_ms, 0.5) AS p50_ms, quantile_disc(elapsed_ms, 0.99) AS p99_ms, max(elapsed_ms) AS max_ms,
  avg(partitions_read) AS partitions_read, max(partitions_total) AS partitions_total,
  avg(len(members)) AS members_touched, max(members_total) AS members_total, avg(rows) AS rows,
  count(*) FILTER (WHERE pruned) AS pruned,
  count(*) FILTER (WHERE partitions_read = partitions_total AND partitions_total > 1) AS unpruned
FROM secateur.statements WHERE fingerprint IS NOT NULL AND tree LIKE '%orders%' GROUP BY fingerprint
"""


@pytest.fixture(scope="module")
def conn() -> Iterator[secateur.Connection]:
    with secateur.start(members=3, runtime="embedded") as cluster, cluster.connect() as connection:
        connection.execute("CREATE TABLE orders (k INTEGER PRIMARY KEY, s VARCHAR) PARTITION BY HASH (k) PARTITIONS 7")
        connection.execute("INSERT INTO orders SELECT range, 'x' FROM range(100)")
        for number in range(30):
            connection.execute(ONE, [number]).fetchall()
            connection.execute(ONE, [7]).fetchall()
            connection.execute(LITERAL.format(number)).fetchall()
            if number % 3 == 0:
                connection.execute(CHANGE, [number])
                connection.execute(ALL).fetchall()
        connection.execute("SET pruning = off")
        connection.execute(LITERAL.format(1)).fetchall()
        connection.execute("SET pruning = on")
        with pytest.raises(Error):
            connection.execute(FAILING).fetchall()
        yield connection


def by_fingerprint(conn: secateur.Connection, sql: str) -> dict[str, dict[str, Any]]:
    cursor = conn.execute(sql)
    assert cursor.description is not None
    names = [column[0] for column in cursor.description]
    return {row["fingerprint"]: row for row in (dict(zip(names, found, strict=True)) for found in cursor.fetchall())}


def test_summaries_are_those_of_the_statements(conn: secateur.Connection) -> None:
    told = by_fingerprint(conn, "SELECT * FROM secateur.statement_summaries WHERE tree LIKE '%orders%'")
    expected = by_fingerprint(conn, BY_FINGERPRINT)
    assert {row["statement"] for row in expected.values()} >= {ONE, ALL, FAILING, CHANGE, LITERAL.format(1)}
    assert told.keys() == expected.keys()
    for fingerprint, row in expected.items():
        found = told[fingerprint]
        for name in ("p50_ms", "p99_ms"):
            assert row[name] <= found.pop(name) * 1.0001 <= row.pop(name) * 1.1, (name, row["statement"])
        assert found == {**row, **{name: pytest.approx(row[name]) for name in ("total_ms", "mean_ms", "max_ms")}}


def test_the_newest_of_a_plan_are_listed_as_they_are_among_all(conn: secateur.Connection) -> None:
    columns = (
        "id, statement, state, started, elapsed_ms, execution, members, partitions_read, rows, error, pruned, reason"
    )
    sql = f"SELECT {columns} FROM secateur.{{}} WHERE statement = ? ORDER BY started DESC"
    left_out = 0
    for statement in (ONE, ALL, FAILING, LITERAL.format("?")):  # texts that differ in literals have one plan
        all_of_it = conn.execute(sql.format("statements"), [statement]).fetchall()
        newest = conn.execute(sql.format("newest_statements"), [statement]).fetchall()
        assert all_of_it
        assert set(map(str, newest)) <= set(map(str, all_of_it))
        for member in ("m1", "m2", "m3"):
            of_it, all_of_member = (
                [row for row in found if row[0].startswith(member)] for found in (newest, all_of_it)
            )
            assert of_it == all_of_member[:20]
            left_out += len(all_of_member[20:])
    assert left_out >= 10
    ended = conn.execute("SELECT state, ended, count(*) FROM secateur.newest_statements GROUP BY ALL").fetchall()
    assert {(state, flag) for state, flag, _ in ended} == {("done", True), ("failed", True), ("running", False)}


def test_what_runs_is_listed_alone(conn: secateur.Connection) -> None:
    sql = "SELECT statement, state, fingerprint IS NOT NULL FROM secateur.running_statements"
    assert conn.execute(sql).fetchall() == [(sql, "running", True)]
    ((running,),) = conn.execute(
        "SELECT running FROM secateur.statement_summaries WHERE statement LIKE 'SELECT running %'"
    ).fetchall()
    assert running == 1
