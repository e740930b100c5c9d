"""The changes of a table are read exactly once and in order, whatever becomes of their members."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from eventually import eventually

import secateur
from secateur.client.changes import ChangesBounder, ChangesReader
from secateur.client.connect import parse_address
from secateur.client.execution.execute import execute
from secateur.client.session import Session
from secateur.cluster import Cluster
from secateur.engine_limits import EngineLimits
from secateur.errors import (
    ChangesDroppedError,
    NotSupportedError,
    OperationalError,
    ParameterError,
    ProgrammingError,
    SqlSyntaxError,
)

DDL = (
    "CREATE TABLE {} (k BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (k) PARTITIONS 5 BACKUPS {}"
    " WITH (change_feed = true)"
)


@pytest.fixture
def table(conn: secateur.Connection, table_name: str) -> str:
    conn.execute(DDL.format(table_name, 1))
    return table_name


def read(changes: Iterator[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    """What there is: type, key and value."""
    return [(row["_change_type"], row["k"], row["v"]) for batch in changes for row in batch.to_pylist()]


def replayed(batches: list[pa.RecordBatch]) -> dict[int, int]:
    """The rows that the changes lead to; each has to fit those before it."""
    rows: dict[int, int] = {}
    versions: dict[int, int] = {}
    for row in itertools.chain.from_iterable(batch.to_pylist() for batch in batches):
        key, value = row["k"], row["v"]
        assert row["_commit_version"] >= versions.get(key, 0)
        versions[key] = row["_commit_version"]
        match row["_change_type"]:
            case "insert":
                assert key not in rows
                rows[key] = value
            case "update_preimage" | "delete":
                assert rows.pop(key) == value
            case "update_postimage":
                assert key not in rows
                rows[key] = value
    return rows


def rows_of(conn: secateur.Connection, table: str) -> dict[int, int]:
    return dict(conn.execute(f"SELECT k, v FROM {table}").fetchall())


def test_every_kind_of_change_of_one_row(conn: secateur.Connection, table: str) -> None:
    changes = conn.changes(table)
    assert read(changes) == []
    conn.execute(f"INSERT INTO {table} VALUES (1, 10)")
    assert read(changes) == [("insert", 1, 10)]
    conn.execute(f"UPDATE {table} SET v = 11 WHERE k = 1")
    conn.execute(f"INSERT OR REPLACE INTO {table} VALUES (1, 12)")
    assert read(changes) == [
        ("update_preimage", 1, 10),
        ("update_postimage", 1, 11),
        ("update_preimage", 1, 11),
        ("update_postimage", 1, 12),
    ]
    conn.execute(f"INSERT OR IGNORE INTO {table} VALUES (1, 13)")
    conn.execute(f"DELETE FROM {table} WHERE k = 1")
    conn.execute(f"DELETE FROM {table} WHERE k = 1")
    assert read(changes) == [("delete", 1, 12)]
    assert read(changes) == []
    assert len(read(conn.changes(table, since="earliest"))) == 6


@pytest.mark.smoke
def test_loads_and_changes_of_several_partitions(conn: secateur.Connection, table: str) -> None:
    changes = conn.changes(table)
    handle = conn.table(table)
    handle.load({"k": list(range(50)), "v": [0] * 50})
    handle.load({"k": list(range(40, 60)), "v": [1] * 20}, mode="upsert")
    handle.load({"k": list(range(55, 65)), "v": [2] * 10}, mode="ignore")
    conn.execute(f"UPDATE {table} SET v = v + 10 WHERE k < 20")
    conn.execute(f"DELETE FROM {table} WHERE k BETWEEN 10 AND 29")
    conn.execute(
        f"MERGE INTO {table} USING (SELECT k + 5 AS k, 7 AS v FROM {table} WHERE k >= 58) s ON {table}.k = s.k"
        " WHEN MATCHED AND s.k < 65 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v"
        " WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v)"
    )
    batches = list(changes)
    assert replayed(batches) == rows_of(conn, table)
    assert batches[0].schema.names == ["k", "v", "_change_type", "_commit_version"]


def test_a_position_is_text_from_which_others_go_on(conn: secateur.Connection, cluster: Cluster, table: str) -> None:
    changes = conn.changes(table)
    conn.execute(f"INSERT INTO {table} VALUES (1, 1)")
    before = str(changes.position)
    first = list(changes)
    text = str(changes.position)
    conn.execute(f"INSERT INTO {table} VALUES (2, 2)")
    with cluster.connect() as other:
        assert read(other.changes(table, since=text)) == [("insert", 2, 2)]
        assert replayed(list(other.changes(table, since=before))) == {1: 1, 2: 2}
        assert read(other.changes(table, since=changes.position)) == [("insert", 2, 2)]
    assert len(first) == 1
    conn.execute(f"DROP TABLE {table}")
    conn.execute(DDL.format(table, 1))
    with pytest.raises(ProgrammingError, match="the position is one of another table"):
        conn.changes(table, since=text)


@pytest.mark.parametrize(("size_max", "in_rows"), [(30, True), (1, True), (4000, False)])
def test_changes_can_be_read_in_bounded_steps(
    cluster: Cluster, conn: secateur.Connection, table: str, size_max: int, in_rows: bool
) -> None:
    start = conn.changes(table).position
    handle = conn.table(table)
    for load in range(10):
        handle.load({"k": list(range(load * 10, load * 10 + 20)), "v": [load] * 20}, mode="upsert")
        conn.execute(f"UPDATE {table} SET v = v + 1 WHERE k = ?", [load])
    end = conn.changes(table).position
    expected = replayed(list(conn.changes(table, since=start)))
    handle.load({"k": [7], "v": [0]}, mode="upsert")  # comes too late
    session = Session(*parse_address(cluster.address), token=cluster.token, timeout_s=30.0)
    definition = session.table(table)
    steps: list[list[pa.RecordBatch]] = []
    at = start
    while at.versions != end.versions:
        reached = execute(ChangesBounder(session, definition, at, size_max, in_rows=in_rows, until=end))
        assert reached.versions != at.versions, "each step gets on"
        reader = ChangesReader(session, definition, 0, dict(at.versions), reached.versions)
        found: list[pa.RecordBatch] = []
        while not reader.is_done:
            batch, _ = execute(reader)
            found += [] if batch is None else [batch]
        steps.append(found)
        at = reached
    assert (
        execute(ChangesBounder(session, definition, at, size_max, in_rows=in_rows, until=end)).versions == at.versions
    )
    session.close()
    assert replayed(list(itertools.chain.from_iterable(steps))) == expected
    sizes = [sum(batch.num_rows if in_rows else batch.nbytes for batch in step) for step in steps]
    assert len(steps) > 3
    assert sum(sizes) > 300
    largest = 5 * 2 * 20 if in_rows else 5 * 2000
    assert max(sizes) <= size_max + largest, "one change of each partition more than wanted, at most"


def test_a_follower_waits(conn: secateur.Connection, cluster: Cluster, table: str) -> None:
    changes = conn.changes(table, follow=True)
    with cluster.connect() as other:
        writer = threading.Timer(0.2, lambda: other.execute(f"INSERT INTO {table} VALUES (1, 1)").close())
        writer.start()
        assert next(changes).to_pylist()[0]["k"] == 1
        writer.join()


def test_wrong_uses_say_what_to_do(conn: secateur.Connection, table: str, table_name: str) -> None:
    conn.execute(f"CREATE TABLE plain_{table} (k BIGINT PRIMARY KEY)")
    with pytest.raises(ProgrammingError, match=r"has no change feed: create it WITH \(change_feed = true\)"):
        conn.changes(f"plain_{table}")
    with pytest.raises(ParameterError, match="since='yesterday' is no position"):
        conn.changes(table, since="yesterday")
    with pytest.raises(NotSupportedError, match="REPLICATED with a change feed"):
        conn.execute("CREATE TABLE r (k BIGINT PRIMARY KEY) REPLICATED WITH (change_feed = true)")
    with pytest.raises(SqlSyntaxError, match="tables have no option 'compression': there is change_feed"):
        conn.execute("CREATE TABLE r (k BIGINT PRIMARY KEY) WITH (compression = true)")
    ((sql,),) = conn.execute(f"SHOW CREATE TABLE {table}").fetchall()
    assert sql.endswith("BACKUPS 1 WITH (change_feed = true)")


def test_what_replaces_all_rows_ends_the_feed(conn: secateur.Connection, table: str) -> None:
    conn.execute(f"INSERT INTO {table} VALUES (1, 1)")
    changes = conn.changes(table)
    conn.table(table).load({"k": [5], "v": [5]}, mode="overwrite")
    with pytest.raises(ChangesDroppedError, match="Read the table again, and follow it from a position"):
        list(changes)
    after = conn.changes(table)
    conn.execute(f"INSERT INTO {table} VALUES (6, 6)")
    assert read(after) == [("insert", 6, 6)]


def test_a_reader_that_is_too_late_learns_so() -> None:
    limits = EngineLimits(change_feed_bytes_max=4096)
    with secateur.start(members=1, runtime="embedded", engine_limits=limits) as cluster, cluster.connect() as conn:
        conn.execute(
            "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (k) PARTITIONS 1 BACKUPS 0"
            " WITH (change_feed = true)"
        )
        changes = conn.changes("t")
        for key in range(50):
            conn.execute("INSERT INTO t VALUES (?, 0)", [key])
        with pytest.raises(
            ChangesDroppedError, match="partition 0 of t: the changes behind version 0 are not kept"
        ) as e:
            list(changes)
        assert 0 < e.value.details["oldest"] < 50
        assert read(conn.changes("t", since="earliest"))[-1] == ("insert", 49, 0)


def start(directory: Path) -> Cluster:
    return secateur.start(members=2, runtime="embedded", data_directory=directory, fsync="always")


def test_after_everything_has_ended_a_reader_goes_on_if_it_was_at_the_end(tmp_path: Path) -> None:
    with start(tmp_path) as cluster, cluster.connect() as conn:
        conn.execute(DDL.format("t", 1))
        changes = conn.changes("t")
        early = str(changes.position)
        conn.table("t").load({"k": list(range(20)), "v": [0] * 20})
        conn.execute("INSERT INTO t VALUES (20, 0)")
        assert len(read(changes)) == 21
        late = str(changes.position)
    with start(tmp_path) as cluster, cluster.connect() as conn:
        changes = conn.changes("t", since=late)
        assert read(changes) == []
        conn.execute("INSERT INTO t VALUES (21, 0)")
        conn.execute("UPDATE t SET v = 1 WHERE k >= 19")
        expected = [("insert", 21, 0)]
        for key in (19, 20, 21):
            expected += [("update_preimage", key, 0), ("update_postimage", key, 1)]
        assert sorted(read(changes)) == sorted(expected)
        with pytest.raises(ChangesDroppedError):
            list(conn.changes("t", since=early))


@pytest.mark.parametrize("starts", [1, 2])
def test_after_everything_has_ended_a_reader_is_told_that_it_lacks_a_load(tmp_path: Path, starts: int) -> None:
    """Seed 22561 of the simulation: of partitions without other changes, it was told that there was nothing."""
    with start(tmp_path) as cluster, cluster.connect() as conn:
        conn.execute(DDL.format("t", 1))
        early = str(conn.changes("t").position)
        conn.table("t").load({"k": list(range(20)), "v": [0] * 20})
    for _ in range(starts):
        with start(tmp_path) as cluster, cluster.connect() as conn, pytest.raises(ChangesDroppedError):
            list(conn.changes("t", since=early))


def test_members_that_die_cost_no_change_and_double_none() -> None:
    """A reader follows writers while members are killed and replaced one after the other."""
    with (
        secateur.start(members=3, runtime="embedded", member_silence_s=2.0) as cluster,
        cluster.connect() as conn,
    ):
        conn.execute(DDL.format("t", 1))
        changes = conn.changes("t")
        batches: list[pa.RecordBatch] = []
        ended = threading.Event()

        def write(first: int) -> None:
            with cluster.connect() as own:
                for number in itertools.count():
                    key = first + number % 40
                    with contextlib.suppress(OperationalError):
                        own.execute("INSERT OR REPLACE INTO t VALUES (?, ?)", [key, number])
                    if number % 50 == 20:
                        with contextlib.suppress(OperationalError):
                            own.execute("DELETE FROM t WHERE k = ?", [key])
                    if number % 100 == 70:
                        rows = {"k": list(range(first, first + 40)), "v": [-number] * 40}
                        with contextlib.suppress(OperationalError):  # its member was killed: the table says which it is
                            own.table("t").load(rows, mode="upsert")
                    if ended.is_set():
                        return

        writers = [threading.Thread(target=write, args=(1000 * number,)) for number in range(2)]
        for writer in writers:
            writer.start()
        missing = "SELECT count(*) FROM secateur.partitions WHERE table_name = 't' AND copies_missing > 0"
        for _ in range(2):
            seen = len(batches)
            eventually(lambda: batches.extend(changes) or len(batches) > seen + 3)  # noqa: B023
            cluster.kill_member(next(member.id for member in cluster.members() if member.is_alive))
            seen = len(batches)
            eventually(lambda: batches.extend(changes) or len(batches) > seen + 3, timeout_s=60)  # noqa: B023
            eventually(lambda: conn.execute(missing).fetchall() == [(0,)], timeout_s=60)
        ended.set()
        for writer in writers:
            writer.join()
        batches.extend(changes)
        assert replayed(batches) == rows_of(conn, "t")
