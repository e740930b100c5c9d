"""Who gets a message: pruned jobs cost the same whatever the size of the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from secateur.connectors import collect, table_source
from secateur.dag import DAG, JobConfig, Param, between
from secateur.engine.processors import map_batches
from secateur.engine_limits import EngineLimits
from secateur.partitioning.tables import TableDef
from secateur.testing import LocalCluster
from small_jobs import read_by_key

RunTest = Callable[[Any], Any]

PATIENT = EngineLimits(slice_s=5.0)
"""No turn of the loop is cut short, so that the number of messages does not depend on the speed of the machine."""


@pytest.mark.parametrize("members", [2, 5, 16])
def test_a_pruned_job_sends_the_same_messages_whatever_the_size_of_the_cluster(
    run: RunTest, orders: TableDef, order_rows: pa.Table, members: int
) -> None:
    async def main() -> None:
        async with LocalCluster(members, limits=PATIENT) as cluster:
            cluster.create_table(orders, order_rows)
            owner = cluster.topology.ownership(orders.scheme.affinity_group()).primary(
                orders.scheme.partition_of({"customer": "C7"})
            )
            other = next(member for member in cluster.runtimes if member != owner)
            result = await cluster.run(read_by_key(), coordinator=other)
            assert result.table().column("amount").to_pylist() == [37.0, 38.0, 39.0]
            assert result.members_touched == tuple(sorted([owner, other]))
            assert [(m.sender, m.receiver, m.operation) for m in cluster.network.sent] == [
                (other, owner, "start_run"),
                (owner, other, "exchange_rows"),
                (owner, other, "end_run"),
            ]

    run(main())


def test_a_job_that_one_member_can_run_sends_nothing(run: RunTest, orders: TableDef, order_rows: pa.Table) -> None:
    async def main() -> None:
        async with LocalCluster(3) as cluster:
            cluster.create_table(orders, order_rows)
            owner = cluster.topology.ownership(orders.scheme.affinity_group()).primary(
                orders.scheme.partition_of({"customer": "C7"})
            )
            result = await cluster.run(read_by_key(), coordinator=owner)
            assert (result.table().num_rows, result.members_touched, cluster.network.sent) == (3, (owner,), [])

    run(main())


def test_full_deployment_reaches_everybody(run: RunTest, orders: TableDef, order_rows: pa.Table) -> None:
    async def main() -> None:
        async with LocalCluster(4) as cluster:
            cluster.create_table(orders, order_rows)
            dag = DAG()
            dag.new_vertex("scan", table_source("orders", keys=[{"customer": "C7"}]))
            dag.new_vertex("pass", map_batches(lambda b: b))
            dag.new_vertex("out", collect())
            dag.edge(between("scan", "pass").distributed()).edge(between("pass", "out").all_to_one().distributed())
            result = await cluster.run(dag, JobConfig(member_pruning=False))
            assert result.table().num_rows == 5
            assert result.members_touched == ("m1", "m2", "m3", "m4")
            assert cluster.received(["start_run"]) == {"m1": 0, "m2": 1, "m3": 1, "m4": 1}

    run(main())


def test_a_dag_runs_many_times_and_at_once(run: RunTest, orders: TableDef, order_rows: pa.Table) -> None:
    dag = DAG()
    dag.new_vertex("scan", table_source("orders", keys=[{"customer": Param("c")}]))
    dag.new_vertex("out", collect())
    dag.edge(between("scan", "out").all_to_one().distributed())

    async def main() -> list[set[str]]:
        async with LocalCluster(3) as cluster:
            cluster.create_table(orders, order_rows)
            results = await asyncio.gather(
                *(cluster.run(dag, params={"c": f"C{i}"}, coordinator=f"m{1 + i % 3}") for i in range(200))
            )
            assert all(runtime.running_executions == 0 and not runtime.jobs for runtime in cluster.runtimes.values())
            return [set(result.table().column("customer").to_pylist()) for result in results]

    assert run(main()) == [{f"C{i}"} for i in range(200)]


def test_a_pruned_member_that_is_lost_does_not_disturb_the_job(
    run: RunTest, orders: TableDef, order_rows: pa.Table
) -> None:
    async def main() -> None:
        async with LocalCluster(3) as cluster:
            cluster.create_table(orders, order_rows)
            owner = cluster.topology.ownership(orders.scheme.affinity_group()).primary(
                orders.scheme.partition_of({"customer": "C7"})
            )
            coordinator, pruned = [member for member in cluster.runtimes if member != owner]
            cluster.network.lose(pruned)
            job = await cluster.runtimes[coordinator].start_job(read_by_key(), JobConfig(), (), cluster.topology)
            cluster.runtimes[coordinator].member_lost(pruned)
            assert (await job.result()).table().num_rows == 3

    run(main())
