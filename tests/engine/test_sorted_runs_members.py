"""Runs that are sorted at the members and merged in one place."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from secateur.connectors import collect, generator_source
from secateur.dag import DAG, between
from secateur.processors import desc, merge_runs, sort_runs
from secateur.testing import LocalCluster


@pytest.mark.parametrize("rows", [0, 1, 5_000], ids=["none", "one", "many"])
@pytest.mark.parametrize("members", [1, 3])
def test_in_a_job_the_order_is_that_of_one_sort(members: int, rows: int) -> None:
    schema = pa.schema({"k": pa.int64(), "from": pa.string()})

    def some(context: Any) -> Any:
        keys = np.random.default_rng(context.global_index).integers(
            0, 1000, rows if context.global_index % 2 == 0 else rows // 7
        )
        return pa.Table.from_arrays(
            [pa.array(keys), pa.array([context.member] * len(keys), pa.string())], schema=schema
        ).to_batches(max_chunksize=64)

    dag = DAG()
    dag.new_vertex("read", generator_source(some, schema=schema))
    dag.new_vertex("sort here", sort_runs(desc("k")), 2)
    dag.new_vertex("sort", merge_runs(desc("k")))
    dag.new_vertex("result", collect())
    dag.edge(between("read", "sort here")).edge(between("sort here", "sort").all_to_one().distributed()).edge(
        between("sort", "result").distributed()
    )

    async def main() -> list[int]:
        async with LocalCluster(members) as cluster:
            table = (await asyncio.wait_for(cluster.run(dag), 60)).table()
            return table["k"].to_pylist() if table.num_columns else []

    expected = [
        int(key)
        for index in range(members)
        for key in np.random.default_rng(index).integers(0, 1000, rows if index % 2 == 0 else rows // 7)
    ]
    assert asyncio.run(main()) == sorted(expected, reverse=True)
