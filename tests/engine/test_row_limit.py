"""LIMIT and OFFSET of rows as they come, and the end of a job that has enough."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from secateur.engine.kernels import Fragment
from secateur.engine.processors import RowLimit
from secateur.engine.processors.order_and_limit import LimitedRows
from secateur.engine.runtime import ResultQueue
from secateur.engine.sql import QueryStage, ScanPlan, SelectPlan, Strategy
from secateur.engine.sql.row_stream import JobRowStream
from secateur.engine.sql.select_job import select_dag
from secateur.errors import DataError, JobCancelledError
from secateur.partitioning.pruning import All, PartitionTree
from secateur.partitioning.schemes import HashComponent, PartitionScheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.protocol import decode, encode
from secateur.testing import LocalCluster
from secateur.testing.local_cluster import until

BIGINT = parse_type("BIGINT")
SCHEME = PartitionScheme((HashComponent(("a",), 9),), None, (("a", BIGINT),))
NUMBERS = TableDef("numbers", 1, (Column("a", BIGINT, nullable=False),), ("a",), SCHEME, backups=0)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        pytest.param(RowLimit(0, None), [*range(10)], id="nothing"),
        pytest.param(RowLimit(0, 0), [], id="no row"),
        pytest.param(RowLimit(0, 3), [0, 1, 2], id="a batch"),
        pytest.param(RowLimit(0, 4), [0, 1, 2, 3], id="across batches"),
        pytest.param(RowLimit(4, 3), [4, 5, 6], id="behind others"),
        pytest.param(RowLimit(4, None), [4, 5, 6, 7, 8, 9], id="all behind others"),
        pytest.param(RowLimit(20, 3), [], id="behind all"),
        pytest.param(RowLimit(8, 30), [8, 9], id="more than there are"),
    ],
)
def test_what_is_left_of_batches(limit: RowLimit, expected: list[int]) -> None:
    rows, seen = LimitedRows(limit), []
    for start, stop in ((0, 3), (3, 3), (3, 7), (7, 10)):
        batch = pa.record_batch({"a": pa.array(range(start, stop), pa.int64())})
        assert rows.of(batch).equals(rows.of(batch))
        seen += rows.of(batch).column("a").to_pylist()
        rows.count(batch)
    assert seen == expected
    assert rows.is_full is (limit.taken is not None and len(expected) == limit.taken)
    assert decode(encode(limit), RowLimit) == limit


def plan(limit: RowLimit) -> SelectPlan:
    columns = (("a", "BIGINT"),)
    first = QueryStage("scan", Fragment("SELECT a FROM s0", ("s0",), columns), (0,))
    last = QueryStage(
        "final",
        Fragment("SELECT a FROM x0", ("x0",), columns, is_pipelineable=True),
        inputs=(0,),
        at_coordinator=True,
        limit=limit,
    )
    scan = ScanPlan(
        "s0",
        1,
        "numbers",
        "numbers",
        ("a",),
        PartitionTree("numbers", SCHEME, All(), 9, 100),
        SCHEME.affinity_group(),
        False,
    )
    return SelectPlan(
        "plan", (scan,), last.fragment, (first, last), Strategy.TWO_STAGE, None, columns, 0, (), None, True, 1
    )


async def cluster_of(cluster: LocalCluster, then: Any) -> None:
    """A table, and members of which all but m1 do ``then`` in place of answering."""
    cluster.create_table(NUMBERS, pa.table({"a": pa.array(range(9_000), pa.int64())}))
    for member, runtime in cluster.runtimes.items():
        if member != "m1":
            runtime.services = replace(runtime.services, open_answer=then)


def hangs(*_: Any, cancellation: Any) -> Any:
    while not cancellation.cancelled:
        time.sleep(0.001)
    raise JobCancelledError("interrupted")


def fails(*_: Any, cancellation: Any) -> Any:
    time.sleep(0.005)
    raise DataError("a row that nobody wants")


@pytest.mark.parametrize("limit", [RowLimit(0, 0), RowLimit(0, 10), RowLimit(5, 2000)])
def test_a_job_that_has_enough_ends_everywhere(limit: RowLimit) -> None:
    async def scenario() -> None:
        async with LocalCluster(3) as cluster:
            await cluster_of(cluster, hangs)
            made = plan(limit)
            dag, config = select_dag(made, [range(9)])
            assert (await cluster.run(dag, config, [])).table().num_rows == limit.taken
            queue = ResultQueue(1 << 20)
            job = await cluster.runtimes["m1"].start_job(dag, config, (), cluster.topology, result=queue)
            stream = JobRowStream(job, queue, lambda: made.stages[-1].fragment.schema)
            assert (await stream.take(1 << 20)).num_rows == limit.taken
            assert stream.is_done
            await until(lambda: not any(runtime.running_executions for runtime in cluster.runtimes.values()))

    asyncio.run(scenario())


def test_a_job_that_fails_before_it_has_enough_has_failed() -> None:
    async def scenario() -> None:
        async with LocalCluster(3) as cluster:
            await cluster_of(cluster, fails)
            dag, config = select_dag(plan(RowLimit(0, 8_000)), [range(9)])
            with pytest.raises(DataError, match="nobody wants"):
                await cluster.run(dag, config, [])

    asyncio.run(scenario())
