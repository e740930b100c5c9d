"""The table of the suite, and the jobs over it."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from secateur.connectors import collect, table_source
from secateur.dag import DAG, between
from secateur.processors import accumulate, aggregate, combine, count_rows, sum_of

__all__ = ["DDL", "aggregated", "every_row", "make_events", "one_row", "two_stages"]

DDL: Final = (
    "CREATE TABLE events (id BIGINT, g BIGINT NOT NULL, v BIGINT NOT NULL, PRIMARY KEY (id)) PARTITION BY HASH (id)"
    " PARTITIONS 64"
)
_SEED: Final = 20240101


def make_events(rows: int, groups: int) -> pa.Table:
    """Rows with ids from 0, groups at random, and numbers below 1,000; the same ones each time."""
    random = np.random.default_rng(_SEED)
    return pa.table(
        {"id": np.arange(rows), "g": random.integers(0, groups, rows), "v": random.integers(0, 1_000, rows)}
    )


def one_row(row_id: int) -> DAG:
    """Two vertices: the row of one key, and the result."""
    dag = DAG()
    dag.new_vertex("read", table_source("events", keys=[{"id": row_id}]))
    dag.new_vertex("out", collect())
    dag.edge(between("read", "out").distributed())
    return dag


def every_row() -> DAG:
    """The same two vertices over the whole table, so on every member."""
    dag = DAG()
    dag.new_vertex("read", table_source("events"))
    dag.new_vertex("out", collect())
    dag.edge(between("read", "out").distributed())
    return dag


def aggregated() -> DAG:
    """Count and sum by group, behind a partitioned edge. The engine makes two stages of it."""
    dag = DAG()
    dag.new_vertex("scan", table_source("events", columns=["g", "v"]))
    dag.new_vertex("aggregate", aggregate(["g"], {"n": count_rows(), "s": sum_of("v")}))
    dag.new_vertex("out", collect())
    dag.edge(between("scan", "aggregate").partitioned("g").distributed())
    dag.edge(between("aggregate", "out").distributed())
    return dag


def two_stages() -> DAG:
    """The same, in two stages by hand."""
    aggregates = {"n": count_rows(), "s": sum_of("v")}
    dag = DAG()
    dag.new_vertex("scan", table_source("events", columns=["g", "v"]))
    dag.new_vertex("accumulate", accumulate(["g"], aggregates))
    dag.new_vertex("combine", combine(["g"], aggregates))
    dag.new_vertex("out", collect())
    dag.edge(between("scan", "accumulate"))
    dag.edge(between("accumulate", "combine").partitioned("g").distributed())
    dag.edge(between("combine", "out").distributed())
    return dag
