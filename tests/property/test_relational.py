"""Statements of :mod:`relational`: shadowed names, columns by position, several types; pruned answers equal plain
DuckDB's.

``SECATEUR_PRUNING_WORLDS`` sets how many random worlds are tried, ``SECATEUR_SEED`` where they begin; a failure names
its seed.
"""

from __future__ import annotations

import os
import random

import pytest

from relational import Relational, relational_world
from worlds import examined_closely

WORLDS = int(os.environ.get("SECATEUR_PRUNING_WORLDS", "1"))
FIRST_SEED = int(os.environ.get("SECATEUR_SEED", "0"))
STATEMENTS_PER_WORLD = 30


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + WORLDS))
def test_pruned_statements_equal_duckdb(seed: int) -> None:
    rng = random.Random(11_000 + seed)
    world = relational_world(rng)
    checked = 0
    for _ in range(STATEMENTS_PER_WORLD):
        maker = Relational(rng)
        sql = maker.statement()
        checked += examined_closely(world, sql, maker.params, rng) is not None
    assert checked >= STATEMENTS_PER_WORLD // 4, (
        f"seed {seed}: DuckDB refused too many statements for the test to mean anything"
    )
