"""Statements of :mod:`placed`, compared with DuckDB: a world at a time, and any number of worlds on all cores.

``python tests/property/placed_run.py --statements 10000 --seed 7`` is what ``make generated`` runs. Members are played,
one to four of them, and one that has everything; every tenth world is also one of real clusters, of one member and of
three, and one of changes. A failure names its seed: ``--statements 1 --seed`` repeats it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import duckdb

import secateur
from other_types import in_turn
from placed import EXCHANGES, Changes, Placeable, exchange_model, placed_world
from secateur.engine.sql import Strategy
from worlds import World, depends_on_optimizer, examined_closely, oracle_database, rows_in_duckdb, rows_of, sorted_rows

__all__ = ["STATEMENTS_PER_WORLD", "Compared", "compare_changes", "compare_on_cluster", "compare_world"]

STATEMENTS_PER_WORLD = 40
_ATTEMPTS = 2
"""So many times the statements of a world are made at most; DuckDB refuses some."""
_ON_CLUSTERS_EVERY = 10
_CHANGES_PER_WORLD = 20
_UNDIVIDED_SHARE = 1 / 400
"""Of so many statements one may run undivided: its answer is right, and the check that sends it there is meant to be
strict. One in 2,000 does, and each is named; a round in which many do fails.
"""
_OUR_DEFECTS = ("its stages return other types", "its stages do not bind")
_EXECUTIONS = 3
"""A text is planned when it is executed first, and has a serving call when it is executed for the third time."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What one world was good for.

    Attributes:
        statements: How many statements gave DuckDB's rows; fewer than were to be compared where one met an error of
            DuckDB's own that ended its database.
        strategies: How those over several tables were planned.
        mismatches: The statements, with parameters and reason, of which the planner found that the stages do not bind
            as the statement, so that they ran undivided: right rows, but more of them moved.
        on_clusters: How many were compared on a real cluster besides.
    """

    statements: int
    strategies: Counter[Strategy]
    mismatches: tuple[str, ...] = ()
    on_clusters: int = 0


def gathers_small(seed: int) -> bool:
    """Whether statements of many parts over few rows, as all of a world are, are gathered: else they would hardly be
    taken apart here.
    """
    return seed % 5 == 4


def compare_world(seed: int, statements: int = STATEMENTS_PER_WORLD) -> Compared:
    """Compare as many statements of a world, over members that are played.

    Raises:
        AssertionError: One has other rows than in DuckDB, or DuckDB refused too many for the comparison to mean
            anything.
        DatabaseError: One cannot be planned.
    """
    rng = random.Random(23_000 + seed)
    strategies: Counter[Strategy] = Counter()
    mismatches: list[str] = []
    compared = 0
    model = exchange_model(EXCHANGES[seed % len(EXCHANGES)])
    if not gathers_small(seed):
        model = replace(model, gather_statement_bytes_max=0)
    world = placed_world(rng, model=model)
    for _ in range(_ATTEMPTS * statements):
        maker = Placeable(rng, tuple(world.tables))
        sql = maker.statement()
        plan = examined_closely(world, sql, maker.params, rng)
        if plan is not None:
            compared += 1
            others = random.Random(compared)
            for params in islice(in_turn(others, maker.params), 1, None):
                examined_closely(world, sql, params, others)
            if (plan.gather_reason or "").startswith(_OUR_DEFECTS):
                mismatches.append(f"seed {seed}: {sql} with {maker.params!r}: {plan.gather_reason}")
            if len(plan.scans) > 1:
                strategies[plan.strategy] += 1
        if compared == statements or (plan is None and world.is_broken):
            return Compared(compared, strategies, tuple(mismatches))
    raise AssertionError(f"seed {seed}: DuckDB took {compared} of {_ATTEMPTS * statements} statements")


def compare_on_cluster(seed: int, members: int, statements: int = STATEMENTS_PER_WORLD) -> int:
    """Compare statements on a real cluster; how many DuckDB took.

    Raises:
        AssertionError: One has other rows than in DuckDB.
        DatabaseError: One fails.
    """
    rng = random.Random(29_000 + seed)
    world = placed_world(rng)
    compared = 0
    with secateur.start(members=members, runtime="embedded") as cluster, cluster.connect() as connection:
        load_world(world, connection)
        for _ in range(statements):
            maker = Placeable(rng, tuple(world.tables))
            sql = maker.statement()
            for params in in_turn(random.Random(compared), maker.params):
                try:
                    expected = sorted_rows(world.oracle(sql, params))
                except duckdb.Error:
                    continue
                compared += 1
                for times in range(_EXECUTIONS):
                    where = f"seed {seed} on {members} members, execution {times + 1}: {sql} with {params!r}"
                    try:
                        found = sorted_rows(rows_of(connection.execute(sql, params)))
                    except secateur.Error as error:
                        if _fails_unpruned(connection, sql, params):
                            break
                        raise AssertionError(f"{where}: {error}") from error
                    assert found == expected or depends_on_optimizer(world, sql, params), where
    return compared


def _fails_unpruned(connection: secateur.Connection, sql: str, params: list[Any]) -> bool:
    """Whether a statement ends in an error of its data also where every row is read.

    Such an error is no wrong answer: DuckDB may be spared it by evaluating conditions in another order.
    """
    connection.execute("SET pruning = off")
    try:
        connection.execute(sql, params)
    except secateur.DataError:
        return True
    finally:
        connection.execute("SET pruning = on")
    return False


def compare_changes(seed: int, members: int, statements: int = STATEMENTS_PER_WORLD) -> int:
    """Make changes on a real cluster and in DuckDB, and compare the changed table after each; how many DuckDB made.

    Raises:
        AssertionError: A table has other rows than in DuckDB, another number of rows was changed, or a change fails.
    """
    rng = random.Random(31_000 + seed)
    world = placed_world(rng)
    compared = 0
    with (
        secateur.start(members=members, runtime="embedded") as cluster,
        cluster.connect() as connection,
        oracle_database() as duck,
    ):
        load_world(world, connection)
        duck.execute("SET TimeZone = 'UTC'")
        for name, ddl in world.ddl.items():
            duck.execute(re.sub(r" (REPLICATED|PARTITION BY .*)$", "", ddl))
            duck.register("rows", world.duck.table(name).to_arrow_table())
            duck.execute(f"INSERT INTO {name} FROM rows")
        for _ in range(statements):
            maker = Changes(rng, tuple(world.tables))
            table, sql = maker.change()
            duck.begin()
            try:
                expected = sorted_rows(unsigned_zeros(rows_in_duckdb(duck, sql, maker.params)))
            except duckdb.Error:
                duck.rollback()
                continue
            compared += 1
            where = f"seed {seed} on {members} members: {sql} with {maker.params!r}"
            try:
                cursor = connection.execute(sql, maker.params)
                returned = sorted_rows(unsigned_zeros(rows_of(cursor) if maker.returns else [(cursor.rowcount,)]))
                found = sorted_rows(unsigned_zeros(rows_of(connection.execute(f"SELECT * FROM {table}"))))
            except secateur.Error as error:
                if _fails_unpruned(connection, sql, maker.params):
                    duck.rollback()
                    continue
                raise AssertionError(f"{where}: {error}") from error
            duck.commit()
            rows = sorted_rows(unsigned_zeros(rows_in_duckdb(duck, f"SELECT * FROM {table}")))
            assert found == rows, (
                f"{where}: the table has {sorted(set(found) - set(rows))} instead of {sorted(set(rows) - set(found))}"
            )
            assert returned == expected, f"{where}: the result is {returned} and not {expected}"
    return compared


def unsigned_zeros(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows with 0.0 for -0.0: an UPDATE of DuckDB leaves a value alone that is equal to the new one."""
    return [tuple(value + 0.0 if isinstance(value, float) else value for value in row) for row in rows]


def load_world(world: World, connection: secateur.Connection) -> None:
    for name, ddl in world.ddl.items():
        connection.execute(ddl)
        connection.table(name).load(world.duck.table(name).to_arrow_table())


def _compare(seed: int) -> Compared:
    compared = compare_world(seed)
    if seed % _ON_CLUSTERS_EVERY:
        return compared
    on_clusters = sum(compare_on_cluster(seed, members) for members in (1, 3))
    changes = compare_changes(seed, (1, 3)[seed // _ON_CLUSTERS_EVERY % 2], _CHANGES_PER_WORLD)
    return replace(compared, on_clusters=on_clusters + changes)


def main() -> int:
    """Compare; 0 if all rows were DuckDB's, and the stages of all statements bound."""
    parser = argparse.ArgumentParser(description="Compare random statements over several tables with DuckDB.")
    parser.add_argument(
        "--statements", type=int, default=10_000, help="how many, over members that are played (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: %(default)s)")
    parser.add_argument("--also", type=int, nargs="*", default=[], help="more seeds, which come first")
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, help="processes (default: one for each core)"
    )
    options = parser.parse_args()
    worlds = -(-options.statements // STATEMENTS_PER_WORLD)
    seeds = [*options.also, *range(options.seed, options.seed + worlds)]
    started, total, on_clusters, strategies = time.monotonic(), 0, 0, Counter[Strategy]()
    failed: list[int] = []
    mismatches: list[str] = []
    with ProcessPoolExecutor(options.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        runs = {pool.submit(_compare, seed): seed for seed in seeds}
        for done, run in enumerate(as_completed(runs), 1):
            if (error := run.exception()) is None:
                total += run.result().statements
                on_clusters += run.result().on_clusters
                strategies += run.result().strategies
                mismatches += run.result().mismatches
            else:
                failed.append(runs[run])
                print(f"seed {runs[run]}: {type(error).__name__}: {error}", flush=True)
            if done % 25 == 0 or done == len(seeds):
                print(
                    f"{done} of {len(seeds)} worlds, {total:,} statements, {on_clusters:,} on clusters besides,"
                    f" {time.monotonic() - started:.0f} s",
                    flush=True,
                )
    print(", ".join(f"{strategy.value} {count:,}" for strategy, count in strategies.most_common()))
    print(*mismatches, sep="\n")
    print(f"{len(mismatches)} statements ran undivided because their stages do not bind as the statement")
    print(f"failed seeds: {sorted(failed)}" if failed else "every answer was DuckDB's")
    return int(bool(failed) or len(mismatches) > max(1, total * _UNDIVIDED_SHARE))


if __name__ == "__main__":
    sys.exit(main())
