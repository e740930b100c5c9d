"""INSERT of one row ON CONFLICT DO UPDATE, mostly computed without DuckDB, leaves the rows that DuckDB leaves, and
fails where DuckDB fails.

Every failure names its seed.
"""

from __future__ import annotations

import os
import random
import re
from contextlib import nullcontext, suppress
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pytest

import secateur
from worlds import rows_in_duckdb, rows_of

SEED = int(os.environ.get("SECATEUR_SEED", "1"))
SEEDS = range(SEED, SEED + int(float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1"))))
STATEMENTS = 10
_NEGATIVE_ZERO = re.compile(r"-0\.0(?=[,)])")
COLUMNS = {
    "i": "INTEGER",
    "b": "BIGINT NOT NULL",
    "u": "UTINYINT",
    "s": "VARCHAR",
    "p": "DECIMAL(8, 2)",
    "f": "DOUBLE",
    "d": "DATE",
    "m": "TIMESTAMP",
    "o": "BOOLEAN",
}
LITERALS: dict[str, list[str]] = {
    "k": ["0", "1", "2", "3", "-1", "NULL", "'2'", "1 + 1"],
    "n": ["'a'", "'b'", "'it''s'", "'a' || 'b'"],
    "i": ["0", "7", "-3", "2147483647", "3000000000", "NULL", "DEFAULT", "1.5", "'4'"],
    "b": ["1", "9223372036854775807", "-5", "0", "NULL", "true"],
    "u": ["0", "255", "256", "-1", "NULL"],
    "s": ["''", "'x'", "'it''s'", "NULL", "7", "'a' || 'b'", "chr(0)", "'\U0010ffff'"],
    "p": ["1.5", "-0.25", "3", "1.255", "999999.99", "1e2", "NULL", "'2.50'"],
    "f": ["0.1", "-0.0", "3", "1e300", "NULL", "12345678901234567890.5"],
    "d": [
        "DATE '2024-02-29'",
        "'1999-12-31'",
        "NULL",
        "'infinity'",
        "DATE '0044-03-15 (BC)'",
        "'2023-02-29'",
        "date '2000-01-01' + 1",
    ],
    "m": ["TIMESTAMP '2024-02-29 12:30:00'", "'2024-01-01 00:00:00.5'", "'2024-01-01'", "NULL", "'-infinity'"],
    "o": ["true", "FALSE", "NULL", "1", "'no'"],
}
PARAMETERS: dict[str, list[Any]] = {
    "k": [0, 1, 2, 3, -1, None, "2", 2.0, 2**40],
    "n": ["a", "b", "it's", None, 5],
    "i": [0, 7, -3, 2**31 - 1, 2**31, None, 1.5, "4", True],
    "b": [1, 2**63 - 1, -5, 0, 2**63, None, 2.0],
    "u": [0, 255, 256, -1, None],
    "s": ["", "x", "it's", None, 7, b"x"],
    "p": [Decimal("1.5"), Decimal("-0.25"), 3, Decimal("1.255"), Decimal("999999.99"), 0.5, None],
    "f": [0.1, -0.0, 3, 1e300, None, float("nan"), float("inf")],
    "d": [date(2024, 2, 29), None, "1999-12-31", datetime(2024, 1, 1, 5), date.max, "infinity", "10000-01-01"],
    "m": [datetime(2024, 2, 29, 12, 30), None, date(2024, 1, 1), "2024-01-01 00:00:00", datetime.min, "-infinity"],
    "o": [True, False, None, 1],
}
ASSIGNED = [
    "{c} = excluded.{c}",
    "{c} = EXCLUDED.{c}",
    '{c} = "excluded"."{c}"',
    "{c} = (excluded.{c})",
    "{c} = excluded.{o}",
    "{c} = {given}",
    "{c} = DEFAULT",
    "{c} = {c}",
    "{c} = {t}.{o}",
    "{n} = {n} + excluded.{n}",
    "{n} = excluded.{n} - {n} * 2",
    "{n} = ({n} + 1) - excluded.{n}",
    "{n} = {n} + excluded.{o}",
    "{n} = -{n}",
    "s = s || excluded.s",
    "s = 'excluded.s'",
    "{c} = coalesce({c}, excluded.{c})",
    "{n} = list_sum([excluded.{n} FOR x IN [1]])",
]
CONDITIONS = [
    "{t}.{n} < excluded.{n}",
    "excluded.{n} >= {n}",
    "{c} IS NULL",
    "{t}.{c} <> excluded.{c} OR {n} IS NOT NULL",
    "excluded.{c} IS NOT NULL",
    "false",
    "{n} = {given}",
    "s <> 'excluded'",
]


class Statements:
    """Makes statements; ``params`` are those of the last one."""

    def __init__(self, rng: random.Random, table: str) -> None:
        self.rng = rng
        self.table = table
        self.params: list[Any] = []

    def statement(self) -> str:
        rng = self.rng
        self.params = []
        named = ["k", "n", *(name for name in COLUMNS if name == "b" or rng.random() < 0.7)]
        rng.shuffle(named)
        values = ", ".join(map(self.given, named))
        into = f"{self.table} ({', '.join(named)}) VALUES ({values})"
        if rng.random() < 0.2:
            return f"INSERT OR REPLACE INTO {into}"
        chosen = rng.sample([*COLUMNS], rng.choice([1, 1, 2, 3]))
        assigned = {text.split(" ")[0]: text for text in (self.text(rng.choice(ASSIGNED), column) for column in chosen)}
        condition = f" WHERE {self.text(rng.choice(CONDITIONS), chosen[0])}" if rng.random() < 0.3 else ""
        return f"INSERT INTO {into} ON CONFLICT (k, n) DO UPDATE SET {', '.join(assigned.values())}{condition}"

    def text(self, form: str, column: str) -> str:
        number = column if column in "ibu" else self.rng.choice("ibu")
        given = self.given(column if "{c}" in form else number) if "{given}" in form else ""
        # DuckDB refuses some casts before it looks for a row, others when it has a value to cast.
        other = self.rng.choice("ibupf") if column in "ibupf" else column
        return form.format(c=column, n=number, o=other, t=self.table, given=given)

    def given(self, column: str) -> str:
        """A literal or a parameter, mostly one that its column takes as it stands."""
        rng = self.rng
        few = 3 if rng.random() < 0.8 else None
        if rng.random() < 0.5:
            return rng.choice(LITERALS[column][:few])
        self.params.append(rng.choice(PARAMETERS[column][:few]))
        return f"${len(self.params)}"


def _shown(rows: object) -> str:
    """Rows as text, for nan; DuckDB leaves the one zero where it is to be replaced by the other."""
    return _NEGATIVE_ZERO.sub("0.0", repr(rows))


def _parameters_before(sql: str) -> int:
    """How many of its parameters an INSERT has before its conflict clause."""
    return len(re.findall(r"\$\d+", sql[: sql.index(" ON CONFLICT")]))


@pytest.mark.parametrize("seed", SEEDS)
def test_upserts_of_one_row(conn: secateur.Connection, table_name: str, seed: int) -> None:
    rng = random.Random(seed)
    columns = ", ".join(f"{name} {text}" for name, text in COLUMNS.items())
    done = 0
    with duckdb.connect() as oracle:
        for execute in (conn.execute, oracle.execute):
            execute(f"CREATE TABLE {table_name} (k INTEGER, n VARCHAR, {columns}, PRIMARY KEY (k, n))")
        statements = Statements(rng, table_name)
        for _ in range(STATEMENTS):
            sql = statements.statement()
            said = []
            for execute in (conn.execute, oracle.execute):
                try:
                    execute(sql, statements.params)
                    said.append("done")
                except (secateur.Error, duckdb.Error) as error:
                    said.append(f"refused: {error}")
            case = f"seed {seed}: {sql} with {statements.params}"
            # DuckDB computes values also where the condition is not true: what it refuses then changes nothing here.
            # It also does for a row that is new: here that is inserted, which the oracle has to be told.
            if said[0] == "done" != said[1]:
                with suppress(duckdb.ConstraintException) if " WHERE " in sql else nullcontext():
                    oracle.execute(sql[: sql.index(" ON CONFLICT")], statements.params[: _parameters_before(sql)])
            else:
                assert said[0][:7] == said[1][:7], f"{case}: {said}"
            done += said[0] == "done"
            read = f"SELECT * FROM {table_name} ORDER BY k, n"
            left, expected = rows_of(conn.execute(read)), rows_in_duckdb(oracle, read)
            assert _shown(left) == _shown(expected), case
    assert done
