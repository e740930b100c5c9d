"""Rows that are taken as fast as their reader wants them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from secateur.connectors import table_source
from secateur.dag import DAG, EdgeConfig, JobConfig, between
from secateur.engine.kernels import CompleteResult, StreamedResult
from secateur.engine.kernels.duckdb import Cancellation
from secateur.engine.runtime import ResultQueue, ResultSink
from secateur.engine.sql.row_stream import JobRowStream, LocalRowStream, RowStream, answered_by_piece
from secateur.engine_limits import EngineLimits
from secateur.errors import DataError, JobCancelledError, MemberLostError
from secateur.partitioning.schemes import HashComponent, build_scheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.testing import LocalCluster
from secateur.testing.local_cluster import until

ROWS = pa.table({"a": np.arange(3_000_000)})


async def taken(stream: RowStream, bytes_wanted: int) -> list[pa.Table]:
    parts = []
    while not stream.is_done:
        parts.append(await stream.take(bytes_wanted))
    return parts


def test_an_answer_that_is_there_is_held_until_it_is_taken() -> None:
    async def scenario(executor: ThreadPoolExecutor) -> None:
        stream = LocalRowStream(lambda _: CompleteResult(ROWS), executor)
        first = await stream.take(1 << 20)
        assert first.nbytes <= 1.1 * (1 << 20)
        assert stream.held_bytes == pytest.approx(ROWS.nbytes - first.nbytes, rel=0.01)
        parts = [first, *await taken(stream, 1 << 20)]
        assert 20 <= len(parts) <= 30
        assert pa.concat_tables(parts).equals(ROWS)
        other = LocalRowStream(lambda _: CompleteResult(ROWS), executor)
        await other.take(1)
        other.close()
        await until(lambda: other.is_done and not other.held_bytes)

    with ThreadPoolExecutor(1) as executor:
        asyncio.run(scenario(executor))


def test_an_answer_is_made_as_it_is_taken_and_given_up_when_it_is_closed() -> None:
    made: list[int] = []
    given_up = threading.Event()

    def parts() -> Generator[pa.Table, None, None]:
        try:
            for start in range(0, ROWS.num_rows, 100_000):
                made.append(start)
                yield ROWS.slice(start, 100_000)
        finally:
            given_up.set()

    async def scenario(executor: ThreadPoolExecutor) -> None:
        stream = LocalRowStream(lambda _: StreamedResult(parts()), executor)
        assert (await stream.take(1)).num_rows == 100_000
        assert (await stream.take(1_000_000)).num_rows == 200_000
        assert (len(made), stream.is_done, stream.held_bytes) == (3, False, 0)
        stream.close()
        stream.close()
        await until(given_up.is_set)
        assert (stream.is_done, len(made)) == (True, 3)

    with ThreadPoolExecutor(1) as executor:
        asyncio.run(scenario(executor))


def test_an_answer_that_is_not_waited_for_any_more_is_closed_where_it_comes_late() -> None:
    begun, given_up = threading.Event(), threading.Event()
    go_on = threading.Event()

    def parts() -> Generator[pa.Table, None, None]:
        try:
            begun.set()
            go_on.wait()
            yield ROWS
        finally:
            given_up.set()

    async def scenario(executor: ThreadPoolExecutor) -> None:
        stream = LocalRowStream(lambda _: StreamedResult(parts()), executor)
        taking = asyncio.create_task(stream.take(1))
        await until(begun.is_set)
        taking.cancel()
        stream.close()
        go_on.set()
        await until(given_up.is_set)

    with ThreadPoolExecutor(2) as executor:
        asyncio.run(scenario(executor))


def test_a_fragment_reads_what_is_wanted_and_no_more() -> None:
    read: list[int] = []

    def run(piece: pa.Table, _: Cancellation) -> pa.Table:
        read.append(piece.num_rows)
        return piece.filter(pc.less(pc.bit_wise_and(piece["a"], 7), 4))

    async def scenario(executor: ThreadPoolExecutor) -> None:
        stream = LocalRowStream(answered_by_piece(ROWS, run, EngineLimits()), executor)
        first = await stream.take(1 << 20)
        assert sum(read) < 1_100_000
        rest = await taken(stream, 1 << 20)
        assert pa.concat_tables([first, *rest]).equals(ROWS.filter(pc.less(pc.bit_wise_and(ROWS["a"], 7), 4)))
        assert stream.held_bytes == 0

    with ThreadPoolExecutor(1) as executor:
        asyncio.run(scenario(executor))
    assert sum(read) == ROWS.num_rows


def test_a_fragment_that_keeps_nothing_has_one_part_with_its_schema() -> None:
    with ThreadPoolExecutor(1) as executor:
        (part,) = asyncio.run(
            taken(
                LocalRowStream(answered_by_piece(ROWS, lambda piece, _: piece.slice(0, 0), EngineLimits()), executor),
                1 << 20,
            )
        )
    assert part.equals(ROWS.slice(0, 0))


def test_an_error_in_the_middle_reaches_whoever_takes() -> None:
    def run(piece: pa.Table, _: Cancellation) -> pa.Table:
        if piece["a"][0].as_py():
            raise DataError("the second piece is bad")
        return piece

    async def scenario(executor: ThreadPoolExecutor) -> None:
        stream = LocalRowStream(answered_by_piece(ROWS, run, EngineLimits()), executor)
        assert (await stream.take(1)).num_rows
        with pytest.raises(DataError, match="second piece"):
            await stream.take(1)

    with ThreadPoolExecutor(1) as executor:
        asyncio.run(scenario(executor))


def test_a_fragment_is_interrupted_when_nobody_waits_any_more() -> None:
    begun, stopped = threading.Event(), threading.Event()

    def run(piece: pa.Table, cancellation: Cancellation) -> pa.Table:
        begun.set()
        while not cancellation.cancelled:
            stopped.wait(0.001)
        stopped.set()
        raise JobCancelledError("interrupted")

    async def scenario(executor: ThreadPoolExecutor) -> None:
        stream = LocalRowStream(answered_by_piece(ROWS, run, EngineLimits()), executor)
        taking = asyncio.create_task(stream.take(1))
        await until(begun.is_set)
        taking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking
        await until(stopped.is_set)

    with ThreadPoolExecutor(1) as executor:
        asyncio.run(scenario(executor))


BIGINT = parse_type("BIGINT")
SCHEME = build_scheme(hashes=[HashComponent(("a",), 9)], types={"a": BIGINT}, primary_key=("a",), table="numbers")
NUMBERS = TableDef("numbers", 1, (Column("a", BIGINT, nullable=False),), ("a",), SCHEME, backups=0)
QUEUED = 1 << 20


async def job_rows(cluster: LocalCluster) -> JobRowStream:
    cluster.create_table(NUMBERS, ROWS)
    dag = DAG()
    dag.new_vertex("read", table_source("numbers"))
    dag.new_vertex("result", ResultSink())
    dag.edge(between("read", "result").distributed().with_config(EdgeConfig(window_bytes_max=QUEUED)))
    queue = ResultQueue(QUEUED)
    job = await cluster.runtimes["m1"].start_job(dag, JobConfig(), (), cluster.topology, result=queue)
    return JobRowStream(job, queue, lambda: ROWS.schema)


def executions(cluster: LocalCluster) -> int:
    return sum(runtime.running_executions for runtime in cluster.runtimes.values())


def test_a_job_waits_for_whoever_takes_its_rows() -> None:
    async def scenario() -> None:
        async with LocalCluster(3) as cluster:
            stream = await job_rows(cluster)
            parts = [await stream.take(QUEUED)]
            for _ in range(200):
                await asyncio.sleep(0)
            sent = sum(len(message.payload) for message in cluster.network.sent)
            assert sent < ROWS.nbytes // 2
            assert stream.held_bytes <= 2 * QUEUED
            assert executions(cluster) == 3
            parts += await taken(stream, QUEUED)
            assert pa.concat_tables(parts).sort_by("a").cast(ROWS.schema).equals(ROWS)
            await until(lambda: executions(cluster) == 0)

    asyncio.run(scenario())


def test_a_job_ends_everywhere_when_its_rows_are_not_wanted() -> None:
    async def scenario() -> None:
        async with LocalCluster(3) as cluster:
            stream = await job_rows(cluster)
            await stream.take(1)
            stream.close()
            stream.close()
            await until(lambda: executions(cluster) == 0)
            assert stream.held_bytes == 0

    asyncio.run(scenario())


def test_a_lost_member_is_why_there_are_no_more_rows() -> None:
    async def scenario() -> None:
        async with LocalCluster(3) as cluster:
            stream = await job_rows(cluster)
            await stream.take(1)
            cluster.network.lose("m2")
            for runtime in (cluster.runtimes["m1"], cluster.runtimes["m3"]):
                runtime.member_lost("m2")
            with pytest.raises(MemberLostError, match="m2"):
                await taken(stream, QUEUED)
            await until(lambda: not cluster.runtimes["m1"].running_executions)

    asyncio.run(scenario())
