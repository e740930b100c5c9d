"""At which rate does Spark load a table of secateur, and what does a load take of the members' memory?

Data: orders of a hundred per customer, about a hundred bytes each, which Spark computes while it writes them; hashed by
customer over 64 partitions of three Ray members, without backups.
Controls: in the same run, in alternating rounds, Spark writes the same DataFrame as Parquet to this machine's disk. A
tenth of the rows is written to a PostgreSQL by JDBC, once, where the distribution has PostgreSQL and its driver.
Metric: the median over rounds of the ratio of the rates within a round. Memory is that of the members' processes while
the first load goes into the empty table, at most, and after it.

Run: ``python -m benchmarks.spark_write [--rows N] [--rounds N] [--check]``.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

import psutil
from pyspark.sql import DataFrame, SparkSession

import secateur
from benchmarks.installed_servers import NotInstalledError, postgres_server
from benchmarks.record import Bar, print_bars, with_byte_code

_DDL: Final = (
    "CREATE TABLE orders (customer VARCHAR, id BIGINT, day DATE, price DOUBLE, quantity INTEGER, note VARCHAR,"
    " PRIMARY KEY (customer, id)) PARTITION BY HASH (customer) PARTITIONS 64 BACKUPS 0"
)
_ORDERS_PER_CUSTOMER: Final = 100
_PARQUET_BOUND: Final = 0.8
_MEMORY_BOUND: Final = 1.5
_JDBC_BOUND: Final = 10.0
_SAMPLE_S: Final = 0.2
_POSTGRES_DRIVER: Final = Path("/usr/share/java/postgresql.jar")


def main() -> int:
    """Start the cluster and Spark, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the DataFrame")
    parser.add_argument("--rounds", type=int, default=5, help="alternating rounds")
    parser.add_argument("--driver", type=Path, default=_POSTGRES_DRIVER, help="the JDBC driver of PostgreSQL")
    parser.add_argument("--check", action="store_true", help="fail when a bar is missed")
    options = parser.parse_args()
    with_byte_code()
    with (
        tempfile.TemporaryDirectory(prefix="secateur-bench-") as scratch,
        secateur.start(members=3, runtime="ray", start_timeout_s=600.0, member_silence_s=60.0) as cluster,
        cluster.connect() as connection,
    ):
        connection.execute(_DDL)
        session = (
            SparkSession.builder.master("local[*]")
            .appName("secateur write benchmark")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.memory", "3g")
            .config("spark.sql.warehouse.dir", (Path(scratch) / "warehouse").as_uri())
            .config("spark.ui.enabled", False)
            .config("spark.ui.showConsoleProgress", False)
        )
        if options.driver.is_file():
            session = session.config("spark.jars", str(options.driver))
        spark = session.getOrCreate()
        try:
            spark.sparkContext.setLogLevel("ERROR")
            bars = list(_measured(spark, connection, cluster.address, Path(scratch), options))
        finally:
            spark.stop()
    print_bars(bars)
    return int(options.check and not all(bar.met for bar in bars))


def _measured(
    spark: SparkSession, connection: secateur.Connection, address: str, scratch: Path, options: argparse.Namespace
) -> Iterator[Bar]:
    orders = _orders(spark, options.rows)

    def parquet() -> None:
        orders.write.mode("overwrite").parquet(str(scratch / "orders"))

    def load() -> None:
        assert secateur.spark.write(orders, "orders", mode="overwrite", address=address).rows == options.rows

    _seconds(parquet)
    before = _memory()
    with _highest_memory() as highest:
        first_s = _seconds(load)
    after = _memory()
    ((stored,),) = connection.execute("SELECT CAST(sum(bytes) AS BIGINT) FROM secateur.members").fetchall()
    print(
        f"first load: {first_s:.1f} s; members' memory {before >> 20} MiB before, {highest[0] >> 20} MiB at most,"
        f" {after >> 20} MiB after; {stored >> 20} MiB of rows"
    )
    totals = "count(*), sum(id), sum(quantity), max(note)"
    expected = tuple(spark.read.parquet(str(scratch / "orders")).selectExpr(*totals.split(", ")).collect()[0])
    assert connection.execute(f"SELECT {totals} FROM orders").fetchone() == expected
    what = "what a load adds to members' memory at most, to what it leaves there,"
    yield Bar.at_most(what, (highest[0] - before) / (after - before), _MEMORY_BOUND)
    taken_s = [(_seconds(parquet), _seconds(load)) for _ in range(options.rounds)]
    for name, seconds in zip(("Parquet", "load"), zip(*taken_s, strict=True), strict=True):
        rate = options.rows / median(seconds)
        print(f"{name}: {median(seconds):.1f} s, {min(seconds):.1f} to {max(seconds):.1f}; {rate:,.0f} rows/s")
    ratio = median(one / other for one, other in taken_s)
    yield Bar.at_least("the rate of a load, to that of Parquet,", ratio, _PARQUET_BOUND)
    if not options.driver.is_file():
        print(f"not compared with PostgreSQL: its JDBC driver is not installed: there is no {options.driver}")
        return
    some = _orders(spark, options.rows // 10)
    try:
        with postgres_server() as port:
            url = f"jdbc:postgresql://127.0.0.1:{port}/postgres?user=bench"
            jdbc_s = _seconds(lambda: some.write.jdbc(url, "orders", "append", {"driver": "org.postgresql.Driver"}))
    except NotInstalledError as error:
        print(f"not compared: {error}")
        return
    print(f"PostgreSQL by JDBC: {jdbc_s:.1f} s; {options.rows // 10 / jdbc_s:,.0f} rows/s")
    jdbc_rate, load_rate = options.rows // 10 / jdbc_s, options.rows / median(second for _, second in taken_s)
    yield Bar.at_least("the rate of a load, to that of JDBC to a PostgreSQL,", load_rate / jdbc_rate, _JDBC_BOUND)


def _orders(spark: SparkSession, rows: int) -> DataFrame:
    return spark.range(0, rows, 1, 2 * spark.sparkContext.defaultParallelism).selectExpr(
        f"concat('C', cast(id % {max(1, rows // _ORDERS_PER_CUSTOMER)} as string)) AS customer",
        "id",
        "date_add(DATE '2022-01-01', cast(id % 365 as int)) AS day",
        "(id % 10007) / 100.0D AS price",
        "cast(id % 13 as int) AS quantity",
        "concat('order ', lpad(cast(id as string), 10, '0'), ' of the day, with a note of some length') AS note",
    )


def _seconds(work: Any) -> float:
    began_s = time.perf_counter()
    work()
    return time.perf_counter() - began_s


def _memory() -> int:
    """The resident memory of Ray's workers, of which the members are the large ones."""
    return sum(_resident(process) for process in psutil.Process().children(recursive=True))


def _resident(process: Any) -> int:
    try:
        return int(process.memory_info().rss) if process.name().startswith("ray::") else 0
    except psutil.NoSuchProcess:
        return 0


@contextmanager
def _highest_memory() -> Iterator[list[int]]:
    """The largest memory of the members while the block runs."""
    highest, ended = [0], threading.Event()

    def sample() -> None:
        while not ended.wait(_SAMPLE_S):
            highest[0] = max(highest[0], _memory())

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield highest
    finally:
        ended.set()
        thread.join()


if __name__ == "__main__":
    raise SystemExit(main())
