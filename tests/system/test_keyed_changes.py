"""Changes of one row by its key leave what DuckDB leaves, when the member knows their plan and when it does not."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import duckdb
import pytest
from msgspec.structs import replace

import secateur
from secateur import Connection
from secateur.client.execution.change import run_change
from secateur.client.execution.execute import StatementCall
from secateur.errors import DuplicateKeyError, MemberLostError, NullKeyError, OperationalError
from secateur.protocol import ChangeOnePartition, CoordinatedChange
from secateur.wire import ShortTable, decode_rows

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


RETURNING: dict[str, tuple[str, list[list[Any]], int]] = {
    "update": ("UPDATE t SET n = n + ? WHERE a = ? AND b = ? RETURNING n, s, x, h", CHANGES["add"][1], 4),
    "expressions": (
        "UPDATE t SET n = ? WHERE a = ? AND b = ? RETURNING n * 2 + b AS twice, a, NOT n > 3 AS few, 'v' AS v",
        [[1, "a", 1], [4, "a", 2], [None, "a", 2], [4, "c", 2]],
        3,  # the kernel says what a NULL of a parameter is
    ),
    "condition": ("UPDATE t SET n = 0 WHERE a = ? AND b = ? AND n > ? RETURNING *", CHANGES["condition"][1], 3),
    "delete": ("DELETE FROM t WHERE a = ? AND b = ? RETURNING *", [["a", 1], ["a", 1], ["b", 1], ["c", 1]], 4),
    "insert": ("INSERT INTO t (a, b, n, s) VALUES (?, ?, ?, 's') RETURNING *", [["q", 1, 2], ["q", 2, None]], 2),
    "some columns": ("INSERT INTO t (b, a, s) VALUES (?, ?, ?) RETURNING n, s, b + 1 AS c", [[1, "q", "é"]], 1),
    "upsert": (
        "INSERT INTO t (a, b, n, s) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n RETURNING n, s, h",
        CHANGES["upsert"][1],
        5,
    ),
    "values of all columns": (f"{CHANGES['upsert'][0]} RETURNING n, s, h", CHANGES["upsert"][1], 0),
    "upsert where": (f"{CHANGES['upsert where'][0]} RETURNING n, s", CHANGES["upsert where"][1], 4),
    "replace": ("INSERT OR REPLACE INTO t (a, b, n, s) VALUES (?, 1, 2, ?) RETURNING *", [["a", "x"], ["r", "y"]], 2),
    "nothing": ("INSERT OR IGNORE INTO t (a, b, n, s) VALUES (?, 1, 2, ?) RETURNING a, s", [["a", "x"], ["r", "y"]], 2),
    "a function": ("UPDATE t SET n = ? WHERE a = ? AND b = ? RETURNING md5(s), n", [[1, "a", 1], [2, "z", 9]], 0),
    "its key moves": ("UPDATE t SET b = ? WHERE a = ? AND b = 1 RETURNING b", [[7, "a"], [8, "z"]], 0),
    "several rows": ("UPDATE t SET n = ? WHERE a = ? RETURNING b, n", [[1, "b"], [8, "z"]], 0),
}


@pytest.mark.parametrize("name", RETURNING)
def test_the_primary_of_a_key_answers_with_the_rows_of_returning(connection: Connection, name: str) -> None:
    sql, calls, at_primary = RETURNING[name]
    with duckdb.connect() as other:
        other.execute(TABLE)
        connection.execute("DELETE FROM t")
        for database in (connection, other):
            database.execute(ROWS)
        executions = []
        for params in calls:
            changed, expected = connection.execute(sql, params), other.execute(sql, params)
            assert changed.stats is not None
            executions.append(changed.stats.execution)
            assert [column[0] for column in changed.description or ()] == [column[0] for column in expected.description]
            rows = expected.fetchall()
            assert changed.rowcount == len(rows), params
            assert repr(changed.fetchall()) == repr(rows), params
            rows = other.execute("SELECT * FROM t ORDER BY a, b").fetchall()
            assert repr(connection.execute("SELECT * FROM t ORDER BY a, b").fetchall()) == repr(rows), params
        assert executions.count("local") == at_primary


def test_a_key_that_is_there_is_refused_also_with_returning(connection: Connection) -> None:
    connection.execute("DELETE FROM t")
    connection.execute(ROWS)
    before = connection.execute("SELECT * FROM t ORDER BY a, b").fetchall()
    for _ in range(2):
        with pytest.raises(DuplicateKeyError):
            connection.execute("INSERT INTO t VALUES (?, ?, 1, 's', 1, 1) RETURNING a", ["a", 1])
        with pytest.raises(NullKeyError):
            connection.execute("INSERT INTO t VALUES (?, ?, 1, NULL, 1, 1) RETURNING a", ["q", 1])
        with pytest.raises(secateur.DataError, match=r"[Oo]verflow"):
            connection.execute("UPDATE t SET n = 1 WHERE a = ? AND b = ? RETURNING n + ?", ["a", 1, 2**63 - 1])
    assert connection.execute("SELECT * FROM t ORDER BY a, b").fetchall() == before


def test_rows_of_returning_are_sent_once(connection: Connection) -> None:
    connection.execute("DELETE FROM t")
    connection.execute(ROWS)
    sql = "UPDATE t SET n = n + 1 WHERE a = 'a' AND b = ? RETURNING n"
    session = connection._session
    planned = session.prepare_anew(sql, [1])
    assert isinstance(planned, CoordinatedChange)
    assert planned.row is not None
    assert planned.returning is not None
    change = ChangeOnePartition(
        planned.row.plan_id, [1], True, planned.row_operation, "an id", returning=planned.returning.plan_id
    )
    (partition,) = planned.row.scans[0].tree.bind([1]).ids
    member = session.owner(planned.row.scans[0].group, partition)
    first, second = session.ask_member(member, change), session.ask_member(member, change)
    assert (first.message.rows, second.message.rows) == (1, 1)
    assert decode_rows(first.payload) == ShortTable([[2]], 1)
    assert not second.payload
    assert connection.execute("SELECT n FROM t WHERE a = 'a' AND b = 1").fetchall() == [(2,)]
    lost = r"was changed, but the rows of RETURNING were lost: .* carried out, once. Do not repeat it.* SELECT"
    with pytest.raises(OperationalError, match=lost) as error:
        run_change(
            StatementCall(session, sql, [1], planned, False, 0.0, 0.0), before=("an id", MemberLostError("it was lost"))
        )
    assert not error.value.retry_safe
    none = replace(change, params=[9], change_id="another id")
    for _ in range(2):  # what has changed nothing has returned nothing
        assert session.ask_member(member, none).message.rows == 0
    assert connection.execute("SELECT n FROM t WHERE a = 'a' AND b = 1").fetchall() == [(2,)]


@pytest.mark.smoke
def test_no_change_of_a_row_that_many_change_is_lost(connection: Connection) -> None:
    connection.execute("DELETE FROM t")
    connection.execute("INSERT INTO t VALUES ('c', 1, 0, 's', 0, 0)")
    calls = [
        ("UPDATE t SET n = n + ? WHERE a = ? AND b = ?", [1, "c", 1]),
        ("INSERT INTO t VALUES (?, ?, ?, 's', 0, 0) ON CONFLICT DO UPDATE SET n = n + excluded.n", ["c", 1, 1]),
        ("UPDATE t SET n = n + 1 WHERE a = 'c' AND b = 1 AND length(s) = 1", []),  # not only plain values
        ("UPDATE t SET n = n + ? WHERE a = ? AND b = ? RETURNING n", [1, "c", 1]),
        ("INSERT INTO t VALUES ('c', 1, 1, 's', 0, 0) ON CONFLICT DO UPDATE SET n = n + excluded.n RETURNING n", []),
        ("UPDATE t SET n = n + 1 WHERE a = 'c' AND b = 1 RETURNING n, md5(s)", []),  # by a coordinated change
    ]
    returned = []

    def change(number: int) -> None:
        cursor = connection.cursor().execute(*calls[number % len(calls)])
        if cursor.description is not None:
            returned.append(cursor.fetchall()[0][0])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(change, range(120)))
    assert connection.execute("SELECT n FROM t WHERE a = 'c' AND b = 1").fetchall() == [(120,)]
    assert len(set(returned)) == len(returned) == 60, "each has seen the row as it left it"
