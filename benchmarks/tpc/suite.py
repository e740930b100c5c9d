"""The command line of the TPC suites: load, compare, time, report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import secateur
from benchmarks.tpc.data import queries_of
from benchmarks.tpc.report import bars_of, print_report, write_json
from benchmarks.tpc.tables import TpcTable, load_cluster
from benchmarks.tpc.timing import measure_queries, measure_spark

__all__ = ["run_suite"]


def run_suite(benchmark: str, tables: Sequence[TpcTable], arguments: Sequence[str] | None = None) -> int:
    """Measure, write the JSON, print the tables.

    Args:
        benchmark: ``tpch`` or ``tpcds``: the name of its package and of its data.
        tables: Its tables.
        arguments: The command line; None for the process's own.

    Returns:
        0; with ``--check`` 1 if a bar was missed.
    """
    options = _options(benchmark, arguments)
    texts = queries_of(benchmark)
    queries = {number: texts[number] for number in options.queries or texts}
    # The kernels of all members share the cores that DuckDB gets alone.
    with secateur.start(members=options.members, runtime=options.runtime) as cluster, cluster.connect() as connection:
        _say(f"Loading {benchmark} at scale factor {options.scale} over {options.members} members ({options.runtime})")
        load_cluster(connection, tables, benchmark, options.scale, options.partitions)
        times = measure_queries(
            connection,
            queries,
            benchmark=benchmark,
            scale=options.scale,
            threads=options.threads,
            runs=options.runs,
            say=_say,
        )
    spark = (
        {}
        if options.no_spark
        else measure_spark(queries, benchmark=benchmark, scale=options.scale, threads=options.threads, say=_say)
    )
    bars = bars_of(times, spark)
    path: Path = options.json or Path("build/bench") / f"{benchmark}.json"
    settings: dict[str, Any] = {
        name: getattr(options, name) for name in ("scale", "members", "runtime", "partitions", "threads", "runs")
    }
    write_json(path, benchmark, settings, times, spark, bars)
    print_report(benchmark, settings, times, spark, bars)
    print(f"written to {path}")
    return int(options.check and not all(bar.met for bar in bars))


def _options(benchmark: str, arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{benchmark}",
        description="Queries on a cluster, in one DuckDB process and in Spark.",
    )
    parser.add_argument("--scale", default="1", help="scale factor (default: %(default)s)")
    parser.add_argument("--members", type=int, default=3, help="members (default: %(default)s)")
    parser.add_argument(
        "--runtime", choices=("ray", "embedded"), default="ray", help="where members live (default: %(default)s)"
    )
    parser.add_argument(
        "--partitions",
        type=int,
        default=6,
        help="partitions of every table that is not replicated (default: %(default)s)",
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=2,
        help="threads of DuckDB and of Spark: the cores of the machine (default: %(default)s)",
    )
    parser.add_argument("--runs", type=int, default=5, help="timed runs of each query (default: %(default)s)")
    parser.add_argument("--queries", type=_numbers, help="only these, such as 1,3 (default: all)")
    parser.add_argument("--no-spark", action="store_true", help="leave out Spark")
    parser.add_argument("--json", type=Path, help=f"where the report goes (default: build/bench/{benchmark}.json)")
    parser.add_argument("--check", action="store_true", help="fail when a bar is missed")
    return parser.parse_args(arguments)


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def _say(text: str) -> None:
    print(f"{text} ...", file=sys.stderr, flush=True)
