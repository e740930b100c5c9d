"""COPY and CREATE TABLE ... AS on a cluster: the files are DuckDB's, and what fails leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import secateur
from secateur.errors import DuplicateKeyError, NullKeyError, TableExistsError, UnknownColumnError, UnknownTableError


@pytest.fixture
def filled(conn: secateur.Connection, table_name: str) -> str:
    conn.execute(
        f"CREATE TABLE {table_name} (k INTEGER PRIMARY KEY, s VARCHAR, d DATE, n DECIMAL(10, 2), t TIMESTAMP, b"
        " BOOLEAN, f DOUBLE)"
    )
    conn.execute(
        f"INSERT INTO {table_name} VALUES (1, 'a,\"b', DATE '2020-01-01', 1.50, TIMESTAMP '2020-01-01 10:00:00.5',"
        " true, 0.1), (2, NULL, NULL, NULL, NULL, NULL, NULL), (3, 'é\nx', DATE '1969-12-31', -3, TIMESTAMP"
        " '1969-01-01', false, 1e300)"
    )
    return table_name


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet", "json"])
@pytest.mark.smoke
def test_files_go_both_ways_between_a_cluster_and_duckdb(
    conn: secateur.Connection, filled: str, tmp_path: Path, suffix: str
) -> None:
    path, back = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"
    before = conn.execute(f"SELECT * FROM {filled} ORDER BY k").fetchall()
    assert conn.execute(f"COPY {filled} TO '{path}'").rowcount == 3
    with duckdb.connect() as duck:
        duck.execute(
            "CREATE TABLE t (k INTEGER PRIMARY KEY, s VARCHAR, d DATE, n DECIMAL(10, 2), t TIMESTAMP, b BOOLEAN, f"
            " DOUBLE)"
        )
        duck.execute(f"COPY t FROM '{path}'")
        assert duck.execute("FROM t ORDER BY k").fetchall() == before
        duck.execute(f"COPY t TO '{back}'")
    conn.execute(f"TRUNCATE {filled}")
    assert conn.execute(f"COPY {filled} FROM '{back}'").rowcount == 3
    assert conn.execute(f"SELECT * FROM {filled} ORDER BY k").fetchall() == before


def test_all_of_a_file_or_nothing(conn: secateur.Connection, filled: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("8,,,,,,\n1,,,,,,\n")
    with pytest.raises(DuplicateKeyError, match="is already there"):
        conn.execute(f"COPY {filled} FROM '{path}'")
    assert conn.execute(f"SELECT count(*) FROM {filled}").fetchone() == (3,)


def test_a_query_with_parameters_is_written(conn: secateur.Connection, filled: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    assert (
        conn.execute(
            f"COPY (SELECT k, n FROM {filled} WHERE k >= ? ORDER BY k) TO '{path}' (HEADER false)", [2]
        ).rowcount
        == 2
    )
    assert path.read_text() == "2,\n3,-3.00\n"


def test_a_table_of_a_query(conn: secateur.Connection, filled: str) -> None:
    name = f"{filled}_as"
    scheme = "PRIMARY KEY (k) PARTITION BY HASH (k) PARTITIONS 3"
    assert conn.execute(f"CREATE TABLE {name} {scheme} AS SELECT k, n * 2 AS n FROM {filled} WHERE n > 0").rowcount == 1
    assert (
        conn.execute(f"SELECT * FROM {name}").fetchall()
        == conn.execute(f"SELECT k, n * 2 FROM {filled} WHERE n > 0").fetchall()
    )
    assert conn.execute(f"CREATE TABLE IF NOT EXISTS {name} PRIMARY KEY (k) AS SELECT 9 AS k").rowcount == -1
    with pytest.raises(TableExistsError):
        conn.execute(f"CREATE TABLE {name} PRIMARY KEY (k) AS SELECT 9 AS k")
    # The query of a table that is replaced may read it.
    assert (
        conn.execute(
            f"CREATE OR REPLACE TABLE {name} PRIMARY KEY (k) AS SELECT k + ? AS k FROM {name} UNION ALL SELECT ?",
            [10, 7],
        ).rowcount
        == 2
    )
    assert sorted(conn.execute(f"FROM {name}").fetchall()) == [(7,), (11,)]
    for query, error in (
        ("SELECT 1 AS k FROM range(2)", DuplicateKeyError),
        ("SELECT NULL::INTEGER AS k", NullKeyError),
        ("SELECT nope AS k", UnknownColumnError),
    ):
        with pytest.raises(error):
            conn.execute(f"CREATE OR REPLACE TABLE {name} PRIMARY KEY (k) AS {query}")
    assert sorted(conn.execute(f"FROM {name}").fetchall()) == [(7,), (11,)]
    conn.execute(f"CREATE OR REPLACE TABLE {name} (k VARCHAR PRIMARY KEY)")
    assert conn.execute(f"FROM {name}").fetchall() == []
    conn.execute(f"DROP TABLE {name}")
    conn.execute(f"CREATE VIEW {name} AS SELECT 1 AS k")
    for statement in (
        f"CREATE OR REPLACE TABLE {name} (k INTEGER PRIMARY KEY)",
        f"CREATE OR REPLACE TABLE {name} PRIMARY KEY (k) AS SELECT 1 AS k",
    ):
        with pytest.raises(TableExistsError, match="view"):
            conn.execute(statement)
    conn.execute(f"DROP VIEW {name}")


@pytest.mark.parametrize(
    ("query", "error"), [("SELECT 1 AS k FROM {t}", DuplicateKeyError), ("SELECT NULL::INTEGER AS k", NullKeyError)]
)
def test_a_table_whose_rows_do_not_fit_is_none(
    conn: secateur.Connection, filled: str, query: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        conn.execute(f"CREATE TABLE {filled}_as PRIMARY KEY (k) AS {query.format(t=filled)}")
    with pytest.raises(UnknownTableError):
        conn.execute(f"SELECT * FROM {filled}_as")
