"""Rate of a Spark load beside Spark writing the same rows as Parquet, in alternating runs."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import secateur
from secateur import Connection

__all__ = ["CONTROL", "LoadResult", "measure_load"]

CONTROL: Final = "Spark writes Parquet"
_CANDIDATE: Final = "Spark loads secateur"
_WARM_UP_RUNS: Final = 2
_TIMED_RUNS: Final = 5


@dataclass(frozen=True, slots=True)
class LoadResult:
    """Rates of one candidate.

    Attributes:
        name: Who writes what.
        runs: Runs timed.
        rows_per_s: Median.
        low_rows_per_s: Of the slowest run.
        high_rows_per_s: Of the fastest run.
    """

    name: str
    runs: int
    rows_per_s: float
    low_rows_per_s: float
    high_rows_per_s: float


def measure_load(connection: Connection, address: str, orders: pa.Table) -> list[LoadResult]:
    """Load ``orders`` with Spark again and again, overwriting; the table exists and has the right columns.

    Returns:
        The control first. The DataFrame is cached in Spark before, so that reading it is in neither time.

    Raises:
        SystemExit: The table does not hold the rows afterwards.
    """
    with tempfile.TemporaryDirectory(prefix="secateur-bench-") as scratch:
        folder = Path(scratch)
        spark = (
            SparkSession.builder.master("local[*]")
            .appName("secateur serving benchmark")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.memory", "3g")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.warehouse.dir", (folder / "warehouse").as_uri())
            .config("spark.ui.enabled", False)
            .config("spark.ui.showConsoleProgress", False)
            .getOrCreate()
        )
        try:
            spark.sparkContext.setLogLevel("ERROR")
            pq.write_table(orders, folder / "orders.parquet")
            frame = (
                spark.read.parquet(str(folder / "orders.parquet"))
                .repartition(spark.sparkContext.defaultParallelism)
                .cache()
            )
            frame.count()
            writers: dict[str, Callable[[], object]] = {
                CONTROL: lambda: frame.write.mode("overwrite").parquet(str(folder / "written")),
                _CANDIDATE: lambda: secateur.spark.write(frame, "orders", mode="overwrite", address=address),
            }
            rates: dict[str, list[float]] = {name: [] for name in writers}
            for run in range(_WARM_UP_RUNS + _TIMED_RUNS):
                for name, write in writers.items():
                    started = time.perf_counter()
                    write()
                    if run >= _WARM_UP_RUNS:
                        rates[name].append(orders.num_rows / (time.perf_counter() - started))
        finally:
            spark.stop()
    _compare_rows(connection, orders)
    return [LoadResult(name, len(runs), median(runs), min(runs), max(runs)) for name, runs in rates.items()]


def _compare_rows(connection: Connection, orders: pa.Table) -> None:
    sql = "SELECT customer_id, order_id, status, day, quantity, price FROM orders"
    order = [("customer_id", "ascending"), ("order_id", "ascending")]
    loaded = connection.execute(sql).fetch_arrow_table().cast(orders.schema).sort_by(order)
    if not loaded.equals(orders.sort_by(order)):
        raise SystemExit(f"after the Spark load the table does not hold the {orders.num_rows} rows that were loaded")
