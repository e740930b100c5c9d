"""The data and the queries of TPC-H and TPC-DS, generated once and kept under ``build/``.

Run it with ``python -m benchmarks.tpc.data tpch --scale 1``.

The generators are extensions of DuckDB 1.5.5 that packages carry, while secateur runs on a later DuckDB: they get an
environment of their own, ``build/tpc/environment``, with what pip is configured to use. Larger TPC-H data can come from
elsewhere (``tpchgen-cli`` writes the same tables): Parquet files in ``build/tpch/sf<scale>`` that are complete are
taken as they are.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

__all__ = ["BENCHMARKS", "QUERY_COUNTS", "main", "queries_of", "tables_of"]

BENCHMARKS: Final = ("tpch", "tpcds")
QUERY_COUNTS: Final = {"tpch": 22, "tpcds": 99}

_BUILD: Final = Path(__file__).parents[2] / "build"
_PACKAGES: Final = ("duckdb==1.5.5", "duckdb-extension-tpch==1.5.5", "duckdb-extension-tpcds==1.5.5")


def tables_of(benchmark: str, scale: str) -> dict[str, Path]:
    """The Parquet file of each table, generated if it is not there.

    Args:
        benchmark: ``tpch`` or ``tpcds``.
        scale: The scale factor as written, ``0.01``: 1 is about a gigabyte of text.

    Raises:
        subprocess.CalledProcessError: The environment of the generators cannot be installed, or a generator failed.
    """
    folder = _BUILD / benchmark / f"sf{scale}"
    with _alone():
        if not folder.is_dir():
            # Generated beside and moved: an interrupted run leaves nothing that looks complete.
            unfinished = folder.with_suffix(".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir(parents=True)
            subprocess.run(
                [_generator_python(), Path(__file__).with_name("dbgen.py"), "tables", benchmark, scale, unfinished],
                check=True,
            )
            unfinished.rename(folder)
    return {path.stem: path for path in sorted(folder.glob("*.parquet"))}


def queries_of(benchmark: str) -> dict[int, str]:
    """Return the texts of a benchmark's queries by number, as DuckDB's generator has them.

    Those of TPC-H have the standard's validation parameters.

    Raises:
        subprocess.CalledProcessError: As :func:`tables_of`.
    """
    file = _BUILD / benchmark / "queries.json"
    with _alone():
        if not file.is_file():
            file.parent.mkdir(parents=True, exist_ok=True)
            unfinished = file.with_suffix(".unfinished")
            subprocess.run(
                [_generator_python(), Path(__file__).with_name("dbgen.py"), "queries", benchmark, unfinished],
                check=True,
            )
            unfinished.rename(file)
    return {int(number): text for number, text in json.loads(file.read_text(encoding="utf-8")).items()}


@contextmanager
def _alone() -> Iterator[None]:
    """While open, no other process makes data or an environment: several of the tests ask for them at once."""
    _BUILD.mkdir(exist_ok=True)
    with (_BUILD / "tpc.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _generator_python() -> Path:
    """The interpreter of the generators' environment, installed at the first call."""
    folder = _BUILD / "tpc" / "environment"
    python = folder / "bin" / "python"
    installed = folder / "installed"
    if not installed.exists():
        venv.create(folder, clear=True)
        # By the pip of this environment: to install another one there takes longer than all the rest.
        pip = [sys.executable, "-m", "pip", "--python", str(python), "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", *_PACKAGES], check=True)
        installed.touch()
    return python


def main() -> int:
    """Generate a scale of a benchmark, and say where it is."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tpc.data", description="Generate the tables of TPC-H or TPC-DS."
    )
    parser.add_argument("benchmark", choices=BENCHMARKS)
    parser.add_argument("--scale", default="1", help="scale factor (default: %(default)s)")
    options = parser.parse_args()
    for table, path in tables_of(options.benchmark, options.scale).items():
        print(f"{path.stat().st_size:>12,} bytes  {table}  {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
