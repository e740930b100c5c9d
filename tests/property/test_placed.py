"""Statements of :mod:`placed` give the rows that DuckDB gives: taken apart over one to four members that are played, and on a cluster of three.

``SECATEUR_PRUNING_WORLDS`` sets how many random worlds are tried, ``SECATEUR_SEED`` where they begin; a failure names its
seed. 250 worlds are 10,000 statements.
"""

from __future__ import annotations

import os
import random
from collections import Counter

import duckdb
import pytest

import secateur
from placed import EXCHANGES, Placeable, exchange_by, placed_world
from secateur.engine.plan import Strategy
from worlds import examined_closely, sorted_rows

WORLDS = int(os.environ.get("SECATEUR_PRUNING_WORLDS", "5"))
FIRST_SEED = int(os.environ.get("SECATEUR_SEED", "0"))
STATEMENTS_PER_WORLD = 40
STATEMENTS_ON_CLUSTER = 40


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + WORLDS))
def test_placed_answers_equal_duckdb(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(23_000 + seed)
    exchange_by(monkeypatch, EXCHANGES[seed % len(EXCHANGES)])
    world = placed_world(rng)
    ran = 0
    strategies: Counter[Strategy] = Counter()
    for _ in range(STATEMENTS_PER_WORLD):
        maker = Placeable(rng, tuple(world.tables))
        sql = maker.statement()
        plan = examined_closely(world, sql, maker.params, rng)
        ran += plan is not None
        if plan is not None and len(plan.scans) > 1:
            strategies[plan.strategy] += 1
    assert ran >= 0.8 * STATEMENTS_PER_WORLD, f"seed {seed}: DuckDB refused too many statements for the test to mean anything"
    assert strategies[Strategy.GATHER] <= 0.3 * strategies.total(), f"seed {seed}: too many statements are gathered"


def test_three_members_answer_as_duckdb() -> None:
    rng = random.Random(29_000 + FIRST_SEED)
    world = placed_world(rng)
    ran = 0
    with secateur.start(members=3, runtime="embedded") as cluster, cluster.connect() as connection:
        for name, ddl in world.ddl.items():
            connection.execute(ddl)
            rows = world.oracle(f"SELECT * FROM {name}", ())
            for row in rows:
                connection.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)
        for _ in range(STATEMENTS_ON_CLUSTER):
            maker = Placeable(rng, tuple(world.tables))
            sql = maker.statement()
            try:
                expected = sorted_rows(world.oracle(sql, maker.params))
            except duckdb.Error:
                continue
            ran += 1
            assert sorted_rows(connection.execute(sql, maker.params).fetchall()) == expected, f"{sql} with {maker.params!r}"
    assert ran >= 0.8 * STATEMENTS_ON_CLUSTER
