"""The statements of ``hostile/*.sql`` once more, as a user's: through client, planner, trees bound at the client, key
searches and members of a cluster.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import secateur
from worlds import World, rows_as_tuples, sorted_rows

HOSTILE = sorted((Path(__file__).parent / "hostile").glob("*.sql"))


# Two statements of three differ from the third by a value or a word.
@pytest.mark.sampled(one_in=2)
@pytest.mark.parametrize("one_in", [3, pytest.param(1, marks=pytest.mark.slow)], ids=lambda one_in: f"one in {one_in}")
@pytest.mark.parametrize("path", HOSTILE, ids=[path.stem for path in HOSTILE])
def test_a_cluster_answers_as_duckdb(world: World, awkward_tables: list[str], path: Path, one_in: int) -> None:
    with secateur.start(members=3, runtime="embedded") as cluster, cluster.connect() as conn:
        for ddl in awkward_tables:
            name = ddl.split()[2]
            conn.execute(ddl)
            conn.table(name).load(world.duck.sql(f'SELECT * FROM "{name}"').to_arrow_table())
        for sql in path.read_text().splitlines()[::one_in]:
            assert sorted_rows(rows_as_tuples(conn.execute(sql).fetch_arrow_table())) == sorted_rows(
                world.oracle(sql, ())
            ), sql
