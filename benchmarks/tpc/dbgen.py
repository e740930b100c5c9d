"""Write the tables of a TPC benchmark as Parquet files: ``python dbgen.py tpch 1 folder``.

Runs in the generators' own environment (:mod:`benchmarks.tpc.data`), which has DuckDB 1.5.5 with its generators and nothing of secateur.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import duckdb


def generate(benchmark: str, scale: str, folder: Path) -> None:
    """Write ``folder/<table>.parquet`` for every table of ``benchmark`` (tpch or tpcds)."""
    spec = find_spec(f"duckdb_extension_{benchmark}")
    if spec is None or spec.origin is None:
        raise SystemExit(f"this environment has no duckdb-extension-{benchmark}")
    (extension,) = Path(spec.origin).parent.rglob("*.duckdb_extension")
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
        connection.execute(f"LOAD '{extension}'")
        connection.execute(f"CALL {'dbgen' if benchmark == 'tpch' else 'dsdgen'}(sf = {scale})")
        for (table,) in connection.execute("SHOW TABLES").fetchall():
            connection.execute(f"COPY {table} TO '{folder / table}.parquet' (FORMAT parquet)")


if __name__ == "__main__":
    generate(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
