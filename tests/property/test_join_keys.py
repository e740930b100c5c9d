"""The law of keys that are found before a join: wherever they could be, whether it pays or not, the answer is DuckDB's.

The statements are those of :mod:`relational`, which are about names, and of :mod:`placed`, which are about placement.
``SECATEUR_PRUNING_WORLDS`` sets how many random worlds are tried, ``SECATEUR_SEED`` where they begin; a failure names
its seed.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace

import pytest

from placed import EXCHANGES, Placeable, exchange_model, placed_world
from relational import Relational, relational_world
from secateur.planner import CostModel, PlannedSelect
from secateur.protocol import SubqueryUse
from worlds import World, examined_closely

WORLDS = int(os.environ.get("SECATEUR_PRUNING_WORLDS", "1"))
FIRST_SEED = int(os.environ.get("SECATEUR_SEED", "0"))
STATEMENTS_PER_WORLD = 20


def every_step_pays(model: CostModel) -> CostModel:
    """The model with steps that cost less than nothing."""
    return replace(model, step_rows=-1, step_read_weight=0)


def is_stepped(statement: PlannedSelect) -> bool:
    """Whether keys of joins are found first."""
    while statement.materialized is not None:
        if any(step.use is SubqueryUse.KEYS for step in statement.materialized.steps):
            return True
        statement = statement.materialized.outer
    return False


def check_world(world: World, maker: type[Relational] | type[Placeable], rng: random.Random) -> int:
    """How many of some statements had keys found first, and were right."""
    world.look()
    stepped = 0
    for _ in range(STATEMENTS_PER_WORLD):
        statements = Relational(rng) if maker is Relational else Placeable(rng, list(world.tables))
        sql = statements.statement()
        if examined_closely(world, sql, statements.params, rng) is not None:
            stepped += is_stepped(world.prepare(sql, statements.params))
    return stepped


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + WORLDS))
def test_keys_found_first_leave_the_answers_of_duckdb(seed: int) -> None:
    rng = random.Random(17_000 + seed)
    if seed % 2:
        model = every_step_pays(exchange_model(EXCHANGES[seed // 2 % len(EXCHANGES)]))
        assert check_world(placed_world(rng, model=model), Placeable, rng), (
            f"seed {seed}: no statement had keys that are found first"
        )
    else:
        check_world(relational_world(rng, every_step_pays(CostModel())), Relational, rng)
