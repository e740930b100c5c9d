"""Writes the tables of a TPC benchmark as Parquet files, or its queries.

``python dbgen.py tables tpch 1 FOLDER`` or ``python dbgen.py queries tpch FILE``.

Runs in the generators' own environment (:mod:`benchmarks.tpc.data`), which has DuckDB 1.5.5 with its generators and
nothing of secateur.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb


def generate_tables(benchmark: str, scale: str, folder: str) -> None:
    """Write ``folder/<table>.parquet`` for every table of ``benchmark`` (tpch or tpcds)."""
    with _generator(benchmark) as connection:
        connection.execute(f"CALL {'dbgen' if benchmark == 'tpch' else 'dsdgen'}(sf = {scale})")
        for (table,) in connection.execute("SHOW TABLES").fetchall():
            connection.execute(f"COPY {table} TO '{Path(folder) / table}.parquet' (FORMAT parquet)")


def generate_queries(benchmark: str, file: str) -> None:
    """Write the texts of all queries as a JSON object, by number."""
    with _generator(benchmark) as connection:
        rows = connection.execute(f"SELECT query_nr, query FROM {benchmark}_queries() ORDER BY query_nr").fetchall()
    Path(file).write_text(
        json.dumps({number: text.strip().removesuffix(";") for number, text in rows}), encoding="utf-8"
    )


def _generator(benchmark: str) -> Any:
    """A database with the extension of a benchmark."""
    spec = find_spec(f"duckdb_extension_{benchmark}")
    if spec is None or spec.origin is None:
        raise SystemExit(f"this environment has no duckdb-extension-{benchmark}")
    (extension,) = Path(spec.origin).parent.rglob("*.duckdb_extension")
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    connection.execute(f"LOAD '{extension}'")
    return connection


if __name__ == "__main__":
    if sys.argv[1] == "tables":
        generate_tables(sys.argv[2], sys.argv[3], sys.argv[4])
    else:
        generate_queries(sys.argv[2], sys.argv[3])
