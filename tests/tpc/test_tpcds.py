"""All 99 queries of TPC-DS on one and on three members: the rows of DuckDB over the same files."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.tpc.data import QUERY_COUNTS, queries_of

BENCHMARK = "tpcds"


def test_all_queries_are_here(world: Any) -> None:
    assert list(queries_of(BENCHMARK)) == list(range(1, QUERY_COUNTS[BENCHMARK] + 1))


@pytest.mark.parametrize("number", range(1, QUERY_COUNTS[BENCHMARK] + 1), ids=lambda number: f"q{number:02}")
@pytest.mark.sampled(one_in=8)
def test_same_rows_as_duckdb(world: Any, number: int) -> None:
    assert world.difference(queries_of(BENCHMARK)[number]) is None
