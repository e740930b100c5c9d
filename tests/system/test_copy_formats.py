"""COPY of every type in every format: the files are DuckDB's own, byte by byte, and what comes back is what went
out.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

import secateur

COLUMNS = {
    "BOOLEAN": ["true", "false"],
    "TINYINT": ["-128", "127"],
    "HUGEINT": ["-99999999999999999999999999999999999999", "170141183460469231731"],
    "UBIGINT": ["0", "18446744073709551615"],
    "FLOAT": ["1e10", "0.1", "'-inf'", "'nan'"],
    "DOUBLE": ["1e300", "0.1", "'inf'", "-0.0"],
    "DECIMAL(20, 2)": ["123456789012345678.91", "-0.05"],
    "DECIMAL(38, 37)": ["-9.9999999999999999999999999999999999999", "0"],
    "DECIMAL(38, 0)": ["99999999999999999999999999999999999999", "-1"],
    "VARCHAR": ["'x, y'", "' x'", "''", "'NULL'", "'it''s \"q\"'", "E'a\\nb'", "'é\U0001f600'"],
    "BLOB": ["'\\xAA\\x41'", "''"],
    "DATE": ["'2024-02-29'", "'0044-03-15 (BC)'", "'10000-01-01'"],
    "TIME": ["'01:02:03.5'", "'23:59:59.999999'"],
    "TIMESTAMP": ["'2024-01-02 03:04:05.678901'", "'1969-12-31 23:59:59'"],
    "TIMESTAMPTZ": ["'2024-01-02 03:04:05+02'", "'2024-01-02 03:04:05.5+00'"],
    "INTERVAL": ["'1 year 2 months 3 days 04:05:06.789'", "'40 days'"],
    "UUID": ["'00000000-0000-0000-0000-000000000001'"],
    "VARCHAR[]": ["['x, y', 'it''s']", "['NULL', NULL]", "[]", "['\"', '[', '']"],
    "DATE[]": ["['2024-01-02', NULL]"],
    "DECIMAL(20, 2)[]": ["[123456789012345678.91, 0.10]"],
    "HUGEINT[]": ["[1701411834604692317316873, NULL]"],
    "BLOB[]": ["['\\xAA']"],
    "INTERVAL[]": ["['3 days']"],
    "UUID[]": ["['00000000-0000-0000-0000-000000000001', NULL]"],
    "INTEGER[][]": ["[[1, 2], [3], []]"],
}
"""Column types, with values."""

EXPRESSIONS = [
    "MAP {'a': 1, 'b, c': NULL}",
    "{'a': 1, 'b': 'q', 'c d': [1.50::DECIMAL(20, 2)]}",
    "row(1, 'x')",
    "'happy'::ENUM ('sad', 'happy')",
    "'101'::BIT",
    "'{\"a\": [1, 2.50]}'::JSON",
    "TIMETZ '01:02:03+02'",
    "TIMESTAMP_NS '2024-01-01 00:00:00.123456789'",
    "TIMESTAMP_S '2024-01-01 00:00:01'",
    "12::UHUGEINT",
    "[{'a': TIME '01:02:03'}]",
    "[1, 2]::INTEGER[2]",
]
"""Values of types that only results have."""

FORMATS = ["csv", "json", "parquet"]


def table_sql(name: str, type_: str) -> list[str]:
    rows = ", ".join(f"({key}, {value})" for key, value in enumerate([*COLUMNS[type_], "NULL"]))
    return [f"CREATE TABLE {name} (k INTEGER PRIMARY KEY, v {type_})", f"INSERT INTO {name} VALUES {rows}"]


def same_files(form: str, ours: Path, theirs: Path) -> bool:
    if form != "parquet":
        return ours.read_bytes() == theirs.read_bytes()
    with duckdb.connect() as duck:  # whether a column may have NULL, of which a result says nothing, is no difference
        columns = [
            [row[:2] for row in duck.execute(f"DESCRIBE FROM read_parquet('{path}')").fetchall()]
            for path in (ours, theirs)
        ]
        rows = [f"FROM read_parquet('{path}')" for path in (ours, theirs)]
        differing = duck.execute(
            f"({rows[0]} EXCEPT ALL {rows[1]}) UNION ALL ({rows[1]} EXCEPT ALL {rows[0]})"
        ).fetchall()
    return columns[0] == columns[1] and not differing


@pytest.fixture
def duck() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("type_", COLUMNS)
@pytest.mark.sampled(one_in=12)
def test_every_column_type_goes_out_as_from_duckdb_and_comes_back(
    conn: secateur.Connection, duck: duckdb.DuckDBPyConnection, table_name: str, tmp_path: Path, type_: str, form: str
) -> None:
    ours, theirs = tmp_path / f"ours.{form}", tmp_path / f"theirs.{form}"
    for statement in table_sql(table_name, type_):
        conn.execute(statement)
        duck.execute(statement)
    query = f'SELECT k, v, v AS "V", [v] AS listed FROM {table_name} ORDER BY k'
    assert conn.execute(f"COPY ({query}) TO '{ours}'").rowcount == len(COLUMNS[type_]) + 1
    if form == "parquet" and "HUGEINT" in type_:  # DuckDB writes DOUBLEs
        wide = type_.replace("HUGEINT", "DECIMAL(38, 0)")
        query = f'SELECT k, v::{wide} AS v, v::{wide} AS "V", [v]::{wide}[] AS listed FROM {table_name} ORDER BY k'
    duck.execute(f"COPY ({query}) TO '{theirs}'")
    assert same_files(form, ours, theirs)

    text = f"SELECT k, v::VARCHAR FROM {table_name} ORDER BY k"
    before = conn.execute(text).fetchall()
    conn.execute(f"COPY {table_name} TO '{ours}'")
    conn.execute(f"TRUNCATE {table_name}")
    conn.execute(f"COPY {table_name} FROM '{ours}'")
    assert conn.execute(text).fetchall() == before


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.sampled(one_in=8)
def test_types_of_results_go_out_as_from_duckdb(
    conn: secateur.Connection,
    duck: duckdb.DuckDBPyConnection,
    table_name: str,
    tmp_path: Path,
    expression: str,
    form: str,
) -> None:
    ours, theirs = tmp_path / f"ours.{form}", tmp_path / f"theirs.{form}"
    conn.execute(f"CREATE TABLE {table_name} (k INTEGER PRIMARY KEY)")
    conn.execute(f"INSERT INTO {table_name} VALUES (1), (2)")
    try:
        duck.execute(f"COPY (SELECT {expression} AS v FROM range(2)) TO '{theirs}'")
    except duckdb.Error:
        with pytest.raises(secateur.Error):
            conn.execute(f"COPY (SELECT {expression} AS v FROM {table_name}) TO '{ours}'")
        return
    conn.execute(f"COPY (SELECT {expression} AS v FROM {table_name}) TO '{ours}'")
    assert same_files(form, ours, theirs)


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("csv", "HEADER false, DELIMITER '|', NULL 'NA', QUOTE '''', ESCAPE '!'"),
        ("csv", "FORCE_QUOTE (b), DATEFORMAT '%d.%m.%Y', PREFIX '[', SUFFIX ']', HEADER false"),
        ("csv", "COMPRESSION gzip"),
        ("json", "ARRAY, TIMESTAMPFORMAT '%Y', DATEFORMAT '%d/%m/%Y'"),
        ("parquet", "COMPRESSION zstd, COMPRESSION_LEVEL 3, ROW_GROUP_SIZE 2048"),
    ],
)
def test_options_are_those_of_duckdb(
    conn: secateur.Connection, duck: duckdb.DuckDBPyConnection, tmp_path: Path, form: str, said: str
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    query = (
        "SELECT i AS a, nullif('it''s ' || i, 'it''s 2') AS b, DATE '2024-01-01' + i::INTEGER AS d, TIMESTAMP"
        " '2024-01-01' AS t FROM range(3) r(i) ORDER BY i"
    )
    conn.execute(f"COPY ({query}) TO '{ours}' (FORMAT {form}, {said})")
    duck.execute(f"COPY ({query}) TO '{theirs}' (FORMAT {form}, {said})")
    assert same_files(form, ours, theirs)
    if form == "parquet":
        assert pq.ParquetFile(ours).metadata.row_group(0).column(0).compression == "ZSTD"
