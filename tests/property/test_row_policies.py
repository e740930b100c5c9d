"""Statements under row policies have the rows that DuckDB finds where the conditions are written out, and no others.

The same planner, for a viewer with a role and claims; in DuckDB each table is a view with the condition as its WHERE.
Partitions are those of a viewer for whom the values stand in the policies themselves. ``python
tests/property/test_row_policies.py --statements 100000 --seed 7`` compares as many as one likes.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from placed import EXCHANGES, Placeable, exchange_model, placed_world
from placed.tables import columns_of
from secateur.errors import DatabaseError
from secateur.planner.binding import Viewer
from secateur.protocol import (
    AccessRecord,
    DefinedRole,
    GrantedToken,
    Policy,
    PolicyCommand,
    Privilege,
    Rights,
    RowCondition,
    TableGrant,
    TokenRole,
)
from worlds import World, examined_closely

SEED = int(os.environ.get("SECATEUR_SEED", "20261130"))
STATEMENTS = int(os.environ.get("SECATEUR_POLICY_STATEMENTS", "25"))
CLAIMS = {"number": "1", "name": "a", "words": "b"}

CONDITIONS = (
    RowCondition(("k = ", "number", ""), ("k",)),
    RowCondition(("j = ", "number", " AND k > -2"), ("k", "j")),
    RowCondition(("s = ", "name", ""), ("s",)),
    RowCondition(("i > 0 OR s = ", "name", ""), ("i", "s")),
    RowCondition(("k IN (0, 1, 2)",), ("k",)),
    RowCondition(("", "absent", " IS NULL AND j <> 0"), ("j",)),
    RowCondition(("s = ", "absent", ""), ("s",)),
    RowCondition(("s IN (", "name", ", ", "words", ")"), ("s",)),
    RowCondition(("k = CAST(", "number", " AS INTEGER) + 1"), ("k",)),
    RowCondition(("false",), ()),
)


def literal(claim: str) -> str:
    """A claim as DuckDB reads it."""
    value = CLAIMS.get(claim)
    return "NULL" if value is None else f"'{value}'"


def guarded(world: World, rng: random.Random) -> tuple[Viewer, Viewer]:
    """A viewer under a policy or two on most tables, and one for whom the claims stand in them as literals.

    DuckDB has views with the conditions from then on, in front of the tables.
    """
    policies: list[Policy] = []
    written: list[Policy] = []
    secured: list[int] = []
    world.duck.execute("CREATE SCHEMA seen")
    for name, table in world.tables.items():
        conditions = [
            one
            for one in rng.sample(CONDITIONS, rng.choice([1, 1, 2]))
            if set(one.columns) <= {column for column, _ in columns_of(name)}
        ]
        if rng.random() < 0.2 or not conditions:
            continue
        secured.append(table.origin)
        shown = []
        for number, one in enumerate(conditions):
            policies.append(Policy(f"p{number}", table.origin, PolicyCommand.ALL, ("reader",), one))
            plain = RowCondition((one.sql(literal),), one.columns)
            written.append(Policy(f"p{number}", table.origin, PolicyCommand.SELECT, (), plain))
            shown.append(f"({plain.pieces[0]})")
        world.duck.execute(f'CREATE VIEW seen."{name}" AS SELECT * FROM main."{name}" WHERE {" OR ".join(shown)}')
    world.duck.execute("SET search_path = 'seen,main'")
    grants = tuple(TableGrant(name, Privilege.SELECT) for name in world.tables)
    token = GrantedToken("t", TokenRole.WRITE, roles=("reader",), claims=CLAIMS)
    roles = (DefinedRole("reader", grants),)
    rights = Rights.of(token, AccessRecord((), roles, tuple(policies), tuple(secured)))
    plain_rights = Rights.of(token, AccessRecord((), roles, tuple(written), tuple(secured)))
    return Viewer(CLAIMS, rights, world.tables.get), Viewer(CLAIMS, plain_rights, world.tables.get)


def compare(seed: int, statements: int) -> tuple[int, int]:
    """Compare statements of a world: how many DuckDB took, and how many of them read the partitions of literals.

    The others read fewer, where a claim contradicts a parameter of the statement, or a partition of a scan of which
    literals read nothing: where conditions on several tables contradict each other.

    Raises:
        AssertionError: One has other rows, or reads more of a scan that reads anything with the values written out.
    """
    rng = random.Random(37_000 + seed)
    model = replace(exchange_model(EXCHANGES[seed % len(EXCHANGES)]), gather_statement_bytes_max=0)
    world = placed_world(rng, model=model)
    world.viewer, plain = guarded(world, rng)
    compared = same = 0
    for _ in range(statements):
        maker = Placeable(rng, tuple(world.tables))
        sql = maker.statement()
        plan = examined_closely(world, sql, maker.params, rng)
        if plan is None:
            continue
        compared += 1
        statement = world.prepare(sql, maker.params)
        kept = world.kept(statement.plan, statement.params or ())
        try:
            other = world.planner.prepare(sql, maker.params, world, viewer=plain)
        except DatabaseError as error:
            raise AssertionError(f"seed {seed}: {sql} with {maker.params!r}: {error}") from error
        of_literals = world.kept(other.plan, other.params or ())
        same += all(list(ids) == list(known) for ids, known in zip(kept, of_literals, strict=True))
        assert all(set(ids) <= set(known) or not known for ids, known in zip(kept, of_literals, strict=True)), (
            f"seed {seed}: {sql} with {maker.params!r} reads {kept}, and {of_literals} with literals in the policies"
        )
    return compared, same


def _compared(given: tuple[int, int]) -> tuple[int, int, int, str]:
    try:
        return given[0], *compare(*given), ""
    except Exception as error:
        return given[0], 0, 0, f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("number", [0, 1, *(pytest.param(number, marks=pytest.mark.slow) for number in range(2, 8))])
def test_rows_and_partitions_are_those_of_conditions_that_are_written_out(number: int) -> None:
    assert compare(SEED + number, STATEMENTS)[0] > STATEMENTS // 2


def main() -> int:
    """Compare many."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--statements", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    each = 40
    worlds = [(options.seed + number, each) for number in range(max(options.statements // each, 1))]
    failed, total, alike = 0, 0, 0
    with ProcessPoolExecutor(max_workers=2) as pool:
        for seed, compared, same, error in pool.map(_compared, worlds):
            total += compared
            alike += same
            if error:
                failed += 1
                print(f"seed {seed}: {error}", flush=True)
    print(f"{total} statements compared, {alike} read the partitions of literals, {failed} worlds failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
