"""Loads under way: ``secateur.loads`` lists them, and members drop those whose client is gone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from eventually import eventually

import secateur
from secateur.client.connect import parse_address
from secateur.client.session import Session
from secateur.cluster import Cluster
from secateur.connectors.spark.staging import Stager
from secateur.errors import DuplicateKeyError, LoadFailedError, ProgrammingError
from secateur.protocol import AbortLoad, PublishLoad, StageRows

LOADS = "SELECT id, state, rows, partitions FROM secateur.loads WHERE table_name = ? ORDER BY id"


@pytest.fixture
def session(cluster: Cluster) -> Iterator[Session]:
    opened = Session(*parse_address(cluster.address), token=cluster.token, timeout_s=30.0)
    yield opened
    opened.close()


def stage(cluster: Cluster, session: Session, table: str, load_id: str, first: int, attempt: int = 0) -> dict[int, int]:
    """Stage 100 rows, as a task of Spark does."""
    definition = session.table(table)
    topology = session.topology_of(definition)
    with Stager(
        definition, topology, StageRows(load_id, definition.table_id, attempt, []), token=cluster.token
    ) as stager:
        stager.add(pa.record_batch({"k": list(range(first, first + 100))}))
        return stager.finish()


def publish(session: Session, table: str, load_id: str, staged: dict[int, int], mode: str = "append") -> int:
    return session.ask(PublishLoad(load_id, table, mode, {partition: [0] for partition in staged})).message.rows


def create(conn: secateur.Connection, table: str, clause: str = "PARTITION BY HASH (k) PARTITIONS 5 BACKUPS 1") -> None:
    conn.execute(f"CREATE TABLE {table} (k BIGINT PRIMARY KEY) {clause}")


def test_loads_are_listed(cluster: Cluster, conn: secateur.Connection, session: Session, table_name: str) -> None:
    create(conn, table_name)
    staged = stage(cluster, session, table_name, f"{table_name} first", 0)
    stage(cluster, session, table_name, f"{table_name} second", 50)
    assert conn.execute(LOADS, [table_name]).fetchall() == [
        (f"{table_name} first", "staged", 100, 5),
        (f"{table_name} second", "staged", 100, 5),
    ]
    assert conn.execute(f"SELECT count(*) FROM {table_name}").fetchall() == [(0,)]
    assert publish(session, table_name, f"{table_name} first", staged) == 100
    session.ask(AbortLoad(f"{table_name} second"))
    assert conn.execute(LOADS, [table_name]).fetchall() == [(f"{table_name} first", "published", 100, 5)]
    ((started,),) = conn.execute("SELECT started FROM secateur.loads WHERE table_name = ?", [table_name]).fetchall()
    now = datetime.now(UTC).replace(tzinfo=None)
    assert now - timedelta(minutes=5) < started <= now
    conn.table(table_name).load({"k": list(range(1000, 2000))}, mode="overwrite")
    listed = conn.execute(LOADS, [table_name]).fetchall()
    assert sorted(row[1:] for row in listed) == [("published", 100, 5), ("published", 1000, 5)]
    conn.execute(f"DROP TABLE {table_name}")
    assert conn.execute(LOADS, [table_name]).fetchall() == []


def test_a_replicated_table_counts_its_rows_once(
    cluster: Cluster, conn: secateur.Connection, session: Session, table_name: str
) -> None:
    create(conn, table_name, "REPLICATED")
    staged = stage(cluster, session, table_name, table_name, 0)
    assert conn.execute(LOADS, [table_name]).fetchall() == [(table_name, "staged", 100, 1)]
    assert publish(session, table_name, table_name, staged) == 100
    assert conn.execute(LOADS, [table_name]).fetchall() == [(table_name, "published", 100, 1)]


def test_two_loads_into_one_table_at_once_are_published_one_after_the_other(
    cluster: Cluster, conn: secateur.Connection, session: Session, table_name: str
) -> None:
    create(conn, table_name)
    first = stage(cluster, session, table_name, f"{table_name} a", 0)
    second = stage(cluster, session, table_name, f"{table_name} b", 50)
    assert publish(session, table_name, f"{table_name} a", first) == 100
    with pytest.raises(DuplicateKeyError):
        publish(session, table_name, f"{table_name} b", second)
    assert conn.execute(f"SELECT count(*), max(k) FROM {table_name}").fetchall() == [(100, 99)]
    third = stage(cluster, session, table_name, f"{table_name} c", 50)
    assert publish(session, table_name, f"{table_name} c", third, "overwrite") == 100
    assert conn.execute(f"SELECT count(*), min(k) FROM {table_name}").fetchall() == [(100, 50)]


def test_rows_whose_client_is_gone_are_dropped() -> None:
    with (
        secateur.start(members=3, runtime="embedded", staged_load_idle_s=0.5) as cluster,
        cluster.connect() as conn,
    ):
        session = Session(*parse_address(cluster.address), token=cluster.token, timeout_s=30.0)
        create(conn, "t")
        staged = stage(cluster, session, "t", "left behind", 0)
        eventually(lambda: conn.execute(LOADS, ["t"]).fetchall() == [])
        with pytest.raises(LoadFailedError, match="left behind was aborted; use a new load id"):
            publish(session, "t", "left behind", staged)
        with pytest.raises(LoadFailedError, match="left behind was aborted; use a new load id"):
            stage(cluster, session, "t", "left behind", 100, attempt=1)
        assert conn.execute("SELECT count(*) FROM t").fetchall() == [(0,)]
        assert publish(session, "t", "another", stage(cluster, session, "t", "another", 0)) == 100
        session.close()


def test_the_time_is_positive() -> None:
    with pytest.raises(ProgrammingError, match="staged_load_idle_s=0: a number of seconds, more than 0"):
        secateur.start(members=1, runtime="embedded", staged_load_idle_s=0)
