"""Texts by key that are executed again and again, by serving calls and programs, answer what DuckDB answers.

Each text meets values of its key's type and of others, NULLs and the ends of types, rows that were just written, and
partitions that have moved. ``SECATEUR_SEED`` sets the seed.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from string import Formatter
from typing import Any
from uuid import UUID

import duckdb
import pytest

import secateur
from worlds import rows_in_duckdb, rows_of, sorted_rows

SEED = int(os.environ.get("SECATEUR_SEED", "20261128"))
TEXTS = int(8 * float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1")))
EXECUTIONS = 12

KEYS: dict[str, Callable[[random.Random], Any]] = {
    "VARCHAR": lambda r: r.choice(["", "a", "A", "01", "1", "é🌳", "a\0", "\U0010ffff"]),
    "BIGINT": lambda r: r.choice([*range(-2, 6), 2**63 - 1, -(2**63)]),
    "TINYINT": lambda r: r.choice([-128, -1, 0, 1, 127]),
    "DATE": lambda r: date(2024, 1, 1) + timedelta(days=r.randrange(6)),
    "TIMESTAMP": lambda r: datetime(2024, 1, 1) + timedelta(hours=r.randrange(6)),
    "DECIMAL(9, 2)": lambda r: Decimal(r.randrange(-3, 4)) / 4,
    "UUID": lambda r: UUID(int=r.randrange(4)),
    "BOOLEAN": lambda r: r.random() < 0.5,
}
STRANGE = [
    None,
    0,
    1,
    -1,
    2**63,
    "1",
    "",
    "2024-01-01",
    1.0,
    0.5,
    True,
    Decimal("1.00"),
    date(2024, 1, 2),
    b"a",
    UUID(int=1),
]
SCHEMES = ["HASH (a) PARTITIONS 7", "HASH (a, b) PARTITIONS 5", "HASH (b) PARTITIONS 3, HASH (a) PARTITIONS 3"]
SELECTS = [
    "SELECT * FROM t WHERE a = {a} AND b = {b}",
    "SELECT b, v, s FROM t WHERE a = {a}",
    "SELECT count(*), sum(x), avg(x), min(v) FROM t WHERE a = {a}",
    "SELECT count(*), sum(v), max(s) FROM t WHERE a IN ({a}, {a}, {a})",
    "SELECT s, count(*), sum(v) FROM t WHERE a = {a} GROUP BY s ORDER BY s LIMIT 3",
    "SELECT v FROM t WHERE a = {a} AND v > {v} AND s IS NOT NULL",
    "SELECT b FROM t WHERE a = {a} AND b IN ({b}, {b})",
    "SELECT t.v, n.title FROM t JOIN n ON n.v = t.v WHERE t.a = {a}",
    "SELECT t.b, n.title FROM t LEFT JOIN n ON n.v = t.v WHERE t.a = {a} AND t.b = {b}",
    "SELECT n.title FROM n WHERE n.v = {v}",
]


def row_of(r: random.Random, kinds: tuple[str, str]) -> tuple[Any, ...]:
    key = tuple(KEYS[kind](r) for kind in kinds)
    some = (r.randrange(-3, 4), r.choice(["", "x", "y🌳"]), r.randrange(-40, 40) / 4)
    return (*key, *(None if r.random() < 0.2 else value for value in some))


def parameters(r: random.Random, template: str, kinds: tuple[str, str]) -> list[Any]:
    """A value for each place, nearly always of the type of its column."""
    kind_of = {"a": kinds[0], "b": kinds[1], "v": "TINYINT"}
    named = [name for _, name, _, _ in Formatter().parse(template) if name is not None]
    return [r.choice(STRANGE) if r.random() < 0.1 else KEYS[kind_of[name]](r) for name in named]


@pytest.mark.parametrize("number", range(3))
def test_texts_that_are_executed_again_answer_what_duckdb_answers(number: int) -> None:
    r, oracle = random.Random(SEED + number), duckdb.connect()
    kinds = r.choice(list(KEYS)), r.choice(list(KEYS))
    columns = f"a {kinds[0]}, b {kinds[1]}, v BIGINT, s VARCHAR, x DOUBLE"
    oracle.execute(f"SET TimeZone = 'UTC'; CREATE TABLE t ({columns}, PRIMARY KEY (a, b))")
    oracle.execute("CREATE TABLE n (v BIGINT PRIMARY KEY, title VARCHAR)")
    compared, executed, served = 0, set[str](), set[str]()
    with secateur.start(members=3, runtime="embedded") as cluster, cluster.connect() as connection:
        connection.execute(f"CREATE TABLE t ({columns}, PRIMARY KEY (a, b)) PARTITION BY {r.choice(SCHEMES)}")
        connection.execute("CREATE TABLE n (v BIGINT PRIMARY KEY, title VARCHAR) REPLICATED")

        def write(row: tuple[Any, ...]) -> None:
            connection.table("t").put(row)
            oracle.execute("INSERT OR REPLACE INTO t VALUES (?, ?, ?, ?, ?)", row)

        for value in range(-2, 3):
            for database in (connection, oracle):
                database.execute("INSERT INTO n VALUES (?, ?)", [value, f"title {value}"])
        for _ in range(40):
            write(row_of(r, kinds))
        for _ in range(TEXTS):
            template = r.choice(SELECTS)
            sql = template.format(a="?", b="?", v="?")
            executed.add(sql)
            for _ in range(EXECUTIONS):
                params = parameters(r, template, kinds)
                where = f"SECATEUR_SEED={SEED}, number {number}, {kinds}: {sql} with {params}"
                try:
                    expected = sorted_rows(rows_in_duckdb(oracle, sql, params))
                except duckdb.Error:
                    with pytest.raises(secateur.Error):
                        connection.execute(sql, params).fetchall()
                    continue
                assert sorted_rows(rows_of(connection.execute(sql, params))) == expected, where
                compared += 1
                if any(sql == text for text, *_ in connection._session.serving_calls):
                    served.add(sql)
                if r.random() < 0.3:
                    write(row_of(r, kinds))
    assert compared > TEXTS * EXECUTIONS / 2
    assert len(served) > len(executed) / 4, "hardly a text had a serving call"
