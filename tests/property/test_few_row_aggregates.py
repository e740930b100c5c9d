"""Aggregates of the rows of one customer or a few answer what DuckDB answers, however many rows these are.

Customers have from no row to some more than are added up as plain values, loaded and partly written since, with NULLs.
``SECATEUR_SEED`` sets the seed.
"""

from __future__ import annotations

import os
import random
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import secateur
from secateur.cluster.member.statements import serving_programs

SEED = int(os.environ.get("SECATEUR_SEED", "20261129"))
STATEMENTS = int(30 * float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1")))
COLUMNS = (
    "customer BIGINT, number BIGINT, status VARCHAR, quantity INTEGER, small UTINYINT, large BIGINT, price DOUBLE,"
    " paid DECIMAL(10, 2), PRIMARY KEY (customer, number)"
)
SIZES = [0, 1, 100, 127, 128, 129, 500, 512, 513, 1000, 1024, 1025, 1100]
AGGREGATES = [
    "count(*)",
    "count(quantity)",
    "count(paid)",
    "sum(quantity)",
    "sum(large)",
    "sum(paid)",
    "min(status)",
    "max(small)",
    "avg(quantity)",
    "sum(price)",
]


def row_of(r: random.Random, customer: int, number: int) -> tuple[Any, ...]:
    some = (
        r.choice(["", "open", "shipped", "é🌳"]),
        r.randrange(-(2**31), 2**31),
        r.randrange(256),
        r.choice([r.randrange(9), 2**63 - 1, -(2**63)]),
        r.randrange(-400, 400) / 4,  # quarters, whose sums are exact in any order
        Decimal(f"{r.randrange(-(10**8) + 1, 10**8)}.{r.randrange(100):02}"),
    )
    return (customer, number, *(None if r.random() < 0.1 else value for value in some))


def statement(r: random.Random) -> tuple[str, list[Any]]:
    chosen = ", ".join(r.sample(AGGREGATES, r.randrange(1, 4)))
    customers = r.sample(range(len(SIZES) + 1), r.choice([1, 1, 2, 3]))
    where = f"FROM t WHERE customer IN ({', '.join('?' * len(customers))})"
    if r.random() < 0.5:
        return f"SELECT {chosen} {where}", customers
    return f"SELECT status, {chosen} {where} GROUP BY status ORDER BY status", customers


def test_aggregates_of_few_rows_are_those_of_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    r, oracle = random.Random(SEED), duckdb.connect()
    rows = [row_of(r, customer, number) for customer, size in enumerate(SIZES) for number in range(size)]
    answered: list[int] = []
    compile_few = serving_programs.compile_few

    def compile_noted(*args: Any) -> Any:
        read = compile_few(*args)

        def noted(*asked: Any) -> Any:
            answer = read(*asked)
            answered.extend([] if answer is None else [answer[1]])
            return answer

        return None if read is None else noted

    monkeypatch.setattr(serving_programs, "compile_few", compile_noted)
    with secateur.start(members=1, runtime="embedded") as running, running.connect() as connection:
        connection.execute(f"CREATE TABLE t ({COLUMNS}) PARTITION BY HASH (customer) PARTITIONS 5")
        loaded = pa.table(list(map(list, zip(*rows, strict=True))), schema=connection.table("t").schema)
        connection.table("t").load(loaded)
        oracle.execute(f"CREATE TABLE t ({COLUMNS})")
        oracle.execute("INSERT INTO t SELECT * FROM loaded")
        for number in range(STATEMENTS):
            sql, params = statement(r)
            for _ in range(2):
                expected = oracle.execute(sql, params).fetchall()
                found = connection.execute(sql, params).fetchall()
                assert found == expected, f"SECATEUR_SEED={SEED}, number {number}: {sql} with {params}"
                changed = row_of(r, r.choice(params), r.randrange(1200))
                oracle.execute("DELETE FROM t WHERE customer = ? AND number = ?", changed[:2])
                oracle.execute(f"INSERT INTO t VALUES ({', '.join('?' * 8)})", changed)
                connection.table("t").put(changed)
    assert max(answered) > 512, "no aggregate of many rows was added up as plain values"
