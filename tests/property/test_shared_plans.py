"""A text that shares its plan with texts of other literals has the rows, the columns, the errors and the partitions
that it has by a plan of its own, and changes the same rows as DuckDB.

A comment keeps a text from sharing a plan. ``SECATEUR_PROPERTY_FACTOR`` sets how many random worlds are tried, and
``SECATEUR_SEED`` where they begin; a failure names its seed.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pytest

import secateur
from extremes import literal
from predicates import Predicates
from secateur.client.execution import take_literals
from statements import Statements
from worlds import DAYS, INTEGERS, TEXTS, World, oracle_database, random_world, rows_of, sorted_rows

WORLDS = int(float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1")))
FIRST_SEED = int(os.environ.get("SECATEUR_SEED", "0"))
STATEMENTS_PER_WORLD = 12
CHANGES_PER_WORLD = 40
AS_IT_STANDS = " -- with a plan of its own"
IN_PARENTHESES = re.compile(r"([=<>]) \(('[^']*'|-?[\d.]+(?:e\d+)?|(?:DATE|TIMESTAMP) '[\d :.-]+')\)")
SHAPES = [
    "a, b, c, v",
    "a = 1, b, 1.50, 'x', v",
    "count(*), sum(v), min(b), max(c)",
    "b, count(v)",
    "c, v, row_number() OVER (PARTITION BY c ORDER BY a, b)",
]
CHANGES = [
    "UPDATE {t} SET s = {s} WHERE k = {i}",
    "UPDATE {t} SET s = {any}, i = {i}, d = {d} WHERE k = {i} AND j = {i}",
    "UPDATE {t} SET d = {s}, x = {n}, y = {n} WHERE k IN ({i}, {i}) OR j < {i}",
    "UPDATE {t} SET s = s || '?', i = {n}, x = {i} WHERE k BETWEEN {i} AND {i} AND s <> {s}",
    "UPDATE {t} SET j = {i}, ts = {d} WHERE k = {i} AND x >= {n}",
    "UPDATE {t} SET i = {i} WHERE s = {s} RETURNING k, j, {i} AS given",
    "DELETE FROM {t} WHERE k = {i} AND j = {i}",
    "DELETE FROM {t} WHERE s = {s} AND d > {d} OR NOT x = {n}",
    "INSERT INTO {t} VALUES ({i}, {i}, {s}, {d}, {n}, {n}, {i}, {d})",
    "INSERT INTO {t} (k, j, s) VALUES ({any}, {i}, {any})",
    "INSERT OR REPLACE INTO {t} (k, j, s, x, d) VALUES ({i}, {i}, {any}, {n}, {d});",
    "INSERT OR IGNORE INTO {t} (k, j, s, ts, y) VALUES ({i}, {i}, NULL, {d}, {n})",
]


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + WORLDS))
def test_queries(conn: secateur.Connection, table_name: str, seed: int) -> None:
    rng = random.Random(31_000 + seed)
    world = random_world(rng, ("t", "u"))
    for name in "tu":
        conn.execute(
            f"CREATE TABLE {table_name}_{name} (a INTEGER, b VARCHAR, c DATE, v BIGINT, PRIMARY KEY (a, b, c))"
            f" PARTITION BY {world.ddl[name]}"
        )
        table = world.table(name)
        rows = world.duck.sql(f"SELECT * FROM {name}").to_arrow_table().cast(table.arrow_schema)
        conn.table(f"{table_name}_{name}").load(rows, mode="append")
    compared = shared = wider = 0
    for _ in range(STATEMENTS_PER_WORLD):
        text = _literal_query(rng)
        first = None if text is None else take_literals(text)
        if text is None or first is None:
            continue
        for variant in [text, *_variants(rng, first.text, first.values, 3)]:
            sql = re.sub(r"(\bFROM|\bJOIN|,) ([tu])\b", rf"\1 {table_name}_\2", variant)
            own, found = _answer(conn, sql + AS_IT_STANDS), _answer(conn, sql)
            assert found[:2] == own[:2], f"seed {seed}: {sql}"
            if own[2] is not None:
                _check_rows(world, variant, own[0])
                wider += found[2] > own[2]
            compared += 1
            shared += found[-1]
    assert shared > compared // 16 or compared < 20, f"seed {seed}: {shared} of {compared} texts share a plan"
    # That literals of columns which are no keys contradict each other is seen in the text alone.
    assert wider <= 1 + compared // 5, f"seed {seed}: {wider} of {compared} texts read more partitions"


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + WORLDS))
def test_changes(conn: secateur.Connection, table_name: str, seed: int) -> None:
    rng = random.Random(32_000 + seed)
    duck = oracle_database()
    columns = "(k BIGINT, j INTEGER, s VARCHAR, d DATE, x DECIMAL(9, 2), y DOUBLE, i SMALLINT, ts TIMESTAMP"
    conn.execute(f"CREATE TABLE {table_name} {columns}, PRIMARY KEY (k, j)) PARTITION BY HASH (k) PARTITIONS 5")
    duck.execute(f"CREATE TABLE {table_name} {columns}, PRIMARY KEY (k, j))")
    for number in range(CHANGES_PER_WORLD):
        shape = rng.choice(CHANGES).replace("{t}", table_name)
        sql = re.sub(r"\{(\w+)\}", lambda found: _drawn(rng, found[1]), shape)
        try:
            expected = duck.execute(sql).fetchall()
        except duckdb.Error:
            with pytest.raises(secateur.Error):
                conn.execute(sql)
            continue
        cursor = conn.execute(sql)
        found = cursor.fetchall() if "RETURNING" in sql else [(cursor.rowcount,)]
        assert sorted_rows(found) == sorted_rows(expected), f"seed {seed}: {sql}"
        if number % 5 == 0:
            rows = f"SELECT * FROM {table_name}"
            assert sorted_rows(conn.execute(rows).fetchall()) == sorted_rows(duck.execute(rows).fetchall()), (
                f"seed {seed}: {sql}"
            )


def _literal_query(rng: random.Random) -> str | None:
    """A query with literals for all parameters; None where a parameter has no literal."""
    if rng.random() < 0.5:
        predicates = Predicates(rng)
        where = predicates.predicate(2)
        shape = rng.choice(SHAPES)
        sql = f"SELECT {shape} FROM t WHERE {where}{' GROUP BY b' if shape.startswith('b') else ''}"
    else:
        maker = Statements(rng)
        sql, predicates = maker.statement(), maker.predicates
    try:
        written = [_written(value) for value in predicates.params()]
    except TypeError:
        return None
    text = re.sub(r"\$(\d+)", lambda found: written[int(found[1]) - 1], sql)
    return IN_PARENTHESES.sub(r"\1 \2", text)


def _variants(rng: random.Random, text: str, values: Sequence[Any], count: int) -> Iterator[str]:
    """Texts with other literals of the same classes."""
    parts = re.split(r" (?:\?|\$(\d+))", text)
    numbers = [position if number is None else int(number) - 1 for position, number in enumerate(parts[1::2])]
    if set(numbers) != set(range(len(values))):
        return  # a pattern has a question mark
    for _ in range(count):
        others = [_other(rng, value) for value in values]
        written = [f" {_written(others[number])}" for number in numbers]
        yield "".join(word for pair in zip(parts[::2], [*written, ""], strict=True) for word in pair)


def _other(rng: random.Random, value: Any) -> Any:
    match value:
        case str():
            is_day = re.fullmatch(r"[\d-]{10}", value) is not None
            return str(rng.choice(DAYS)) if is_day else rng.choice([*TEXTS, "3", "it's", "zz"])
        case int():
            return rng.choice([*INTEGERS, 300, 99999999999])
        case float():
            return rng.choice([2.0, -1.0, 1.5])
        case Decimal():
            return rng.choice([Decimal("1.5"), Decimal("2.0"), Decimal("-2.00")])
        case datetime():
            return datetime.combine(rng.choice(DAYS), datetime.min.time()) + timedelta(hours=rng.choice([0, 12]))
        case _:
            return rng.choice(DAYS)


def _written(value: Any) -> str:
    """A value as a literal.

    Raises:
        TypeError: It has none.
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case str():
            return literal(value)
        case float():
            return f"{value}e0" if abs(value) < 1e15 else f"'{value}'::DOUBLE"
        case int():
            return str(value)
        case Decimal() if value.is_finite():
            return f"{value:f}"
        case datetime() if value.tzinfo is None:
            return f"TIMESTAMP '{value}'"
        case date() if not isinstance(value, datetime):
            return f"DATE '{value}'"
        case _:
            raise TypeError(value)


def _drawn(rng: random.Random, kind: str) -> str:
    """A literal for a change."""
    day = rng.choice(DAYS)
    match kind:
        case "i":
            return str(
                rng.choice([0, 1, 2, 3, 4, -1, 70_000, 3_000_000_000]) if rng.random() < 0.3 else rng.randrange(5)
            )
        case "s":
            return rng.choice(["'a'", "'b'", "'it''s'", "'5'", f"'{day}'", "'?'", "''"])
        case "n":
            return rng.choice(["1.5", "-2.25", "3", "1e2", "10.125", "0.5", "'7'", "1234567.89", "'x'"])
        case "d":
            return rng.choice([f"'{day}'", f"DATE '{day}'", f"TIMESTAMP '{day} 12:00:00'", "NULL", "'2024-02-30'"])
        case _:
            return _drawn(rng, rng.choice("iisnd"))


def _answer(conn: secateur.Connection, sql: str) -> tuple[Any, ...]:
    """Rows, columns and partitions of a query, or its error; and whether its plan was known."""
    try:
        cursor = conn.execute(sql)
        rows = sorted_rows(rows_of(cursor))
    except secateur.Error as error:
        return (type(error), None, None, False)
    assert cursor.stats is not None
    return rows, cursor.description, cursor.stats.partitions_read, cursor.stats.plan_cached


def _check_rows(world: World, sql: str, rows: list[str]) -> None:
    """Compare the rows of an answer with DuckDB's, where it gives any."""
    try:
        expected = sorted_rows(world.oracle(sql, ()))
    except duckdb.Error:
        return
    assert rows == expected, sql
