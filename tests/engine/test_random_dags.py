"""Random DAGs under random bounds and random misfortune: no row is lost or doubled, nothing hangs, nothing is left
behind.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from secateur.connectors import collect
from secateur.dag import DAG, Edge, EdgeConfig, Emitter, JobConfig, Processor, from_
from secateur.engine_limits import EngineLimits
from secateur.errors import Error
from secateur.testing import LocalCluster
from secateur.testing.local_cluster import until

RunTest = Callable[[Any], Any]

MEMBERS = 3


class Numbers(Processor):
    """Offers ``count`` rows in batches of random sizes."""

    def __init__(self, seed: int, count: int, cooperative: bool) -> None:
        self.cooperative = cooperative
        self._chance = random.Random(seed)
        self._count = count
        self._emitter: Emitter | None = None

    def _batches(self) -> Iterator[pa.RecordBatch]:
        start = 0
        while start < self._count:
            stop = min(self._count, start + self._chance.randint(1, 9))
            yield pa.record_batch({"x": pa.array(range(start, stop), pa.int64())})
            start = stop

    def complete(self) -> bool:
        self._emitter = self._emitter or Emitter(self.outbox, self._batches())
        return self._emitter.emit()


class Pass(Processor):
    """Passes batches on to every output; keeps some of them until the input ends, and refuses to hurry."""

    def __init__(self, seed: int, cooperative: bool) -> None:
        self.cooperative = cooperative
        self._chance = random.Random(seed)
        self._kept: list[pa.RecordBatch] = []

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        if self._chance.random() < 0.2:
            self._kept.append(batch)
            return True
        return self._chance.random() < 0.8 and self.outbox.offer(batch)

    def complete(self) -> bool:
        while self._kept:
            if not self.outbox.offer(self._kept[-1]):
                return False
            self._kept.pop()
        return True


def random_edge(chance: random.Random, edge: Edge) -> Edge:
    """Routings that neither drop nor double rows."""
    edge = chance.choice(
        [edge.unicast, lambda: edge.partitioned("x"), lambda: edge.all_to_one(chance.choice("abc")), edge.isolated]
    )()
    if edge.routing != edge.isolated().routing and chance.random() < 0.6:
        edge = chance.choice([edge.distributed, lambda: edge.distribute_to(f"m{chance.randint(1, MEMBERS)}")])()
    return edge.with_config(
        EdgeConfig(chance.randint(1, 4), chance.choice([1, 200, 1 << 20]), chance.choice([1, 100, 1 << 20]))
    )


def random_dag(seed: int, count: int) -> tuple[DAG, Counter[int]]:
    """A DAG of sources, passing vertices and one sink, with what must arrive there.

    Everything that is made on one member reaches the sink.
    """
    chance = random.Random(seed)
    dag = DAG()
    rows_of: dict[str, int] = {}
    outputs: dict[str, int] = {}
    for index in range(chance.randint(1, 2)):
        name = f"source{index}"
        parallelism, cooperative = chance.randint(1, 2), chance.random() < 0.8
        dag.new_vertex(name, partial(Numbers, chance.getrandbits(32), count, cooperative), parallelism)
        rows_of[name] = parallelism * MEMBERS
        outputs[name] = 0
    for index in range(chance.randint(1, 4)):
        name = f"pass{index}"
        cooperative = chance.random() < 0.8
        dag.new_vertex(name, partial(Pass, chance.getrandbits(32), cooperative), chance.randint(1, 3))
        feeders = chance.sample(sorted(rows_of), chance.randint(1, min(2, len(rows_of))))
        for ordinal, feeder in enumerate(feeders):
            # On every member where the feeder runs the follower has to run too, or the edge has to be distributed: all
            # but local edges after a vertex that is not everywhere are tried, so the edge is made distributed to be
            # safe.
            dag.edge(_reaching(random_edge(chance, from_(feeder, outputs[feeder]).to(name, ordinal))))
            outputs[feeder] += 1
        rows_of[name] = sum(rows_of[feeder] for feeder in feeders)
        outputs[name] = 0
    dag.new_vertex("out", collect())
    ends = [name for name, used in outputs.items() if not used]
    for ordinal, name in enumerate(ends):
        dag.edge(from_(name, 0).to("out", ordinal).distributed().with_config(EdgeConfig(2, 100, 100)))
    total = sum(rows_of[name] for name in ends)
    return dag, Counter(dict.fromkeys(range(count), total))


def _reaching(edge: Edge) -> Edge:
    return edge if edge.is_distributed or edge.source.startswith("source") else edge.unicast().distributed()


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.sampled(one_in=2)
def test_every_row_arrives_exactly_as_often_as_it_should(run: RunTest, seed: int) -> None:
    dag, expected = random_dag(seed, count=60)

    async def main() -> Counter[int]:
        async with LocalCluster(
            MEMBERS, limits=EngineLimits(frame_bytes_max=random.Random(seed).choice([1, 100, 1 << 20]))
        ) as cluster:
            result = await cluster.run(dag, JobConfig(timeout_s=15), coordinator=f"m{1 + seed % MEMBERS}")
            assert [runtime.running_executions for runtime in cluster.runtimes.values()] == [0, 0, 0]
            return Counter(result.table().column("x").to_pylist())

    assert run(main()) == expected


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.sampled(one_in=3)
def test_whatever_befalls_a_job_it_ends_and_leaves_nothing(run: RunTest, seed: int) -> None:
    dag, expected = random_dag(seed, count=300)
    chance = random.Random(seed)
    turns, misfortune = chance.randint(0, 400), chance.choice(["cancel", "lose", "lose quietly", "close"])
    victim = f"m{chance.randint(2, MEMBERS)}"

    async def main() -> None:
        async with LocalCluster(MEMBERS, limits=EngineLimits(cancel_wait_s=0.05)) as cluster:
            job = await cluster.runtimes["m1"].start_job(dag, JobConfig(timeout_s=15), (), cluster.topology)
            for _ in range(turns):
                await asyncio.sleep(0)
            match misfortune:
                case "cancel":
                    job.cancel()
                case "close":
                    await cluster.runtimes[victim].close()
                case _:
                    cluster.network.lose(victim)
                    for member in cluster.runtimes if misfortune == "lose" else ("m1", victim):
                        cluster.runtimes[member].member_lost("m1" if member == victim else victim)
            try:
                result = await job.result()
            except Error:
                pass
            else:
                assert Counter(result.table().column("x").to_pylist()) == expected
            await until(
                lambda: not any(runtime.running_executions or runtime.jobs for runtime in cluster.runtimes.values())
            )

    run(main())
