"""ALTER TABLE of columns while others read and write: no wrong column, no lost row, and what was known goes on."""

from __future__ import annotations

import threading
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from healed import healed
from stored_copies import copies_of

import secateur
from secateur.cluster import Cluster
from secateur.errors import (
    Error,
    LoadFailedError,
    NotSupportedError,
    NullKeyError,
    SchemeError,
    TableExistsError,
    UnknownColumnError,
    UnknownTableError,
)

CREATE = "CREATE TABLE {} (k INTEGER, a VARCHAR, b DOUBLE, c DECIMAL(10, 2), d INTEGER, PRIMARY KEY (k)) {}"
PARTITIONED = "PARTITION BY HASH (k) PARTITIONS 8 BACKUPS 1"


@pytest.fixture(params=[PARTITIONED, "REPLICATED", f"{PARTITIONED} WITH (change_feed = true)"], ids=str.split)
def table(request: pytest.FixtureRequest, conn: secateur.Connection, table_name: str) -> str:
    conn.execute(CREATE.format(table_name, request.param))
    conn.executemany(
        f"INSERT INTO {table_name} VALUES (?, ?, ?, ?, ?)",
        [[n, f"text {n}", n / 4, Decimal(n) / 100, None if n % 3 else n] for n in range(40)],
    )
    return table_name


def copies_agree(cluster: Cluster, conn: secateur.Connection, name: str) -> None:
    if not conn.table(name).scheme.columns:
        return
    for partition, copies in copies_of(cluster, name).items():
        assert all(copy == copies[0] for copy in copies), f"the copies of partition {partition} differ"


ALTERATIONS = [
    ["ADD COLUMN e INTEGER"],
    ["ADD COLUMN e INTEGER DEFAULT 7"],
    ["ADD e VARCHAR DEFAULT 'so'"],
    ["ADD COLUMN IF NOT EXISTS a INTEGER"],
    ["ADD COLUMN e DECIMAL(8, 3) DEFAULT 1.5", "ALTER COLUMN e TYPE DECIMAL(12, 4)"],
    ["ADD COLUMN e INTEGER[] DEFAULT [1, 2]"],
    ["ADD COLUMN e STRUCT(x INTEGER, y VARCHAR)"],
    ["ADD COLUMN e DATE DEFAULT DATE '2024-02-29'"],
    ["DROP COLUMN b"],
    ["DROP COLUMN IF EXISTS zz"],
    ["DROP a", "ADD COLUMN a INTEGER DEFAULT 5"],
    ["RENAME COLUMN a TO text"],
    ['RENAME b TO "a b"'],
    ["RENAME COLUMN a TO x", "RENAME COLUMN b TO a", "RENAME COLUMN x TO b"],
    ["ALTER COLUMN d TYPE BIGINT"],
    ["ALTER d SET DATA TYPE DOUBLE"],
    ["ALTER COLUMN c TYPE DECIMAL(12, 2)"],
    ["ALTER COLUMN c TYPE DECIMAL(14, 4)"],
    ["ALTER COLUMN d SET DEFAULT 3"],
    ["ALTER COLUMN d SET DEFAULT 3", "ALTER COLUMN d DROP DEFAULT"],
    ["ALTER COLUMN a SET NOT NULL"],
    ["ALTER COLUMN a SET NOT NULL", "ALTER COLUMN a DROP NOT NULL"],
]


@pytest.mark.sampled(one_in=2)
@pytest.mark.parametrize("changes", ALTERATIONS, ids=", ".join)
def test_a_table_is_afterwards_as_duckdbs(
    cluster: Cluster, conn: secateur.Connection, table: str, changes: list[str]
) -> None:
    oracle = duckdb.connect()
    oracle.execute(CREATE.format(table, ""))
    oracle.register("rows_of_now", conn.execute(f"SELECT * FROM {table}").fetch_arrow_table())
    oracle.execute(f"INSERT INTO {table} SELECT * FROM rows_of_now")
    ready = "SELECT * FROM {} WHERE k = ?", [3]
    conn.execute(ready[0].format(table), ready[1]).fetchall()
    for change in changes:
        conn.execute(f"ALTER TABLE {table} {change}")
        oracle.execute(f"ALTER TABLE {table} {change}")

    def same() -> None:
        for query in (
            "SELECT * FROM {} ORDER BY k",
            "SELECT * FROM {} WHERE k = 3",
            "SELECT count(*), min(COLUMNS(*)) FROM {}",
        ):
            found = conn.execute(query.format(table))
            expected = oracle.execute(query.format(table))
            assert [column[0] for column in found.description or ()] == [column[0] for column in expected.description]
            assert found.fetchall() == expected.fetchall(), query

    same()
    names = [row[0] for row in oracle.execute(f"DESCRIBE {table}").fetchall()]
    types = dict(zip(names, (row[1] for row in oracle.execute(f"DESCRIBE {table}").fetchall()), strict=True))
    assert {row[0]: row[1] for row in conn.execute(f"DESCRIBE {table}").fetchall()} == types
    values = ", ".join(
        "100" if name == "k" else f"CAST(NULL AS {types[name]})" for name in names if name not in ("a", "text")
    )
    given = ", ".join(f'"{name}"' for name in names if name not in ("a", "text"))
    text = next((name for name in names if name in ("a", "text")), None)
    for key in (100, 101):
        statement = (
            f"INSERT INTO {table} ({given}{f', {text}' if text else ''}) VALUES"
            f" ({values.replace('100', str(key))}{', 8' if text else ''})"
        )
        conn.execute(statement)
        oracle.execute(statement)
    same()
    for statement in (
        f"DELETE FROM {table} WHERE k = 4",
        f"UPDATE {table} SET d = d + 1 WHERE k = 3" if "d" in names else f"DELETE FROM {table} WHERE k = 3",
        f"INSERT INTO {table} (k) SELECT k + 1000 FROM {table}"
        if "SET NOT NULL" not in changes[-1]
        else f"DELETE FROM {table} WHERE k = 9",
    ):
        conn.execute(statement)
        oracle.execute(statement)
    same()
    copies_agree(cluster, conn, table)


REFUSED: list[tuple[str, type[Error], str]] = [
    ("DROP COLUMN k", SchemeError, "column k is of the primary key"),
    ("RENAME COLUMN k TO kk", SchemeError, "CREATE a TABLE as it is to be"),
    ("ALTER COLUMN k TYPE BIGINT", SchemeError, "cannot get another type"),
    ("ALTER COLUMN k DROP NOT NULL", SchemeError, "is never NULL"),
    ("ADD COLUMN A INTEGER", SchemeError, "there is a column a already"),
    ("RENAME COLUMN a TO B", SchemeError, "there is a column b already"),
    ("DROP COLUMN zz", UnknownColumnError, "it has k, a, b, c, d"),
    ("ALTER COLUMN d TYPE SMALLINT", SchemeError, "does not have every value of INTEGER"),
    ("ALTER COLUMN c TYPE DECIMAL(11, 4)", SchemeError, "cannot become DECIMAL"),
    ("ALTER COLUMN a TYPE INTEGER USING 1", NotSupportedError, "a wider one"),
    ("ALTER COLUMN d SET NOT NULL", NullKeyError, "NOT NULL"),
    ("ADD COLUMN e INTEGER NOT NULL", NullKeyError, "e is NOT NULL"),
    ("ADD COLUMN e UUID DEFAULT uuid()", SchemeError, "another value in each row"),
    ("ADD CONSTRAINT x CHECK (b > 0)", NotSupportedError, "the columns of a table"),
    ("ADD COLUMN e INTEGER, DROP COLUMN k", SchemeError, "cannot be dropped"),
    ("DROP COLUMN a CASCADE", NotSupportedError, "views"),
]


@pytest.mark.sampled(one_in=2)
@pytest.mark.parametrize(("change", "kind", "why"), REFUSED, ids=[change for change, _, _ in REFUSED])
def test_what_cannot_be_says_so_and_changes_nothing(
    conn: secateur.Connection, table: str, change: str, kind: type[Error], why: str
) -> None:
    before = conn.execute(f"SELECT * FROM {table} ORDER BY k").fetchall(), conn.table(table).columns
    with pytest.raises(kind, match=why):
        conn.execute(f"ALTER TABLE {table} {change}")
    assert (conn.execute(f"SELECT * FROM {table} ORDER BY k").fetchall(), conn.table(table).columns) == before
    conn.execute(f"INSERT INTO {table} VALUES (77, 'x', 1, 1, 1)")  # writes go on


def test_a_table_that_is_not_there_may_be_left_alone(conn: secateur.Connection, table_name: str) -> None:
    conn.execute(f"ALTER TABLE IF EXISTS {table_name} ADD COLUMN a INTEGER")
    conn.execute(f"CREATE TABLE {table_name} (k INTEGER PRIMARY KEY)")
    conn.execute(f"ALTER TABLE IF EXISTS {table_name} ADD COLUMN a INTEGER")
    assert [column.name for column in conn.table(table_name).columns] == ["k", "a"]
    with pytest.raises(UnknownTableError):
        conn.execute(f"ALTER TABLE {table_name}_not ADD COLUMN a INTEGER")


def test_a_table_gets_another_name(conn: secateur.Connection, table: str) -> None:
    other = f"{table}_renamed"
    conn.execute(f"SELECT a FROM {table} WHERE k = ?", [5]).fetchall()
    conn.execute(f"ALTER TABLE {table} RENAME TO {other}")
    assert conn.execute(f"SELECT a FROM {other} WHERE k = ?", [5]).fetchall() == [("text 5",)]
    with pytest.raises(UnknownTableError, match=f"'{table}' does not exist"):
        conn.execute(f"SELECT a FROM {table} WHERE k = ?", [5])
    conn.execute(f"CREATE TABLE {table} (k INTEGER PRIMARY KEY)")
    with pytest.raises(TableExistsError):
        conn.execute(f"ALTER TABLE {other} RENAME TO {table.upper()}")
    assert conn.execute(f"SELECT count(*) FROM {other}").fetchall() == [(40,)]


def test_indexes_and_checks_keep_their_columns(conn: secateur.Connection, table: str) -> None:
    conn.execute(f"CREATE INDEX i_{table} ON {table} (d)")
    for change in ("DROP COLUMN d", "RENAME COLUMN d TO e"):
        with pytest.raises(SchemeError, match=f"index i_{table} has column d"):
            conn.execute(f"ALTER TABLE {table} {change}")
    conn.execute(f"ALTER TABLE {table} ALTER d TYPE BIGINT, DROP COLUMN a")
    assert conn.execute(f"SELECT k FROM {table} WHERE d = 9").fetchall() == [(9,)]


def test_clients_with_plans_of_before_go_on(cluster: Cluster, conn: secateur.Connection, table: str) -> None:
    with cluster.connect() as other:
        by_key, all_rows = f"SELECT * FROM {table} WHERE k = ?", f"SELECT * FROM {table} ORDER BY k LIMIT 2"
        handle = other.table(table)
        for _ in range(3):
            other.execute(by_key, [1]).fetchall()
            other.execute(all_rows).fetchall()
            handle.get({"k": 1})
        conn.execute(f"ALTER TABLE {table} DROP COLUMN b, ADD COLUMN e INTEGER DEFAULT 9")
        assert other.execute(by_key, [1]).fetchall() == [(1, "text 1", Decimal("0.01"), None, 9)]
        assert other.execute(all_rows).fetchall()[1] == (1, "text 1", Decimal("0.01"), None, 9)
        assert handle.get({"k": 1}) == {"k": 1, "a": "text 1", "c": Decimal("0.01"), "d": None, "e": 9}
        handle.put({"k": 1, "a": "new", "c": 0, "d": 1, "e": 10})
        other.execute(f"INSERT INTO {table} VALUES (200, 'y', 0, 1, 2)")
        assert conn.execute(by_key, [1]).fetchall() == [(1, "new", Decimal("0.00"), 1, 10)]
        assert conn.execute(by_key, [200]).fetchall() == [(200, "y", Decimal("0.00"), 1, 2)]


def test_a_load_that_began_before_names_the_change(conn: secateur.Connection, table_name: str) -> None:
    conn.execute(CREATE.format(table_name, PARTITIONED))
    rows = pa.table(
        {"k": pa.array(range(100), pa.int32()), "a": ["x"] * 100, "b": [0.5] * 100, "c": [1] * 100, "d": [1] * 100}
    )

    def alter(_: int) -> None:
        if len(conn.table(table_name).columns) == 5:
            conn.execute(f"ALTER TABLE {table_name} ADD COLUMN e INTEGER DEFAULT 4")

    told = ""
    try:
        conn.table(table_name).load(rows, mode="append", progress=alter)
    except LoadFailedError as error:
        told = str(error)
    found = conn.execute(f"SELECT count(*), min(e), max(e) FROM {table_name}").fetchall()
    assert found == ([(0, None, None)] if "ALTER TABLE" in told else [(100, 4, 4)])


def test_a_change_feed_goes_on(conn: secateur.Connection, table_name: str) -> None:
    conn.execute(CREATE.format(table_name, f"{PARTITIONED} WITH (change_feed = true)"))
    changes = conn.changes(table_name, since="earliest", follow=False)
    conn.execute(f"INSERT INTO {table_name} VALUES (1, 'one', 1, 1, 1)")
    conn.execute(f"UPDATE {table_name} SET d = 2 WHERE k = 1")
    conn.execute(f"ALTER TABLE {table_name} DROP COLUMN b, ADD COLUMN e INTEGER DEFAULT 9, RENAME COLUMN a TO text")
    conn.execute(f"UPDATE {table_name} SET e = 10 WHERE k = 1")
    found = [row for batch in changes for row in batch.to_pylist()]
    assert [(row["_change_type"], row["text"], row["d"], row["e"]) for row in found] == [
        ("insert", "one", 1, 9),
        ("update_preimage", "one", 1, 9),
        ("update_postimage", "one", 2, 9),
        ("update_preimage", "one", 2, 9),
        ("update_postimage", "one", 2, 10),
    ]
    at = str(changes.position)
    conn.execute(f"ALTER TABLE {table_name} DROP COLUMN e")
    conn.execute(f"DELETE FROM {table_name} WHERE k = 1")
    (row,) = [row for batch in conn.changes(table_name, since=at, follow=False) for row in batch.to_pylist()]
    assert (row["_change_type"], row["text"]) == ("delete", "one")
    assert "e" not in row


def start(directory: Path) -> Cluster:
    return secateur.start(members=3, runtime="embedded", data_directory=directory, fsync="always")


def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    with start(tmp_path) as cluster, cluster.connect() as conn:
        for name, how in (("t", PARTITIONED), ("everywhere", "REPLICATED")):
            conn.execute(CREATE.format(name, how))
            conn.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?)", [[n, "x", 1, 1, n] for n in range(30)])
            conn.execute(f"ALTER TABLE {name} DROP COLUMN b, ADD COLUMN e INTEGER DEFAULT 9")
            conn.execute(f"UPDATE {name} SET e = 1 WHERE k = 3")
            conn.execute(f"ALTER TABLE {name} RENAME COLUMN a TO b")
            conn.execute(f"INSERT INTO {name} (k, b) VALUES (100, 'late')")
        expected = [conn.execute(f"SELECT * FROM {name} ORDER BY k").fetchall() for name in ("t", "everywhere")]
    for _ in range(2):
        with start(tmp_path) as cluster, cluster.connect() as conn:
            found = [conn.execute(f"SELECT * FROM {name} ORDER BY k").fetchall() for name in ("t", "everywhere")]
            assert found == expected
            conn.execute("INSERT OR REPLACE INTO t (k, b) VALUES (100, 'late')")
            copies_agree(cluster, conn, "t")
            healed(conn)


def test_a_member_that_was_away_has_the_columns_of_now(tmp_path: Path) -> None:
    with start(tmp_path) as cluster, cluster.connect() as conn:
        conn.execute(CREATE.format("t", PARTITIONED))
        conn.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", [[n, "x", 1, 1, n] for n in range(30)])
        cluster.kill_member("m2")
        conn.execute("ALTER TABLE t DROP COLUMN b, ADD COLUMN e INTEGER DEFAULT 9")
        conn.execute("UPDATE t SET e = 1 WHERE k = 3")
        healed(conn)
        copies_agree(cluster, conn, "t")
        assert conn.execute("SELECT count(*), sum(e) FROM t").fetchall() == [(30, 29 * 9 + 1)]


@pytest.mark.parametrize("kind", ["embedded"])
def test_readers_and_writers_go_on_through_alterations(kind: str) -> None:
    """Four clients read and write all the time: no wrong column, no lost write, no error that they have to handle."""
    failures: list[BaseException] = []
    stop = threading.Event()
    written: list[dict[int, int]] = [{} for _ in range(2)]

    def guarded(work: Any) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)
            stop.set()

    with secateur.start(members=3, runtime="embedded", member_silence_s=2.0) as cluster, cluster.connect() as conn:
        conn.execute(f"CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER, w INTEGER) {PARTITIONED}")
        conn.executemany("INSERT INTO t VALUES (?, ?, ?)", [[n, n, n] for n in range(64)])

        def write(number: int) -> None:
            with cluster.connect() as own:
                value = 0
                while not stop.is_set():
                    value += 1
                    key = number * 32 + value % 32
                    assert own.execute("UPDATE t SET w = ? WHERE k = ?", [value, key]).rowcount == 1
                    written[number][key] = value

        def read() -> None:
            with cluster.connect() as own:
                while not stop.is_set():
                    for k, v in own.execute("SELECT k, v FROM t").fetchall():
                        assert k == v
                    assert own.execute("SELECT v FROM t WHERE k = ?", [7]).fetchall() == [(7,)]
                    found = own.execute("SELECT * FROM t WHERE k = 7")
                    row = dict(
                        zip([column[0] for column in found.description or ()], found.fetchone() or (), strict=True)
                    )
                    assert (row["k"], row["v"], row.get("x", 5), row.get("y", "why")) == (7, 7, 5, "why")

        threads = [
            threading.Thread(target=guarded, args=[work]) for work in (lambda: write(0), lambda: write(1), read, read)
        ]
        for thread in threads:
            thread.start()
        try:
            for number in range(50):
                change = ("ADD COLUMN x INTEGER DEFAULT 5", "ADD y VARCHAR DEFAULT 'why'", "DROP COLUMN x", "DROP y")[
                    number % 4
                ]
                conn.execute(f"ALTER TABLE t {change}")
                if number == 20:
                    cluster.kill_member("m3")
                if number == 35:
                    cluster.kill_controller()
                if stop.is_set():
                    break
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        if failures:
            raise failures[0]
        healed(conn)
        copies_agree(cluster, conn, "t")
        found = dict(conn.execute("SELECT k, w FROM t").fetchall())
        assert all(found[key] == value for of_one in written for key, value in of_one.items())


def test_new_columns_take_no_memory_of_their_own_and_no_time(lone_cluster: Cluster, table_name: str) -> None:
    with lone_cluster.connect() as conn:
        conn.execute(f"CREATE TABLE {table_name} (k BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (k) PARTITIONS 64")
        conn.table(table_name).load(pa.table({"k": np.arange(1_000_000), "v": np.arange(1_000_000)}))
        before = pa.total_allocated_bytes()
        conn.execute(
            f"ALTER TABLE {table_name} ADD COLUMN e BIGINT DEFAULT 7, ADD COLUMN f DATE DEFAULT DATE '2024-01-01'"
        )
        assert pa.total_allocated_bytes() - before < 6_000_000  # of values of their own there would be twelve
        assert conn.execute(f"SELECT sum(e), max(f) FROM {table_name}").fetchall() == [(7_000_000, date(2024, 1, 1))]
