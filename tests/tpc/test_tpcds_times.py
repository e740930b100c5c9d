"""All 99 queries of TPC-DS at scale factor 0.1 on three members: the rows of DuckDB, and about its time.

The tables have the default number of partitions. DuckDB runs beside in the same process, in turn, and the best runs are
compared: what else the machine does slows both.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import duckdb
import pytest

import secateur
from benchmarks.tpc.answers import difference
from benchmarks.tpc.data import QUERY_COUNTS, queries_of, tables_of
from benchmarks.tpc.tables import create_in_duckdb, load_cluster
from benchmarks.tpcds.tables import TABLES

pytestmark = pytest.mark.slow

SCALE: Final = "0.1"
PARTITIONS: Final = 271
RUNS: Final = 3
RATIO_MAX: Final = 5.0
"""Of the time of DuckDB over its own tables."""
SHORT_MS: Final = 200.0
"""What a query may take in any case."""

Rows = list[tuple[Any, ...]]


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[secateur.Connection, duckdb.DuckDBPyConnection]]:
    """A connection to a cluster, and one to DuckDB, that have the tables."""
    try:
        tables_of("tpcds", SCALE)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"the generators cannot be installed here: {error}")
    with (
        duckdb.connect() as oracle,
        secateur.start(members=3, runtime="embedded") as cluster,
        cluster.connect() as connection,
    ):
        create_in_duckdb(oracle, "tpcds", SCALE)
        load_cluster(connection, TABLES, "tpcds", SCALE, PARTITIONS)
        for table in TABLES:  # a plan that is made before these are known is made again later
            connection.table(table.name).statistics()
        yield connection, oracle


def timed(call: Callable[[], Rows]) -> tuple[float, Rows]:
    started_s = time.perf_counter()
    rows = call()
    return (time.perf_counter() - started_s) * 1000, rows


@pytest.mark.parametrize("number", range(1, QUERY_COUNTS["tpcds"] + 1), ids=lambda number: f"q{number:02}")
def test_rows_and_time_of_duckdb(both: tuple[secateur.Connection, duckdb.DuckDBPyConnection], number: int) -> None:
    connection, oracle = both
    sql = queries_of("tpcds")[number]
    names = oracle.sql(sql).columns
    mine_ms, theirs_ms = [], []
    for run in range(1 + RUNS):  # the first execution plans, and makes what later ones use
        spent_ms, rows = timed(lambda: connection.execute(sql).fetchall())
        duckdb_ms, expected = timed(lambda: oracle.execute(sql).fetchall())
        assert difference(sql, names, rows, expected) is None
        if run:
            mine_ms.append(spent_ms)
            theirs_ms.append(duckdb_ms)
    assert min(mine_ms) <= max(SHORT_MS, RATIO_MAX * min(theirs_ms)), f"{mine_ms} ms, DuckDB {theirs_ms} ms"
