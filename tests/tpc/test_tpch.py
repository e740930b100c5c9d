"""All 22 queries of TPC-H on one and on three members: the rows of DuckDB over the same files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import benchmarks.tpch
from benchmarks.tpc.tables import queries_in

BENCHMARK = "tpch"
QUERIES = queries_in(Path(benchmarks.tpch.__path__[0]))


def test_all_queries_are_here() -> None:
    assert list(QUERIES) == list(range(1, 23))


@pytest.mark.parametrize("number", QUERIES, ids=lambda number: f"q{number:02}")
def test_same_rows_as_duckdb(world: Any, number: int) -> None:
    assert world.difference(QUERIES[number]) is None
