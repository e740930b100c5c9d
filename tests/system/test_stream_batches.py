"""Batches of streams are published once, whatever ends between two tries."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import secateur
from secateur.client.connect import parse_address
from secateur.client.session import Session
from secateur.cluster import Cluster
from secateur.connectors.spark.staging import Stager
from secateur.errors import DuplicateKeyError, LoadFailedError, ProgrammingError
from secateur.protocol import LoadedRows, PublishLoad, StageRows, StreamBatch

_numbers = itertools.count()


@pytest.fixture
def mortal() -> Iterator[Cluster]:
    with secateur.start(members=2, runtime="embedded", member_silence_s=2.0) as cluster:
        yield cluster


def send(cluster: Cluster, table: str, stream: str, batch: int, first: int, query: str = "q", rows: int = 10) -> bool:
    """Append rows as a batch; return whether they were published now."""
    session = Session(*parse_address(cluster.address), token=cluster.token, timeout_s=30.0)
    try:
        definition = session.table(table)
        load_id = f"{stream} {batch} {next(_numbers)}"
        topology = session.topology_of(definition)
        with Stager(
            definition, topology, StageRows(load_id, definition.table_id, 0, []), token=cluster.token
        ) as stager:
            stager.add(pa.record_batch({"k": list(range(first, first + rows))}))
            parts = {partition: [0] for partition in stager.finish()}
        publish = PublishLoad(load_id, table, "append", parts, stream=StreamBatch(stream, query, batch))
        answer: LoadedRows = session.ask(publish).message
        assert answer.rows == (0 if answer.was_published else rows)
        return not answer.was_published
    finally:
        session.close()


def create(cluster: Cluster, table: str = "t") -> None:
    with cluster.connect() as conn:
        conn.execute(f"CREATE TABLE {table} (k BIGINT PRIMARY KEY) PARTITION BY HASH (k) PARTITIONS 5 BACKUPS 1")


def state(cluster: Cluster, table: str = "t") -> tuple[int, int]:
    """The rows, and the loads that are staged and forgotten."""
    with cluster.connect() as conn:
        ((rows,),) = conn.execute(f"SELECT count(*) FROM {table}").fetchall()
        ((staged,),) = conn.execute("SELECT count(*) FROM secateur.loads WHERE state <> 'published'").fetchall()
    return rows, staged


@pytest.mark.smoke
def test_a_batch_is_published_once(mortal: Cluster) -> None:
    create(mortal)
    create(mortal, "u")
    assert send(mortal, "t", "a", 0, 0)
    assert send(mortal, "t", "a", 1, 10)
    assert not send(mortal, "t", "a", 1, 10)
    assert not send(mortal, "t", "a", 0, 100)  # of an earlier time: its rows are not looked at
    assert send(mortal, "t", "b", 0, 20)  # another stream
    assert send(mortal, "u", "a", 0, 0)  # another table
    assert state(mortal) == (30, 0)


def test_a_batch_that_failed_is_tried_again(mortal: Cluster) -> None:
    create(mortal)
    assert send(mortal, "t", "a", 0, 0)
    with pytest.raises(DuplicateKeyError):
        send(mortal, "t", "a", 1, 5)
    assert state(mortal) == (10, 0)
    assert not send(mortal, "t", "a", 0, 100)
    assert send(mortal, "t", "a", 1, 10)
    assert not send(mortal, "t", "a", 1, 10)


def test_batches_of_another_query_are_refused(mortal: Cluster) -> None:
    create(mortal)
    assert send(mortal, "t", "a", 0, 0)
    assert send(mortal, "t", "a", 1, 10)
    with pytest.raises(ProgrammingError, match=r"t has batch 1 of this stream from another query \(q\)"):
        send(mortal, "t", "a", 0, 20, query="r")
    assert send(mortal, "t", "a", 2, 20, query="r")
    assert not send(mortal, "t", "a", 2, 20, query="r")


def test_a_controller_that_starts_anew_knows_the_batches(mortal: Cluster) -> None:
    create(mortal)
    for batch in range(4):
        assert send(mortal, "t", "a", batch, 10 * batch)
        mortal.kill_controller()
        assert not send(mortal, "t", "a", batch, 10 * batch)
    assert state(mortal)[0] == 40


def test_everything_ends_and_the_batches_are_known(tmp_path: Path) -> None:
    for turn in range(2):
        with secateur.start(members=2, runtime="embedded", data_directory=tmp_path, fsync="always") as cluster:
            if turn == 0:
                create(cluster)
            else:
                assert not send(cluster, "t", "a", 0, 0)
            assert send(cluster, "t", "a", turn, 10 * turn)
            assert not send(cluster, "t", "a", turn, 10 * turn)
            assert state(cluster)[0] == 10 * (turn + 1)


def test_a_table_of_the_same_name_knows_no_batch(mortal: Cluster) -> None:
    create(mortal)
    assert send(mortal, "t", "a", 0, 0)
    with mortal.connect() as conn:
        conn.execute("DROP TABLE t")
    create(mortal)
    assert send(mortal, "t", "a", 0, 0)
    assert state(mortal) == (10, 0)


def test_a_controller_that_dies_while_it_publishes_leaves_one_copy_of_the_batch(mortal: Cluster) -> None:
    """Whatever the moment: a repeated batch is there once."""
    create(mortal)
    for batch in range(6):
        first = 200 * batch
        killer = threading.Timer(0.004 * batch, mortal.kill_controller)
        killer.start()
        try:
            send(mortal, "t", "a", batch, first, rows=200)
        except LoadFailedError:
            assert send(mortal, "t", "a", batch, first, rows=200)
        finally:
            killer.join()
        assert not send(mortal, "t", "a", batch, first, rows=200)
        assert state(mortal)[0] == first + 200
