"""Snapshots: the pieces of a query are rows of one moment, whatever is written, dropped, moved or lost meanwhile."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from eventually import eventually

import secateur
from secateur.client.execution import (
    Snapshot,
    SnapshotReader,
    close_snapshot,
    open_snapshot,
    prepared_query,
)
from secateur.client.session import Session
from secateur.cluster import Cluster
from secateur.errors import DataChangedError, ProgrammingError, ProtocolError
from secateur.protocol import SnapshotPiece

ROWS = 6000
FILL = f"SELECT 'C' || (i % 40) AS k, i AS id, i * 0.5 AS v FROM range({ROWS}) r(i)"


@pytest.fixture
def session(conn: secateur.Connection) -> Session:
    return conn._session


@pytest.fixture
def filled(conn: secateur.Connection, table_name: str) -> str:
    fill(conn, table_name)
    return table_name


@pytest.fixture
def mortal() -> Iterator[Cluster]:
    """A cluster of which members are lost."""
    with secateur.start(members=3, runtime="embedded", member_silence_s=2.0) as running:
        yield running


def fill(conn: secateur.Connection, table: str) -> None:
    conn.execute(
        f"CREATE TABLE {table} (k VARCHAR, id BIGINT, v DOUBLE, PRIMARY KEY (k, id)) PARTITION BY HASH (k)"
        " PARTITIONS 8 BACKUPS 1"
    )
    conn.execute(f"INSERT INTO {table} {FILL}")


def opened(session: Session, sql: str, params: Any = (), *, lease_s: float = 600) -> Snapshot:
    snapshot = open_snapshot(prepared_query(session, sql, params), lease_s=lease_s)
    assert snapshot is not None
    sent: Snapshot = pickle.loads(pickle.dumps(snapshot))
    return sent


def rows_of(session: Session, snapshot: Snapshot) -> list[tuple[Any, ...]]:
    """Each partition in three pieces, which other partitions come in between."""
    reader = SnapshotReader(session, snapshot)
    tables = []
    for third in range(3):
        pieces = []
        for part in snapshot.parts:
            start, stop = part.rows * third // 3, part.rows * (third + 1) // 3
            pieces.append(SnapshotPiece(part.partition, start, stop - start))
        tables += [reader.read(pieces[:2])] if len(pieces) > 1 else []
        tables += [reader.read([piece]) for piece in pieces[2 if len(pieces) > 1 else 0 :]]
    rows = [row for table in tables for row in zip(*table.to_pydict().values(), strict=True)]
    return sorted(rows, key=repr)


def oracle(sql: str, params: Any = ()) -> list[tuple[Any, ...]]:
    with duckdb.connect() as database:
        database.execute(f"CREATE TABLE t AS SELECT k, id, CAST(v AS DOUBLE) AS v FROM ({FILL})")
        return sorted(database.execute(sql, params).fetchall(), key=repr)


@pytest.mark.parametrize(
    ("sql", "params", "partitions"),
    [
        pytest.param("SELECT * FROM {}", [], 8, id="everything"),
        pytest.param("SELECT v, k FROM {} WHERE k = 'C7'", [], 1, id="one key"),
        pytest.param("SELECT * FROM {} WHERE k = ? AND id BETWEEN ? AND ?", ["C7", 1000, 2000], 1, id="a span of keys"),
        pytest.param("SELECT id FROM {} WHERE k IN ('C1', 'C2') AND v > 100.5", [], None, id="several keys"),
        pytest.param("SELECT id * 2 + length(k) AS n FROM {} WHERE id % 3 = 1", [], 8, id="expressions"),
        pytest.param("SELECT id, unnest([k, 'x']) AS u FROM {} WHERE id < 9", [], None, id="more rows than it reads"),
        pytest.param("SELECT id FROM {} WHERE k = 'nobody'", [], None, id="no rows"),
        pytest.param("SELECT id FROM {} WHERE k = 'C1' AND k = 'C2'", [], 0, id="no partitions"),
    ],
)
def test_the_pieces_are_the_answer(
    session: Session, filled: str, sql: str, params: Any, partitions: int | None
) -> None:
    snapshot = opened(session, sql.format(filled), params)
    if partitions is not None:
        assert len(snapshot.parts) == partitions
    assert rows_of(session, snapshot) == oracle(sql.format("t"), params)


@pytest.mark.parametrize("answer_bytes", [1, 1 << 20], ids=["more than that", "few bytes"])
@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("SELECT v, id * 2 AS n FROM t WHERE k = 'C7' AND v > 100.5", id="one key"),
        pytest.param("SELECT * FROM t WHERE k = 'C7' AND id = 7", id="one row"),
        pytest.param("SELECT * FROM t WHERE k = 'C7' AND id = -7", id="no row"),
        pytest.param("SELECT * FROM t", id="several members"),
    ],
)
def test_few_rows_of_one_member_come_at_once(mortal: Cluster, sql: str, answer_bytes: int) -> None:
    with mortal.connect() as conn:
        fill(conn, "t")
        snapshot = open_snapshot(prepared_query(conn._session, sql, ()), lease_s=600, answer_bytes=answer_bytes)
        assert snapshot is not None
        is_at_once = len(snapshot.members) < 2 and sum(part.nbytes for part in snapshot.parts) <= answer_bytes
        assert (snapshot.answer is not None) is is_at_once
        kept = [member._storage.snapshots.count for member in mortal._runtime._members.values()]  # type: ignore[attr-defined]
        assert sum(kept) == (0 if is_at_once else len(snapshot.members))
        if snapshot.answer is None:
            rows = rows_of(conn._session, snapshot)
        else:
            found = pa.ipc.open_stream(snapshot.answer).read_all().to_pydict()
            rows = sorted(zip(*found.values(), strict=True), key=repr)
        assert rows == oracle(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k, count(*) FROM {0} GROUP BY k",
        "SELECT count(*) FROM {0} WHERE k = 'C1' AND k = 'C2'",
        "SELECT DISTINCT k FROM {0}",
        "SELECT * FROM {0} ORDER BY v",
        "SELECT * FROM {0} LIMIT 3",
        "SELECT id, row_number() OVER () FROM {0}",
        "SELECT a.id FROM {0} a JOIN {0} b ON a.k = b.k AND a.id = b.id",
        "SELECT id FROM {0} WHERE v > (SELECT avg(v) FROM {0})",
        "SELECT * FROM {0}_by_key",
        "SELECT 1",
        "SELECT id FROM secateur.members",
    ],
)
def test_other_queries_have_no_snapshot(conn: secateur.Connection, session: Session, filled: str, sql: str) -> None:
    conn.execute(f"CREATE VIEW {filled}_by_key AS SELECT k, max(v) AS v FROM {filled} GROUP BY k")
    assert open_snapshot(prepared_query(session, sql.format(filled), ()), lease_s=60) is None


def test_what_is_no_query_is_refused(session: Session, filled: str) -> None:
    with pytest.raises(ProgrammingError, match="only a query can be read"):
        prepared_query(session, f"/* ( */ -- (\n DROP TABLE {filled}", ())
    with pytest.raises(ProgrammingError, match="only a query can be read"):
        prepared_query(session, f"WITH q AS (SELECT 1 AS n) DELETE FROM {filled} USING q WHERE id = n", ())
    snapshot = opened(session, f"SELECT * FROM {filled}")
    with pytest.raises(ProtocolError, match=r"rows 5 to 10\d+ of partition"):
        SnapshotReader(session, snapshot).read([SnapshotPiece(snapshot.parts[0].partition, 5, 10**6)])


@pytest.mark.smoke
def test_writes_and_loads_do_not_change_it(conn: secateur.Connection, session: Session, filled: str) -> None:
    before = opened(session, f"SELECT * FROM {filled}")
    conn.execute(f"UPDATE {filled} SET v = -1 WHERE id < 100")
    changed = opened(session, f"SELECT * FROM {filled}")
    conn.table(filled).load(pa.table({"k": ["new"], "id": [1], "v": [0.0]}), mode="overwrite")
    assert rows_of(session, before) == oracle("SELECT * FROM t")
    assert rows_of(session, changed) == oracle("SELECT k, id, CASE WHEN id < 100 THEN -1 ELSE v END FROM t")
    assert rows_of(session, opened(session, f"SELECT * FROM {filled}")) == [("new", 1, 0.0)]
    conn.execute(f"DROP TABLE {filled}")
    assert rows_of(session, before) == oracle("SELECT * FROM t")


def test_it_ends_when_nobody_reads_it(mortal: Cluster) -> None:
    """It can be read on while the table is unchanged; a reader of a changed table is told."""
    with mortal.connect() as conn:
        fill(conn, "t")
        short = opened(conn._session, "SELECT * FROM t", lease_s=0.01)
        kept = opened(conn._session, "SELECT * FROM t")
        members = mortal._runtime._members  # type: ignore[attr-defined]
        eventually(lambda: {member._storage.snapshots.count for member in members.values()} == {1})
        assert rows_of(conn._session, short) == oracle("SELECT * FROM t")
        close_snapshot(conn._session, short)
        conn.execute("INSERT INTO t VALUES ('C1', -1, 0)")
        (part,) = [part for part in short.parts if part.partition == conn.table("t").partition_of({"k": "C1"})]
        with pytest.raises(DataChangedError, match=r"t has changed since .*, when this snapshot of it was opened"):
            SnapshotReader(conn._session, short).read([SnapshotPiece(part.partition, 0, part.rows)])
        assert rows_of(conn._session, kept) == oracle("SELECT * FROM t")


def test_partitions_that_move_are_followed(mortal: Cluster) -> None:
    with mortal.connect() as conn:
        fill(conn, "t")
        snapshot = opened(conn._session, "SELECT * FROM t")
        conn.execute("UPDATE t SET v = 0 WHERE k = 'C0'")  # a member keeps what it does not own any more
        mortal.scale(5)
        mortal.scale(3)
        kept_by_the_living = snapshot.only(
            [part for part in snapshot.parts if part.member in {member.id for member in mortal.members()}]
        )
        keys = {part.partition for part in kept_by_the_living.parts}
        table = conn.table("t")
        assert rows_of(conn._session, kept_by_the_living) == [
            row for row in oracle("SELECT * FROM t") if table.partition_of({"k": row[0]}) in keys
        ]
        assert rows_of(conn._session, opened(conn._session, "SELECT * FROM t WHERE k <> 'C0'")) == oracle(
            "SELECT * FROM t WHERE k <> 'C0'"
        )


def test_a_lost_member_is_replaced_by_one_with_the_same_rows(mortal: Cluster) -> None:
    with mortal.connect() as conn:
        fill(conn, "t")
        conn.execute("UPDATE t SET v = -1 WHERE id % 7 = 0")
        expected = oracle("SELECT k, id, CASE WHEN id % 7 = 0 THEN -1 ELSE v END FROM t")
        snapshot = opened(conn._session, "SELECT * FROM t")
        mortal.kill_member(snapshot.parts[0].member)
        assert rows_of(conn._session, snapshot) == expected
        conn.execute("INSERT INTO t VALUES ('C1', -1, 0), ('C2', -1, 0), ('C3', -1, 0), ('C4', -1, 0)")
        assert rows_of(conn._session, snapshot) == expected  # those that opened it again keep it again


def test_replicated_tables(conn: secateur.Connection, session: Session, table_name: str) -> None:
    conn.execute(f"CREATE TABLE {table_name} (id BIGINT PRIMARY KEY, n VARCHAR) REPLICATED")
    conn.execute(f"INSERT INTO {table_name} SELECT i, 'n' || i FROM range(500) r(i)")
    snapshot = opened(session, f"SELECT * FROM {table_name} WHERE id < 100")
    assert len(snapshot.members) == 1
    assert rows_of(session, snapshot) == sorted(((i, f"n{i}") for i in range(100)), key=repr)
    close_snapshot(session, snapshot)
    assert rows_of(session, snapshot) == sorted(((i, f"n{i}") for i in range(100)), key=repr)
