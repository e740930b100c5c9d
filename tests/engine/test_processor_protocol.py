"""The calls that a processor may rely on: which, in what order, with what in between.

Runs on whole jobs, cooperative and not.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from secateur.connectors import batch_source, collect
from secateur.dag import (
    DAG,
    EdgeConfig,
    Emitter,
    JobConfig,
    Outbox,
    Processor,
    ProcessorContext,
    ProcessorSupplier,
    SupplierContext,
    between,
    from_,
)
from secateur.errors import DagError, JobCancelledError, JobFailedError
from secateur.testing import LocalCluster
from secateur.testing.local_cluster import until

RunTest = Callable[[Any], Any]


def batch(*xs: int) -> pa.RecordBatch:
    return pa.record_batch({"x": pa.array(xs, pa.int64())})


class Logging(Processor):
    """Writes down every call and passes batches on."""

    def __init__(self, log: list[str], *, cooperative: bool = True) -> None:
        self.cooperative = cooperative
        self.log = log

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        super().init(outbox, context)
        self.log.append(f"init {context.vertex} {context.local_index}/{context.local_parallelism}")

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        self.log.append(f"process {ordinal} {batch.column('x').to_pylist()}")
        return self.outbox.offer(batch)

    def complete_edge(self, ordinal: int) -> bool:
        self.log.append(f"complete_edge {ordinal}")
        return True

    def complete(self) -> bool:
        self.log.append("complete")
        return True

    def close(self) -> None:
        self.log.append("close")


@pytest.mark.parametrize("cooperative", [True, False])
def test_order_of_calls(run: RunTest, cooperative: bool) -> None:
    log: list[str] = []
    dag = DAG()
    dag.new_vertex("first", batch_source([batch(1), batch(2)]))
    dag.new_vertex("second", batch_source([batch(3)]))
    dag.new_vertex("work", lambda: Logging(log, cooperative=cooperative))
    dag.new_vertex("out", collect())
    dag.edge(from_("first").to("work", 1).with_priority(5)).edge(from_("second").to("work", 0).with_priority(7)).edge(
        between("work", "out")
    )

    async def main() -> list[int]:
        async with LocalCluster(1) as cluster:
            return (await cluster.run(dag)).table().column("x").to_pylist()

    assert run(main()) == [1, 2, 3]
    assert log == [
        "init work 0/1",
        "process 1 [1, 2]" if "process 1 [1, 2]" in log else "process 1 [1]",
        *([] if "process 1 [1, 2]" in log else ["process 1 [2]"]),
        "complete_edge 1",
        "process 0 [3]",
        "complete_edge 0",
        "complete",
        "close",
    ]


class CountingSource(Processor):
    """Offers 0, 1, 2, ... in batches of one row."""

    def __init__(self, count: int, *, cooperative: bool = True) -> None:
        self.cooperative = cooperative
        self._count = count
        self._emitter: Emitter | None = None
        self.made = 0

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for x in range(self._count):
            self.made += 1
            yield batch(x)

    def complete(self) -> bool:
        self._emitter = self._emitter or Emitter(self.outbox, self._batches())
        return self._emitter.emit()


@pytest.mark.parametrize("source_cooperative", [True, False])
@pytest.mark.parametrize("sink_cooperative", [True, False])
@pytest.mark.parametrize("queue", [1, 3, 16])
def test_every_batch_arrives_once_and_in_order_through_queues_of_any_size(
    run: RunTest, source_cooperative: bool, sink_cooperative: bool, queue: int
) -> None:
    log: list[str] = []
    dag = DAG()
    dag.new_vertex("source", lambda: CountingSource(100, cooperative=source_cooperative), 1)
    dag.new_vertex("pass", lambda: Logging(log, cooperative=sink_cooperative))
    dag.new_vertex("out", collect())
    config = EdgeConfig(queue_batches_max=queue)
    dag.edge(between("source", "pass").with_config(config)).edge(between("pass", "out").with_config(config))

    async def main() -> list[int]:
        async with LocalCluster(1) as cluster:
            return (await cluster.run(dag)).table().column("x").to_pylist()

    assert run(main()) == list(range(100))


def test_batches_between_processors_of_a_member_are_the_same_objects(run: RunTest) -> None:
    sent = [batch(1), batch(2), batch(3)]
    got: list[pa.RecordBatch] = []

    class Source(Processor):
        def complete(self) -> bool:
            return [self.outbox.offer(b) for b in sent] == [True, True, True]

    class Sink(Processor):
        def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
            got.append(batch)
            return True

    dag = DAG()
    dag.new_vertex("source", Source)
    dag.new_vertex("sink", Sink)
    dag.edge(between("source", "sink"))

    async def main() -> None:
        async with LocalCluster(1) as cluster:
            await cluster.run(dag)

    run(main())
    assert [id(b) for b in got] == [id(b) for b in sent]


def test_inputs_of_one_priority_take_turns(run: RunTest) -> None:
    log: list[str] = []
    dag = DAG()
    for name in ("a", "b"):
        dag.new_vertex(name, lambda: CountingSource(3))
    dag.new_vertex("work", lambda: Logging(log))
    dag.edge(from_("a").to("work", 0)).edge(from_("b").to("work", 1))

    async def main() -> None:
        async with LocalCluster(1) as cluster:
            await cluster.run(dag)

    run(main())
    calls = [entry for entry in log if entry.startswith("process")]
    assert sorted(calls) == [f"process {o} [{x}]" for o in (0, 1) for x in range(3)]
    assert calls[:2] in (["process 0 [0]", "process 1 [0]"], ["process 1 [0]", "process 0 [0]"])


def test_a_slow_consumer_bounds_what_its_producer_makes(run: RunTest) -> None:
    """The source may be ahead by the queue, one batch held back and one in the consumer's hands, however long the
    consumer waits.
    """
    source = CountingSource(1000)
    latch = threading.Event()
    waiting = threading.Event()

    class Slow(Processor):
        cooperative = False

        def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
            waiting.set()
            latch.wait(10)
            return True

    dag = DAG()
    dag.new_vertex("source", lambda: source)
    dag.new_vertex("slow", Slow)
    dag.edge(between("source", "slow").with_config(EdgeConfig(queue_batches_max=4)))

    async def main() -> int:
        async with LocalCluster(1) as cluster:
            job = await cluster.runtimes["m1"].start_job(dag, JobConfig(), (), cluster.topology)
            await until(lambda: bool(waiting.is_set()))
            await _turns(200)
            ahead = source.made
            latch.set()
            await job.result()
            return ahead

    assert run(main()) <= 4 + 1 + 1 + 1  # queue, held back, refused in the emitter, in the consumer's hands
    assert source.made == 1000


async def _turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_an_offload_runs_in_a_thread_and_wakes_the_processor(run: RunTest) -> None:
    threads: list[str] = []
    calls: list[int] = []

    class Offloading(Processor):
        def __init__(self) -> None:
            self._offload: Any = None

        def complete(self) -> bool:
            calls.append(1)
            if self._offload is None:
                self._offload = self.context.offload(
                    lambda: threads.append(threading.current_thread().name) or batch(42)
                )
            if not self._offload.done():
                return False
            return self.outbox.offer(self._offload.result())

    dag = DAG()
    dag.new_vertex("work", Offloading)
    dag.new_vertex("out", collect())
    dag.edge(between("work", "out"))

    async def main() -> list[int]:
        async with LocalCluster(1) as cluster:
            return (await cluster.run(dag)).table().column("x").to_pylist()

    assert run(main()) == [42]
    assert threads[0].startswith("secateur-local")
    assert len(calls) <= 3


def test_polling_costs_little(run: RunTest) -> None:
    calls: list[float] = []

    class Polling(Processor):
        def complete(self) -> bool:
            calls.append(time.perf_counter())
            return calls[-1] - calls[0] > 0.1

    dag = DAG()
    dag.new_vertex("poll", Polling)

    async def main() -> None:
        async with LocalCluster(1) as cluster:
            await cluster.run(dag)

    run(main())
    assert len(calls) < 60


class Recording(ProcessorSupplier):
    """Writes down the life of a supplier; breaks where told."""

    def __init__(self, log: list[str], breaks: str = "", *, cooperative: bool = True) -> None:
        self.log = log
        self.breaks = breaks
        self.init_is_cooperative = cooperative
        self.close_is_cooperative = cooperative

    def init(self, context: SupplierContext) -> None:
        self.log.append(f"init {context.member} {threading.current_thread() is threading.main_thread()}")
        self._break("init")

    def get(self, count: int) -> Sequence[Processor]:
        self._break("get")
        return [_Breaking(self) for _ in range(count)]

    def close(self, error: BaseException | None) -> None:
        self.log.append(f"close {type(error).__name__}")
        self._break("close")

    def _break(self, where: str) -> None:
        if self.breaks == where:
            raise ZeroDivisionError(where)


class _Breaking(Processor):
    def __init__(self, supplier: Recording) -> None:
        self._supplier = supplier

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        super().init(outbox, context)
        self._supplier._break("processor init")

    def complete(self) -> bool:
        self._supplier._break("complete")
        return True

    def close(self) -> None:
        self._supplier.log.append("processor close")
        self._supplier._break("processor close")


@pytest.mark.parametrize("cooperative", [True, False])
@pytest.mark.parametrize(
    ("breaks", "expected"),
    [
        pytest.param("", ["processor close", "close NoneType"], id="well"),
        pytest.param("init", ["close JobFailedError"], id="supplier init"),
        pytest.param("get", ["close JobFailedError"], id="get"),
        pytest.param("processor init", ["processor close", "close JobFailedError"], id="processor init"),
        pytest.param("complete", ["processor close", "close JobFailedError"], id="complete"),
        pytest.param("processor close", ["processor close", "close NoneType"], id="processor close"),
        pytest.param("close", ["processor close", "close NoneType"], id="supplier close"),
    ],
)
def test_everything_that_was_begun_is_closed_whatever_breaks(
    run: RunTest, cooperative: bool, breaks: str, expected: list[str]
) -> None:
    log: list[str] = []
    dag = DAG()
    dag.new_vertex("v", Recording(log, breaks, cooperative=cooperative))

    async def main() -> None:
        async with LocalCluster(1) as cluster:
            await cluster.run(dag)
            assert cluster.runtimes["m1"].running_executions == 0

    if breaks:
        with pytest.raises(JobFailedError, match=r"vertex 'v' on member m1 failed in .*ZeroDivisionError") as caught:
            run(main())
        assert (
            f'ZeroDivisionError("{breaks}")' in caught.value.details["traceback"]
            or f"ZeroDivisionError: {breaks}" in caught.value.details["traceback"]
        )
    else:
        run(main())
    assert log == [f"init m1 {cooperative}", *expected]


ONE = Processor()


class Silent(Processor):
    def complete(self) -> bool:
        return None  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        pytest.param(Silent, r"complete\(\) returned None; return True when it is dealt with", id="forgotten return"),
        pytest.param(
            lambda: 5, r"the supplier of vertex 'v' returned a int, which is not a Processor", id="no processor"
        ),
        pytest.param(lambda: ONE, "returned 2 processors; 2 different ones were expected", id="one processor twice"),
    ],
)
def test_breaches_of_the_contract_are_named(run: RunTest, source: Any, message: str) -> None:
    dag = DAG()
    dag.new_vertex("v", source, 2)

    async def main() -> None:
        async with LocalCluster(1) as cluster:
            await cluster.run(dag)

    with pytest.raises(DagError, match=message) as caught:
        run(main())
    assert caught.value.details == {"vertex": "v", "member": "m1"}


def test_a_failure_names_vertex_member_and_batch_and_keeps_the_traceback(run: RunTest) -> None:
    def explode(b: pa.RecordBatch) -> pa.RecordBatch:
        raise ValueError(f"cannot take {b.num_rows} rows")

    class Exploding(Processor):
        def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
            explode(batch)
            return True

    dag = DAG()
    dag.new_vertex("source", batch_source(batch(1, 2, 3)))
    dag.new_vertex("bad", Exploding)
    dag.edge(between("source", "bad"))

    async def main() -> None:
        async with LocalCluster(1) as cluster:
            await cluster.run(dag)

    with pytest.raises(JobFailedError) as caught:
        run(main())
    assert (
        str(caught.value)
        == "vertex 'bad' on member m1 failed in process(ordinal 0, 3 rows): ValueError: cannot take 3 rows"
    )
    assert "in explode" in caught.value.details["traceback"]
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_second_offload_at_a_time_is_refused(run: RunTest) -> None:
    latch = threading.Event()

    class Greedy(Processor):
        def complete(self) -> bool:
            self.context.offload(lambda: latch.wait(10))
            self.context.offload(lambda: latch.wait(10))
            return True

    dag = DAG()
    dag.new_vertex("v", Greedy)

    async def main() -> None:
        async with LocalCluster(1) as cluster:
            try:
                await cluster.run(dag)
            finally:
                latch.set()

    with pytest.raises(DagError, match="second offload"):
        run(main())


def test_close_waits_for_a_running_offload(run: RunTest) -> None:
    """Nothing may run at once with close: an offload may be using what close releases."""
    events: list[str] = []
    latch, begun, closed = threading.Event(), threading.Event(), threading.Event()

    class Busy(Processor):
        def complete(self) -> bool:
            if not begun.is_set():
                self.context.offload(self._work)
            return False

        def _work(self) -> None:
            begun.set()
            latch.wait(10)
            events.append("offload ended")

        def close(self) -> None:
            events.append("closed")
            closed.set()

    dag = DAG()
    dag.new_vertex("busy", Busy)

    async def main() -> None:
        async with LocalCluster(1) as cluster:
            job = await cluster.runtimes["m1"].start_job(dag, JobConfig(), (), cluster.topology)
            await until(lambda: bool(begun.is_set()))
            job.cancel()
            with pytest.raises(JobCancelledError):
                await job.result()
            events.append("job ended")
            latch.set()
            await until(lambda: bool(closed.is_set()))

    run(main())
    assert events == ["job ended", "offload ended", "closed"]
