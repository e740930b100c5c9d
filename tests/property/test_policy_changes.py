"""Changes under row policies are those that DuckDB makes where the rows that policies hide are not there.

Random changes on a real cluster, by a principal with claims. DuckDB makes them in tables of the rows that the principal
sees. A row that comes out of that and does not pass the policies, or has the key of a hidden row, is an error, and
changes nothing. ``python tests/property/test_policy_changes.py --worlds 100 --seed 7`` compares as many as one likes.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import duckdb
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import secateur
from placed import Changes, placed_world
from placed.tables import columns_of
from placed_run import load_world, unsigned_zeros
from secateur.errors import DataError, IntegrityError, PolicyError
from test_row_policies import CLAIMS, CONDITIONS, literal
from worlds import World, oracle_database, rows_in_duckdb, rows_of, sorted_rows

SEED = int(os.environ.get("SECATEUR_SEED", "20261130"))
CHANGES = 25
_SIMPLE = (
    "UPDATE {t} SET i = coalesce(i, 0) + 1",
    "UPDATE {t} SET s = {s}, i = {n} WHERE j = {n}",
    "UPDATE {t} SET j = j + {n}",
    "UPDATE {t} SET s = {s} FROM {o} o WHERE o.k = {t}.k AND o.j = {t}.j",
    "UPDATE {t} SET i = (SELECT count(*) FROM {t} x WHERE x.k = {t}.k)",
    "DELETE FROM {t} WHERE k = {n}",
    "DELETE FROM {t} USING {o} o WHERE o.k = {t}.k AND o.j = {t}.j AND o.i > {n}",
    "INSERT INTO {t} (k, j, i, s) VALUES ({n}, {m}, {n}, {s})",
    "INSERT INTO {t} (k, j, i, s) VALUES ({n}, {m}, 7, {s}), ({m}, {n}, 8, {s}) ON CONFLICT DO NOTHING",
    "INSERT INTO {t} (k, j, s) VALUES ({n}, {m}, {s}) ON CONFLICT DO UPDATE SET s = excluded.s, i = 5",
    "INSERT INTO {t} (k, j, i, s) VALUES ({n}, {m}, 7, {s}) ON CONFLICT DO NOTHING RETURNING k, j, i",
    "INSERT INTO {t} (k, j, s) VALUES ({n}, {m}, {s}), ({m}, 5, 'a') ON CONFLICT DO NOTHING RETURNING k, j",
    "INSERT OR IGNORE INTO {t} (k, j, i, s) SELECT k, j, i, s FROM {o} RETURNING k, s",
    "INSERT INTO {t} (k, j, i, s) SELECT k, j + 1, i, s FROM {t} ON CONFLICT DO NOTHING RETURNING j",
    "INSERT INTO {t} (k, j, i, s) SELECT k, j + 1, i, s FROM {t} ON CONFLICT DO NOTHING",
    "INSERT INTO {t} (k, j, i) VALUES ({n}, {m}, 4) ON CONFLICT DO UPDATE SET i = 3 WHERE {t}.i > {n} RETURNING i",
    "INSERT OR REPLACE INTO {t} (k, j, s) VALUES ({n}, {m}, {s})",
    "INSERT OR IGNORE INTO {t} (k, j, i, s) SELECT k, j, i, s FROM {o}",
    "INSERT INTO {t} (k, j, i, s) SELECT k, j, i, s FROM {o} ON CONFLICT DO UPDATE SET i = excluded.i",
    "INSERT INTO {t} (k, j, i, s) SELECT k, j, 9, s FROM {t} ON CONFLICT DO UPDATE SET i = {t}.i + excluded.i",
    "INSERT OR REPLACE INTO {t} (k, j, i, s) SELECT k, j, {n}, s FROM {t} WHERE j = {m}",
    "MERGE INTO {t} USING (SELECT k, j, i, s FROM {o}) o USING (k, j) WHEN MATCHED THEN UPDATE SET i = o.i",
    "MERGE INTO {t} USING (SELECT k, j, i, s FROM {o}) o USING (k, j) WHEN NOT MATCHED THEN INSERT BY NAME",
    "MERGE INTO {t} USING {o} o USING (k, j) WHEN MATCHED AND {n} > 0 THEN DELETE WHEN MATCHED THEN UPDATE SET s = {s}",
    "MERGE INTO {t} USING {o} o USING (k, j) WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN MATCHED THEN DO NOTHING",
    "MERGE INTO {t} USING (SELECT {n} AS k, {m} AS j, {s} AS s) o USING (k, j) WHEN NOT MATCHED THEN INSERT BY NAME",
)
"""Changes of many rows, by ``{o}`` another table, ``{n}`` and ``{m}`` small numbers and ``{s}`` a text."""
_PRIVILEGES = "SELECT, INSERT, UPDATE, DELETE"


def secured(world: World, rng: random.Random, admin: secateur.Connection) -> Mapping[str, str]:
    """Put policies on most tables, for all commands; what is true of the rows that the principal sees, by table."""
    admin.execute("CREATE ROLE reader")
    seen = {}
    for name in world.tables:
        admin.execute(f"GRANT {_PRIVILEGES} ON {name} TO reader")
        fitting = [one for one in CONDITIONS if set(one.columns) <= {column for column, _ in columns_of(name)}]
        chosen = rng.sample(fitting, rng.choice([0, 1, 1, 1, 2]))
        for number, one in enumerate(chosen):
            condition = one.sql(lambda claim: f"session('{claim}')")
            admin.execute(f"CREATE POLICY p{number} ON {name} TO reader USING ({condition})")
        if chosen:
            admin.execute(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
        seen[name] = " OR ".join(f"({one.sql(literal)})" for one in chosen) or "true"
    return seen


def oracle(world: World, seen: Mapping[str, str]) -> duckdb.DuckDBPyConnection:
    """A database with the rows that are seen, and those that are hidden in a schema of that name."""
    duck = oracle_database()
    duck.execute("SET TimeZone = 'UTC'; CREATE SCHEMA hidden")
    for name, ddl in world.ddl.items():
        duck.execute(re.sub(r" (REPLICATED|PARTITION BY .*)$", "", ddl))
        duck.register("rows", world.duck.table(name).to_arrow_table())
        duck.execute(f"INSERT INTO {name} FROM rows WHERE ({seen[name]}) IS TRUE")
        duck.execute(f"CREATE TABLE hidden.{name} AS SELECT * FROM rows WHERE ({seen[name]}) IS NOT TRUE")
    return duck


def compare(seed: int, changes: int = CHANGES) -> Counter[str]:
    """Compare changes of a world; how many went which way.

    Raises:
        AssertionError: A table has other rows than it should, or a change that is fine was refused.
    """
    rng = random.Random(41_000 + seed)
    world = placed_world(rng)
    counts: Counter[str] = Counter()
    with (
        secateur.start(members=rng.choice([1, 3]), runtime="embedded") as cluster,
        cluster.connect() as admin,
    ):
        load_world(world, admin)
        seen = secured(world, rng, admin)
        token = cluster.tokens.create(["reader"], claims=CLAIMS).token
        with oracle(world, seen) as duck, secateur.connect(cluster.address, token=token) as conn:
            conn.execute(f"SET pruning = {rng.choice(['on', 'on', 'off', 'verify'])}")
            for _ in range(changes):
                maker = Changes(rng, tuple(world.tables))
                table, sql = maker.change()
                if rng.random() < 0.5:
                    other, (n, m) = (
                        rng.choice([name for name in world.tables if name != "timed"]),
                        rng.choices(range(3), k=2),
                    )
                    text = rng.choice(["'a'", "'b'", "NULL"])
                    sql, maker.params = rng.choice(_SIMPLE).format(t=table, o=other, n=n, m=m, s=text), []
                    maker.returns = "RETURNING" in sql
                duck.begin()
                try:
                    changed = rows_in_duckdb(duck, sql, maker.params)
                except duckdb.Error:
                    duck.rollback()
                    continue
                expected = len(changed) if maker.returns else changed[0][0]
                stays_out = duck.execute(f"FROM {table} WHERE ({seen[table]}) IS NOT TRUE").fetchall()
                collides = duck.execute(f"FROM {table} SEMI JOIN hidden.{table} USING (k, j)").fetchall()
                ignores = bool(re.search(r"ON CONFLICT.* DO NOTHING|OR IGNORE", sql, re.IGNORECASE))
                replaces = bool(re.search(r"DO UPDATE|OR REPLACE", sql, re.IGNORECASE))
                where = f"seed {seed}: {sql} with {maker.params!r} where {seen[table]}"
                try:
                    cursor = conn.execute(sql, maker.params)
                    count, refused = len(cursor.fetchall()) if maker.returns else cursor.rowcount, None
                except secateur.Error as error:
                    count, refused = 0, error
                if refused is not None:
                    duck.rollback()
                    meets_hidden = bool(collides) and replaces
                    may_stay_out = bool(stays_out) or ignores or meets_hidden
                    is_expected = _is_expected(refused, may_stay_out, bool(collides) and not (ignores or meets_hidden))
                    assert is_expected, f"{where}: {refused!r}"
                    counts[type(refused).__name__] += 1
                else:
                    assert not stays_out, f"{where}: {stays_out} were written"
                    if collides:
                        assert ignores, f"{where}: {collides} replaced"
                        duck.execute(f"DELETE FROM {table} WHERE (k, j) IN (SELECT (k, j) FROM hidden.{table})")
                    duck.commit()
                    assert count == expected - len(collides), f"{where}: {count} rows changed, not {expected}"
                    counts["changed rows" if count else "changed nothing"] += 1
                own = sorted_rows(unsigned_zeros(rows_of(conn.execute(f"SELECT * FROM {table}"))))
                mine = sorted_rows(unsigned_zeros(rows_in_duckdb(duck, f"SELECT * FROM {table}")))
                assert own == mine, f"{where}: {sorted(set(own) ^ set(mine))}"
                both = f"SELECT * FROM {table} UNION ALL SELECT * FROM hidden.{table}"
                found = sorted_rows(unsigned_zeros(rows_of(admin.execute(f"SELECT * FROM {table}"))))
                assert found == sorted_rows(unsigned_zeros(rows_in_duckdb(duck, both))), f"{where}: rows of others"
    return counts


def _is_expected(error: secateur.Error, may_stay_out: bool, collides: bool) -> bool:
    """Whether a change may be refused like that, which DuckDB makes where there are no hidden rows.

    A row has to pass the policies also where it is ignored then, as in PostgreSQL.
    """
    match error:
        case PolicyError():
            return may_stay_out
        case IntegrityError():
            return collides
        case _:
            return isinstance(error, DataError)  # of rows that DuckDB did not compute


@pytest.mark.parametrize("number", [0, 1, *(pytest.param(number, marks=pytest.mark.slow) for number in range(2, 8))])
def test_changes_are_those_of_the_rows_that_are_seen(number: int) -> None:
    assert compare(SEED + number).total() > CHANGES // 3


def _compared(seed: int) -> tuple[Counter[str], str]:
    try:
        return compare(seed), ""
    except Exception as error:
        return Counter(), f"seed {seed}: {type(error).__name__}: {error}"


def main() -> int:
    """Compare many."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    total, failed = Counter[str](), 0
    with ProcessPoolExecutor(max_workers=2) as pool:
        for counts, error in pool.map(_compared, range(options.seed, options.seed + options.worlds)):
            total += counts
            if error:
                failed += 1
                print(error, flush=True)
    print(f"{total.total()} changes compared, {failed} worlds failed: {dict(total)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
