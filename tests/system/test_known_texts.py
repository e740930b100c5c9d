"""What a client has compiled for a text or a table ends with what it was compiled for."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import secateur
from secateur.client import TableHandle
from secateur.cluster import Cluster
from secateur.errors import UnknownTableError

ROWS = 60
SQL = "SELECT * FROM items WHERE id = ?"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded", member_silence_s=10.0) as running:
        with running.connect() as conn:
            make(conn, 1)
        yield running


@pytest.fixture
def conn(cluster: Cluster) -> Iterator[secateur.Connection]:
    with cluster.connect() as connection:
        yield connection


def make(conn: secateur.Connection, factor: int) -> None:
    conn.execute("CREATE TABLE items (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS 12 BACKUPS 1")
    conn.execute(f"INSERT INTO items SELECT n, n * {factor} FROM range({ROWS}) AS r(n)")


def read(conn: secateur.Connection, items: TableHandle, key: int) -> tuple[Any, ...] | None:
    """The row, which both ways have to find, at the first and at later executions."""
    found = [row for _ in range(3) for row in (*conn.execute(SQL, [key]).fetchall(), items.get(key))]
    assert len(set(found)) == 1, found
    return found[0]


@pytest.fixture
def known(conn: secateur.Connection) -> TableHandle:
    items = conn.table("items")
    assert [read(conn, items, key) for key in range(ROWS)] == [(key, key) for key in range(ROWS)]
    assert (SQL, int) in conn._session.serving_calls
    return items


def test_columns_that_another_connection_adds_and_drops(
    cluster: Cluster, conn: secateur.Connection, known: TableHandle
) -> None:
    with cluster.connect() as other:
        other.execute("ALTER TABLE items ADD COLUMN note VARCHAR DEFAULT 'new'")
        assert [read(conn, known, key) for key in (1, 2)] == [(1, 1, "new"), (2, 2, "new")]
        assert [column[0] for column in conn.execute(SQL, [1]).description or ()] == ["id", "v", "note"]
        other.execute("ALTER TABLE items DROP COLUMN v")
        assert [read(conn, known, key) for key in (1, 2)] == [(1, "new"), (2, "new")]


def test_a_table_that_another_connection_drops_and_makes_anew(
    cluster: Cluster, conn: secateur.Connection, known: TableHandle
) -> None:
    with cluster.connect() as other:
        other.execute("DROP TABLE items")
        with pytest.raises(UnknownTableError):
            conn.execute(SQL, [1])
        with pytest.raises(UnknownTableError):
            known.get(1)
        make(other, 10)
        assert [read(conn, known, key) for key in range(ROWS)] == [(key, key * 10) for key in range(ROWS)]


def test_settings_between_two_executions(conn: secateur.Connection, known: TableHandle) -> None:
    for pruning, partitions in (("off", 12), ("verify", 1), ("on", 1)):
        conn.execute(f"SET pruning = {pruning}")
        for _ in range(3):
            cursor = conn.execute(SQL, [3])
            assert cursor.fetchall() == [(3, 3)]
            assert cursor.stats is not None
            assert (cursor.stats.pruning, cursor.stats.partitions_read) == (pruning, partitions)
    assert read(conn, known, 3) == (3, 3)


def test_a_member_that_is_lost_between_two_executions(
    cluster: Cluster, conn: secateur.Connection, known: TableHandle
) -> None:
    cluster.kill_member(known.owner_of(known.partition_of({"id": 7})))
    assert [read(conn, known, key) for key in range(ROWS)] == [(key, key) for key in range(ROWS)]


def test_a_forked_process_executes_what_its_parent_knows(conn: secateur.Connection, known: TableHandle) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the cluster has threads
        child = os.fork()
    if not child:
        code = 2
        try:
            code = int([read(conn, known, key) for key in range(ROWS)] != [(key, key) for key in range(ROWS)])
        finally:
            os._exit(code)
    assert [read(conn, known, key) for key in range(ROWS)] == [(key, key) for key in range(ROWS)]
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_threads_execute_a_text_while_its_table_changes(
    cluster: Cluster, conn: secateur.Connection, known: TableHandle
) -> None:
    ended, wrong = threading.Event(), list[Any]()

    def work(first: int) -> None:
        key = first
        while not ended.is_set():
            key = (key + 1) % ROWS
            found = conn.execute(SQL, [key]).fetchall() if key % 2 else [known.get(key)]
            if found not in ([(key, key)], [(key, key, "new")]):
                wrong.append(found)

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    try:
        with cluster.connect() as other:
            for _ in range(4):
                other.execute("ALTER TABLE items ADD COLUMN note VARCHAR DEFAULT 'new'")
                other.execute("ALTER TABLE items DROP COLUMN note")
    finally:
        ended.set()
        for thread in threads:
            thread.join(30)
    assert not wrong
    assert not conn._session.running
    assert read(conn, known, 5) == (5, 5)
