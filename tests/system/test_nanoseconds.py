"""Nanoseconds are kept where a type has them: in SQL, Arrow, pandas and polars; Python has what DuckDB's client has."""

from __future__ import annotations

from datetime import datetime

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import secateur
from secateur.errors import DataError, NotSupportedError, ParameterError

EXACT = 1_704_164_645_678_901_234
TEXT = "2024-01-02 03:04:05.678901234"


@pytest.fixture
def table(conn: secateur.Connection, table_name: str) -> str:
    conn.execute(
        f"CREATE TABLE {table_name} (k INTEGER PRIMARY KEY, seen TIMESTAMP_NS) PARTITION BY HASH (k) PARTITIONS 3"
    )
    return table_name


def test_values_of_every_kind_are_kept(conn: secateur.Connection, table: str) -> None:
    handle = conn.table(table)
    conn.execute(f"INSERT INTO {table} VALUES (1, '{TEXT}')")
    conn.execute(f"INSERT INTO {table} VALUES (2, ?)", [TEXT])
    conn.executemany(f"INSERT INTO {table} VALUES (?, ?)", [(3, TEXT), (4, TEXT)])
    handle.put({"k": 5, "seen": pd.Timestamp(EXACT)})
    handle.put_many([{"k": 6, "seen": np.datetime64(EXACT, "ns")}, {"k": 7, "seen": TEXT}])
    handle.load([{"k": 8, "seen": pd.Timestamp(EXACT, tz="Europe/Berlin")}], mode="append")
    handle.load(pd.DataFrame({"k": [9], "seen": [pd.Timestamp(EXACT)]}), mode="append")
    handle.load(pl.DataFrame({"k": [10], "seen": pl.Series([EXACT], dtype=pl.Datetime("ns"))}), mode="append")
    conn.execute(f"UPDATE {table} SET seen = seen WHERE k > 4")
    everything = conn.execute(f"SELECT seen FROM {table} ORDER BY k")
    assert everything.fetch_arrow_table().column(0).cast("int64").to_pylist() == [EXACT] * 10
    assert conn.execute(f"SELECT seen FROM {table}").fetch_df()["seen"].astype("int64").tolist() == [EXACT] * 10
    assert conn.execute(f"SELECT seen FROM {table}").pl()["seen"].cast(pl.Int64).to_list() == [EXACT] * 10
    assert conn.execute(f"SELECT DISTINCT CAST(seen AS VARCHAR) FROM {table}").fetchall() == [(TEXT,)]
    found = conn.execute(f"SELECT count(*) FROM {table} WHERE seen = CAST(? AS TIMESTAMP_NS)", [TEXT])
    assert found.fetchall() == [(10,)]


def test_python_gets_what_duckdbs_client_gives(conn: secateur.Connection, table: str) -> None:
    conn.execute(f"INSERT INTO {table} VALUES (1, '{TEXT}'), (2, '1969-12-31 23:59:59.999999999')")
    with duckdb.connect() as oracle:
        oracle.execute(f"CREATE TABLE {table} AS FROM (VALUES (1, TIMESTAMP_NS '{TEXT}'))")
        (expected,) = oracle.execute(f"SELECT seen FROM {table} AS t(k, seen)").fetchall()
    assert expected == (datetime(2024, 1, 2, 3, 4, 5, 678901),)
    assert conn.execute(f"SELECT seen FROM {table} WHERE k = 1").fetchall() == [expected]
    assert conn.table(table).get({"k": 1}) == {"k": 1, "seen": expected[0]}


def test_what_a_column_cannot_hold_is_refused(conn: secateur.Connection, table: str) -> None:
    handle = conn.table(table)
    with pytest.raises(DataError, match=r"column seen: .* in the years 1677 to 2262"):
        handle.put({"k": 1, "seen": datetime(3000, 1, 1)})
    with pytest.raises(DataError, match=r"column seen, row 1: .* of the years 1677 to 2262"):
        handle.load(pl.DataFrame({"k": [1], "seen": [datetime(3000, 1, 1)]}), mode="append")
    with pytest.raises(ParameterError, match="pass its text and CAST that to TIMESTAMP_NS"):
        conn.execute(f"INSERT INTO {table} VALUES (1, ?)", [pd.Timestamp(EXACT)])
    assert conn.execute(f"SELECT count(*) FROM {table}").fetchall() == [(0,)]


def test_frames_make_microseconds_and_lose_nothing(conn: secateur.Connection, table_name: str) -> None:
    frame = pd.DataFrame({"k": [1], "seen": [pd.Timestamp(EXACT)]})
    made = conn.create_table(table_name, like=frame, primary_key=["k"])
    assert dict(row[:2] for row in conn.execute(f"DESCRIBE {table_name}").fetchall())["seen"] == "TIMESTAMP"
    with pytest.raises(DataError, match=r"column seen, row 1: .* which holds whole microseconds"):
        made.load(frame, mode="append")


def test_an_external_table_has_no_other_unit(conn: secateur.Connection, table_name: str) -> None:
    with pytest.raises(
        NotSupportedError, match=r"TIMESTAMP_NS\[\] in an external table is not supported: use TIMESTAMP"
    ):
        conn.execute(f"CREATE EXTERNAL TABLE {table_name} (seen TIMESTAMP_NS[]) STORED AS PARQUET LOCATION '/tmp'")
