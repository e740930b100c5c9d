"""Hash joins in jobs on several members, beside DuckDB."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from secateur.connectors import batch_source, collect, table_source
from secateur.dag import DAG, between, from_
from secateur.engine_limits import EngineLimits
from secateur.partitioning.tables import TableDef
from secateur.processors import hash_join
from secateur.testing import LocalCluster
from secateur.testing.verify import difference

TableOf = Callable[[pa.Table, str], TableDef]
RunTest = Callable[[Awaitable[Any]], Any]

"""Priorities: the build side first."""


"""The rows of the build side without a partner."""
QUERIES = {
    "inner": "SELECT l.*, r.* EXCLUDE (j) FROM l JOIN r ON l.j = r.j",
    "left": "SELECT l.*, r.* EXCLUDE (j) FROM l LEFT JOIN r ON l.j = r.j",
    "right": "SELECT l.id, r.j, r.* EXCLUDE (j) FROM l RIGHT JOIN r ON l.j = r.j",
    "full": "SELECT l.id, coalesce(l.j, r.j) AS j, r.* EXCLUDE (j) FROM l FULL JOIN r ON l.j = r.j",
    "semi": "SELECT l.* FROM l SEMI JOIN r ON l.j = r.j",
    "anti": "SELECT l.* FROM l ANTI JOIN r ON l.j = r.j",
}


@pytest.mark.parametrize("is_broadcast", [False, True], ids=["partitioned", "broadcast"])
@pytest.mark.parametrize("how", list(QUERIES))
@pytest.mark.parametrize("seed", range(2))
def test_in_a_job_on_three_members_as_duckdb_does(
    run: RunTest, table_of: TableOf, seed: int, how: str, is_broadcast: bool
) -> None:
    if is_broadcast and how in ("right", "full"):
        pytest.skip("a broadcast build side has no processor that sees all partners of a row")
    limits = EngineLimits(probe_block_rows=32)
    rng = np.random.default_rng(seed)
    probe = pa.table(
        {"id": pa.array(range(400)), "j": pa.array(rng.integers(0, 60, 400), pa.int32(), mask=rng.random(400) < 0.1)}
    )
    build = pa.table(
        {"j": pa.array(rng.integers(0, 80, 60), mask=rng.random(60) < 0.1), "name": [f"n{i}" for i in range(60)]}
    )
    dag = DAG()
    dag.new_vertex("probe", table_source("rows"))
    dag.new_vertex("build", batch_source(build.to_batches(max_chunksize=7)))
    dag.new_vertex("join", hash_join(["j"], how, build_schema=build.schema, probe_schema=probe.schema), 2)
    dag.new_vertex("result", collect())
    if is_broadcast:
        dag.edge(from_("probe").to("join", 0)).edge(
            from_("build").to("join", 1).broadcast().distributed().with_priority(-1)
        )
    else:
        dag.edge(from_("probe").to("join", 0).partitioned("j").distributed())
        dag.edge(from_("build").to("join", 1).partitioned("j").distributed().with_priority(-1))
    dag.edge(between("join", "result").all_to_one().distributed())

    async def main() -> pa.Table:
        async with LocalCluster(3, limits=limits) as cluster:
            cluster.create_table(table_of(probe, "id"), probe)
            return (await cluster.run(dag)).table()

    connection = duckdb.connect()
    connection.register("l", probe)
    connection.register("r", build)
    rows = run(main())
    problem = difference(rows, connection.sql(QUERIES[how]).to_arrow_table().cast(rows.schema), ordered=False)
    assert problem is None, problem


def test_a_processor_that_saw_no_build_side_does_not_guess_its_columns(run: RunTest, table_of: TableOf) -> None:
    """An inner join by key, of which one processor of six has all of the build side: the others know only half of the
    columns.
    """
    probe = pa.table({"id": pa.array(range(200)), "j": pa.array([n % 20 for n in range(200)])})
    dag = DAG()
    dag.new_vertex("probe", table_source("rows"))
    dag.new_vertex("build", batch_source(pa.table({"j": [7], "name": ["seven"]})))
    dag.new_vertex("join", hash_join(["j"]), 2)
    dag.new_vertex("result", collect())
    dag.edge(from_("probe").to("join", 0).partitioned("j").distributed())
    dag.edge(from_("build").to("join", 1).partitioned("j").distributed().with_priority(-1))
    dag.edge(between("join", "result").distributed())

    async def main() -> pa.Table:
        async with LocalCluster(3) as cluster:
            cluster.create_table(table_of(probe, "id"), probe)
            return (await cluster.run(dag)).table()

    assert sorted(run(main())["id"].to_pylist()) == list(range(7, 200, 20))
