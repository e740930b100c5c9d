"""A random statement made a view answers what it answers by itself, also when it is restricted from outside; the oracle
is DuckDB with the same view.

``SECATEUR_PRUNING_WORLDS`` sets how many random worlds are tried, ``SECATEUR_SEED`` where they begin; a failure names
its seed.
"""

from __future__ import annotations

import os
import random

import duckdb
import pytest

from relational import Relational, relational_world
from secateur.errors import DatabaseError
from worlds import DAYS, INTEGERS, TEXTS, World, check

WORLDS = int(os.environ.get("SECATEUR_PRUNING_WORLDS", "1"))
FIRST_SEED = int(os.environ.get("SECATEUR_SEED", "0"))
VIEWS_PER_WORLD = 10


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + WORLDS))
def test_statements_over_views_equal_duckdb(seed: int) -> None:
    rng = random.Random(23_000 + seed)
    world = relational_world(rng)
    checked = 0
    for _ in range(VIEWS_PER_WORLD):
        maker = Relational(rng)
        sql = maker.statement()
        if maker.params or not _is_made(world, f"CREATE OR REPLACE VIEW v AS {sql}"):
            continue
        columns = [row[0] for row in world.duck.execute("DESCRIBE v").fetchall()]
        name = '"' + rng.choice(columns).replace('"', '""') + '"'
        value = rng.choice([*map(str, INTEGERS), *(f"'{text}'" for text in TEXTS), *(f"DATE '{day}'" for day in DAYS)])
        for statement in (
            "SELECT * FROM v",
            f"SELECT * FROM v AS x WHERE x.{name} = {value}",
            f"SELECT count(*) FROM v JOIN v AS w ON v.{name} = w.{name} WHERE w.{name} = {value}",
            f"SELECT {name} FROM main.v UNION ALL SELECT {name} FROM v WHERE {name} IS NOT NULL",
        ):
            checked += _is_equal(world, statement, rng)
    assert checked >= VIEWS_PER_WORLD // 2, (
        f"seed {seed}: too few statements were compared for the test to mean anything"
    )


def _is_made(world: World, ddl: str) -> bool:
    try:
        world.duck.execute(ddl)
    except duckdb.Error:
        return False
    world.create_view(ddl)
    return True


def _is_equal(world: World, sql: str, rng: random.Random) -> bool:
    """An error is no wrong answer: pruned or not, another row may be the first that has one."""
    try:
        return check(world, sql, (), rng)
    except DatabaseError:
        return False
