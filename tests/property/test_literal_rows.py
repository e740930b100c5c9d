"""Rows of literals that are taken out of the text of an INSERT are those that DuckDB evaluates, with the same errors.

A comment in front of the statement keeps its rows in the text. Every failure names its seed.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from described_tables import DescribedTables
from plan_files import read_tables
from secateur.errors import Error
from secateur.planner.dml import take_literal_rows
from secateur.protocol import EvaluatedInsert
from worlds import rows_as_tuples

SEED = int(os.environ.get("SECATEUR_SEED", "1"))
SEEDS = range(SEED, SEED + int(float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1"))))
STATEMENTS = 8
COLUMNS = {
    "k": "BIGINT",
    "t": "TINYINT NOT NULL",
    "w": "UBIGINT",
    "h": "HUGEINT",
    "s": "VARCHAR",
    "p": "DECIMAL(8, 2)",
    "q": "DECIMAL(38, 10)",
    "f": "DOUBLE",
    "r": "FLOAT",
    "d": "DATE",
    "m": "TIMESTAMP",
    "z": "TIMESTAMPTZ",
    "o": "BOOLEAN",
    "b": "BLOB",
}
PLAIN: dict[str, list[str]] = {
    "k": ["1", "-3", "9223372036854775807", "-9223372036854775808", "007", "0"],
    "t": ["1", "-128", "127"],
    "w": ["0", "18446744073709551615"],
    "h": ["0", "-7", "170141183460469231731687303715884105727"],
    "s": ["'a'", "''", "'it''s'", "''''", "'a, b) ('", "' é '", "'-- no comment'", "'?'"],
    "p": ["1.5", "-0.25", "3", "999999.99", ".5", "5.", "-.5", "-0"],
    "q": ["1.0000000001", "-12345678901234567890.5", "0"],
    "f": ["0.1", "-0.0", "3", "-2.5", "12345678901234567890.5", "0.1000000000000000055511151231257827", "-0"],
    "r": ["0.5", "1"],
    "d": [
        "DATE '2024-02-29'",
        "'1999-12-31'",
        "date  '0001-01-01'",
        "DATE'2024-01-01'",
        "'infinity'",
        "'10000-01-01'",
    ],
    "m": [
        "TIMESTAMP '2024-02-29 12:30:00'",
        "'2024-01-01T00:00:00.5'",
        "'2024-01-01'",
        "timestamp '1969-12-31'",
        "'-infinity'",
    ],
    "z": ["'2024-01-01 00:00:00+02:00'", "'2024-01-01'", "'infinity'", "'10000-01-01'"],
    "o": ["true", "FALSE", "True"],
    "b": ["'abc'", "'\\x00'"],
}
OTHER: dict[str, list[str]] = {
    "k": ["NULL", "9223372036854775808", "1.5", "'4'", "1e3", "+1", "1 + 1", "- 1", "1_000", "0x10", "true"],
    "t": ["128", "NULL", "DEFAULT"],
    "w": ["-1", "18446744073709551616"],
    "s": ["7", "'a' || 'b'", "E'\\n'", "$$a$$", "'a'\n'b'", "upper('a')", "TRUE"],
    "p": ["1.255", "1e2", "'2.50'", "1000000"],
    "q": ["0.00000000001", "99999999999999999999999999999999999999999"],
    "f": ["1e300", "'nan'", "1e999"],
    "d": ["'2023-02-29'", "DATE '2024-02-29' + 1", "TIMESTAMP '2024-01-01 10:00:00'", "'epoch'", "20240101"],
    "m": ["DATE '2024-01-01'", "'2024-01-01 25:00:00'", "'infinity'"],
    "o": ["1", "'no'", "NULL"],
}


@pytest.fixture(scope="module")
def context() -> DescribedTables:
    context = DescribedTables.of(read_tables("shop"))
    context.create(f"CREATE TABLE t ({', '.join(f'{name} {text}' for name, text in COLUMNS.items())}, PRIMARY KEY (k))")
    return context


def outcome(context: DescribedTables, sql: str) -> Any:
    try:
        statement = context.prepare(sql)
    except Error as error:
        return type(error), error.details.get("column"), error.message.split("\n")[0].split(" (line")[0]
    assert isinstance(statement, EvaluatedInsert)
    return statement.insert.mode, statement.insert.table.name, repr(rows_as_tuples(statement.rows))


@pytest.mark.parametrize("seed", SEEDS)
def test_taken_rows_are_the_evaluated_ones(context: DescribedTables, seed: int) -> None:
    rng, taken = random.Random(seed), 0
    for _ in range(STATEMENTS):
        names = ["k", "t", *rng.sample([name for name in COLUMNS if name not in "kt"], rng.choice([0, 1, 2, 4]))]
        into = rng.choice(["INSERT INTO", "INSERT OR REPLACE INTO", "insert or ignore into"])
        if "REPLACE" in into:  # a row that names fewer keeps the others
            names = rng.sample([*COLUMNS], len(COLUMNS))
        others = rng.choice([0.0, 0.0, 0.0, 0.01])
        space = rng.choice(["", " ", "\n", "\t "])

        def cell(name: str, others: float = others) -> str:
            usual = "NULL" if name not in "kt" and rng.random() < 0.1 else rng.choice(PLAIN[name])
            return rng.choice(OTHER.get(name, [usual])) if rng.random() < others else usual

        rows = [f"({space}{f'{space},{space}'.join(map(cell, names))}{space})" for _ in range(1 + 1200 // len(names))]
        rows = rows[: rng.choice([60, 120])]
        listed = rng.choice([", ".join(names), ", ".join(f'"{name}"' for name in names), ",".join(names).upper()])
        tail = rng.choice(["", ";", " ON CONFLICT DO NOTHING" if into == "INSERT INTO" else " ;", ","])
        sql = (
            f"{into} {rng.choice(['t', 'T', chr(34) + 't' + chr(34)])} ({listed}) VALUES{space}{', '.join(rows)}{tail}"
        )
        sql = sql.ljust(1024)
        taken += take_literal_rows(sql) is not None
        assert outcome(context, sql) == outcome(context, f"-- rows stay\n{sql}"), f"seed {seed}: {sql[:2000]}"
    assert taken > STATEMENTS / 5
