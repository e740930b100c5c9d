"""Laws of pruning, over random schemes, data, predicates and parameters.

* Sound: the kept partitions hold every row that the statement reads; the pruned answer, whole or cut in two, equals
  that of plain DuckDB over all rows.
* Tight: for predicates that name whole keys the kept partitions are exactly those of the keys; for ranges of values,
  exactly the ranges that one of them
reaches.

Every failure names its seed; ``SECATEUR_PRUNING_WORLDS`` sets how many random worlds are tried,
``SECATEUR_PRUNING_SEED`` which is the first.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest

from predicates import Predicates
from secateur.errors import DatabaseError
from worlds import DAYS, INTEGERS, TEXTS, World, check, has_range, random_world

WORLDS = int(os.environ.get("SECATEUR_PRUNING_WORLDS", "1"))
FIRST_SEED = int(os.environ.get("SECATEUR_PRUNING_SEED", "0"))
SEEDS = range(FIRST_SEED, FIRST_SEED + WORLDS)
STATEMENTS_PER_WORLD = 12
BINDINGS_PER_STATEMENT = 4


@pytest.mark.parametrize("seed", SEEDS)
def test_pruned_answers_equal_duckdb_over_all_rows(seed: int) -> None:
    rng = random.Random(seed)
    world = random_world(rng)
    checked = 0
    for _ in range(STATEMENTS_PER_WORLD):
        predicates = Predicates(rng)
        where = predicates.predicate()
        shape = rng.choice(
            [
                "a, b, c, v",
                "a, b, c, v",
                "count(*), sum(v), min(b), max(c), avg(v)",
                "b, count(v), bool_or(v > 0)",
                "DISTINCT b",
            ]
        )
        sql = f"SELECT {shape} FROM t WHERE {where}{' GROUP BY b' if shape.startswith('b') else ''}"
        checked += sum(
            check(world, sql, predicates.params(), rng)
            for _ in range(BINDINGS_PER_STATEMENT if predicates.makers else 1)
        )
    assert checked >= STATEMENTS_PER_WORLD // 2, (
        f"seed {seed}: DuckDB refused too many statements for the test to mean anything"
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_pruned_joins_and_subqueries_equal_duckdb(seed: int) -> None:
    rng = random.Random(1000 + seed)
    world = random_world(rng, ("t", "u"))
    checked = 0
    for _ in range(STATEMENTS_PER_WORLD // 2):
        kind = rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", ",", "SEMI JOIN", "ANTI JOIN"])
        left, right = Predicates(rng, "x."), Predicates(rng, "y.")
        right.makers = left.makers
        on = rng.choice(["x.a = y.a AND x.b = y.b", "x.a = y.a", "x.c = y.c AND x.a < y.a"])
        hidden = kind in ("SEMI JOIN", "ANTI JOIN")
        if rng.random() < 0.4 and kind != ",":
            on = f"{on} AND {right.leaf()}"
        where = (
            left.predicate(2)
            if hidden or rng.random() < 0.4
            else f"({left.predicate(2)}) {rng.choice(['AND', 'OR'])} ({right.predicate(2)})"
        )
        if rng.random() < 0.2:
            inner = Predicates(rng)
            inner.makers = left.makers
            where = f"{where} AND x.a {rng.choice(['IN', 'NOT IN'])} (SELECT a FROM u WHERE {inner.predicate(1)})"
        source = f"t x, u y WHERE {on} AND ({where})" if kind == "," else f"t x {kind} u y ON {on} WHERE {where}"
        select = "x.a, x.b, x.v" if hidden else rng.choice(["x.a, x.b, x.c, y.a, y.v", "count(*), sum(x.v), sum(y.v)"])
        checked += sum(
            check(world, f"SELECT {select} FROM {source}", left.params(), rng) for _ in range(2 if left.makers else 1)
        )
    assert checked >= 2, f"seed {seed}: DuckDB refused too many statements for the test to mean anything"


@pytest.mark.parametrize("seed", SEEDS)
def test_whole_keys_keep_exactly_their_partitions(seed: int) -> None:
    rng = random.Random(2000 + seed)
    world = random_world(rng)
    table = world.table("t")
    for _ in range(STATEMENTS_PER_WORLD):
        branches, keys = [], set()
        for _ in range(rng.randint(1, 4)):
            chosen = {
                "a": rng.sample(INTEGERS, rng.randint(1, 3)),
                "b": rng.sample(TEXTS, rng.randint(1, 2)),
                "c": rng.sample(DAYS, rng.randint(1, 2)),
            }
            texts = {"a": str, "b": "'{}'".format, "c": "DATE '{}'".format}
            branches.append(
                " AND ".join(
                    f"{column} IN ({', '.join(texts[column](value) for value in values)})"
                    for column, values in chosen.items()
                )
            )
            keys |= {(a, b, c) for a in chosen["a"] for b in chosen["b"] for c in chosen["c"]}
        sql = f"SELECT * FROM t WHERE {' OR '.join(f'({branch})' for branch in branches)}"
        rows = ({"a": a, "b": b, "c": c} for a, b, c in keys)
        expected = sorted({table.scheme.partition_of(row) for row in rows if has_range(table, row)})
        assert list(world.prepare(sql, ()).plan.scans[0].tree.bind(()).ids) == expected, f"seed {seed}: {sql}"


@pytest.mark.parametrize("seed", SEEDS)
def test_ranges_of_values_keep_exactly_the_ranges_they_reach(seed: int) -> None:
    rng = random.Random(3000 + seed)
    world = World()
    bounds = sorted(rng.sample(range(-20, 21), 6))
    ranges = [(bounds[0], bounds[1]), (bounds[1], bounds[2]), (bounds[3], bounds[4]), (bounds[4], bounds[5])]
    ddl = ", ".join(f"PARTITION {low} <= VALUES < {high}" for low, high in ranges)
    world.create(f"CREATE TABLE t (a INTEGER PRIMARY KEY, v BIGINT) PARTITION BY RANGE (a) ({ddl})", lambda table: [])
    for _ in range(STATEMENTS_PER_WORLD * 2):
        tests: list[tuple[str, Callable[[int], bool]]] = []
        for _ in range(rng.randint(1, 3)):
            x, y = rng.randint(-25, 25), rng.randint(-25, 25)
            tests.append(
                rng.choice(
                    [
                        (f"a < {x}", lambda a, x=x: a < x),
                        (f"a >= {x}.5", lambda a, x=x: a >= x + 0.5 if x >= 0 else a >= x - 0.5),
                        (f"a BETWEEN {x} AND {y}", lambda a, x=x, y=y: x <= a <= y),
                        (f"NOT a <= {x}", lambda a, x=x: a > x),
                        (f"a IN ({x}, {y})", lambda a, x=x, y=y: a in (x, y)),
                    ]
                )
            )
        word, combine = rng.choice([("AND", all), ("OR", any)])
        sql = f"SELECT v FROM t WHERE {f' {word} '.join(text for text, _ in tests)}"
        expected = [
            index
            for index, (low, high) in enumerate(ranges)
            if any(combine(test(a) for _, test in tests) for a in range(low, high))
        ]
        assert list(world.prepare(sql, ()).plan.scans[0].tree.bind(()).ids) == expected, (
            f"seed {seed}: {sql} over {ranges}"
        )


def test_an_error_of_the_statement_is_an_error_of_the_plan() -> None:
    world = random_world(random.Random(1))
    with pytest.raises(DatabaseError):
        world.prepare("SELECT nothing FROM t", ())
