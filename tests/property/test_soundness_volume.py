"""Soundness by numbers: 1,000 statements in every run, 20,000 in ``make test-long``, a million in ``make nightly``.

Planning a text costs what twenty executions cost, so a text is planned once and bound many times, as in life. For one
binding DuckDB names the rows that the predicate holds for, of a table in which every row carries its partition: each of
those partitions must be kept, and each of the rows read. One binding of each text is also answered, whole and in parts,
and compared with DuckDB's answer; statements over two tables are always answered, because a row that is missing may
show as one too many.

``SECATEUR_STATEMENTS`` sets how many, ``SECATEUR_SEED`` where the seeds begin: a failure names its seed, and a run that
was interrupted goes on from there.
"""

from __future__ import annotations

import os
import random

import duckdb
import pytest

from predicates import Predicates
from worlds import World, check, random_world, rows_as_tuples

STATEMENTS = int(os.environ.get("SECATEUR_STATEMENTS", "300"))
FIRST_SEED = int(os.environ.get("SECATEUR_SEED", "0"))
STATEMENTS_PER_SEED = 500
BINDINGS_PER_TEXT = 48
REFUSED_MAX = 4
SEEDS = range(FIRST_SEED, FIRST_SEED + -(-STATEMENTS // STATEMENTS_PER_SEED))


@pytest.mark.parametrize("seed", SEEDS)
def test_kept_partitions_hold_every_row_of_the_answer(seed: int) -> None:
    rng = random.Random(seed)
    world = random_world(rng, ("t", "u"))
    checked = texts = 0
    while checked < min(STATEMENTS, STATEMENTS_PER_SEED):
        checked += _two_tables(world, rng) if texts % 8 == 7 else _one_table(world, rng)
        texts += 1
        assert texts < STATEMENTS_PER_SEED, (
            f"seed {seed}: DuckDB refused too many statements for the test to mean anything"
        )


def _one_table(world: World, rng: random.Random) -> int:
    """One predicate with many bindings; how many DuckDB accepted."""
    predicates = Predicates(rng)
    where = predicates.predicate()
    sql = f"SELECT a, b, c, v FROM t WHERE {where}"
    checked = refused = 0
    for _ in range(BINDINGS_PER_TEXT if predicates.makers else 1):
        params = predicates.params()
        try:
            partitions, keys = world.rows_needed("t", where, params)
        except duckdb.Error:
            refused += 1
            if refused == REFUSED_MAX and not checked:
                break
            continue
        statement = world.prepare(sql, params)
        plan, bound = statement.plan, statement.params or ()
        (kept,) = world.kept(plan, bound)
        assert partitions <= set(kept), (
            f"{sql} with {params!r}: tree {plan.scans[0].tree}, kept {kept}, needed {sorted(partitions)}"
        )
        read = set(rows_as_tuples(world.slices(plan.scans[0], bound, kept).select(["a", "b", "c"])))
        assert keys <= read, f"{sql} with {params!r}: keys {plan.scans[0].keys}, missing {sorted(keys - read)}"
        if checked == 0:
            check(world, sql, params, rng)
        checked += 1
    return checked


def _two_tables(world: World, rng: random.Random) -> int:
    left, right = Predicates(rng, "x."), Predicates(rng, "y.")
    right.makers = left.makers
    kind = rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
    on = rng.choice(
        ["x.a = y.a AND x.b = y.b", "x.a = y.a AND x.b = y.b AND x.c = y.c", "x.a = y.a", "x.c = y.c AND x.a < y.a"]
    )
    on = f"{on} AND {right.leaf()}" if rng.random() < 0.5 else on
    where = rng.choice(
        [
            left.predicate(2),
            f"{left.predicate(1)} AND {right.predicate(1)}",
            f"{left.predicate(1)} OR {right.predicate(1)}",
        ]
    )
    sql = f"SELECT x.a, x.b, x.c, x.v, y.a, y.b, y.c, y.v FROM t x {kind} u y ON {on} WHERE {where}"
    return sum(check(world, sql, left.params(), rng) for _ in range(3 if left.makers else 1))
