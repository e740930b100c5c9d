"""The worlds of the TPC tests: one benchmark's tables in DuckDB and in a cluster."""

from __future__ import annotations

import importlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import pytest

import secateur
from benchmarks.tpc.answers import difference
from benchmarks.tpc.data import tables_of
from benchmarks.tpc.tables import create_in_duckdb, load_cluster

PARTITIONS = 6


@dataclass(frozen=True)
class World:
    oracle: Any
    connection: secateur.Connection

    def difference(self, sql: str) -> str | None:
        """What tells the cluster's answer from DuckDB's, or None; its stages have to bind as the statement does."""
        assert "its stages" not in str(self.connection.explain(sql))
        expected = self.oracle.execute(sql).fetchall()
        names = [column[0] for column in self.oracle.description]
        cursor = self.connection.execute(sql)
        assert [column[0] for column in cursor.description or ()] == names
        return difference(sql, names, cursor.fetchall(), expected)


# Most of TPC-DS finds no row in a hundredth of its data. Where three members answer as one does, they have moved rows
# besides.
@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            (scale, members),
            id=f"sf{scale}-members{members}",
            marks=[] if (scale, members) == ("0.01", 3) else [pytest.mark.slow],
        )
        for scale in ("0.01", "1")
        for members in (1, 3)
    ],
)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """The tables of the module's ``BENCHMARK``."""
    benchmark, (scale, members) = request.module.BENCHMARK, request.param
    try:
        tables_of(benchmark, scale)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"the generators cannot be installed here: {error}")
    with (
        duckdb.connect() as oracle,
        secateur.start(members=members, runtime="embedded") as cluster,
        cluster.connect() as connection,
    ):
        create_in_duckdb(oracle, benchmark, scale)
        load_cluster(
            connection, importlib.import_module(f"benchmarks.{benchmark}.tables").TABLES, benchmark, scale, PARTITIONS
        )
        yield World(oracle, connection)
