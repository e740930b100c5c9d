"""Times of a benchmark's queries: on a cluster, in one DuckDB process and in Spark, over the same files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import fmean, median
from typing import Any, Final

import duckdb
import psutil
import pyarrow.parquet as pq
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

from benchmarks.tpc.answers import difference
from benchmarks.tpc.data import tables_of
from benchmarks.tpc.tables import create_in_duckdb
from secateur import Connection

__all__ = ["QueryTimes", "measure_queries", "measure_spark"]

_WARM_UP_RUNS: Final = 1
_SPARK_RUNS: Final = 3


@dataclass(frozen=True, slots=True)
class QueryTimes:
    """Medians of one query, in milliseconds, from the text to an Arrow table at the client.

    Processor times are means of all processes together: unlike the others they hardly depend on what else the machine
    does.

    Attributes:
        number: The query.
        rows: Of the answer.
        execution: The rung on which the cluster answered.
        secateur_ms: On the cluster, planned before.
        secateur_low_ms: The fastest run of them.
        secateur_high_ms: The slowest.
        plan_ms: What planning the text adds to its first execution: an EXPLAIN of a text that is new.
        arrow_ms: One DuckDB process over the same rows as Arrow tables: the kernel without exchange, what a cluster of
            one member would need.
        duckdb_ms: One DuckDB process over its own tables.
        secateur_cpu_ms: Processor time of client, controller and members.
        duckdb_cpu_ms: Processor time of that DuckDB.
    """

    number: int
    rows: int
    execution: str
    secateur_ms: float
    secateur_low_ms: float
    secateur_high_ms: float
    plan_ms: float
    arrow_ms: float
    duckdb_ms: float
    secateur_cpu_ms: float
    duckdb_cpu_ms: float


def measure_queries(
    connection: Connection,
    queries: Mapping[int, str],
    *,
    benchmark: str,
    scale: str,
    threads: int,
    runs: int,
    say: Callable[[str], None],
) -> list[QueryTimes]:
    """Time every query on the cluster and in DuckDB, alternately, after their answers were compared.

    Args:
        connection: To a cluster that has the tables.
        queries: Texts by number.
        benchmark: As :func:`benchmarks.tpc.data.tables_of`.
        scale: As there.
        threads: Of the DuckDB process.
        runs: Timed runs of each.
        say: Told the number of each query as it begins.

    Raises:
        SystemExit: An answer is not DuckDB's.
    """
    with (
        duckdb.connect(config={"threads": str(threads)}) as native,
        duckdb.connect(config={"threads": str(threads)}) as over_arrow,
    ):
        create_in_duckdb(native, benchmark, scale)
        for name, path in tables_of(benchmark, scale).items():
            over_arrow.register(name, pq.read_table(path))
        times = []
        for number, sql in queries.items():
            say(f"q{number:02}")
            _compare(connection, native, number, sql)
            times.append(_measure_query(connection, native, over_arrow, number, sql, runs))
        return times


def _compare(connection: Connection, oracle: Any, number: int, sql: str) -> None:
    expected = oracle.execute(sql).fetchall()
    names = [column[0] for column in oracle.description]
    told_apart = difference(sql, names, connection.execute(sql).fetchall(), expected)
    if told_apart is not None:
        raise SystemExit(f"q{number:02} is not DuckDB's answer: {told_apart}. No times are taken from wrong answers")


def _measure_query(
    connection: Connection, native: Any, over_arrow: Any, number: int, sql: str, runs: int
) -> QueryTimes:
    new_texts = (f"/* {number} {time.monotonic_ns()} */ {sql}" for _ in range(_WARM_UP_RUNS + runs))
    taken = _in_turn(
        {
            "secateur": lambda: connection.execute(sql).fetch_arrow_table(),
            "plan": lambda: connection.explain(next(new_texts)),
            "arrow": lambda: over_arrow.sql(sql).to_arrow_table(),
            "duckdb": lambda: native.sql(sql).to_arrow_table(),
        },
        runs,
    )
    cursor = connection.execute(sql)
    return QueryTimes(
        number=number,
        rows=cursor.fetch_arrow_table().num_rows,
        execution="" if cursor.stats is None else str(cursor.stats.execution),
        secateur_ms=median(taken["secateur"].wall_ms),
        secateur_low_ms=min(taken["secateur"].wall_ms),
        secateur_high_ms=max(taken["secateur"].wall_ms),
        plan_ms=median(taken["plan"].wall_ms),
        arrow_ms=median(taken["arrow"].wall_ms),
        duckdb_ms=median(taken["duckdb"].wall_ms),
        secateur_cpu_ms=fmean(taken["secateur"].cpu_ms),
        duckdb_cpu_ms=fmean(taken["duckdb"].cpu_ms),
    )


def measure_spark(
    queries: Mapping[int, str], *, benchmark: str, scale: str, threads: int, say: Callable[[str], None]
) -> dict[int, float]:
    """Return the median milliseconds of each query in Spark over cached tables, to an Arrow table at the driver.

    Queries that Spark does not support are left out.

    Args:
        queries: Texts by number.
        benchmark: As :func:`benchmarks.tpc.data.tables_of`.
        scale: As there.
        threads: Of Spark's local master.
        say: Told the number of each query as it begins.
    """
    with _spark(threads) as spark:
        for name, path in tables_of(benchmark, scale).items():
            spark.read.parquet(str(path)).createOrReplaceTempView(name)
            spark.sql(f"CACHE TABLE {name}")
        found = {}
        for number, sql in queries.items():
            say(f"Spark q{number:02}")
            try:
                spark.sql(sql)
            except (ParseException, AnalysisException):
                continue
            found[number] = median(
                _in_turn({"spark": partial(_run_in_spark, spark, sql)}, _SPARK_RUNS)["spark"].wall_ms
            )
        return found


def _run_in_spark(spark: SparkSession, sql: str) -> object:
    return spark.sql(sql).toArrow()


@contextmanager
def _spark(threads: int) -> Iterator[SparkSession]:
    spark = (
        SparkSession.builder.master(f"local[{threads}]")
        .appName("secateur TPC benchmark")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "6g")
        .config("spark.sql.shuffle.partitions", 2 * threads)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.ansi.doubleQuotedIdentifiers", True)
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
        .getOrCreate()
    )
    try:
        spark.sparkContext.setLogLevel("ERROR")
        yield spark
    finally:
        spark.stop()


@dataclass(frozen=True, slots=True)
class _Runs:
    """Milliseconds of each run: on the wall, and of the processors in this process and all that it started."""

    wall_ms: list[float]
    cpu_ms: list[float]


def _in_turn(candidates: Mapping[str, Callable[[], object]], runs: int) -> dict[str, _Runs]:
    """Time each candidate in alternating rounds, without the warm-up."""
    taken = {name: _Runs([], []) for name in candidates}
    for run in range(_WARM_UP_RUNS + runs):
        for name, call in candidates.items():
            cpu_s, started_s = _cpu_s(), time.perf_counter()
            call()
            wall_s = time.perf_counter() - started_s
            if run >= _WARM_UP_RUNS:
                taken[name].wall_ms.append(wall_s * 1000)
                taken[name].cpu_ms.append((_cpu_s() - cpu_s) * 1000)
    return taken


def _cpu_s() -> float:
    """Processor time of this process, to the nanosecond, and of all that it started, to the hundredth of a second."""
    times = [child.cpu_times() for child in psutil.Process().children(recursive=True)]
    return time.process_time() + sum(spent.user + spent.system for spent in times)
