"""Keys of any type find in a column of any type what SQL calls equal to them, and nothing else.

DuckDB joins the same values as the oracle, in the types that Spark has for them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime, time
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

import secateur
from secateur.cluster import Cluster

pytest.importorskip("pyspark")

from secateur.connectors.spark.lookups import LookupKeys
from secateur.errors import DataError
from secateur.protocol import ResultColumn

COLUMNS = {
    "BOOLEAN": ["TRUE", "FALSE"],
    "TINYINT": ["1", "2", "-128"],
    "INTEGER": ["1", "2", "16777217"],
    "BIGINT": ["0", "1", "9007199254740993", "9007199254740992"],
    "UBIGINT": ["1", "18446744073709551615"],
    "HUGEINT": ["1", "99999999999999999999999999999999999999"],
    "FLOAT": ["0.1", "16777216", "0.0", "-0.0", "'nan'", "2.5"],
    "DOUBLE": ["0.1", "19.99", "0.0", "-0.0", "9007199254740992", "'nan'", "'infinity'", "0.57"],
    "DECIMAL(12,3)": ["0.125", "19.990", "1.000", "0.100", "0.000"],
    "DECIMAL(38,10)": ["0.1", "1.5"],
    "DECIMAL(38,38)": ["0.1"],
    "VARCHAR": ["'1'", "'x'", "'2024-01-02'", "''"],
    "BLOB": ["'x'::BLOB"],
    "DATE": ["'2024-01-02'", "'infinity'", "'0001-01-01'"],
    "TIMESTAMP": ["'2024-01-02'", "'2024-01-02 05:00:00'", "'-infinity'"],
    "TIMESTAMP WITH TIME ZONE": ["'2024-01-02 00:00:00+00'", "'2024-01-02 05:00:00+00'"],
    "TIME": ["'05:00:00'", "'05:00:00.000001'"],
    "UUID": ["'00112233-4455-6677-8899-aabbccddeeff'"],
}
KEYS = {
    "BOOLEAN": pa.array([True, None]),
    "TINYINT": pa.array([1, 2, 0], pa.int8()),
    "INTEGER": pa.array([1, 2, 16777217, None, 1], pa.int32()),
    "BIGINT": pa.array([1, 9007199254740993, 10**18, 0], pa.int64()),
    "FLOAT": pa.array([0.1, 16777216.0, -0.0, math.nan, 0.5, 2.0], pa.float32()),
    "DOUBLE": pa.array(
        [0.1, 19.99, -0.0, 9007199254740992.0, math.nan, 0.1254, 3.5, math.inf, 2.0**63, 0.10000000149011612],
        pa.float64(),
    ),
    "DECIMAL(10,2)": pa.array(
        [Decimal("19.99"), Decimal("1.00"), Decimal("0.10"), Decimal("0.57")], pa.decimal128(10, 2)
    ),
    "DECIMAL(38,0)": pa.array([Decimal(1), Decimal(10**37), Decimal(18446744073709551615)], pa.decimal128(38, 0)),
    "DECIMAL(38,18)": pa.array(
        [Decimal("0.1"), Decimal("19.99"), Decimal(1), Decimal("0.1254")], pa.decimal128(38, 18)
    ),
    "VARCHAR": pa.array(["1", "x", "2024-01-02", "", None]),
    "BLOB": pa.array([b"x", b"1"]),
    "DATE": pa.array([date(2024, 1, 2), date(1, 1, 1)]),
    "TIMESTAMP": pa.array([datetime(2024, 1, 2), datetime(2024, 1, 2, 5)]),
    "TIMESTAMP WITH TIME ZONE": pa.array(
        [datetime(2024, 1, 2, tzinfo=UTC), datetime(2024, 1, 2, 5, tzinfo=UTC)], pa.timestamp("us", "Europe/Berlin")
    ),
    "TIME": pa.array([time(5)], pa.time64("ns")),
}


@pytest.fixture(scope="module")
def tables(cluster: Cluster) -> Iterator[tuple[secateur.Connection, duckdb.DuckDBPyConnection]]:
    """A table for each type of column, with its values as the partitioning key where that is possible."""
    with cluster.connect() as conn, closing(duckdb.connect()) as oracle:
        oracle.execute("SET TimeZone = 'UTC'")
        for number, (kind, values) in enumerate(COLUMNS.items()):
            rows = ", ".join(f"({row}, CAST({value} AS {kind}))" for row, value in enumerate(values))
            key = "n" if kind in ("FLOAT", "DOUBLE", "HUGEINT", "TIME") else "k"
            conn.execute(
                f"CREATE TABLE looked_up_{number} (n INTEGER, k {kind}, PRIMARY KEY ({key})) PARTITION BY HASH ({key})"
                " PARTITIONS 7"
            )
            conn.execute(f"INSERT INTO looked_up_{number} VALUES {rows}")
            oracle.execute(f"CREATE TABLE looked_up_{number} AS SELECT * FROM (VALUES {rows}) AS v(n, k)")
        yield conn, oracle
        for number in range(len(COLUMNS)):
            conn.execute(f"DROP TABLE looked_up_{number}")


def found(conn: secateur.Connection, table: str, of_column: str, values: pa.Array) -> list[tuple[int, int]]:
    """The rows of keys with the numbers that they find in the table, as a task of a look-up finds them."""
    keys = LookupKeys.of([pa.field("given", values.type)], [ResultColumn("k", of_column)])
    given = keys.of_rows([pa.chunked_array([values])])
    rows = conn.execute(f"SELECT k, n FROM {table} WHERE k = ANY($1)", keys.parameters(given)).fetch_arrow_table()
    pairs = keys.pairs(given, [rows.column(0)], keeps_all=False)
    return sorted(zip(pairs["row"].to_pylist(), rows.column(1).take(pairs["found"]).to_pylist(), strict=True))


@pytest.mark.sampled(one_in=2)
@pytest.mark.parametrize("of_column", COLUMNS)
def test_keys_find_what_sql_calls_equal(
    tables: tuple[secateur.Connection, duckdb.DuckDBPyConnection], of_column: str
) -> None:
    conn, oracle = tables
    table = f"looked_up_{list(COLUMNS).index(of_column)}"
    for of_keys, values in KEYS.items():
        oracle.register("given", pa.table({"k": values, "row": range(len(values))}))
        try:
            oracle.execute(f"SELECT t.k = ANY([{as_compared(of_keys, of_column)}]) FROM given, {table} AS t LIMIT 0")
        except duckdb.BinderException:
            with pytest.raises(DataError, match=r"cannot be looked up in column 'k'.*cast the column of the DataFrame"):
                found(conn, table, of_column, values)
            continue
        # TRY: numbers that do not fit into one DECIMAL are not equal.
        equal = (
            f"SELECT row, n FROM given, {table} AS t WHERE TRY(t.k = {as_compared(of_keys, of_column)}) ORDER BY ALL"
        )
        assert found(conn, table, of_column, values) == oracle.execute(equal).fetchall(), of_keys


def as_compared(of_keys: str, of_column: str) -> str:
    """A key in the type in which it is compared."""
    if of_keys == "FLOAT":
        return "CAST(given.k AS DOUBLE)"  # as Spark does it
    if of_keys == "TIME":
        return "CAST(given.k AS TIME)"  # Spark's have nanoseconds, as zeros
    if (of_keys, of_column) == ("VARCHAR", "UUID"):
        return "TRY_CAST(given.k AS UUID)"
    if of_keys.startswith("DECIMAL") and of_column == "DOUBLE":
        return "CAST(CAST(given.k AS VARCHAR) AS DOUBLE)"  # the nearest, also of many digits
    return "given.k"


def test_several_columns_rows_without_a_match_and_rows_that_repeat(cluster: Cluster, table_name: str) -> None:
    with cluster.connect() as conn:
        conn.execute(f"CREATE TABLE {table_name} (a BIGINT, b DOUBLE, n INTEGER, PRIMARY KEY (a, n))")
        conn.execute(f"INSERT INTO {table_name} VALUES (1, 0.0, 10), (1, -0.0, 11), (1, 0.5, 12), (2, 0.5, 13)")
        columns = [ResultColumn("a", "BIGINT"), ResultColumn("b", "DOUBLE")]
        given = pa.table({"a": [2, 1, 1, 2, None, 1], "b": [0.5, -0.0, 0.5, 0.0, 0.5, -0.0]})
        keys = LookupKeys.of(list(given.schema), columns)
        rows = keys.of_rows(given.columns)
        answer = conn.execute(
            f"SELECT a, b, n FROM {table_name} WHERE a = ANY($1) AND b = ANY($2) ORDER BY n", keys.parameters(rows)
        ).fetch_arrow_table()
        for keeps_all in (True, False):
            pairs = keys.pairs(rows, answer.columns[:2], keeps_all=keeps_all)
            numbers = answer.column("n").take(pairs["found"])
            assert list(zip(pairs["row"].to_pylist(), numbers.to_pylist(), strict=True)) == [
                (0, 13),
                (1, 10),
                (1, 11),
                (2, 12),
                *([(3, None), (4, None)] if keeps_all else []),
                (5, 10),
                (5, 11),
            ]


def test_rows_without_keys() -> None:
    keys = LookupKeys.of([pa.field("given", pa.null())], [ResultColumn("k", "DECIMAL(12,3)")])
    rows = keys.of_rows([pa.chunked_array([pa.nulls(2)])])
    assert keys.parameters(rows) == [[]]
    assert keys.pairs(rows, [pa.chunked_array([], pa.decimal128(12, 3))], keeps_all=True).to_pydict() == {
        "row": [0, 1],
        "found": [None, None],
    }
