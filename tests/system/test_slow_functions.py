"""Users' functions run in threads, so a slow one holds up its job and nothing else; one that holds the event loop all
the same is named.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

import secateur
from secateur.cluster import Cluster
from secateur.connectors import collect
from secateur.pipeline import Stage

ROWS = pa.table({"k": range(100), "v": range(100)})

begun, release = threading.Event(), threading.Event()


def slow(batch: pa.RecordBatch) -> pa.RecordBatch:
    begun.set()
    release.wait(20)
    return batch


def slow_mask(batch: pa.RecordBatch) -> pa.Array:
    slow(batch)
    return pa.array([True] * batch.num_rows)


def slow_key(batch: pa.RecordBatch) -> pa.Array:
    slow(batch)
    return batch.column("v")


def holding(batch: pa.RecordBatch) -> pa.RecordBatch:
    until_s = time.perf_counter() + 0.08
    while time.perf_counter() < until_s:
        pass
    return batch


@pytest.fixture(scope="module")
def conn() -> Iterator[secateur.Connection]:
    cluster: Cluster
    with secateur.start(members=2, runtime="embedded") as cluster, cluster.connect() as connection:
        connection.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (k) PARTITIONS 8")
        connection.table("t").load(ROWS)
        yield connection


def read() -> Stage:
    return secateur.Pipeline().read_table("t")


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(lambda: read().map(slow), id="map"),
        pytest.param(lambda: read().filter(slow_mask), id="filter"),
        pytest.param(
            lambda: read().map_rows(lambda row: slow(row) and row, pa.schema([("k", pa.int64()), ("v", pa.int64())])),
            id="map rows",
        ),
        pytest.param(lambda: read().key_by(key=slow_key).aggregate(n=secateur.processors.count_rows()), id="key by"),
    ],
)
def test_lookups_go_on_beside_a_function_that_blocks(conn: secateur.Connection, build: Callable[[], Stage]) -> None:
    begun.clear()
    release.clear()
    job = build().write_to(collect()).submit(conn)
    try:
        assert begun.wait(20)
        for key in range(20):
            assert conn.execute("SELECT v FROM t WHERE k = ?", [key]).fetchall() == [(key,)]
        assert not release.is_set()
    finally:
        release.set()
    assert job.result(timeout_s=20).num_rows > 0


def test_a_function_that_holds_the_event_loop_is_named(
    conn: secateur.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="secateur.engine"):
        assert (
            read()
            .map(holding, cooperative=True, name="score")
            .write_to(collect())
            .submit(conn)
            .result(timeout_s=20)
            .num_rows
            == 100
        )
    said = [record.getMessage() for record in caplog.records if "held the event loop" in record.getMessage()]
    assert said
    assert all(message.startswith("vertex 'score' held the event loop of member m") for message in said)


def test_nobody_is_named_for_a_function_in_a_thread(
    conn: secateur.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="secateur.engine"):
        assert read().map(holding, name="score").write_to(collect()).submit(conn).result(timeout_s=20).num_rows == 100
    assert not [record for record in caplog.records if "'score' held" in record.getMessage()]
