"""Sums of DECIMALs in changes of single rows, which run without DuckDB, leave the rows that DuckDB leaves."""

from __future__ import annotations

import os
import random
from decimal import Decimal
from typing import Any

import duckdb
import pytest

import secateur
from secateur.cluster import Cluster

STATEMENTS = int(24 * float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1")))
KEYS = 12
TYPES = [(10, 2), (4, 0), (5, 5), (18, 9), (37, 10), (38, 2)]


class Twins:
    """A table in a cluster, and the same one in DuckDB."""

    def __init__(self, conn: secateur.Connection, name: str, precision: int, scale: int) -> None:
        self.conn, self.duck, self.name = conn, duckdb.connect(), name
        self.rng = random.Random(f"{precision} {scale}")
        self.precision, self.scale = precision, scale
        type_ = f"DECIMAL({precision},{scale})"
        self.conn.execute(
            f"CREATE TABLE {name} (k INTEGER PRIMARY KEY, d {type_}, e {type_}, n BIGINT)"
            " PARTITION BY HASH (k) PARTITIONS 5 BACKUPS 1"
        )
        self.duck.execute(f"CREATE TABLE {name} (k INTEGER PRIMARY KEY, d {type_}, e {type_}, n BIGINT)")
        for key in range(KEYS):
            row = [key, self.number(), self.number(), key]
            for each in (self.conn, self.duck):
                each.execute(f"INSERT INTO {name} VALUES (?, ?, ?, ?)", row)

    def number(self) -> Decimal | None:
        """A value of the type: small, or close to its bound."""
        if self.rng.random() < 0.1:
            return None
        digits = self.rng.choice([1, 2, self.precision // 2, self.precision - 1, self.precision])
        units = self.rng.randrange(-(10**digits) + 1, 10**digits)
        return Decimal((units < 0, tuple(map(int, str(abs(units)))), -self.scale))

    def given(self) -> Any:
        """A parameter: a value of the type, or of another one."""
        choices = [self.number(), self.number(), self.rng.randrange(-3, 4), Decimal("0.55555"), 0.5, 2**40, None]
        return self.rng.choice(choices)

    def expression(self) -> tuple[str, list[Any]]:
        sign = self.rng.choice("+-")
        match self.rng.randrange(7):
            case 0:
                return f"d {sign} 1", []
            case 1:
                return f"d {sign} 0.5", []
            case 2:
                return f"d {sign} e", []
            case 3:
                return f"d {sign} ? {sign} e", [self.given()]
            case 4:
                return f"? {sign} d", [self.given()]
            case 5:
                return f"d {sign} n", []
            case _:
                return f"d {sign} ?", [self.given()]

    def both(self, sql: str, params: list[Any]) -> None:
        """Execute, and compare: the rows afterwards, also where both refuse."""
        failed = []
        for each in (self.conn, self.duck):
            try:
                each.execute(sql, params)
                failed.append(False)
            except (duckdb.Error, secateur.DataError, secateur.ProgrammingError):
                failed.append(True)
        assert failed[0] == failed[1], (sql, params, failed)
        rows = f"SELECT * FROM {self.name} ORDER BY k"
        assert self.conn.execute(rows).fetchall() == self.duck.execute(rows).fetchall(), (sql, params)


@pytest.mark.sampled(one_in=2)
@pytest.mark.parametrize(("precision", "scale"), TYPES)
def test_changes_leave_what_duckdb_leaves(
    cluster: Cluster, conn: secateur.Connection, table_name: str, precision: int, scale: int
) -> None:
    twins = Twins(conn, table_name, precision, scale)
    for _ in range(STATEMENTS):
        key = twins.rng.randrange(KEYS)
        expression, params = twins.expression()
        if twins.rng.random() < 0.5:
            twins.both(f"UPDATE {table_name} SET d = {expression} WHERE k = ?", [*params, key])
        else:
            given = twins.given()
            sql = f"INSERT INTO {table_name} (k, d) VALUES (?, ?) ON CONFLICT DO UPDATE SET d = {table_name}.d"
            twins.both(f"{sql} {twins.rng.choice('+-')} excluded.d", [key, given])
        if twins.rng.random() < 0.2:
            twins.both(f"UPDATE {table_name} SET d = ? WHERE k = ?", [twins.number(), key])


@pytest.mark.parametrize(("precision", "scale"), TYPES)
def test_queries_answer_what_duckdb_answers(
    conn: secateur.Connection, table_name: str, precision: int, scale: int
) -> None:
    twins = Twins(conn, table_name, precision, scale)
    for _ in range(STATEMENTS // 3):
        expression, params = twins.expression()
        answers: list[Any] = []
        for each in (conn, twins.duck):
            try:
                sql = f"SELECT k, CAST({expression} AS DECIMAL({precision},{scale})) AS v FROM {table_name} ORDER BY k"
                answers.append(each.execute(sql, params).fetchall())
            except (duckdb.Error, secateur.DataError, secateur.ProgrammingError):
                answers.append("an error")
        assert answers[0] == answers[1], (expression, params)


def test_no_kernel_is_asked_and_an_overflow_names_the_value(conn: secateur.Connection, table_name: str) -> None:
    conn.execute(f"CREATE TABLE {table_name} (k INTEGER PRIMARY KEY, d DECIMAL(5,2))")
    conn.execute(f"INSERT INTO {table_name} VALUES (1, 1.25), (2, NULL)")
    changes = [
        (f"UPDATE {table_name} SET d = d + ? WHERE k = ?", [Decimal("0.50"), 1]),
        (f"INSERT INTO {table_name} VALUES (?, ?) ON CONFLICT DO UPDATE SET d = {table_name}.d - excluded.d", [1, 3]),
    ]
    for sql, params in changes:
        assert "serving: yes" in str(conn.explain(sql, params))
        conn.execute(sql, params)
    assert conn.execute(f"SELECT d FROM {table_name} WHERE k = 1").fetchall() == [(Decimal("-1.25"),)]
    conn.executemany(changes[0][0], [[Decimal("1.00"), 1], [Decimal("2.00"), 1], [None, 1], [1, 2]])
    assert conn.execute(f"SELECT d FROM {table_name} ORDER BY k").fetchall() == [(None,), (None,)]
    conn.execute(f"UPDATE {table_name} SET d = 999.99 WHERE k = 1")
    with pytest.raises(secateur.DataError, match="1000"):
        conn.execute(changes[0][0], [Decimal("0.01"), 1])
    assert conn.execute(f"SELECT d FROM {table_name} WHERE k = 1").fetchall() == [(Decimal("999.99"),)]
