"""Tables without a primary key: rows are counted as often as they were written, whatever happens to members."""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from eventually import eventually

import secateur
from secateur.cluster import Cluster
from secateur.connectors import collect, table_sink
from secateur.errors import (
    DataError,
    DuplicateKeyError,
    Error,
    NotSupportedError,
    NullKeyError,
    OperationalError,
    ParameterError,
    ProgrammingError,
    TableExistsError,
    UnknownColumnError,
    UnknownTableError,
)
from secateur.partitioning.schemes import ROW_ID

ROWS = pa.table({"a": pa.array([1, 1, 2, None], pa.int32()), "b": ["x", "x", "y", "x"]})
PLACEMENTS = {
    "at_random": "",
    "hashed": "PARTITION BY HASH (b) PARTITIONS 7",
    "two_columns": "PARTITION BY HASH (c, b) PARTITIONS 5 BACKUPS 2",
    "ranged": "PARTITION BY RANDOM PARTITIONS 2, RANGE (c) SPLIT AT (3, 6)",
    "everywhere": "REPLICATED",
}
STATEMENTS = int(24 * float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1")))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded") as running:
        yield running


@pytest.fixture
def conn(cluster: Cluster) -> Iterator[secateur.Connection]:
    with cluster.connect() as connection:
        yield connection
        for (name,) in connection.execute("SELECT table_name FROM secateur.tables").fetchall():
            connection.execute(f"DROP TABLE {name}")


def counted(rows: Any) -> Counter[Any]:
    return Counter(rows)


class Statements:
    """Random statements over ``t (a INTEGER, b VARCHAR, c INTEGER, d DECIMAL(9,2))`` and ``u``, which is like it."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def value(self, column: str) -> str:
        rng = self._rng
        match column:
            case "a":
                return rng.choice(["NULL", str(rng.randrange(6))])
            case "b":
                return f"'{rng.choice('xyzw')}'"
            case "c":
                return str(rng.randrange(9))
            case _:
                return rng.choice(["NULL", f"{rng.randrange(4)}.50"])

    def row(self) -> str:
        return f"({', '.join(map(self.value, 'abcd'))})"

    def condition(self) -> str:
        rng = self._rng
        found = rng.choice(
            [
                f"b = {self.value('b')}",
                f"b IN ({self.value('b')}, {self.value('b')}) AND c < {self.value('c')}",
                f"c = {self.value('c')} AND b = {self.value('b')}",
                f"c BETWEEN {self.value('c')} AND {self.value('c')}",
                f"a = {self.value('a')} OR d > 1",
                "a IS NULL",
                f"a IN (SELECT u.a FROM u WHERE u.b = {self.value('b')})",
                "EXISTS (SELECT 1 FROM u AS o WHERE o.c = t.c AND o.b = t.b)",
                "c > (SELECT avg(inner_t.c) FROM t AS inner_t)",
            ]
        )
        return f"NOT ({found})" if rng.random() < 0.2 else found

    def change(self) -> str:
        rng = self._rng
        kind = rng.randrange(11)
        if kind < 3:
            return f"INSERT INTO t VALUES {', '.join(self.row() for _ in range(rng.choice([1, 1, 3, 40])))}"
        if kind == 3:
            return f"INSERT INTO t SELECT a, b, c, d FROM {rng.choice(['t', 'u'])} WHERE c < {self.value('c')}"
        if kind == 4:
            return f"INSERT INTO t (c, b) VALUES ({self.value('c')}, {self.value('b')})"
        if kind == 5:
            return f"DELETE FROM t WHERE {self.condition()} AND c < 4"
        if kind == 6:
            return f"DELETE FROM t USING u WHERE t.a = u.a AND t.b = u.b AND u.c = {self.value('c')}"
        if kind == 7:
            return f"UPDATE t SET a = coalesce(a, 0) + 1, d = {self.value('d')} WHERE {self.condition()}"
        if kind == 8:  # to another partition
            return f"UPDATE t SET b = {self.value('b')}, c = (c + 1) % 9 WHERE {self.condition()}"
        if kind == 9:
            source = "(SELECT b, count(*) AS n FROM u GROUP BY b) AS o"
            return f"UPDATE t SET a = o.n FROM {source} WHERE o.b = t.b AND t.c = {self.value('c')}"
        return (
            "MERGE INTO t USING (SELECT DISTINCT b, c FROM u) AS s ON t.b = s.b AND t.c = s.c"
            f" WHEN MATCHED AND t.a = {self.value('a')} THEN DELETE WHEN MATCHED THEN UPDATE SET d = 7"
            f" WHEN NOT MATCHED BY SOURCE AND t.c = {self.value('c')} THEN UPDATE SET a = 99, b = 'z'"
            " WHEN NOT MATCHED THEN INSERT (a, b, c) VALUES (-1, s.b, s.c)"
        )

    def query(self) -> str:
        return self._rng.choice(
            [
                f"SELECT * FROM t WHERE {self.condition()}",
                f"SELECT count(*) FROM t WHERE {self.condition()}",
                f"SELECT DISTINCT * FROM t WHERE {self.condition()}",
                f"SELECT b, count(*), sum(d), count(DISTINCT t) FROM t WHERE {self.condition()} GROUP BY b",
                "SELECT t.*, o.n FROM t JOIN (SELECT c, count(*) AS n FROM u GROUP BY c) AS o ON o.c = t.c WHERE n > 3",
                f"SELECT count(*) FROM t NATURAL JOIN u WHERE b = {self.value('b')}",
                "SELECT t FROM t ORDER BY ALL LIMIT 3",
                "SELECT * FROM t EXCEPT ALL SELECT * FROM u",
            ]
        )


@pytest.mark.sampled(one_in=2)
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_random_statements_leave_the_rows_that_duckdb_leaves(conn: secateur.Connection, placement: str) -> None:
    statements, oracle = Statements(list(PLACEMENTS).index(placement)), duckdb.connect()
    for name in ("t", "u"):
        columns = f"CREATE TABLE {name} (a INTEGER, b VARCHAR, c INTEGER, d DECIMAL(9,2))"
        conn.execute(f"{columns} {PLACEMENTS[placement]}")
        oracle.execute(columns)
        filled = f"INSERT INTO {name} VALUES {', '.join(statements.row() for _ in range(30))}"
        for each in (conn, oracle):
            each.execute(filled)
    changed = 0
    for _ in range(STATEMENTS):
        sql = statements.change()
        counts = conn.execute(sql).rowcount, oracle.execute(sql).fetchone()
        assert counts[1] is not None
        assert counts[0] == counts[1][0], sql
        changed += counts[0]
        for query in ("SELECT * FROM t", statements.query()):
            ours, theirs = conn.execute(query), oracle.execute(query)
            assert [column[0] for column in ours.description or ()] == [column[0] for column in theirs.description]
            assert counted(map(repr, ours.fetchall())) == counted(map(repr, theirs.fetchall())), (sql, query)
    assert changed > STATEMENTS


def test_the_hidden_column_is_not_seen(conn: secateur.Connection, tmp_path: Path) -> None:
    conn.execute("CREATE TABLE t (a INTEGER, b VARCHAR) PARTITION BY HASH (b) PARTITIONS 4")
    table = conn.table("t")
    assert table.load(ROWS) == 4
    assert (table.primary_key, table.schema.names) == ((), ["a", "b"])
    assert [column.name for column in table.columns] == ["a", "b"]
    assert table.partition_of({"b": "x"}) == table.definition.scheme.partition_of({"b": "x"})
    for sql in ("SELECT * FROM t", "FROM t", "SELECT t.* FROM t", "SELECT COLUMNS(*) FROM t", "TABLE t"):
        assert conn.execute(sql).fetch_arrow_table().column_names == ["a", "b"], sql
    assert conn.execute("SELECT t FROM t WHERE a = 2").fetchall() == [({"a": 2, "b": "y"},)]
    assert [row[0] for row in conn.execute("DESCRIBE t").fetchall()] == ["a", "b"]
    assert conn.execute(
        "SELECT column_name, key_position, is_nullable FROM secateur.columns ORDER BY ALL"
    ).fetchall() == [
        ("a", None, True),
        ("b", None, False),
    ]
    assert conn.execute("SELECT primary_key FROM secateur.tables").fetchall() == [([],)]
    assert sorted(table.statistics().columns) == ["a", "b"]
    assert conn.execute("SELECT * FROM information_schema.table_constraints").fetchall() == []
    conn.execute(f"COPY t TO '{tmp_path}/t.parquet'")
    assert pq.read_schema(tmp_path / "t.parquet").names == ["a", "b"]
    names = conn.execute("DELETE FROM t WHERE a = 2 RETURNING *")
    assert [column[0] for column in names.description or ()] == ["a", "b"]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda conn: conn.table("t").get(1), ProgrammingError, "no primary key, so get, put and delete"),
        (lambda conn: conn.table("t").put((1, "x")), ProgrammingError, r"create it with PRIMARY KEY \(...\)"),
        (lambda conn: conn.table("t").delete(1), ProgrammingError, "no primary key"),
        (lambda conn: conn.table("t").load(ROWS, "upsert"), ProgrammingError, "mode 'upsert' has no keys"),
        (lambda conn: conn.table("t").load(ROWS, "ignore"), ProgrammingError, "mode 'ignore' has no keys"),
        (lambda conn: conn.table("t").partition_of({"a": 1}), ParameterError, "at random"),
        (
            lambda conn: conn.table("t").load(ROWS.append_column(ROW_ID, pa.nulls(4, pa.string()))),
            UnknownColumnError,
            "no column",
        ),
        (
            lambda conn: conn.execute("INSERT OR REPLACE INTO t VALUES (1, 'x')"),
            ProgrammingError,
            "conflicts.*column 8",
        ),
        (lambda conn: conn.execute("INSERT OR IGNORE INTO t VALUES (1, 'x')"), ProgrammingError, "conflicts"),
        (
            lambda conn: conn.execute("INSERT INTO t VALUES (1, 'x') ON CONFLICT DO NOTHING"),
            ProgrammingError,
            "conflicts.*column 31",
        ),
        (
            lambda conn: conn.execute("INSERT INTO t VALUES (1, 'x') ON CONFLICT (a) DO UPDATE SET b = 'y'"),
            ProgrammingError,
            "conflicts",
        ),
        (lambda conn: conn.execute(f"SELECT {ROW_ID} FROM t"), UnknownColumnError, "there is a, b"),
        (lambda conn: conn.execute(f"SELECT count({ROW_ID}) FROM t"), UnknownColumnError, "does not exist"),
        (lambda conn: conn.execute(f"INSERT INTO t ({ROW_ID}) VALUES (uuid())"), UnknownColumnError, "no column"),
        (
            lambda conn: conn.execute(f"INSERT INTO t BY NAME SELECT uuid() AS {ROW_ID}"),
            UnknownColumnError,
            "no column",
        ),
        (lambda conn: conn.execute(f"UPDATE t SET {ROW_ID} = NULL"), UnknownColumnError, "no column"),
        (lambda conn: conn.execute("UPDATE t SET a = 1 WHERE hash(t.*) = 0"), NotSupportedError, "name the columns"),
        (lambda conn: conn.execute("DELETE FROM t WHERE t IS NULL"), NotSupportedError, "name the columns"),
        (lambda conn: conn.execute("DELETE FROM t AS x WHERE COLUMNS(*) > 1"), NotSupportedError, "name the columns"),
        (lambda conn: conn.execute("DELETE FROM t WHERE #3 IS NOT NULL"), NotSupportedError, "name the columns"),
        (
            lambda conn: (
                secateur.Pipeline().read_rows([{"a": 1}]).write_to(table_sink("t")).submit(conn).result(timeout_s=30)
            ),
            ProgrammingError,
            "run again would write its rows twice",
        ),
        (lambda conn: conn.execute("INSERT INTO h VALUES (1, NULL)"), NullKeyError, "b is NOT NULL"),
        (lambda conn: conn.execute("UPDATE h SET b = NULL"), NullKeyError, "b is NOT NULL"),
    ],
)
def test_what_needs_a_key_says_so(
    conn: secateur.Connection, call: Callable[[secateur.Connection], Any], error: type[Error], message: str
) -> None:
    conn.execute("CREATE TABLE t (a INTEGER, b VARCHAR)")
    conn.execute("CREATE TABLE h (a INTEGER, b VARCHAR) PARTITION BY HASH (b) PARTITIONS 3")
    for name in ("t", "h"):
        conn.table(name).load(ROWS)
    with pytest.raises(error, match=message):
        call(conn)
    for name in ("t", "h"):
        assert conn.execute(f"SELECT count(*), count(a) FROM {name}").fetchall() == [(4, 3)]


def test_all_ways_of_loading_keep_duplicates(conn: secateur.Connection, tmp_path: Path) -> None:
    table = conn.create_table("t", ROWS)
    assert table.load(ROWS) == 4
    assert table.load(ROWS.to_reader(max_chunksize=1)) == 4
    assert table.load(pa.concat_tables([ROWS] * 3), "overwrite") == 12
    cursor = conn.cursor()
    cursor.executemany("INSERT INTO t VALUES (?, ?)", [(7, "many")] * 50)
    cursor.executemany("INSERT INTO t VALUES (8, 'literal')", [()] * 3)
    for _ in range(2):
        conn.execute("INSERT INTO t VALUES (9, 'text'), (9, 'text')")
        conn.execute("INSERT INTO t VALUES (?, ?)", [9, "values"])
        conn.execute("INSERT INTO t VALUES (?, upper(?)) RETURNING b", [9, "returned"])
    conn.execute(f"INSERT INTO t VALUES {', '.join(['(10, NULL)'] * 2000)}")  # evaluated without DuckDB
    assert dict(conn.execute("SELECT b, count(*) FROM t WHERE a > 6 GROUP BY b").fetchall()) == {
        "many": 50,
        "literal": 3,
        "text": 4,
        "values": 2,
        "RETURNED": 2,
        None: 2000,
    }
    conn.execute(f"COPY t TO '{tmp_path}/t.csv'")
    conn.execute(f"COPY t FROM '{tmp_path}/t.csv'")
    assert conn.execute("SELECT count(*) FROM t").fetchall() == [(2 * (12 + 2061),)]
    conn.execute("CREATE TABLE copied PARTITION BY HASH (b) PARTITIONS 3 AS SELECT * FROM t WHERE b IS NOT NULL")
    conn.execute("CREATE OR REPLACE TABLE t AS SELECT * FROM copied WHERE a = 7")
    assert conn.execute("SELECT b, count(*) FROM t GROUP BY b").fetchall() == [("many", 100)]
    cursor = conn.execute("SELECT count(*) FROM copied WHERE b = ?", ["many"])
    assert cursor.fetchall() == [(100,)]
    assert cursor.stats is not None
    assert (cursor.stats.partitions_read, cursor.stats.partitions_total) == (1, 3)


def test_a_table_is_made_of_a_file(conn: secateur.Connection, tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    (tmp_path / "rows.csv").write_text("a,b\n5,x\n5,x\n")
    (tmp_path / "bad.csv").write_bytes(b"a,b\n5,\xff\n")
    made = [
        (f"CREATE TABLE t AS SELECT * FROM '{tmp_path}/rows.parquet'", 4, "RANDOM PARTITIONS 271"),
        (f"CREATE TABLE IF NOT EXISTS t AS FROM '{tmp_path}/nothing.parquet'", -1, "RANDOM PARTITIONS 271"),
        (
            f"CREATE OR REPLACE TABLE t BACKUPS 0 PARTITION BY HASH (b) PARTITIONS 3 AS FROM '{tmp_path}/rows.csv'",
            2,
            "",
        ),
        (f"CREATE OR REPLACE TABLE t REPLICATED AS FROM '{tmp_path}/rows.csv' WITH NO DATA", 0, None),
    ]
    for sql, count, partitioning in made:
        assert conn.execute(sql).rowcount == count, sql
        found = conn.execute("SELECT partitioning, backups FROM secateur.tables").fetchall()
        assert found == [('HASH ("b") PARTITIONS 3', 0) if partitioning == "" else (partitioning, partitioning and 1)]
        assert conn.execute("SELECT count(*) FROM t").fetchall() == [({-1: 4}.get(count, count),)]
    conn.execute("INSERT INTO t VALUES (1, 'kept')")
    for sql, error in (
        (f"CREATE TABLE t AS FROM '{tmp_path}/rows.csv'", TableExistsError),
        (f"CREATE OR REPLACE TABLE t AS FROM '{tmp_path}/bad.csv'", DataError),
        (f"CREATE OR REPLACE TABLE t PRIMARY KEY (c) AS FROM '{tmp_path}/rows.csv'", ParameterError),
        (f"CREATE OR REPLACE TABLE t AS FROM '{tmp_path}/nothing.csv'", ProgrammingError),
        (f"CREATE TABLE other PRIMARY KEY (a) AS FROM '{tmp_path}/rows.csv'", DuplicateKeyError),
        (f"CREATE TABLE other AS SELECT a FROM '{tmp_path}/rows.csv'", UnknownTableError),
    ):
        with pytest.raises(error):
            conn.execute(sql)
        assert conn.execute("SELECT a, b FROM t").fetchall() == [(1, "kept")]
    assert conn.execute("SELECT table_name FROM secateur.tables").fetchall() == [("t",)]
    explained = conn.execute(f"EXPLAIN CREATE TABLE x AS FROM '{tmp_path}/rows.csv'").fetchall()
    assert "which the client reads" in explained[0][0]


def test_a_pipeline_reads_the_columns_that_users_see(conn: secateur.Connection) -> None:
    conn.create_table("t", ROWS).load(ROWS)
    found = secateur.Pipeline().read_table("t").write_to(collect()).submit(conn).result(timeout_s=30)
    assert found.column_names == ["a", "b"]
    assert counted(map(tuple, found.to_pandas().b)) == {("x",): 3, ("y",): 1}


def test_rows_come_back_from_a_backup(conn: secateur.Connection, tmp_path: Path) -> None:
    conn.execute("CREATE TABLE t (a INTEGER, b VARCHAR)")
    conn.execute("CREATE TABLE h (a INTEGER, b VARCHAR) PARTITION BY HASH (b) PARTITIONS 3 BACKUPS 0")
    for name in ("t", "h"):
        conn.table(name).load(pa.concat_tables([ROWS] * 25))
    before = conn.execute("SELECT table_name, sql FROM secateur.tables ORDER BY ALL").fetchall()
    assert conn.execute(f"BACKUP TO '{tmp_path}/b'").rowcount == 200
    files = sorted((tmp_path / "b" / "tables").glob("*/*.parquet"))
    assert {tuple(pq.read_schema(file).names) for file in files} == {("a", "b")}
    conn.execute("DELETE FROM t WHERE a = 1")  # a table that is there gets the rows of the backup in place of its own
    conn.execute("DROP TABLE h")
    for _ in range(2):
        assert conn.execute(f"RESTORE OR REPLACE FROM '{tmp_path}/b'").rowcount == 200
        assert conn.execute("SELECT table_name, sql FROM secateur.tables ORDER BY ALL").fetchall() == before
        for name in ("t", "h"):
            found = conn.execute(f"SELECT a, b, count(*) FROM {name} GROUP BY ALL").fetchall()
            assert counted(found) == {(1, "x", 50): 1, (2, "y", 25): 1, (None, "x", 25): 1}


def test_changes_are_followed_by_their_columns(conn: secateur.Connection) -> None:
    conn.execute("CREATE TABLE t (a INTEGER, b VARCHAR) PARTITION BY HASH (b) PARTITIONS 2 WITH (change_feed = true)")
    changes = conn.changes("t", since="earliest")
    conn.execute("INSERT INTO t VALUES (1, 'x'), (1, 'x')")
    conn.execute("UPDATE t SET a = 2 WHERE a = 1")
    conn.execute("DELETE FROM t WHERE a = 2")
    found = pa.Table.from_batches(changes)
    assert found.column_names == ["a", "b", "_change_type", "_commit_version"]
    told = counted((row["a"], row["b"], row["_change_type"]) for row in found.to_pylist())
    assert told == {
        (1, "x", "insert"): 2,
        (1, "x", "update_preimage"): 2,
        (2, "x", "update_postimage"): 2,
        (2, "x", "delete"): 2,
    }


def test_rows_are_there_after_a_restart(tmp_path: Path) -> None:
    def start() -> Cluster:
        return secateur.start(members=3, runtime="embedded", data_directory=tmp_path, fsync="always")

    with start() as cluster, cluster.connect() as conn:
        conn.execute("CREATE TABLE t (a INTEGER, b VARCHAR) PARTITION BY RANDOM PARTITIONS 5")
        conn.table("t").load(ROWS)
        for number in range(30):
            conn.execute("INSERT INTO t VALUES (?, 'one')", [number % 3])
        conn.execute("UPDATE t SET b = 'changed' WHERE a = 1")
        conn.execute("DELETE FROM t WHERE a IS NULL")
        expected = counted(conn.execute("SELECT * FROM t").fetchall())
        assert expected == {(0, "one"): 10, (1, "changed"): 12, (2, "one"): 10, (2, "y"): 1}
    for turn in range(2):
        with start() as cluster, cluster.connect() as conn:
            assert counted(conn.execute("SELECT * FROM t").fetchall()) == expected
            conn.execute("INSERT INTO t VALUES (2, 'y')")
            assert conn.execute("UPDATE t SET b = b || ? WHERE b LIKE 'changed%'", [str(turn)]).rowcount == 12
            expected = counted(conn.execute("SELECT * FROM t").fetchall())


@pytest.mark.parametrize("columns", ["", "PARTITION BY HASH (b) PARTITIONS 11"])
def test_an_insert_that_is_sent_again_stores_its_rows_once(columns: str) -> None:
    """A member dies while clients insert; what was acknowledged is there once, and nothing is there twice."""
    with secateur.start(members=3, runtime="embedded", member_silence_s=2.0, replace_members=False) as cluster:
        with cluster.connect() as conn:
            conn.execute(f"CREATE TABLE t (a INTEGER, b VARCHAR) {columns}")
        acknowledged: list[int] = []
        stop = threading.Event()

        def insert(first: int) -> None:
            with cluster.connect() as conn:
                for number in range(first, first + 1_000_000, 3):
                    if stop.is_set():
                        return
                    rows = ([number], [number, number], [number] * 3)[number % 3]
                    listed = ", ".join(["(?, ?)"] * len(rows))
                    try:
                        conn.execute(f"INSERT INTO t VALUES {listed}", [x for n in rows for x in (n, f"b{n}")])
                    except OperationalError:  # unknown, or not made
                        continue
                    acknowledged.append(number)

        threads = [threading.Thread(target=insert, args=(first,)) for first in range(3)]
        for thread in threads:
            thread.start()
        try:
            eventually(lambda: len(acknowledged) > 100, "nothing is inserted")
            cluster._runtime.kill_member("m2")  # which nobody has noticed yet
            reached = len(acknowledged)
            eventually(lambda: len(acknowledged) > reached + 100, "nothing is inserted after the loss", timeout_s=60)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        with cluster.connect() as conn:
            found = dict(conn.execute("SELECT a, count(*) FROM t GROUP BY a").fetchall())
        assert {number: found.get(number, 0) for number in acknowledged} == {n: n % 3 + 1 for n in acknowledged}
        assert all(count <= number % 3 + 1 for number, count in found.items()), "a row is there twice"
