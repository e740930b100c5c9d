"""A statement that was planned with small integers, executed with large ones: columns are wider then, in every mode."""

from __future__ import annotations

import duckdb
import pytest

import secateur

VALUES = (1, 2**40, 2**70, -5, 2**31)


@pytest.fixture(scope="module")
def oracle() -> duckdb.DuckDBPyConnection:
    database = duckdb.connect()
    database.execute("CREATE TABLE wide (k BIGINT, i INTEGER)")
    database.execute("INSERT INTO wide SELECT x, x % 3 FROM range(40) r(x)")
    return database


@pytest.mark.parametrize("where", ["", " WHERE k IN (1, 2, 3)", " WHERE k = 2"], ids=["all", "few", "one"])
@pytest.mark.parametrize(
    "select",
    [
        "SELECT k, ? FROM wide",
        "SELECT k, i + ? FROM wide",
        "SELECT sum(i * ?), count(?) FROM wide",
        "SELECT CASE WHEN k = 1 THEN ? ELSE i END FROM wide",
        "SELECT DISTINCT i * ? FROM wide",
    ],
)
def test_all_modes_give_the_answer_of_duckdb(
    conn: secateur.Connection, oracle: duckdb.DuckDBPyConnection, select: str, where: str
) -> None:
    conn.execute(
        "CREATE TABLE IF NOT EXISTS wide (k BIGINT PRIMARY KEY, i INTEGER) PARTITION BY HASH (k) PARTITIONS 31"
    )
    conn.execute("INSERT OR REPLACE INTO wide SELECT x, x % 3 FROM range(40) r(x)")
    for value in VALUES:
        params = [value] * select.count("?")
        found = conn.execute(select + where, params).fetchall()
        expected = oracle.execute(select + where, params).fetchall()
        assert sorted(map(repr, map(plain, found))) == sorted(map(repr, map(plain, expected))), value


def plain(row: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(None if value is None else int(value) for value in row)  # type: ignore[call-overload]
