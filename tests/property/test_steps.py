"""The law of queries in steps: they give what DuckDB gives, as do the ordinary plans beside them.

Played in one process over random worlds, and on a running cluster over a few.
"""

from __future__ import annotations

import os
import random
from typing import Any

import duckdb
import pytest

from secateur.cluster import Cluster
from subqueries import SubqueryPredicates
from worlds import World, check, random_world, rows_of, sorted_rows

WORLDS = int(os.environ.get("SECATEUR_PRUNING_WORLDS", "1"))
SEED = int(os.environ.get("SECATEUR_PRUNING_SEED", "0"))
STATEMENTS_PER_WORLD = 10
CLUSTER_WORLDS = max(WORLDS // 4, 1)


def _statement(rng: random.Random) -> tuple[str, SubqueryPredicates]:
    predicates = SubqueryPredicates(rng, "x.")
    where = (
        predicates.predicate(2)
        if rng.random() < 0.3
        else f"{predicates.subquery_form()} AND ({predicates.predicate(1)})"
    )
    source = rng.choice(
        [
            "t x",
            "t x",
            "t x",
            "t x JOIN u y ON x.a = y.v",
            "t x LEFT JOIN u y ON x.b = y.b AND y.a = 1",
            "(SELECT * FROM t) x",
        ]
    )
    shape = rng.choice(
        ["x.a, x.b, x.c, x.v", "x.a, x.b, x.c, x.v", "count(*), sum(x.v), min(x.b), max(x.c)", "DISTINCT x.b"]
    )
    with_ = (
        f"WITH w AS (SELECT * FROM u WHERE {SubqueryPredicates(rng, depth=1, makers=predicates.makers).predicate(1)}) "
    )
    return f"{with_ if ' w AS ' in where else ''}SELECT {shape} FROM {source} WHERE {where}", predicates


@pytest.mark.parametrize("seed", range(SEED, SEED + WORLDS))
def test_queries_in_steps_equal_duckdb(seed: int) -> None:
    rng = random.Random(7000 + seed)
    world = random_world(rng, ("t", "u"))
    checked = 0
    for _ in range(STATEMENTS_PER_WORLD):
        sql, predicates = _statement(rng)
        for _ in range(2 if predicates.makers else 1):
            params = predicates.params()
            checked += check(world, sql, params, rng)
    assert checked >= STATEMENTS_PER_WORLD // 4, (
        f"seed {seed}: DuckDB refused too many statements for the test to mean anything"
    )


@pytest.mark.parametrize("seed", range(SEED, SEED + CLUSTER_WORLDS))
def test_queries_in_steps_equal_duckdb_on_a_cluster(seed: int, cluster: Cluster, table_name: str) -> None:
    rng = random.Random(8000 + seed)
    world: World = random_world(rng, ("t", "u"))
    names = {"t": f"{table_name}_t", "u": f"{table_name}_u"}
    with cluster.connect() as conn:
        for name, unique in names.items():
            rows = world.duck.table(name).to_arrow_table()
            conn.execute(
                f"CREATE TABLE {unique} (a INTEGER, b VARCHAR, c DATE, v BIGINT, PRIMARY KEY (a, b, c)) PARTITION BY"
                f" {world.ddl[name]}"
            )
            conn.table(unique).load(rows)
            world.duck.execute(f"CREATE VIEW {unique} AS FROM {name}")
        conn.execute("SET pruning = verify")
        for _ in range(STATEMENTS_PER_WORLD):
            sql, predicates = _statement(rng)
            for name, unique in names.items():
                sql = sql.replace(f" {name} ", f" {unique} ").replace(f" {name})", f" {unique})")
            params: list[Any] = predicates.params()
            try:
                expected = sorted_rows(world.oracle(sql, params))
            except duckdb.Error:
                continue
            found = sorted_rows(rows_of(conn.execute(sql, params)))
            assert found == expected, f"seed {seed}: {sql} with {params!r}"
