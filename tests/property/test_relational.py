"""Statements of :mod:`relational`: shadowed names, columns by position, several types, with all rewrites or some of them; pruned answers equal plain DuckDB's.

``SECATEUR_PRUNING_WORLDS`` sets how many random worlds are tried, ``SECATEUR_SEED`` where they begin; a failure names its seed.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from typing import Any

import pytest

from relational import Relational, relational_world
from secateur.errors import DatabaseError
from secateur.planner.rewrites.rules import rule_names
from worlds import World, check, sorted_rows

WORLDS = int(os.environ.get("SECATEUR_PRUNING_WORLDS", "8"))
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
        disabled = ", ".join(name for name in rule_names() if rng.random() < 0.5) if rng.random() < 0.25 else ""
        checked += _is_equal(world, sql, maker.params, rng, {"disabled_rules": disabled})
    assert checked >= STATEMENTS_PER_WORLD // 4, f"seed {seed}: DuckDB refused too many statements for the test to mean anything"


def _is_equal(world: World, sql: str, params: list[Any], rng: random.Random, settings: Mapping[str, Any]) -> bool:
    """An error is no wrong answer where reading everything ends in one, too: DuckDB may be spared it by evaluating in another order."""
    try:
        return check(world, sql, params, rng, settings)
    except AssertionError:
        # DuckDB's optimizer has defects of its own: what it answers without it is then another answer.
        with_optimizer = sorted_rows(world.oracle(sql, params))
        world.duck.execute("PRAGMA disable_optimizer")
        without = sorted_rows(world.oracle(sql, params))
        world.duck.execute("PRAGMA enable_optimizer")
        if with_optimizer == without:
            raise
        return False
    except DatabaseError:
        statement = world.prepare(sql, params, settings)
        everything = [scan.tree.scheme.live_partitions().tolist() for scan in statement.plan.scans]
        with pytest.raises(DatabaseError):
            world.distributed(statement.plan, statement.params or (), everything, 1)
        return False
