"""Random statements against a running cluster of three members answer as plain DuckDB does: trees, slices, both rungs,
both kernels and the wire together.
"""

from __future__ import annotations

import os
import random

import duckdb
import pytest

import secateur
from other_types import in_turn
from predicates import Predicates
from worlds import World, random_rows, random_scheme, rows_of, sorted_rows

STATEMENTS_PER_WORLD = 24
WORLDS = int(float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1")))
SHAPES = [
    "a, b, c, v",
    "a, v",
    "count(*), sum(v), min(b), max(c)",
    "b, count(v)",
    "c, v, row_number() OVER (PARTITION BY c ORDER BY a, b)",
]


@pytest.mark.parametrize("seed", range(WORLDS))
def test_statements(conn: secateur.Connection, table_name: str, seed: int) -> None:
    rng = random.Random(7000 + seed)
    ddl = (
        "CREATE TABLE {} (a INTEGER, b VARCHAR, c DATE, v BIGINT, PRIMARY KEY (a, b, c)) PARTITION BY"
        f" {random_scheme(rng)}"
    )
    world = World()
    world.create(ddl.format("t"), random_rows(rng, 120))
    rows = world.duck.sql("SELECT * FROM t").to_arrow_table().cast(world.table("t").arrow_schema)
    conn.execute(ddl.format(table_name))
    conn.table(table_name).load(rows.slice(0, 60), mode="append")
    conn.table(table_name).load(rows.slice(60), mode="upsert")
    checked = 0
    for _ in range(STATEMENTS_PER_WORLD):
        predicates = Predicates(rng)
        where = predicates.predicate(2)
        shape = rng.choice(SHAPES)
        sql = f"SELECT {shape} FROM TABLE_NAME WHERE {where}{' GROUP BY b' if shape.startswith('b') else ''}"
        params = predicates.params()
        for given in in_turn(random.Random(seed), params):
            try:
                expected = sorted_rows(world.oracle(sql.replace("TABLE_NAME", "t"), given))
            except duckdb.Error:
                continue
            found = rows_of(conn.execute(sql.replace("TABLE_NAME", table_name), given))
            assert sorted_rows(found) == expected, f"seed {seed}: {sql} with {given!r}"
            checked += 1
    assert checked >= STATEMENTS_PER_WORLD // 2
