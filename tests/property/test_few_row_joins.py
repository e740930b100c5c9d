"""Joins of few rows that keys find answer what DuckDB answers, pruned and unpruned, however the rows came there.

Random rows with NULLs in three tables: orders and their lines, which are co-located, and a replicated table of
products; rows that were loaded and rows that were written since. Inner and left joins, EXISTS and NOT EXISTS, with
conditions on pairs and on either side, of which columns are chosen, counted, added up or grouped. ``SECATEUR_SEED``
sets the seed.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pytest

import secateur
from secateur.cluster.member.statements import serving_programs

SEED = int(os.environ.get("SECATEUR_SEED", "20261127"))
STATEMENTS = int(6 * float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1")))
"""Of each turn, between which rows change."""
TABLES = {
    "orders": (
        "customer VARCHAR, number BIGINT, product SMALLINT, code VARCHAR, day DATE, price DECIMAL(10, 2), huge HUGEINT",
        "PRIMARY KEY (customer, number)",
        "PARTITION BY HASH (customer) PARTITIONS 5",
    ),
    "lines": (
        "customer VARCHAR, number BIGINT, line INTEGER, product SMALLINT, quantity INTEGER, ratio DOUBLE",
        "PRIMARY KEY (customer, number, line)",
        "PARTITION BY HASH (customer) PARTITIONS 5",
    ),
    "products": ("id SMALLINT, code VARCHAR, day DATE, stock BIGINT", "PRIMARY KEY (id)", "REPLICATED"),
    "days": ("day DATE, name VARCHAR", "PRIMARY KEY (day)", "REPLICATED"),
}
CUSTOMERS = ["", "a", "b", "é🌳", "none"]
CODES = ["", "x", "y", "é"]


def drawn(r: random.Random, make: Any) -> Any:
    return None if r.random() < 0.15 else make()


def row_of(r: random.Random, table: str) -> tuple[Any, ...]:
    day = date(2024, 1, 1) + timedelta(r.randrange(6))
    product, code = r.randrange(8), r.choice(CODES)
    customer, number = r.choice(CUSTOMERS[:-1]), r.randrange(6)
    match table:
        case "orders":
            price, huge = Decimal(r.randrange(-500, 500)) / 4, r.choice([r.randrange(9), 10**30])
            some = (product, code, day, price, huge)
            return (customer, number, *(drawn(r, lambda value=value: value) for value in some))
        case "lines":
            some = (product, r.randrange(-4, 5), r.choice([0.5, -0.25, 4.0]))
            return (customer, number, r.randrange(4), *(drawn(r, lambda value=value: value) for value in some))
        case "products":
            return (product, *(drawn(r, lambda value=value: value) for value in (code, day, r.randrange(50))))
        case _:
            return (day, drawn(r, lambda: str(day)))


JOINS = {
    "p": ("products p", ["o.product = p.id", "o.product = p.id AND o.code = p.code", "o.code = p.code"]),
    "l": (
        "lines l",
        [
            "l.customer = o.customer AND l.number = o.number",
            "l.customer = o.customer",
            "l.customer = o.customer AND l.product = o.product",
            "l.customer = o.customer AND l.number = o.number AND l.line = o.product",
        ],
    ),
    "d": ("days d", ["o.day = d.day"]),
}
CONDITIONS = {
    "o": ["o.product > ?", "o.code IS NULL", "o.price > 0", "o.code IN ('x', 'y')", "o.number <> 2"],
    "p": ["p.stock > ?", "p.code <> 'x'", "NOT p.code IN ('x', '')", "p.day IS NOT NULL"],
    "l": ["l.quantity > ?", "l.line < 2", "l.quantity * 2 > l.line", "l.ratio > 0"],
    "d": ["d.name IS NOT NULL"],
}
PAIRS = {"p": "p.stock > o.number", "l": "l.quantity < o.product", "d": "d.name > o.code"}
COLUMNS = {
    "o": ["o.customer", "o.number", "o.product", "o.code", "o.day", "o.price", "o.huge"],
    "p": ["p.id", "p.code", "p.day", "p.stock"],
    "l": ["l.number", "l.line", "l.product", "l.quantity", "l.ratio"],
    "d": ["d.day", "d.name"],
}
AGGREGATES = ["count(*)", "count({c})", "min({c})", "max({c})", "sum(o.price)", "sum(o.number)", "avg(o.product)"]


def statement(r: random.Random) -> tuple[str, list[Any]]:
    """A join of the rows of some customers, and its parameters."""
    params: list[Any] = []
    joined, visible, wheres = "orders o", ["o"], []

    def condition(alias: str) -> str:
        text = r.choice(CONDITIONS[alias])
        params.extend([r.randrange(6)] * text.count("?"))
        return text

    some = r.sample(list(JOINS), r.choice([1, 1, 2, 3]))
    outer = [alias for alias in some if r.random() < 0.7]
    for alias in outer:
        name, equalities = JOINS[alias]
        on = r.choice(equalities)
        if r.random() < 0.2:
            on += f" AND {PAIRS[alias]}"
        if r.random() < 0.3:
            on += f" AND {condition(alias)}"
        joined += f" {r.choice(['JOIN', 'LEFT JOIN'])} {name} ON {on}"
        visible.append(alias)
    key = r.choice(CUSTOMERS)
    if r.random() < 0.8:
        wheres.append("o.customer = ?")
        params.append(key)
    else:
        wheres.append("o.customer IN (?, ?)")
        params += [key, r.choice(CUSTOMERS)]
    if r.random() < 0.3:
        wheres.append("o.number = ?")
        params.append(r.randrange(7))
    if r.random() < 0.4:
        wheres.append(condition(r.choice(visible)))
    for alias in some:
        if alias not in outer:
            name, equalities = JOINS[alias]
            wheres.append(f"{r.choice(['', 'NOT '])}EXISTS (SELECT 1 FROM {name} WHERE {r.choice(equalities)})")
    columns = [column for alias in visible for column in COLUMNS[alias]]
    where = f"FROM {joined} WHERE {' AND '.join(wheres)}"
    chosen = r.choice(columns)
    match r.randrange(3):
        case 0:
            return f"SELECT {', '.join(r.sample(columns, 3))} {where}", params
        case 1:
            return f"SELECT {', '.join(r.choice(AGGREGATES).format(c=chosen) for _ in range(3))} {where}", params
        case _:
            group = r.choice(columns)
            some_of = [r.choice(AGGREGATES).format(c=chosen) for _ in range(2)]
            return f"SELECT {group}, {', '.join(some_of)} {where} GROUP BY {group}", params


@pytest.fixture(scope="module")
def connection() -> Iterator[secateur.Connection]:
    with secateur.start(members=3, runtime="embedded") as running, running.connect() as opened:
        yield opened


def test_joins_of_few_rows_are_those_of_duckdb(
    connection: secateur.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    r = random.Random(SEED)
    oracle = duckdb.connect()
    keys = {}
    for name, (columns, key, placement) in TABLES.items():
        connection.execute(f"CREATE TABLE {name} ({columns}, {key}) {placement}")
        oracle.execute(f"CREATE TABLE {name} ({columns}, {key})")
        keys[name] = len(key.split(","))
        rows = {row[: keys[name]]: row for row in (row_of(r, name) for _ in range(60))}
        write(connection, oracle, name, list(rows.values()))
    tried, answered = [], []
    compile_few = serving_programs.compile_few

    def compile_noted(*args: Any) -> Any:
        read = compile_few(*args)

        def noted(*asked: Any) -> Any:
            answer = read(*asked)
            answered.extend([1] if answer is not None else [])
            return answer

        return None if read is None else noted

    monkeypatch.setattr(serving_programs, "compile_few", compile_noted)
    for turn in range(3):
        for number in range(STATEMENTS):
            sql, params = statement(r)
            expected = sorted(map(repr, oracle.execute(sql, params).fetchall()))
            tried.append(1)
            for pruning in ("on", "off") if number % 4 == 0 else ("on",):
                connection.execute(f"SET pruning = {pruning}")
                found = sorted(map(repr, connection.execute(sql, params).fetchall()))
                where = f"SECATEUR_SEED={SEED}, turn {turn}, pruning = {pruning}: {sql} with {params}"
                assert found == expected, where
        for _ in range(12):
            name = r.choice(list(TABLES))
            row = row_of(r, name)
            oracle.execute(f"DELETE FROM {name} WHERE {key_is(name, keys[name])}", row[: keys[name]])
            if r.random() < 0.3:
                connection.table(name).delete(row[: keys[name]])
            else:
                connection.table(name).put(row)
                oracle.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)
    assert len(answered) > len(tried) / 6, f"{len(answered)} of {len(tried)} statements were joined as plain values"


def key_is(name: str, count: int) -> str:
    columns = [column.split()[0] for column in TABLES[name][0].split(", ")]
    return " AND ".join(f"{column} = ?" for column in columns[:count])


def write(connection: secateur.Connection, oracle: Any, name: str, rows: list[tuple[Any, ...]]) -> None:
    insert = f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})"
    connection.executemany(insert, rows)
    oracle.executemany(insert, rows)
