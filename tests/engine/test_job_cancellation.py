"""Jobs that are stopped: on request, by a deadline, with whoever waited, or with their member."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from secateur.dag import DAG, JobConfig, Processor, ProcessorSupplier
from secateur.engine_limits import EngineLimits
from secateur.errors import DeadlineError, JobCancelledError, MemberLostError, TopologyChangedError
from secateur.testing import LocalCluster
from secateur.testing.local_cluster import until
from small_jobs import Forever, Numbers, Place, pipeline

RunTest = Callable[[Any], Any]


def test_cancel_ends_a_source_that_never_ends(run: RunTest) -> None:
    async def main() -> float:
        async with LocalCluster(3) as cluster:
            job = await cluster.runtimes["m1"].start_job(
                pipeline(Place(Forever, "m1", "m2", "m3"), lambda e: e), JobConfig(), (), cluster.topology
            )
            await until(lambda: bool(all(runtime.running_executions for runtime in cluster.runtimes.values())))
            begun = time.perf_counter()
            job.cancel("enough")
            with pytest.raises(JobCancelledError, match=rf"job {job.job_id} was cancelled: enough"):
                await job.result()
            took = time.perf_counter() - begun
            assert [runtime.running_executions for runtime in cluster.runtimes.values()] == [0, 0, 0]
            job.cancel()  # nothing happens
            return took

    assert run(main()) < 5


def test_cancel_does_not_wait_for_a_call_that_does_not_return(run: RunTest) -> None:
    latch, entered = threading.Event(), threading.Event()
    closed = threading.Event()

    class Stuck(Processor):
        cooperative = False

        def complete(self) -> bool:
            entered.set()
            latch.wait(60)
            return True

        def close(self) -> None:
            closed.set()

    async def main() -> None:
        async with LocalCluster(1) as cluster:
            dag = DAG()
            dag.new_vertex("stuck", Stuck)
            job = await cluster.runtimes["m1"].start_job(dag, JobConfig(), (), cluster.topology)
            await until(lambda: bool(entered.is_set()))
            job.cancel()
            with pytest.raises(JobCancelledError):
                await job.result()
            assert not closed.is_set(), "the cancellation waited for the call"
            latch.set()

    run(main())
    assert closed.wait(60)


def test_a_waiter_that_goes_away_takes_its_job_with_it(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(2) as cluster:
            waiter = asyncio.get_running_loop().create_task(
                cluster.run(pipeline(Place(Forever, "m1", "m2"), lambda e: e))
            )
            await until(lambda: bool(cluster.runtimes["m2"].running_executions))
            waiter.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiter
            await until(lambda: not (cluster.runtimes["m2"].running_executions or cluster.runtimes["m1"].jobs))

    run(main())


def test_a_deadline_says_who_was_still_running(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(2) as cluster:
            with pytest.raises(
                DeadlineError, match=r"took longer than its deadline of 0.05 s; still running on m1, m2"
            ):
                await cluster.run(pipeline(Place(Forever, "m2"), lambda e: e), JobConfig(timeout_s=0.05))
            assert cluster.runtimes["m2"].running_executions == 0

    run(main())


def test_a_participant_that_never_answers_a_cancel_is_given_up(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(2, limits=EngineLimits(cancel_wait_s=0.05)) as cluster:
            cluster.network.hold(lambda message: message.receiver == "m2")
            with pytest.raises(DeadlineError, match="still running on m1, m2"):
                await cluster.run(pipeline(Place(Forever, "m2"), lambda e: e), JobConfig(timeout_s=0.05))
            assert not cluster.runtimes["m1"].jobs

    run(main())


def test_closing_a_member_ends_its_jobs_and_starts_no_more(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(2) as cluster:
            job = await cluster.runtimes["m1"].start_job(
                pipeline(Place(Forever, "m1", "m2"), lambda e: e), JobConfig(), (), cluster.topology
            )
            await cluster.runtimes["m1"].close()
            with pytest.raises(MemberLostError, match="member m1 is shutting down"):
                await job.result()
            with pytest.raises(TopologyChangedError, match="starts no more jobs"):
                await cluster.run(pipeline(Place(Forever, "m1"), lambda e: e))
            await until(lambda: not (cluster.runtimes["m2"].running_executions))

    run(main())


def test_cancel_during_a_slow_start(run: RunTest) -> None:
    latch = threading.Event()
    closed: list[str] = []

    class Model(ProcessorSupplier):
        def init(self, context: Any) -> None:
            assert latch.wait(10)

        def get(self, count: int) -> Sequence[Processor]:
            return [Numbers(3) for _ in range(count)]

        def close(self, error: BaseException | None) -> None:
            closed.append(type(error).__name__)

    async def main() -> None:
        async with LocalCluster(1) as cluster:
            job = await cluster.runtimes["m1"].start_job(
                pipeline(Model(), lambda e: e), JobConfig(), (), cluster.topology
            )
            job.cancel()
            with pytest.raises(JobCancelledError):
                await job.result()
            assert closed == []  # init is still running: nothing may be closed under it
            latch.set()

    run(main())
    assert closed == ["JobCancelledError"]
