"""What is counted: by processor, by vertex, by edge; while a job runs and when it has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from secateur.connectors import collect
from secateur.dag import DAG, EdgeConfig, JobConfig, Processor, between
from secateur.protocol import InputMetrics, OutputMetrics, TaskletMetrics, VertexMetrics, decode, encode
from secateur.testing import LocalCluster
from secateur.testing.local_cluster import until

RunTest = Callable[[Any], Any]
BATCH = pa.record_batch({"x": pa.array(range(10), pa.int64())})
SIZE = 80
EDGE = "'read'[0] -> 'take'[0]"


class Three(Processor):
    """Offers three batches of ten rows, 80 bytes each."""

    def __init__(self) -> None:
        self._left = 3

    def complete(self) -> bool:
        while self._left and self.outbox.offer(BATCH):
            self._left -= 1
        return not self._left


class Deaf(Processor):
    """Takes a batch and never gets done with it."""

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        return False


def dag_of(source: Any, sink: Any, config: EdgeConfig | None = None) -> DAG:
    dag = DAG()
    dag.new_vertex("read", source, 2)
    dag.new_vertex("take", sink)
    edge = between("read", "take")
    dag.edge(edge if config is None else edge.with_config(config))
    return dag


def test_processors_vertices_and_edges_are_counted(run: RunTest) -> None:
    async def main() -> list[VertexMetrics]:
        async with LocalCluster(1) as cluster:
            return list((await cluster.run(dag_of(Three, collect()))).metrics)

    read, take = run(main())
    assert [(t.index, t.batches_out, t.rows_out, t.bytes_out) for t in read.tasklets] == [
        (0, 3, 30, 3 * SIZE),
        (1, 3, 30, 3 * SIZE),
    ]
    assert read.outputs == (OutputMetrics(EDGE, 6, 60, 6 * SIZE),)
    assert read.inputs == ()
    assert take.inputs == (InputMetrics(EDGE, 6, 60, 6 * SIZE, 0, 0, 0.0),)
    assert take.tasklets == (TaskletMetrics(0, 6, 60, 6 * SIZE, 0, 0, 0, take.busy_s),)
    assert (take.processors, take.batches_in, take.rows_in, take.bytes_in) == (1, 6, 60, 6 * SIZE)
    assert read.busy_s == sum(t.busy_s for t in read.tasklets) > 0


def test_a_full_queue_is_seen_while_the_job_runs(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(1) as cluster:
            runtime = cluster.runtimes["m1"]
            job = await runtime.start_job(
                dag_of(Three, Deaf, EdgeConfig(queue_batches_max=2)), JobConfig(), [], cluster.topology
            )

            def stuck() -> bool:
                metrics = {entry.vertex: entry for entry in runtime.metrics(job.job_id)}
                # One batch is with the processor, two wait in its queue, and that is all it may hold.
                return metrics["take"].inputs == (InputMetrics(EDGE, 1, 10, SIZE, 2, 2 * SIZE, 1.0),)

            await until(stuck)
            assert job.running_members == ("m1",)
            assert job.metrics == ()
            job.cancel()
            await until(lambda: job.done)
            assert {(entry.vertex, entry.rows_in) for entry in job.metrics} == {("read", 0), ("take", 10)}
            assert runtime.metrics(job.job_id) == []

    run(main())


def test_metrics_travel() -> None:
    metrics = VertexMetrics(
        "v",
        "m1",
        1,
        2,
        3,
        4,
        5,
        6,
        0.5,
        7,
        0.25,
        (TaskletMetrics(0, 2, 3, 7, 4, 5, 6, 0.5, 0.25),),
        (),
        (OutputMetrics("f", 4, 5, 6),),
    )
    assert decode(encode(metrics), VertexMetrics) == metrics
