"""Changes of one row by its key leave what DuckDB leaves, when the member knows their plan and when it does not."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import duckdb
import pytest

import secateur
from secateur import Connection
from secateur.errors import NullKeyError

TABLE = "CREATE TABLE t (a VARCHAR, b BIGINT, n BIGINT, s VARCHAR NOT NULL, h HUGEINT, x DOUBLE, PRIMARY KEY (a, b))"
ROWS = "INSERT INTO t VALUES ('a', 1, 1, 'one', 1, 0.5), ('a', 2, NULL, 'two', NULL, NULL), ('b', 1, 5, '', -7, -0.0)"


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with secateur.start(members=2, runtime="embedded") as cluster, cluster.connect() as connected:
        connected.execute(TABLE + " PARTITION BY HASH (b) PARTITIONS 5 BACKUPS 1")
        yield connected


CHANGES: dict[str, tuple[str, list[list[Any]]]] = {
    "add": ("UPDATE t SET n = n + ? WHERE a = ? AND b = ?", [[1, "a", 1], [1, "a", 1], [1, "a", 2], [1, "c", 9]]),
    "condition": ("UPDATE t SET n = 0 WHERE a = ? AND b = ? AND n > ?", [["b", 1, 5], ["b", 1, 4], ["a", 2, 0]]),
    "literal key": ("UPDATE t SET s = ?, x = ? WHERE b = 1 AND a = 'b'", [["it's", 1.5], ["é", -2.5], ["", 3]]),
    "key expression": ("UPDATE t SET n = ? WHERE a = ? AND b = ? + 1", [[1, "a", 0], [2, "a", 1]]),
    "key as text": ("UPDATE t SET n = ? WHERE a = ? AND b = ?", [[1, "a", "1"], [2, "a", 1.0], [3, "a", None]]),
    "case": (
        "UPDATE t SET n = CASE WHEN n IS NULL THEN ? WHEN n < 3 THEN -n ELSE n * 2 END WHERE a = ? AND b = ?",
        [[7, "a", 1], [7, "a", 2], [7, "b", 1]],
    ),
    "hugeint stays": ("UPDATE t SET n = b WHERE a = ? AND b = ?", [["a", 1], ["b", 1], ["b", 1]]),
    "delete": ("DELETE FROM t WHERE a = ? AND b = ?", [["a", 1], ["a", 1], ["c", 1]]),
    "delete some": ("DELETE FROM t WHERE a = ? AND b = ? AND n = ?", [["a", 1, 2], ["b", 1, 5], ["a", 2, 1]]),
    "upsert": (
        "INSERT INTO t VALUES (?, ?, ?, ?, 3, 0.25) ON CONFLICT DO UPDATE SET n = n + excluded.n, s = excluded.s",
        [["a", 1, 2, "u"], ["a", 1, 2, "v"], ["z", 1, 2, "w"], ["z", 1, 2, "x"], ["a", 2, 1, "y"]],
    ),
    "upsert where": (
        "INSERT INTO t (b, a, n, s) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET n = excluded.n WHERE n < excluded.n",
        [[1, "a", 0, "q"], [1, "a", 9, "q"], [2, "a", 9, "q"], [3, "n", 9, "q"]],
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_leaves_the_rows_that_duckdb_leaves(connection: Connection, name: str) -> None:
    sql, calls = CHANGES[name]
    with duckdb.connect() as other:
        other.execute(TABLE)
        connection.execute("DELETE FROM t")
        for database in (connection, other):
            database.execute(ROWS)
        for params in calls:
            changed = connection.execute(sql, params).rowcount
            assert changed == other.execute(sql, params).fetchall()[0][0], params
            rows = "SELECT * FROM t ORDER BY a, b"
            assert repr(connection.execute(rows).fetchall()) == repr(other.execute(rows).fetchall()), params


def test_what_cannot_be_is_an_error_and_changes_nothing(connection: Connection) -> None:
    connection.execute("DELETE FROM t")
    connection.execute(ROWS)
    before = connection.execute("SELECT * FROM t ORDER BY a, b").fetchall()
    for _ in range(2):
        with pytest.raises(secateur.DataError, match=r"[Oo]verflow"):
            connection.execute("UPDATE t SET n = n + ? WHERE a = ? AND b = ?", [2**63 - 1, "a", 1])
        with pytest.raises(NullKeyError):
            connection.execute("UPDATE t SET s = CASE WHEN n > 0 THEN NULL ELSE s END WHERE a = ? AND b = ?", ["a", 1])
        with pytest.raises(NullKeyError):
            connection.execute("INSERT INTO t VALUES (?, ?, 1, NULL, 1, 1) ON CONFLICT DO UPDATE SET n = 1", ["q", 1])
    assert connection.execute("SELECT * FROM t ORDER BY a, b").fetchall() == before


def test_rows_that_are_no_plain_values_are_changed_as_well(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE nested (k BIGINT PRIMARY KEY, n BIGINT, l BIGINT[], i INTERVAL)"
        " PARTITION BY HASH (k) PARTITIONS 3"
    )
    connection.execute("INSERT INTO nested VALUES (1, 1, [1, 2], INTERVAL 3 MONTHS)")
    for _ in range(2):
        assert connection.execute("UPDATE nested SET n = n + ? WHERE k = ?", [1, 1]).rowcount == 1
    assert connection.execute("SELECT n, l, i::VARCHAR FROM nested").fetchall() == [(3, [1, 2], "3 months")]
    assert connection.execute("DELETE FROM nested WHERE k = ?", [1]).rowcount == 1


@pytest.mark.smoke
def test_no_change_of_a_row_that_many_change_is_lost(connection: Connection) -> None:
    connection.execute("DELETE FROM t")
    connection.execute("INSERT INTO t VALUES ('c', 1, 0, 's', 0, 0)")
    calls = [
        ("UPDATE t SET n = n + ? WHERE a = ? AND b = ?", [1, "c", 1]),
        ("INSERT INTO t VALUES (?, ?, ?, 's', 0, 0) ON CONFLICT DO UPDATE SET n = n + excluded.n", ["c", 1, 1]),
        ("UPDATE t SET n = n + 1 WHERE a = 'c' AND b = 1 AND length(s) = 1", []),  # not only plain values
    ]

    def change(number: int) -> None:
        connection.cursor().execute(*calls[number % len(calls)])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(change, range(60)))
    assert connection.execute("SELECT n FROM t WHERE a = 'c' AND b = 1").fetchall() == [(60,)]
