"""The engine of a member: messages that are not ours or come too late, metrics, starts that take time.

All in memory, on one loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from secateur.dag import JobConfig, MetaContext, Processor, ProcessorSupplier
from secateur.errors import DagError, InterfaceError, ProtocolError
from secateur.protocol import CancelRun, EndRun, ExchangeRows, Failure, Notice, StartRun
from secateur.testing import LocalCluster
from secateur.testing.local_cluster import until
from small_jobs import Forever, Numbers, Place, pipeline

RunTest = Callable[[Any], Any]


def test_messages_that_are_not_ours_harm_no_job(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(2) as cluster:
            job = await cluster.runtimes["m1"].start_job(
                pipeline(Place(Forever, "m1"), lambda e: e), JobConfig(), (), cluster.topology
            )
            with pytest.raises(ProtocolError):
                cluster.runtimes["m1"].on_message(Notice(), b"")
            assert not job.done
            job.cancel()

    run(main())


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x93\x01\x02\x03", id="numbers"),
        pytest.param(b"\xc1", id="no msgpack"),
    ],
)
def test_a_start_that_cannot_be_read_is_answered(run: RunTest, plan: bytes) -> None:
    async def main() -> None:
        async with LocalCluster(2) as cluster:
            cluster.runtimes["m2"].on_message(StartRun("j", "m1"), plan)
            await until(lambda: bool(cluster.network.sent))
            (answer,) = cluster.network.sent
            assert isinstance(answer.notice, EndRun)
            assert answer.notice.failure is not None
            assert (answer.receiver, answer.notice.failure.error) == ("m1", "ProtocolError")

    run(main())


def test_rows_for_an_edge_that_does_not_lead_here_fail_the_job(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(2) as cluster:
            job = await cluster.runtimes["m1"].start_job(
                pipeline(Place(Forever, "m1"), lambda e: e), JobConfig(), (), cluster.topology
            )
            cluster.runtimes["m1"].on_message(ExchangeRows(job.job_id, "m2", 0, 0, (), True), b"")
            with pytest.raises(
                ProtocolError, match="member m2 sent rows of edge 0, which does not lead from there to m1"
            ):
                await job.result()

    run(main())


def test_stragglers_of_a_job_that_has_ended_are_dropped(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(2) as cluster:
            result = await cluster.run(pipeline(Place(lambda: Numbers(1), "m1"), lambda e: e))
            runtime = cluster.runtimes["m1"]
            runtime.on_message(ExchangeRows(result.job_id, "m2", 0, 0, (), True), b"")
            runtime.on_message(EndRun(result.job_id, "m2", None, []), b"")
            runtime.on_message(CancelRun(result.job_id, "m2", Failure("DataError", "x")), b"")
            assert runtime.running_executions == 0

    run(main())


def test_metrics_count_what_went_in_and_out(run: RunTest) -> None:
    async def main() -> dict[tuple[str, str], tuple[int, ...]]:
        async with LocalCluster(2) as cluster:
            result = await cluster.run(
                pipeline(Place(lambda: Numbers(30, rows=10), "m1", "m2"), lambda e: e, parallelism=1)
            )
            assert replace(result, tables={}).table().shape == (0, 0)
            with pytest.raises(InterfaceError, match=r"has 2 results \(a, b\)"):
                replace(result, tables={"a": pa.table({}), "b": pa.table({})}).table()
            assert all(m.busy_s > 0 for m in result.metrics)
            return {
                (m.vertex, m.member): (m.processors, m.batches_in, m.rows_in, m.batches_out, m.rows_out)
                for m in result.metrics
            }

    assert run(main()) == {
        ("source", "m1"): (1, 0, 0, 3, 30),
        ("source", "m2"): (1, 0, 0, 3, 30),
        ("middle", "m1"): (1, 3, 30, 3, 30),
        ("middle", "m2"): (1, 3, 30, 3, 30),
        ("out", "m1"): (1, 6, 60, 0, 0),
    }


def test_slow_starts_do_not_hold_the_loop(run: RunTest) -> None:
    latch = threading.Event()
    beats = 0

    class Model(ProcessorSupplier):
        def init(self, context: Any) -> None:
            assert latch.wait(10)

        def get(self, count: int) -> Sequence[Processor]:
            return [Numbers(3) for _ in range(count)]

    async def main() -> int:
        nonlocal beats
        async with LocalCluster(1) as cluster:
            job = await cluster.runtimes["m1"].start_job(
                pipeline(Model(), lambda e: e, parallelism=1), JobConfig(), (), cluster.topology
            )
            for _ in range(50):
                await asyncio.sleep(0)
                beats += 1
            assert not job.done
            latch.set()
            return (await job.result()).table().num_rows

    assert run(main()) == 3
    assert beats == 50


@pytest.mark.parametrize("cooperative", [pytest.param(True, id="on the loop"), pytest.param(False, id="in a thread")])
def test_resolving_starts_and_sends_nothing(run: RunTest, cooperative: bool) -> None:
    log: list[str] = []

    class Noted(Place):
        init_is_cooperative = close_is_cooperative = cooperative

        def init(self, context: MetaContext) -> None:
            log.append(f"init {context.vertex}")

        def close(self, error: BaseException | None) -> None:
            log.append(f"close {error}")

    async def main() -> None:
        async with LocalCluster(3) as cluster:
            dag = pipeline(Noted(Forever, "m2", "m3"), lambda e: e.distributed())
            plan = await cluster.runtimes["m1"].resolve(dag, JobConfig(), (), cluster.topology)
            assert (plan.job.participants, plan.cluster) == (("m1", "m2", "m3"), ("m1", "m2", "m3"))
            assert not cluster.network.sent
            assert not cluster.runtimes["m1"].jobs
            assert log == ["init source", "close None"]
            with pytest.raises(DagError, match=r"is distributed to m2, and .* nowhere to go: 'middle' runs only on m1"):
                await cluster.runtimes["m1"].resolve(
                    pipeline(Noted(Forever, "m3"), lambda e: e.distribute_to("m2"), Place(Forever, "m1")),
                    JobConfig(),
                    (),
                    cluster.topology,
                )
            assert log[2:] == ["init source", "close None"]

    run(main())
