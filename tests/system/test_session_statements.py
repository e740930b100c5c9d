"""Statements that tools send around others: PREPARE and EXECUTE, BEGIN and COMMIT, ANALYZE, RESET and TABLE."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import pytest

import secateur
from secateur.cluster import Cluster
from secateur.errors import (
    DuplicateKeyError,
    NotSupportedError,
    ParameterError,
    ProgrammingError,
    SqlSyntaxError,
    UnknownColumnError,
    UnknownTableError,
)


@pytest.fixture
def table(conn: secateur.Connection, table_name: str) -> Iterator[str]:
    conn.execute(f"CREATE TABLE {table_name} (id INTEGER PRIMARY KEY, day DATE, note VARCHAR)")
    conn.execute(f"INSERT INTO {table_name} VALUES (1, DATE '2024-02-29', 'it''s'), (2, NULL, NULL)")
    yield table_name
    conn.execute(f"DROP TABLE {table_name}")


@pytest.fixture
def tool(cluster: Cluster) -> Iterator[secateur.Connection]:
    """The connection of a tool that sends BEGIN and COMMIT."""
    with secateur.connect(cluster.address, autocommit_only=True) as connection:
        yield connection


def test_a_prepared_name_takes_literals_and_parameters(conn: secateur.Connection, table: str) -> None:
    conn.execute(f"PREPARE found AS SELECT note, ? AS day FROM {table} WHERE id = ?")
    expected = [("it's", date(2024, 2, 29))]
    assert conn.execute("EXECUTE found(DATE '2024-02-29', 3 - 2)").fetchall() == expected
    assert conn.execute("execute FOUND (?, 1);", [date(2024, 2, 29)]).fetchall() == expected
    assert conn.execute("/* a tool */ EXECUTE found", [date(2024, 2, 29), 1]).fetchall() == expected
    conn.execute(f'PREPARE "put one" AS INSERT INTO {table} VALUES ($1, $2, $3)')
    assert conn.execute("EXECUTE \"put one\"(7, NULL, 'a, (b')").rowcount == 1
    assert conn.execute(f"SELECT * FROM {table} WHERE id = 7").fetchall() == [(7, None, "a, (b")]


def test_a_name_is_prepared_anew_and_forgotten(cluster: Cluster, conn: secateur.Connection) -> None:
    for number in (1, 2):
        conn.execute(f"PREPARE one AS SELECT {number}")
        assert conn.execute("EXECUTE one").fetchall() == [(number,)]
    with cluster.connect() as other, pytest.raises(ProgrammingError, match="'one' on this connection; there is none"):
        other.execute("EXECUTE one")
    conn.execute("PREPARE two AS SELECT 2")
    conn.execute("DEALLOCATE PREPARE one")
    with pytest.raises(ProgrammingError, match=r"no statement is prepared under the name 'one'.*there is two"):
        conn.execute("DEALLOCATE one")
    conn.execute("DEALLOCATE ALL")
    with pytest.raises(ProgrammingError, match="there is none"):
        conn.execute("EXECUTE two")


def test_wrong_values_of_execute_are_told(conn: secateur.Connection) -> None:
    conn.execute("PREPARE one AS SELECT ? + 1")
    with pytest.raises(ParameterError, match="the statement has 1 parameter, 2 "):
        conn.execute("EXECUTE one(1, 2)")
    with pytest.raises(ParameterError, match="takes one list of values, 2 were given"):
        conn.execute("EXECUTE one(1), (2)")
    with pytest.raises(UnknownColumnError, match=r"line 2, column 1\)"):
        conn.execute("EXECUTE one(\namount)")
    for text in ("PREPARE one AS EXECUTE one", "PREPARE one AS "):
        with pytest.raises(ProgrammingError, match="names no statement"):
            conn.execute(text)


def test_who_executes_statements_of_others_prepares_none(conn: secateur.Connection) -> None:
    conn.local_effects = False
    with pytest.raises(NotSupportedError, match="this one executes statements of others"):
        conn.execute("PREPARE one AS SELECT 1")


@pytest.mark.parametrize("sql", ["BEGIN", "START TRANSACTION", "COMMIT", "ROLLBACK"])
def test_transactions_are_refused_on_a_usual_connection(conn: secateur.Connection, sql: str) -> None:
    with pytest.raises(NotSupportedError, match="each statement is a transaction of its own"):
        conn.execute(sql)


@pytest.mark.parametrize("sql", ["SAVEPOINT a", "BEGIN ISOLATION LEVEL SERIALIZABLE", "START TRANSACTION READ ONLY"])
def test_more_than_the_bounds_of_a_transaction_is_refused(tool: secateur.Connection, sql: str) -> None:
    with pytest.raises((NotSupportedError, SqlSyntaxError)):
        tool.execute(sql)


def test_a_rollback_is_accepted_if_nothing_was_changed(tool: secateur.Connection, table: str) -> None:
    tool.execute("BEGIN")
    tool.execute(f"TABLE {table}")
    tool.execute(f"UPDATE {table} SET note = 'x' WHERE id = 99")
    with pytest.raises(DuplicateKeyError):
        tool.execute(f"INSERT INTO {table} VALUES (3, NULL, NULL), (1, NULL, NULL)")
    with pytest.raises(DuplicateKeyError):
        tool.cursor().executemany(f"INSERT INTO {table} VALUES (?, NULL, NULL)", [[3], [1]])
    tool.execute("ROLLBACK TRANSACTION")
    assert tool.execute(f"SELECT count(*) FROM {table}").fetchall() == [(2,)]
    tool.execute("START TRANSACTION")
    tool.execute(f"DELETE FROM {table} WHERE id = 2")
    tool.execute("COMMIT WORK")
    tool.rollback()


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO {} VALUES (3, NULL, NULL)",
        "UPDATE {} SET note = 'x' WHERE id = 1",
        "DELETE FROM {} WHERE id = 1 RETURNING id",
        "INSERT INTO {0} SELECT id + 10, day, note FROM {0}",
        "CREATE INDEX of_{0} ON {0} (note)",
        "EXPLAIN ANALYZE DELETE FROM {} WHERE id = 1",
    ],
)
def test_a_rollback_behind_a_change_says_that_it_was_committed(
    tool: secateur.Connection, table: str, change: str
) -> None:
    tool.execute("BEGIN")
    tool.execute(change.format(table))
    with pytest.raises(NotSupportedError, match="each statement is committed by itself, so the statement that has"):
        tool.execute("ROLLBACK")
    tool.rollback()  # it was said once


def test_a_rollback_behind_many_changes_says_so(tool: secateur.Connection, table: str) -> None:
    tool.executemany(f"UPDATE {table} SET note = ? WHERE id = ?", [["a", 1], ["b", 2]])
    with pytest.raises(NotSupportedError, match="2 statements that have changed something"):
        tool.rollback()
    tool.executemany(f"INSERT INTO {table} VALUES (?, NULL, NULL)", [[3], [4]])
    with pytest.raises(NotSupportedError, match="each statement is committed by itself"):
        tool.rollback()


@pytest.mark.parametrize("sql", ["ANALYZE", "ANALYZE {}", "VACUUM", "VACUUM main.{}", "VACUUM ANALYZE {}"])
def test_maintenance_says_that_it_is_not_needed(conn: secateur.Connection, table: str, sql: str) -> None:
    cursor = conn.execute(sql.format(table))
    assert [column[0] for column in cursor.description or ()] == ["notice"]
    [(notice,)] = cursor.fetchall()
    assert notice.startswith(f"{sql.split()[0]} is not needed: members ")


@pytest.mark.parametrize("sql", ["ANALYZE nowhere", "VACUUM nowhere", "TABLE nowhere"])
def test_a_table_that_is_not_there_is_told(conn: secateur.Connection, sql: str) -> None:
    with pytest.raises(UnknownTableError, match="'nowhere' does not exist"):
        conn.execute(sql)


def test_reset_takes_a_setting_back(conn: secateur.Connection) -> None:
    for name, value, default in [("pruning", "off", "on"), ("statement_timeout", "5s", "0")]:
        conn.execute(f"SET {name} = '{value}'")
        conn.execute(f"RESET {name}")
        assert conn.execute(f"SHOW {name}").fetchall() == [(default,)]
    with pytest.raises(ProgrammingError, match="there is no setting 'prunning'; did you mean pruning"):
        conn.execute("RESET prunning")


@pytest.mark.parametrize(
    "sql",
    [
        "TABLE {} ORDER BY id LIMIT 1",
        "SELECT * FROM (TABLE main.{}) AS t WHERE id = 1",
        "WITH t AS (TABLE {}) TABLE t ORDER BY id LIMIT 1",
        "(TABLE {0} INTERSECT TABLE {0}) ORDER BY id LIMIT 1",
    ],
)
def test_a_table_is_a_query(conn: secateur.Connection, table: str, sql: str) -> None:
    assert conn.execute(sql.format(table)).fetchall() == [(1, date(2024, 2, 29), "it's")]
