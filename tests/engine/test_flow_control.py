"""What is bounded: rows that come too early or too fast, results, and jobs at once."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from secateur.dag import DAG, EdgeConfig, JobConfig, Processor, between
from secateur.engine.processors import map_batches
from secateur.engine_limits import EngineLimits
from secateur.errors import LimitExceededError
from secateur.protocol import ExchangeRows, StartRun
from secateur.testing import LocalCluster
from secateur.testing.local_cluster import until
from small_jobs import Forever, Numbers, Place, pipeline

RunTest = Callable[[Any], Any]


class Gated(Processor):
    """A sink in a thread that takes nothing until the gate opens."""

    cooperative = False
    latch = threading.Event()
    waiting = threading.Event()

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        self.waiting.set()
        return self.latch.wait(10)


def test_data_that_arrive_before_the_start_are_kept_and_delivered(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(3) as cluster:
            cluster.network.hold(lambda message: isinstance(message.notice, StartRun) and message.receiver == "m3")
            dag = pipeline(Place(lambda: Numbers(50), "m2"), lambda e: e.distribute_to("m3"))
            job = await cluster.runtimes["m1"].start_job(dag, JobConfig(), (), cluster.topology)
            await until(
                lambda: bool(
                    any(
                        message.receiver == "m3" and isinstance(message.notice, ExchangeRows) and message.notice.is_last
                        for message in cluster.network.sent
                    )
                )
            )
            await asyncio.sleep(0)
            assert not job.done
            cluster.network.release()
            assert Counter((await job.result()).table().column("x").to_pylist()) == dict.fromkeys(range(50), 2)

    run(main())


def test_early_data_are_bounded(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(3, limits=EngineLimits(early_bytes_max=100, cancel_wait_s=0.05)) as cluster:
            cluster.network.hold(lambda message: isinstance(message.notice, StartRun) and message.receiver == "m3")
            await cluster.run(
                pipeline(Place(lambda: Numbers(50), "m2"), lambda e: e.distribute_to("m3")), JobConfig(timeout_s=10)
            )

    with pytest.raises(
        LimitExceededError, match="member m3 holds more than 100 bytes of rows for jobs that have not started"
    ):
        run(main())


def test_a_slow_consumer_on_another_member_bounds_what_is_sent(run: RunTest) -> None:
    window = 4096
    Gated.latch.clear()
    Gated.waiting.clear()
    dag = DAG()
    dag.new_vertex("source", Place(lambda: Numbers(5_000, rows=10), "m1"))
    dag.new_vertex("slow", Place(Gated, "m2"))
    dag.edge(
        between("source", "slow")
        .distribute_to("m2")
        .with_config(EdgeConfig(queue_batches_max=2, window_bytes_max=window))
    )

    async def main() -> None:
        async with LocalCluster(2) as cluster:
            job = await cluster.runtimes["m1"].start_job(dag, JobConfig(), (), cluster.topology)
            await until(lambda: bool(Gated.waiting.is_set()))
            for _ in range(300):
                await asyncio.sleep(0)
            sent = sum(
                piece.size
                for m in cluster.network.sent
                if isinstance(m.notice, ExchangeRows)
                for piece in m.notice.pieces
            )
            assert 0 < sent <= window
            Gated.latch.set()
            result = await job.result()
            (slow,) = [m for m in result.metrics if m.vertex == "slow"]
            assert slow.rows_in == 5_000

    run(main())


def test_results_are_bounded(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(2) as cluster:
            await cluster.run(
                pipeline(Place(Forever, "m1", "m2"), lambda e: e, map_batches(lambda b: b)),
                JobConfig(result_bytes_max=1000),
            )

    with pytest.raises(LimitExceededError, match=r"larger than 1,000 bytes.*\(vertex 'out' on member m1\)"):
        run(main())


def test_a_member_runs_only_so_many_jobs(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(3, limits=EngineLimits(executions_max=1)) as cluster:
            first = await cluster.runtimes["m1"].start_job(
                pipeline(Place(Forever, "m2"), lambda e: e), JobConfig(), (), cluster.topology
            )
            await until(lambda: bool(cluster.runtimes["m2"].running_executions))
            for coordinator, full in (("m3", "m2"), ("m1", "m1")):
                with pytest.raises(LimitExceededError, match=f"member {full} already runs 1 jobs"):
                    await cluster.run(pipeline(Place(Forever, "m2"), lambda e: e), coordinator=coordinator)
            assert not first.done
            first.cancel()

    run(main())
