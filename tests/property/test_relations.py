"""Statements of every relation: the answer over the kept partitions, whole or cut in two, equals that of plain DuckDB
over all rows.

``SECATEUR_PRUNING_WORLDS`` sets how many random worlds are tried; a failure names its seed.
"""

from __future__ import annotations

import os
import random

import pytest

from statements import Statements
from worlds import check, random_world

WORLDS = int(os.environ.get("SECATEUR_PRUNING_WORLDS", "1"))
STATEMENTS_PER_WORLD = 24


@pytest.mark.parametrize("seed", range(WORLDS))
def test_pruned_relations_equal_duckdb(seed: int) -> None:
    rng = random.Random(7000 + seed)
    world = random_world(rng, ("t", "u"))
    checked = 0
    for _ in range(STATEMENTS_PER_WORLD):
        statements = Statements(rng)
        sql = statements.statement()
        checked += check(world, sql, statements.predicates.params(), rng)
    assert checked >= STATEMENTS_PER_WORLD // 3, (
        f"seed {seed}: DuckDB refused too many statements for the test to mean anything"
    )
