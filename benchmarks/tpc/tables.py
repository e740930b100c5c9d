"""Tables of a TPC benchmark in a cluster, and the same in one DuckDB process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

import secateur
from benchmarks.tpc.data import tables_of

__all__ = ["TpcTable", "create_in_duckdb", "create_table", "load_cluster"]


@dataclass(frozen=True, slots=True)
class TpcTable:
    """How a table lies in a cluster.

    Attributes:
        name: The table.
        primary_key: Its key as the benchmark's standard has it.
        hash_column: The column of the key by which rows are partitioned; None for a table that every member holds.
    """

    name: str
    primary_key: tuple[str, ...]
    hash_column: str | None = None


def create_table(table: TpcTable, path: Path, partitions: int) -> str:
    """The CREATE TABLE of a table, with the columns of its Parquet file."""
    columns = duckdb.execute("DESCRIBE FROM read_parquet($1)", [str(path)]).fetchall()
    elements = [f"{name} {kind}" for name, kind, *_ in columns] + [f"PRIMARY KEY ({', '.join(table.primary_key)})"]
    body = ",\n    ".join(elements)
    where = (
        "REPLICATED"
        if table.hash_column is None
        else f"PARTITION BY HASH ({table.hash_column}) PARTITIONS {partitions} BACKUPS 0"
    )
    return f"CREATE TABLE {table.name} (\n    {body}\n) {where}"


def load_cluster(
    connection: secateur.Connection, tables: Sequence[TpcTable], benchmark: str, scale: str, partitions: int
) -> None:
    """Create the tables of a benchmark and load them.

    Tables hashed by keys of one type are co-located: their partition counts are equal.
    """
    paths = tables_of(benchmark, scale)
    for table in tables:
        connection.execute(create_table(table, paths[table.name], partitions))
        connection.table(table.name).load(pq.read_table(paths[table.name]))


def create_in_duckdb(connection: Any, benchmark: str, scale: str) -> None:
    """The same tables as DuckDB's own."""
    for name, path in tables_of(benchmark, scale).items():
        connection.execute(f"CREATE TABLE {name} AS FROM read_parquet('{path}')")
