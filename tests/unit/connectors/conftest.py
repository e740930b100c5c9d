"""Runs of small DAGs on a cluster in memory, for the tests of sources and sinks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from secateur.connectors import batch_source, collect
from secateur.dag import DAG, JobConfig, ProcessorMetaSupplier, ProcessorSupplier, between
from secateur.engine.runtime import JobResult
from secateur.testing import LocalCluster

Run = Callable[..., JobResult]


@pytest.fixture
def run() -> Run:
    """Runs a DAG on three members, and fails instead of hanging."""

    def run_to_end(dag: DAG, config: JobConfig | None = None, *, members: int = 3) -> JobResult:
        async def main() -> JobResult:
            async with LocalCluster(members) as cluster:
                return await asyncio.wait_for(cluster.run(dag, config or JobConfig(timeout_s=20)), 30)

        return asyncio.run(main())

    return run_to_end


@pytest.fixture
def read(run: Run) -> Callable[..., JobResult]:
    """Runs a source into a collecting sink."""

    def run_source(
        source: ProcessorMetaSupplier | ProcessorSupplier, config: JobConfig | None = None, **options: Any
    ) -> JobResult:
        dag = DAG()
        dag.new_vertex("source", source)
        dag.new_vertex("out", collect())
        dag.edge(between("source", "out").distributed())
        return run(dag, config, **options)

    return run_source


@pytest.fixture
def write(run: Run) -> Callable[..., JobResult]:
    """Runs rows in hand into a sink, dealt over its processors."""

    def run_sink(
        rows: Any, sink: ProcessorMetaSupplier | ProcessorSupplier, config: JobConfig | None = None, **options: Any
    ) -> JobResult:
        dag = DAG()
        dag.new_vertex("source", batch_source(rows))
        dag.new_vertex("sink", sink)
        dag.edge(between("source", "sink"))
        return run(dag, config, **options)

    return run_sink
