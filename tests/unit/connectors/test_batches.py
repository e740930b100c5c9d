"""Batches as a source."""

from __future__ import annotations

import asyncio

import pyarrow as pa
import pytest

from secateur.connectors import batch_source, collect
from secateur.dag import DAG, JobConfig, between, force_total_parallelism_one
from secateur.engine.processors import map_batches
from secateur.errors import DagError, DataError
from secateur.testing import LocalCluster

BATCHES = [pa.record_batch({"x": [1, 2]}), pa.record_batch({"x": [3]})]


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(BATCHES, id="batches"),
        pytest.param(iter(BATCHES), id="iterator"),
        pytest.param(pa.Table.from_batches(BATCHES), id="table"),
        pytest.param(pa.record_batch({"x": [1, 2, 3]}), id="one batch"),
    ],
)
def test_rows_reach_another_member_and_come_back(rows: object) -> None:
    dag = DAG()
    dag.new_vertex("source", batch_source(rows))  # type: ignore[arg-type]
    dag.new_vertex("there", force_total_parallelism_one(map_batches(lambda b: b), "m3"))
    dag.new_vertex("out", collect())
    dag.edge(between("source", "there").distributed()).edge(between("there", "out").distributed())

    async def main() -> None:
        async with LocalCluster(3) as cluster:
            result = await cluster.run(dag, JobConfig(timeout_s=20))
            assert result.table().column("x").to_pylist() == [1, 2, 3]
            assert result.members_touched == ("m1", "m3")

    asyncio.run(main())


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        pytest.param([], "given no batch", id="nothing"),
        pytest.param([BATCHES[0], pa.record_batch({"y": [1]})], "different schemas", id="two schemas"),
    ],
)
def test_what_has_no_schema_is_refused(rows: list[pa.RecordBatch], message: str) -> None:
    with pytest.raises(DagError, match=message):
        batch_source(rows)


def test_texts_that_are_no_utf_8_are_refused_at_once() -> None:
    bad = pa.array([b"a", b"\xff"], pa.binary()).view(pa.string())
    with pytest.raises(DataError, match=r"column x, row 4: b'\\xff' is no UTF-8"):
        batch_source([pa.record_batch({"x": ["a", "b"]}), pa.record_batch({"x": bad})])
