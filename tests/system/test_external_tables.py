"""External tables on a cluster: connectors of one's own, folders of Parquet and CSV files, and what is refused."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secateur
from secateur.cluster import Cluster
from secateur.connectors import (
    Connector,
    ConnectorContext,
    ConnectorPartition,
    ExternalScanRequest,
    between,
    csv_folder,
    one_of,
    parquet_folder,
)
from secateur.errors import (
    DagError,
    DataError,
    DeadlineError,
    JobFailedError,
    LimitExceededError,
    NotSupportedError,
    ProgrammingError,
    SerializationError,
    SqlSyntaxError,
    TableExistsError,
    UnknownTableError,
)

READS: list[tuple[int | str, ExternalScanRequest, str]] = []
"""The embedded members run in this process, so a connector can tell the tests what it was asked."""
LET_GO = threading.Event()
"""Until it is set, a connector that hangs does so."""


class Tens(Connector):
    """Numbers in partitions of ten, and a text; it ignores the request."""

    def __init__(self, count: int = 5, fault: str = "") -> None:
        self.count = count
        self.fault = fault

    def schema(self, context: ConnectorContext) -> pa.Schema:
        if self.fault == "schema":
            raise ValueError("no schema today")
        return pa.schema([("k", pa.int32()), ("even", pa.string())])

    def partitions(self, schema: pa.Schema, context: ConnectorContext) -> Sequence[ConnectorPartition]:
        if self.fault == "unknown column":
            return [ConnectorPartition(0, {"nix": one_of(1)})]
        if self.fault == "one key":
            return [ConnectorPartition(0), ConnectorPartition(0)]
        if self.fault == "hangs when listed":
            LET_GO.wait()
        if self.fault == "value":
            return [ConnectorPartition(0, {"k": one_of("x")})]
        return [ConnectorPartition(n, {"k": between(10 * n, 10 * n + 9)}) for n in range(self.count)]

    def read(
        self, partition: ConnectorPartition, request: ExternalScanRequest, context: ConnectorContext
    ) -> Iterator[pa.RecordBatch]:
        READS.append((partition.key, request, context.member))
        if self.fault == "read":
            raise RuntimeError("the disk is gone")
        if self.fault == "column":
            yield pa.record_batch({"even": ["x"]})
            return
        if self.fault == "hang":
            LET_GO.wait()
            return
        if self.fault == "batch":
            yield {"k": [1], "even": ["x"]}  # type: ignore[misc]
        if self.fault == "type":
            yield pa.record_batch({"k": ["one"], "even": ["x"]})
        if self.fault == "outside":
            yield pa.record_batch({"k": [10 * int(partition.key) + 10], "even": ["x"]})
        if self.fault == "null":
            yield pa.record_batch({"k": pa.array([None], pa.int32()), "even": ["x"]})
        if self.fault == "more columns":
            yield pa.record_batch({"z": [1], "even": ["x"], "k": [10 * int(partition.key)], "K2": [2]})
            return
        if self.fault == "endless":
            while True:
                yield pa.record_batch({"k": [10 * int(partition.key)] * 100_000, "even": ["x"] * 100_000})
        start = 10 * int(partition.key)
        for first in (start, start + 5):
            numbers = range(first, first + 5)
            yield pa.record_batch(
                {"even": [str(number % 2 == 0) for number in numbers], "k": pa.array(numbers, pa.int64())}
            )
            if self.fault == "middle":
                raise RuntimeError("the disk is gone")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("external")


@pytest.fixture(scope="module")
def cluster(root: Path) -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded", external_directories=[root]) as running:
        yield running


@pytest.fixture
def tens(conn: secateur.Connection, table_name: str) -> str:
    conn.register(table_name, Tens())
    READS.clear()
    return table_name


@pytest.fixture
def days(conn: secateur.Connection, root: Path, table_name: str) -> str:
    """A folder of Parquet files by day and country, as a table of its name."""
    for day in (1, 2, 3):
        for country in ("de", "f%20r", "__HIVE_DEFAULT_PARTITION__"):
            where = root / table_name / f"dt=2026-11-0{day}" / f"country={country}"
            where.mkdir(parents=True)
            ids = range(day * 10, day * 10 + 10)
            pq.write_table(pa.table({"id": ids, "x": [f"x{i}" if i % 3 else None for i in ids]}), where / "0.parquet")
    (root / table_name / "_SUCCESS").touch()
    conn.execute(f"CREATE EXTERNAL TABLE {table_name} STORED AS PARQUET LOCATION '{root / table_name}'")
    return table_name


# -- a connector of one's own


@pytest.mark.smoke
def test_only_partitions_that_can_hold_rows_are_read_and_only_by_as_many_members(
    conn: secateur.Connection, tens: str
) -> None:
    cursor = conn.execute(f"SELECT k, even FROM {tens} WHERE k BETWEEN ? AND ? ORDER BY k", [18, 21])
    assert cursor.fetchall() == [(18, "True"), (19, "False"), (20, "True"), (21, "False")]
    assert sorted(key for key, _, _ in READS) == [1, 2]
    assert len({member for _, _, member in READS}) == 2
    assert cursor.stats is not None
    assert (cursor.stats.partitions_read, cursor.stats.partitions_total, cursor.stats.members_touched) == (2, 5, 2)


def test_the_request_names_the_columns_and_the_domains(conn: secateur.Connection, tens: str) -> None:
    assert conn.execute(f"SELECT count(*) FROM {tens} WHERE k IN (3, 4, 41) AND k > 3").fetchall() == [(2,)]
    (_, request, _), _ = READS
    assert request.columns == ("k",)
    assert request.schema == pa.schema([("k", pa.int32()), ("even", pa.string())])
    assert request.predicate.domain_of("k").points == {4, 41}
    assert request.predicate.domain_of("even").is_everything


def test_all_members_read_in_parallel(conn: secateur.Connection, tens: str) -> None:
    assert conn.execute(f"SELECT sum(k) FROM {tens}").fetchall() == [(sum(range(50)),)]
    assert {member for _, _, member in READS} == {"m1", "m2", "m3"}
    assert sorted(key for key, _, _ in READS) == [0, 1, 2, 3, 4]


def test_without_a_partition_nothing_is_read(conn: secateur.Connection, tens: str) -> None:
    assert conn.execute(f"SELECT count(*), max(even) FROM {tens} WHERE k > 100").fetchall() == [(0, None)]
    assert conn.execute(f"SELECT * FROM {tens} WHERE k > 100").fetchall() == []
    assert READS == []


def test_a_limit_reaches_the_connector_where_any_rows_will_do(conn: secateur.Connection, tens: str) -> None:
    for clause in ("WHERE even = 'True' LIMIT 3", "ORDER BY k LIMIT 3", "GROUP BY ALL LIMIT 3"):
        assert len(conn.execute(f"SELECT k FROM {tens} {clause}").fetchall()) == 3
        assert {request.limit for _, request, _ in READS} == {None}, clause
    assert conn.execute(f"SELECT DISTINCT even FROM {tens} LIMIT 2").rowcount == 2
    assert conn.execute(f"SELECT count(*) FROM {tens} LIMIT 1").fetchall() == [(50,)]
    assert {request.limit for _, request, _ in READS} == {None}
    # The last one: some partitions may be read behind the answer of a statement that has had enough of others.
    READS.clear()
    assert len(conn.execute(f"SELECT even, k FROM {tens} LIMIT 3 OFFSET 1").fetchall()) == 3
    assert {request.limit for _, request, _ in READS} == {4}


def test_pruning_off_reads_everything(conn: secateur.Connection, tens: str) -> None:
    conn.execute("SET pruning = off")
    assert conn.execute(f"SELECT k FROM {tens} WHERE k = 7").fetchall() == [(7,)]
    assert len(READS) == 5
    conn.execute("SET pruning = verify")
    assert conn.execute(f"SELECT k FROM {tens} WHERE k = 7").fetchall() == [(7,)]


def test_it_is_joined_with_tables_and_used_in_any_query(conn: secateur.Connection, tens: str) -> None:
    conn.execute(f"CREATE TABLE s_{tens} (k BIGINT PRIMARY KEY, name VARCHAR)")
    conn.execute(f"INSERT INTO s_{tens} SELECT k, 'n' || k FROM {tens} WHERE k < 30")
    READS.clear()
    joined = f"SELECT name FROM {tens} t JOIN s_{tens} s ON t.k = s.k WHERE t.k < 3 ORDER BY t.k"
    assert conn.execute(joined).fetchall() == [("n0",), ("n1",), ("n2",)]
    assert [key for key, _, _ in READS] == [0]
    for sql, expected in [
        (f"WITH x AS (SELECT k FROM {tens} WHERE k < 12) SELECT count(*) FROM x a JOIN x b USING (k)", [(12,)]),
        (f"SELECT count(*) FROM s_{tens} WHERE k IN (SELECT k FROM {tens} WHERE even = 'True')", [(15,)]),
        (f"SELECT max(k) FROM {tens} WHERE k < (SELECT max(k) FROM s_{tens})", [(28,)]),
        (f"SELECT count(*) FROM s_{tens} s RIGHT JOIN {tens} t ON s.k = t.k WHERE s.k IS NULL", [(20,)]),
        (f"SELECT even, count(*) FROM {tens} GROUP BY even ORDER BY 1", [("False", 25), ("True", 25)]),
        (f"SELECT k FROM {tens} EXCEPT SELECT k FROM s_{tens} ORDER BY k LIMIT 2", [(30,), (31,)]),
        (f"SELECT DISTINCT t.k FROM {tens} t, {tens} u WHERE t.k = u.k + 48 ORDER BY 1", [(48,), (49,)]),
    ]:
        assert conn.execute(sql).fetchall() == expected, sql
    conn.execute(f"CREATE VIEW v_{tens} AS SELECT k AS number FROM {tens} WHERE k < 20")
    READS.clear()
    assert conn.execute(f"SELECT count(*) FROM v_{tens} WHERE number >= 10").fetchall() == [(10,)]
    assert [key for key, _, _ in READS] == [1]


def test_rows_need_not_be_unique(conn: secateur.Connection, table_name: str) -> None:
    """An external table has no key: nothing may be concluded from one."""

    class Twice(Tens):
        def read(
            self, partition: ConnectorPartition, request: ExternalScanRequest, context: ConnectorContext
        ) -> Iterator[pa.RecordBatch]:
            for batch in super().read(partition, request, context):
                yield batch
                yield batch

    conn.register(table_name, Twice(1))
    conn.execute(f"CREATE TABLE s_{table_name} (k BIGINT PRIMARY KEY, n BIGINT)")
    conn.execute(f"INSERT INTO s_{table_name} VALUES (1, 1), (2, 2), (77, 77)")
    sql = f"SELECT count(*) FROM s_{table_name} s LEFT JOIN {table_name} t ON s.k = t.k"
    assert conn.execute(sql).fetchall() == [(5,)]
    assert conn.execute(f"SELECT count(*) FROM (SELECT DISTINCT k FROM {table_name})").fetchall() == [(10,)]


def test_explain_shows_the_connector_and_the_partitions(conn: secateur.Connection, tens: str) -> None:
    explained = conn.explain(f"SELECT * FROM {tens} WHERE k = ?", [12])
    assert f"scan {tens}: external table, Tens, 1 of 5 partitions [1]" in str(explained)
    (scan,) = explained.to_dict()["pruning"]["scans"]
    assert (scan["connector"], scan["external_partitions_kept"], scan["external_partitions_total"]) == ("Tens", 1, 5)
    assert explained.to_dict()["pruning"]["applicable"] is True
    unbound = conn.explain(f"SELECT * FROM {tens} WHERE k = ?")
    assert f"scan {tens}: external table, Tens, those that the parameters select of 5 partitions" in str(unbound)
    whole = conn.explain(f"SELECT * FROM {tens} WHERE even = 'True'")
    assert "because its partitions differ in (k), with which no predicate compares values: compare them" in str(whole)
    assert "execution: distributed on 3 of 3 members" in str(whole)
    conn.execute("SET pruning = off")
    assert "because pruning is off: SET pruning = on" in str(conn.explain(f"SELECT * FROM {tens} WHERE k = 12"))
    conn.execute("SET pruning = on")
    assert f"scan {tens}: external table" in str(conn.execute(f"EXPLAIN ANALYZE SELECT * FROM {tens}").fetchall())


FACTS = [(number, str(number % 2 == 0)) for number in range(50)]
"""The rows of ``Tens``."""
AGGREGATES = [
    "SELECT count(*), sum(k), avg(k), min(even), max(k) FROM {} WHERE k > ?",
    "SELECT even, count(*), count(DISTINCT k % 7), min(k) FROM {} WHERE k > ? GROUP BY even ORDER BY even",
    "SELECT k % 3 AS third, sum(k) FROM {} WHERE k > ? GROUP BY third HAVING count(*) > 1 ORDER BY ALL",
    "SELECT DISTINCT even FROM {} WHERE k > ? ORDER BY even",
    "SELECT k FROM {} WHERE k % 5 = 0 AND k > ? ORDER BY k DESC LIMIT 3",
    "SELECT k, even FROM {} WHERE length(even) = 4 AND k > ? ORDER BY k",
]


@pytest.fixture(scope="module")
def duckdb_facts() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE facts (k INTEGER, even VARCHAR)")
        connection.executemany("INSERT INTO facts VALUES (?, ?)", FACTS)
        yield connection


@pytest.mark.parametrize("sql", AGGREGATES)
def test_what_can_be_aggregated_where_it_is_read_is_not_gathered(
    conn: secateur.Connection, duckdb_facts: duckdb.DuckDBPyConnection, tens: str, sql: str
) -> None:
    asked = sql.format(tens)
    assert "each reader sends the partial result of its rows" in conn.explain(asked, [17]).text
    for pruning in ("on", "verify"):
        conn.execute(f"SET pruning = {pruning}")
        for least in (-1, 17, 48, 1000):
            expected = duckdb_facts.execute(sql.format("facts"), [least]).fetchall()
            assert conn.execute(asked, [least]).fetchall() == expected, f"{least}, pruning = {pruning}"


def test_readers_send_partial_results(conn: secateur.Connection, tens: str) -> None:
    """Fifty rows are read, and each processor sends one."""
    ((text,),) = conn.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) SELECT sum(k) FROM {tens} AS x").fetchall()
    stages = {stage["name"]: stage for stage in json.loads(text)["analyze"]["stages"]}
    assert 3 <= stages["external x, 0 of 5 partitions left out"]["rows"] <= 5


def test_a_statement_over_several_tables_gathers_the_rows(conn: secateur.Connection, tens: str) -> None:
    sql = f"SELECT count(*) FROM {tens} AS a JOIN {tens} AS b USING (k)"
    assert conn.execute(sql).fetchall() == [(50,)]
    assert "partial result" not in conn.explain(sql).text


def test_explain_analyze_shows_what_each_member_read(conn: secateur.Connection, tens: str) -> None:
    def stages(sql: str) -> dict[str, Any]:
        ((text,),) = conn.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}").fetchall()
        return {stage["name"]: stage for stage in json.loads(text)["analyze"]["stages"]}

    found = stages(f"SELECT k FROM {tens} AS x WHERE k BETWEEN 5 AND 39")["external x, 1 of 5 partitions left out"]
    assert found["rows"] == 35
    assert 35 * 4 <= found["bytes"] <= 35 * 5  # four bytes each, and whether it is NULL
    partitions = [(work["member"], work["partitions"]) for work in found["members"]]
    assert sorted(count for _, count in partitions) == [1, 1, 2]
    assert {(member, sum(by == member for _, _, by in READS)) for member, _ in partitions} == set(partitions)
    nothing = stages(f"SELECT sum(k) FROM {tens} AS x WHERE k > 99")["external x, 5 of 5 partitions left out"]
    assert (nothing["rows"], [work["partitions"] for work in nothing["members"]]) == (0, [0])


@pytest.mark.parametrize(
    ("fault", "kind", "message"),
    [
        ("read", JobFailedError, r"connector Tens of table \w+ failed in read\(partition \d\).*the disk is gone"),
        ("middle", JobFailedError, r"connector Tens of table \w+ failed in read\(partition \d\).*the disk is gone"),
        ("batch", DataError, r"connector Tens of table \w+: read\(\) has to return batches .* partition \d gave"),
        ("type", DataError, r"connector Tens of table \w+: partition \d: column k, row 1: .one. "),
        (
            "outside",
            DataError,
            r"connector Tens of table \w+: partition \d has a row with the value \d0 in column k, and",
        ),
        (
            "null",
            DataError,
            r"connector Tens of table \w+: partition \d has a row with the value None in column k, and",
        ),
        ("column", DataError, r"connector Tens of table \w+: a batch of partition \d lacks the column 'k'"),
        ("unknown column", ProgrammingError, r"partition 0 declares values of 'nix', which is no column"),
        ("one key", DataError, "two partitions with one key"),
        ("value", DataError, r"column k: 'x' \(str\) does not fit INTEGER"),
    ],
)
def test_errors_name_the_connector(
    conn: secateur.Connection, table_name: str, fault: str, kind: type[Exception], message: str
) -> None:
    conn.register(table_name, Tens(fault=fault))
    with pytest.raises(kind, match=message) as caught:
        conn.execute(f"SELECT k FROM {table_name}")
    if fault == "read":
        traceback = str(caught.value.details["traceback"])  # type: ignore[attr-defined]
        assert 'raise RuntimeError("the disk is gone")' in traceback
        assert "secateur/connectors" not in traceback
    assert conn.execute("SELECT 1").fetchall() == [(1,)]


def test_columns_that_nobody_asked_for_are_left_out(conn: secateur.Connection, table_name: str) -> None:
    conn.register(table_name, Tens(2, fault="more columns"))
    assert conn.execute(f"SELECT * FROM {table_name} ORDER BY k").fetchall() == [(0, "x"), (10, "x")]


def test_a_connector_that_hangs_holds_up_only_its_statement(conn: secateur.Connection, table_name: str) -> None:
    conn.register(table_name, Tens(2, fault="hang"))
    LET_GO.clear()
    try:
        with pytest.raises(DeadlineError):
            conn.execute(f"SELECT count(*) FROM {table_name}", timeout=0.5)
        assert conn.execute("SELECT 1").fetchall() == [(1,)]
    finally:
        LET_GO.set()


def test_a_connector_that_does_not_list_its_partitions_is_given_up(table_name: str) -> None:
    limits = secateur.EngineLimits(connector_listing_s=0.3)
    with (
        secateur.start(members=2, runtime="embedded", engine_limits=limits) as cluster,
        cluster.connect() as conn,
    ):
        conn.register(table_name, Tens(2, fault="hangs when listed"))
        LET_GO.clear()
        try:
            with pytest.raises(DeadlineError, match=r"connector of table \w+ has not named its partitions on member"):
                conn.execute(f"SELECT count(*) FROM {table_name}")
            assert conn.execute("SELECT 1").fetchall() == [(1,)]
        finally:
            LET_GO.set()


DECLARED = [
    pytest.param(pa.uuid(), uuid.UUID(int=1).bytes, uuid.UUID(int=2).bytes, uuid.UUID(int=1), id="UUID"),
    pytest.param(pa.decimal128(38, 0), Decimal(2**70), Decimal(2**71), 2**70, id="HUGEINT"),
    pytest.param(pa.binary(), b"a", b"b", b"a", id="BLOB"),
    pytest.param(pa.float64(), 1.5, None, 1.5, id="NULL among DOUBLE"),
    pytest.param(pa.date32(), date(2024, 1, 1), 2**31 - 1, date(2024, 1, 1), id="infinite DATE"),
]


class One(Connector):
    """One row in one partition, and the values that the partition declares."""

    def __init__(self, kind: pa.DataType, value: Any, declared: Any) -> None:
        self.kind, self.value, self.declared = kind, value, declared

    def schema(self, context: ConnectorContext) -> pa.Schema:
        return pa.schema([("k", self.kind)])

    def partitions(self, schema: pa.Schema, context: ConnectorContext) -> Sequence[ConnectorPartition]:
        return [ConnectorPartition(0, {"k": one_of(self.declared)})]

    def read(
        self, partition: ConnectorPartition, request: ExternalScanRequest, context: ConnectorContext
    ) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"k": pa.array([self.value], self.kind)})


@pytest.mark.parametrize(("kind", "inside", "outside", "declared"), DECLARED)
def test_values_outside_of_what_their_partition_declares_are_refused(
    conn: secateur.Connection, table_name: str, kind: pa.DataType, inside: Any, outside: Any, declared: Any
) -> None:
    conn.register(table_name, One(kind, inside, declared))
    assert conn.execute(f"SELECT count(k) FROM {table_name}").fetchall() == [(1,)]
    conn.execute(f"DROP TABLE {table_name}")
    conn.register(table_name, One(kind, outside, declared))
    with pytest.raises(DataError, match="does not declare it"):
        conn.execute(f"SELECT k FROM {table_name}")


def test_a_partition_without_end_is_stopped_at_the_bound(table_name: str) -> None:
    with (
        secateur.start(members=2, runtime="embedded", gathered_bytes_max=16 << 20) as cluster,
        cluster.connect() as conn,
    ):
        conn.register(table_name, Tens(2, fault="endless"))
        with pytest.raises(LimitExceededError):
            conn.execute(f"SELECT k, even FROM {table_name}")
        assert conn.execute("SELECT 1").fetchall() == [(1,)]


def test_an_error_of_schema_leaves_nothing_behind(conn: secateur.Connection, table_name: str) -> None:
    with pytest.raises(JobFailedError, match=r"Tens of table \w+ failed in schema\(\).*ValueError: no schema today"):
        conn.register(table_name, Tens(fault="schema"))
    with pytest.raises(UnknownTableError):
        conn.execute(f"SELECT * FROM {table_name}")
    with pytest.raises(LimitExceededError, match="keep them out of its attributes"):
        conn.register(table_name, Tens(fault="x" * (5 << 20)))
    with pytest.raises(DagError, match=r"is a FolderFormat, not a secateur\.connectors\.Connector"):
        conn.register(table_name, Impostor())  # type: ignore[arg-type]
    with pytest.raises(secateur.ProgrammingError, match="a int is no connector"):
        conn.register(table_name, 1)  # type: ignore[arg-type]


class Impostor:
    def encoded(self) -> bytes:
        from secateur.connectors.external import FolderFormat

        return Connector.encoded(FolderFormat.CSV)  # type: ignore[arg-type]


def test_code_needs_a_cluster_that_accepts_it(table_name: str) -> None:
    refusing: list[dict[str, Any]] = [{"allow_code": False}, {"token": ""}]
    for settings in refusing:
        with secateur.start(members=1, runtime="embedded", **settings) as closed, closed.connect() as conn:
            with pytest.raises(SerializationError, match="accepts no code: start it with allow_code=True"):
                conn.register(table_name, Tens())
            assert conn.execute("SELECT * FROM secateur.tables").fetchall() == []


def test_a_replaced_table_is_never_read_by_an_old_plan(cluster: Cluster, table_name: str) -> None:
    with cluster.connect() as one, cluster.connect() as other:
        one.register(table_name, Tens(2))
        sql = f"SELECT count(*) FROM {table_name}"
        assert other.execute(sql).fetchall() == other.execute(sql).fetchall() == [(20,)]
        with pytest.raises(TableExistsError, match="external table"):
            one.register(table_name, Tens(3))
        one.register(table_name, Tens(3), or_replace=True)
        assert other.execute(sql).fetchall() == [(30,)]
        one.execute(f"DROP TABLE {table_name}")
        with pytest.raises(UnknownTableError):
            other.execute(sql)
        one.execute(f"DROP TABLE IF EXISTS {table_name}")


def test_changes_are_refused_by_name(conn: secateur.Connection, tens: str) -> None:
    conn.execute(f"CREATE TABLE s_{tens} (k BIGINT PRIMARY KEY, n BIGINT)")
    for sql in (
        f"INSERT INTO {tens} VALUES (1, 'x')",
        f"INSERT INTO {tens} SELECT * FROM {tens}",
        f"UPDATE {tens} SET k = 1",
        f"DELETE FROM {tens}",
        f"TRUNCATE {tens}",
        f"MERGE INTO {tens} t USING s_{tens} s ON s.k = t.k WHEN MATCHED THEN DELETE",
        f"COPY {tens} FROM 'x.csv'",
        f"ALTER TABLE {tens} ADD PARTITION p VALUES < 3",
        f"CREATE INDEX i ON {tens} (k)",
    ):
        with pytest.raises(NotSupportedError, match=f"'{tens}' is an external table, which is read only"):
            conn.execute(sql)
    with pytest.raises(NotSupportedError, match="external table, which is read only"):
        conn.table(tens)
    with pytest.raises(NotSupportedError, match=f"a change that reads the external table {tens}"):
        conn.execute(f"DELETE FROM s_{tens} WHERE k IN (SELECT k FROM {tens})")
    for sql in (f"CREATE TABLE {tens} (k BIGINT PRIMARY KEY)", f"CREATE VIEW {tens} AS SELECT 1"):
        with pytest.raises(TableExistsError, match="external table"):
            conn.execute(sql)
    with pytest.raises(TableExistsError, match=f"table 's_{tens}' exists already"):
        conn.register(f"s_{tens}", Tens())


def test_system_tables_list_it(conn: secateur.Connection, tens: str) -> None:
    row = f"SELECT table_type, partitioning, rows, primary_key FROM secateur.tables WHERE table_name = '{tens}'"
    assert conn.execute(row).fetchall() == [("EXTERNAL", "Tens", None, None)]
    columns = f"SELECT column_name, data_type FROM secateur.columns WHERE table_name = '{tens}' ORDER BY position"
    assert conn.execute(columns).fetchall() == [("k", "INTEGER"), ("even", "VARCHAR")]
    constraints = f"SELECT * FROM information_schema.table_constraints WHERE table_name = '{tens}'"
    assert conn.execute(constraints).fetchall() == []
    assert [row[:2] for row in conn.execute(f"DESCRIBE {tens}").fetchall()] == [("k", "INTEGER"), ("even", "VARCHAR")]


# -- folders


def test_a_parquet_folder_is_pruned_by_its_folders(conn: secateur.Connection, days: str) -> None:
    described = [row[:2] for row in conn.execute(f"DESCRIBE {days}").fetchall()]
    assert described == [("id", "BIGINT"), ("x", "VARCHAR"), ("dt", "DATE"), ("country", "VARCHAR")]
    for where, params, rows, partitions in [
        ("dt = DATE '2026-11-02'", [], 30, 3),
        ("dt >= ? AND country = 'de'", [date(2026, 11, 2)], 20, 2),
        ("country = 'f r'", [], 30, 3),
        ("country IS NULL AND dt <> DATE '2026-11-01'", [], 20, 2),
        ("country IS NOT NULL", [], 60, 9),
        ("dt IN (?, ?) OR id = 35", [date(2026, 11, 1), date(2026, 12, 1)], 33, 9),
        ("year(dt) = 2026 AND id = 11", [], 3, 9),
        ("dt = DATE '2027-01-01'", [], 0, 0),
    ]:
        cursor = conn.execute(f"SELECT count(*) FROM {days} WHERE {where}", params)
        assert cursor.fetchall() == [(rows,)], where
        assert cursor.stats is not None
        assert (cursor.stats.partitions_read, cursor.stats.partitions_total) == (partitions, 9), where
    sql = f"SELECT country, dt, id, x FROM {days} WHERE id = 21 ORDER BY country NULLS LAST"
    assert conn.execute(sql).fetchall() == [(c, date(2026, 11, 2), 21, None) for c in ("de", "f r", None)]


def test_files_that_come_and_go_are_seen_by_the_next_statement(
    conn: secateur.Connection, root: Path, days: str
) -> None:
    sql = f"SELECT count(*) FROM {days} WHERE dt = DATE '2026-11-04'"
    assert conn.execute(sql).fetchall() == [(0,)]
    new = root / days / "dt=2026-11-04" / "country=de"
    new.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2], "x": ["a", "b"]}), new / "1.parquet")
    assert conn.execute(sql).fetchall() == [(2,)]
    (new / "1.parquet").unlink()
    assert conn.execute(sql).fetchall() == [(0,)]
    (root / days / "dt=nix" / "country=de").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), root / days / "dt=nix" / "country=de" / "1.parquet")
    with pytest.raises(DataError, match=r"parquet folder .*: column dt: 'nix' \(str\) does not fit DATE"):
        conn.execute(sql)
    (root / days / "dt=nix" / "country=de" / "1.parquet").unlink()
    pq.write_table(pa.table({"id": [1]}), root / days / "0.parquet")
    with pytest.raises(DataError, match=r"file 0.parquet: its folders name the columns \(\), .* by \(dt, country\)"):
        conn.execute(sql)


def test_a_damaged_file_is_named(conn: secateur.Connection, root: Path, table_name: str) -> None:
    (root / table_name).mkdir()
    (root / table_name / "a.parquet").write_bytes(b"PAR1 no")
    declared = parquet_folder(root / table_name, schema=pa.schema([("k", pa.int64())]))
    conn.register(table_name, declared)
    with pytest.raises(DataError, match=r"file .*a.parquet cannot be read as parquet"):
        conn.execute(f"SELECT * FROM {table_name}")


def test_statistics_of_another_type_than_declared_leave_nothing_out(
    conn: secateur.Connection, root: Path, table_name: str
) -> None:
    """The file has texts, in whose order '9' is the greatest; the table has numbers."""
    (root / table_name).mkdir()
    pq.write_table(pa.table({"k": ["9", "10", "100", None]}), root / table_name / "a.parquet", row_group_size=1)
    conn.execute(f"CREATE EXTERNAL TABLE {table_name} (k BIGINT) STORED AS PARQUET LOCATION '{root / table_name}'")
    assert conn.execute(f"SELECT k FROM {table_name} WHERE k > 9 ORDER BY k").fetchall() == [(10,), (100,)]


def test_nan_is_the_greatest_value_as_in_tables(conn: secateur.Connection, root: Path, table_name: str) -> None:
    (root / table_name).mkdir()
    pq.write_table(pa.table({"d": [1.0, float("nan"), None]}), root / table_name / "a.parquet", row_group_size=1)
    conn.execute(f"CREATE EXTERNAL TABLE {table_name} STORED AS PARQUET LOCATION '{root / table_name}'")
    assert conn.execute(f"SELECT count(*) FROM {table_name} WHERE d > 5").fetchall() == [(1,)]


def test_a_csv_folder_has_the_declared_types(conn: secateur.Connection, root: Path, table_name: str) -> None:
    for year, lines in ((2025, 'id,name,day\n1,"a\nb",2025-01-01\n2,,\n'), (2026, 'id,name,day\n3,"",2026-01-02\n')):
        (root / table_name / f"year={year}").mkdir(parents=True)
        (root / table_name / f"year={year}" / "part.csv").write_text(lines)
    conn.execute(
        f"CREATE EXTERNAL TABLE {table_name} (id BIGINT, name VARCHAR, day DATE) STORED AS CSV PARTITIONED BY (year)"
        f" LOCATION '{root / table_name}'"
    )
    assert conn.execute(f"SELECT * FROM {table_name} ORDER BY id").fetchall() == [
        (1, "a\nb", date(2025, 1, 1), 2025),
        (2, None, None, 2025),
        (3, "", date(2026, 1, 2), 2026),
    ]
    cursor = conn.execute(f"SELECT id FROM {table_name} WHERE year > 2025")
    assert cursor.fetchall() == [(3,)]
    assert cursor.stats is not None
    assert cursor.stats.partitions_read == 1
    conn.register(f"c_{table_name}", csv_folder(root / table_name))
    assert conn.execute(f"SELECT sum(id) FROM c_{table_name} WHERE day >= DATE '2025-01-01'").fetchall() == [(4,)]


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1", "-20", ""], [1, -20, None]),
        (["1.5", "-0.25", "1e3", "nan"], [1.5, -0.25, 1000.0, "nan"]),
        (["2024-01-01", ""], [date(2024, 1, 1), None]),
        (["10001", "00501"], ["10001", "00501"]),
        (["+49", "-0"], ["+49", "-0"]),
        (["9223372036854775808"], ["9223372036854775808"]),
        (["1", "12345678901234567890.12"], ["1", "12345678901234567890.12"]),
        (["01.5"], ["01.5"]),
        (["1e400"], ["1e400"]),
        (["", ""], [None, None]),
    ],
    ids=str,
)
def test_columns_of_a_csv_file_keep_what_is_written(
    conn: secateur.Connection, root: Path, table_name: str, texts: list[str], values: list[Any]
) -> None:
    (root / table_name).mkdir()
    lines = "".join(f"{number},{text}\n" for number, text in enumerate(texts))
    (root / table_name / "a.csv").write_text(f"k,v\n{lines}")
    conn.execute(f"CREATE EXTERNAL TABLE {table_name} STORED AS CSV LOCATION '{root / table_name}'")
    found = conn.execute(f"SELECT v FROM {table_name} ORDER BY k").fetchall()
    assert ["nan" if value != value else value for (value,) in found] == values


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        ("UUID", "7ACA8BBB-0b5d-4ee7-aab5-e32ee907368b", "7aca8bbb-0b5d-4ee7-aab5-e32ee907368b"),
        ("BLOB", r"\x00", "the data are string, which is not converted to BLOB"),
        ("INTEGER[]", "[1]", r"the data are string, which is not converted to INTEGER\[\]"),
    ],
)
def test_csv_of_types_that_arrow_reads_no_texts_of(
    conn: secateur.Connection, root: Path, table_name: str, type_: str, text: str, expected: str
) -> None:
    (root / table_name).mkdir()
    (root / table_name / "a.csv").write_text(f"k,v\n1,{text}\n")
    conn.execute(
        f"CREATE EXTERNAL TABLE {table_name} (k INTEGER, v {type_}) STORED AS CSV LOCATION '{root / table_name}'"
    )
    with nullcontext() if type_ == "UUID" else pytest.raises(DataError, match=expected):
        assert conn.execute(f"SELECT v::VARCHAR FROM {table_name} WHERE v IS NOT NULL").fetchall() == [(expected,)]


def test_a_csv_file_of_other_columns_is_refused(conn: secateur.Connection, root: Path, table_name: str) -> None:
    (root / table_name).mkdir()
    (root / table_name / "a.csv").write_text("k;v\n1;2\n")
    conn.execute(f"CREATE EXTERNAL TABLE {table_name} (k INTEGER) STORED AS CSV LOCATION '{root / table_name}'")
    with pytest.raises(DataError, match=r"its first line names none of the table's columns .k., it has 'k;v'"):
        conn.execute(f"SELECT * FROM {table_name}").fetchall()


@pytest.mark.parametrize(
    ("sql", "kind", "message"),
    [
        ("CREATE EXTERNAL TABLE x STORED AS ORC LOCATION '/'", NotSupportedError, "STORED AS ORC is not supported"),
        ("CREATE EXTERNAL TABLE x STORED AS CSV LOCATION here", SqlSyntaxError, "expected the path of a folder"),
        ("CREATE EXTERNAL TABLE x (k) STORED AS CSV LOCATION '/'", SqlSyntaxError, "expected the type of each column"),
        (
            "CREATE EXTERNAL TABLE x (k DATE) STORED AS CSV PARTITIONED BY (K) LOCATION '/'",
            SqlSyntaxError,
            "column 'K' is declared twice",
        ),
        ("CREATE EXTERNAL VIEW x AS SELECT 1", SqlSyntaxError, "expected TABLE"),
    ],
)
def test_what_cannot_be_written(conn: secateur.Connection, sql: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        conn.execute(sql)


# -- which files are read


def test_without_the_setting_no_folder_is_read(table_name: str, root: Path) -> None:
    with secateur.start(members=1, runtime="embedded") as closed, closed.connect() as conn:
        with pytest.raises(NotSupportedError, match=r"start it with external_directories=\[\.\.\.\]"):
            conn.execute(f"CREATE EXTERNAL TABLE {table_name} STORED AS PARQUET LOCATION '{root}'")
        with pytest.raises(NotSupportedError, match=r"start it with external_directories=\[\.\.\.\]"):
            conn.register(table_name, parquet_folder(root, schema=pa.schema([("k", pa.int64())])))


def test_nothing_outside_of_the_directories_is_read(
    conn: secateur.Connection, root: Path, table_name: str, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"secret": [1]}), tmp_path / "secret.parquet")
    (root / f"link_{table_name}").symlink_to(tmp_path)
    inside = root / table_name
    inside.mkdir()
    for path in (tmp_path, root / f"link_{table_name}", root / ".." / ".." / tmp_path.relative_to("/"), Path("/etc")):
        with pytest.raises(NotSupportedError, match="is not below a directory that external tables may read"):
            conn.execute(f"CREATE EXTERNAL TABLE {table_name} STORED AS PARQUET LOCATION '{path}'")
    with pytest.raises(ProgrammingError, match="give an absolute path"):
        conn.execute(f"CREATE EXTERNAL TABLE {table_name} STORED AS PARQUET LOCATION 'here'")
    with pytest.raises(ProgrammingError, match="there is no"):
        conn.execute(f"CREATE EXTERNAL TABLE {table_name} STORED AS PARQUET LOCATION '{root / 'nix'}'")
    conn.register(table_name, parquet_folder(inside, schema=pa.schema([("secret", pa.int64())])))
    (inside / "folder").symlink_to(tmp_path)
    assert conn.execute(f"SELECT * FROM {table_name}").fetchall() == []  # links to folders are not followed
    (inside / "file.parquet").symlink_to(tmp_path / "secret.parquet")
    with pytest.raises(NotSupportedError, match="is not below a directory that external tables may read"):
        conn.execute(f"SELECT * FROM {table_name}")


def test_a_plain_path_in_the_settings_is_refused() -> None:
    for directories, message in (("/tmp", "a list of paths"), (["here"], "absolute paths")):
        with pytest.raises(ProgrammingError, match=message):
            secateur.start(members=1, runtime="embedded", external_directories=directories)
