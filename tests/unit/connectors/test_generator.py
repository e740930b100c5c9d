"""Generator functions as sources."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from secateur.connectors import function_sink, generator_source
from secateur.dag import DAG, JobConfig, ProcessorContext, between
from secateur.errors import DagError, JobCancelledError
from secateur.testing import LocalCluster


def share(context: ProcessorContext) -> Iterator[dict[str, int]]:
    """The numbers below 10 that are this processor's."""
    for number in range(context.global_index, 10, context.total_parallelism):
        yield {"number": number}


def test_each_processor_makes_its_share(read: Any) -> None:
    result = read(generator_source(share))
    assert sorted(result.table()["number"].to_pylist()) == list(range(10))
    assert result.members_touched == ("m1", "m2", "m3")


def test_once_in_the_job_it_adds_no_member(read: Any) -> None:
    result = read(generator_source(share, everywhere=False), JobConfig(required_partitions={}))
    assert result.table()["number"].to_pylist() == list(range(10))
    assert result.members_touched == ("m1",)


def test_everywhere_is_refused_in_a_restricted_job(read: Any) -> None:
    with pytest.raises(DagError, match="does not say which partitions it needs"):
        read(generator_source(share), JobConfig(required_partitions={}))


def test_a_stream_without_end_flows_and_is_left_when_the_job_is_cancelled() -> None:
    arrived, left = threading.Event(), threading.Event()

    def endless(context: ProcessorContext) -> Iterator[dict[str, int]]:
        try:
            for number in itertools.count():
                yield {"number": number}
        finally:
            left.set()

    async def main() -> None:
        async with LocalCluster(1) as cluster:
            dag = DAG()
            dag.new_vertex("source", generator_source(endless, batch_rows=1))
            dag.new_vertex("sink", function_sink(lambda batch: arrived.set(), cooperative=True))
            dag.edge(between("source", "sink"))
            job = await cluster.runtimes["m1"].start_job(dag.freeze(), JobConfig(timeout_s=20), (), cluster.topology)
            await asyncio.to_thread(arrived.wait, 10)
            job.cancel()
            with pytest.raises(JobCancelledError):
                await asyncio.wait_for(job.result(), 10)
            await asyncio.to_thread(left.wait, 10)

    asyncio.run(main())
    assert arrived.is_set()
    assert left.is_set()


def test_a_generator_instead_of_its_function_is_refused() -> None:
    with pytest.raises(DagError, match="pass a function of the processor's context"):
        generator_source(share(None))  # type: ignore[arg-type]


def test_no_batch_at_all(read: Any) -> None:
    assert read(generator_source(lambda _: ())).table().shape == (0, 0)
