"""Rows in order from each member, merged where each member is heard by itself."""

from __future__ import annotations

import asyncio

import pyarrow as pa
import pytest

from secateur.connectors import table_source
from secateur.dag import DAG, JobConfig, between, from_
from secateur.engine.kernels import Fragment
from secateur.engine.processors import SortKey, desc
from secateur.engine.processors.merge import MergeMembers
from secateur.engine.runtime import ResultQueue, ResultSink
from secateur.engine.sql import QueryStage, ScanPlan, SelectPlan, Strategy
from secateur.engine.sql.row_stream import JobRowStream
from secateur.engine.sql.select_job import select_dag
from secateur.errors import DagError
from secateur.partitioning.pruning import All, PartitionTree
from secateur.partitioning.schemes import HashComponent, PartitionScheme, RangeComponent, RangePartition
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.testing import LocalCluster
from secateur.testing.local_cluster import until

BIGINT = parse_type("BIGINT")
COUNT = 1_500_000
HASHED = PartitionScheme((HashComponent(("a",), 9),), None, (("a", BIGINT),))
THIRDS = (
    RangePartition(0, None, (COUNT // 3,)),
    RangePartition(1, (COUNT // 3,), (2 * COUNT // 3,)),
    RangePartition(2, (2 * COUNT // 3,), None),
)
RANGED = PartitionScheme((), RangeComponent(("a",), THIRDS), (("a", BIGINT),))


def table_of(scheme: PartitionScheme) -> TableDef:
    return TableDef("numbers", 1, (Column("a", BIGINT, nullable=False),), ("a",), scheme, backups=0)


def rows(count: int) -> pa.Table:
    return pa.table({"a": pa.array(range(count), pa.int64())})


def plan(scheme: PartitionScheme, order_by: str, *order: SortKey) -> SelectPlan:
    """``SELECT 2a AS b, ..., a FROM numbers ORDER BY ...``, 48 bytes a row."""
    columns = tuple((name, "BIGINT") for name in ("a", "b", "c", "d", "e", "f"))
    first = QueryStage(
        "scan",
        Fragment(f"SELECT a, 2 * a AS b, a AS c, a AS d, a AS e, a AS f FROM s0 ORDER BY {order_by}", ("s0",), columns),
        (0,),
        order=order,
    )
    last = QueryStage(
        "final",
        Fragment("SELECT f, e, d, c, b, a FROM x0", ("x0",), columns[::-1], is_pipelineable=True),
        inputs=(0,),
        at_coordinator=True,
    )
    tree = PartitionTree("numbers", scheme, All(), scheme.partition_count, 100)
    scan = ScanPlan("s0", 1, "numbers", "numbers", ("a",), tree, scheme.affinity_group(), False)
    return SelectPlan(
        "plan", (scan,), last.fragment, (first, last), Strategy.TWO_STAGE, None, columns[::-1], 0, (), None, True, 1
    )


def merged(members: int, count: int, made: SelectPlan, partitions: range = range(9)) -> pa.Table:
    async def run() -> pa.Table:
        async with LocalCluster(members) as cluster:
            cluster.create_table(table_of(HASHED), rows(count))
            dag, config = select_dag(made, [partitions])
            return (await cluster.run(dag, config, [])).table()

    return asyncio.run(run())


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("count", [0, 1, 5, 300_000])
def test_one_order_of_all_members(members: int, count: int) -> None:
    table = merged(members, count, plan(HASHED, "1 DESC", desc("a")))
    assert table.column_names == ["f", "e", "d", "c", "b", "a"]
    assert table.column("a").to_pylist() == list(range(count))[::-1]
    assert table.column("b").to_pylist() == [2 * n for n in range(count)][::-1]


def test_only_members_that_read_take_part() -> None:
    made = plan(HASHED, "1", SortKey("a"))
    kept = [n for n in range(1000) if HASHED.partition_of({"a": n}) == 2]
    assert merged(3, 1000, made, range(2, 3)).column("a").to_pylist() == kept
    assert merged(3, 1000, made, range(0)).num_rows == 0


def test_a_member_that_is_ahead_waits() -> None:
    """All rows of one member come before those of the others: nobody keeps what cannot be handed out yet."""

    async def scenario() -> None:
        async with LocalCluster(3) as cluster:
            cluster.create_table(table_of(RANGED), rows(COUNT))
            made = plan(RANGED, "1", SortKey("a"))
            dag, config = select_dag(made, [range(3)])
            queue = ResultQueue(1 << 20)
            job = await cluster.runtimes["m1"].start_job(dag, config, (), cluster.topology, result=queue)
            stream = JobRowStream(job, queue, lambda: made.stages[-1].fragment.schema)
            seen = (await stream.take(1 << 20)).column("a").to_pylist()
            for _ in range(200):
                await asyncio.sleep(0.001)
            sent = sum(len(message.payload) for message in cluster.network.sent)
            # Of each of the two other members, which have 24 MB: a step that waits to be merged, and a window on its
            # way.
            assert sent < 2 * (12 << 20)
            assert stream.held_bytes <= 3 << 20
            while not stream.is_done:
                seen += (await stream.take(1 << 20)).column("a").to_pylist()
            assert seen == list(range(COUNT))
            await until(lambda: not any(runtime.running_executions for runtime in cluster.runtimes.values()))

    asyncio.run(scenario())


def test_only_one_edge_and_one_processor_hear_members_apart() -> None:
    async def scenario() -> None:
        async with LocalCluster(3) as cluster:
            cluster.create_table(table_of(HASHED), rows(10))
            dag = DAG()
            dag.new_vertex("read", table_source("numbers"))
            dag.new_vertex("also", table_source("numbers"))
            dag.new_vertex("merge", MergeMembers([SortKey("a")]))
            dag.new_vertex("result", ResultSink())
            dag.edge(between("read", "merge").all_to_one(apart=True).distributed())
            dag.edge(from_("also").to("merge", 1).all_to_one().distributed())
            dag.edge(between("merge", "result"))
            with pytest.raises(
                DagError,
                match=(
                    "keeps members apart: it has to be the only one into 'merge', of which a member runs one processor"
                ),
            ):
                await cluster.run(dag.freeze(), JobConfig(), [])

    asyncio.run(scenario())
