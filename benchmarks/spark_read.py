"""What does Spark pay to read a table of secateur?

Questions: what does one key cost beside a Spark job that reads one row of nothing, a full read beside Parquet, and a
look-up of keys beside the join of a full read?
Data: orders of a hundred per customer, no value NULL, hashed by customer over 64 partitions of three Ray members.
Control: in the same run, in alternating rounds: a Python data source with one row; the same rows as Parquet on this
machine's disk, read into Spark's ``noop`` sink as secateur's are; the DataFrame of keys joined with a DataFrame of the
whole table. The answers are compared first. Metric: the median over rounds of the ratio within a round.
The most that a full read could reach is printed beside it: a Python data source whose tasks have the same rows as
Arrow in memory-mapped files, without a cluster.

Run: ``python -m benchmarks.spark_read [--rows N] [--keys N] [--rounds N] [--unix-sockets] [--check]``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

import secateur
from benchmarks.record import Bar, print_bars, with_byte_code

_DDL: Final = (
    "CREATE TABLE orders (customer VARCHAR, id BIGINT, day DATE NOT NULL, price DOUBLE NOT NULL,"
    " quantity INTEGER NOT NULL, note VARCHAR NOT NULL,"
    " PRIMARY KEY (customer, id)) PARTITION BY HASH (customer) PARTITIONS 64"
)
_ORDERS_PER_CUSTOMER: Final = 100
_ROWS_PER_LOAD: Final = 1_000_000
_BATCH_ROWS: Final = 65_536
_SHORT: Final = 5
"""Jobs of a third of a second scatter by as much, and are repeated more often."""
_ONE_KEY_BOUND: Final = 1.3
_FULL_READ_BOUND: Final = 0.7
_LOOKUP_BOUND: Final = 5.0


class OneRow(DataSource):
    """A Python data source with one row, which is read from nowhere: what such a source costs at least."""

    @classmethod
    def name(cls) -> str:
        return "one_row"

    def schema(self) -> str:
        return "n BIGINT"

    def reader(self, schema: Any) -> DataSourceReader:
        return _OneRowReader()


class _OneRowReader(DataSourceReader):
    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"n": pa.array([1], pa.int64())})


class ArrowFiles(DataSource):
    """A Python data source over Arrow files of a folder, two tasks for each: what one can reach at most."""

    @classmethod
    def name(cls) -> str:
        return "arrow_files"

    def schema(self) -> str:
        return "customer STRING, id BIGINT, day DATE, price DOUBLE, quantity INT, note STRING"

    def reader(self, schema: Any) -> DataSourceReader:
        return _ArrowFilesReader(self.options["path"])


class _ArrowFilesReader(DataSourceReader):
    def __init__(self, folder: str) -> None:
        self._folder = folder

    def partitions(self) -> list[InputPartition]:
        files = sorted(str(path) for path in Path(self._folder).glob("*.arrow"))
        return [InputPartition((file, half)) for file in files for half in (0, 1)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        file, half = partition.value
        batches = pa.ipc.open_file(pa.memory_map(file))
        for number in range(half, batches.num_record_batches, 2):
            yield batches.get_batch(number)


def main() -> int:
    """Start the cluster and Spark, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the table")
    parser.add_argument("--keys", type=int, default=10_000, help="keys that are looked up")
    parser.add_argument("--rounds", type=int, default=7, help="alternating rounds")
    parser.add_argument(
        "--unix-sockets",
        action="store_true",
        help="Spark's workers and its JVM speak through Unix sockets (spark.python.unix.domain.socket.enabled)",
    )
    parser.add_argument("--check", action="store_true", help="fail when a bar is missed")
    options = parser.parse_args()
    with_byte_code()
    with (
        tempfile.TemporaryDirectory(prefix="secateur-bench-") as scratch,
        secateur.start(members=3, runtime="ray", start_timeout_s=600.0) as cluster,
        cluster.connect() as connection,
    ):
        connection.execute(_DDL)
        folder = Path(scratch) / "orders"
        folder.mkdir()
        for start in range(0, options.rows, _ROWS_PER_LOAD):
            stop = min(start + _ROWS_PER_LOAD, options.rows)
            rows = _orders(start, stop, options.rows // _ORDERS_PER_CUSTOMER)
            connection.table("orders").load(rows)
            pq.write_table(rows, folder / f"{start:012d}.parquet")
            with pa.ipc.new_file(folder / f"{start:012d}.arrow", rows.schema) as file:
                file.write_table(rows, max_chunksize=_BATCH_ROWS)
        spark = (
            SparkSession.builder.master("local[*]")
            .appName("secateur read benchmark")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.memory", "4g")
            .config("spark.sql.warehouse.dir", (Path(scratch) / "warehouse").as_uri())
            .config("spark.python.unix.domain.socket.enabled", options.unix_sockets)
            .config("spark.ui.enabled", False)
            .config("spark.ui.showConsoleProgress", False)
            .getOrCreate()
        )
        try:
            spark.sparkContext.setLogLevel("ERROR")
            spark.dataSource.register(OneRow)
            spark.dataSource.register(ArrowFiles)
            bars = list(_measured(spark, cluster.address, folder, options))
        finally:
            spark.stop()
    print_bars(bars)
    return int(options.check and not all(bar.met for bar in bars))


def _measured(spark: SparkSession, address: str, folder: Path, options: argparse.Namespace) -> Iterator[Bar]:
    customers = options.rows // _ORDERS_PER_CUSTOMER

    def orders(**said: Any) -> DataFrame:
        return secateur.spark.read(spark, "orders", address=address, **said)

    def one_key(round_: int) -> list[Any]:
        key = f"C{(round_ * 7919) % customers}"
        return orders(where="customer = ?", params=[key]).collect()

    found = one_key(3)
    assert len(found) == _ORDERS_PER_CUSTOMER, found
    taken_s = _alternating(
        {
            "one key": one_key,
            "one row of nothing": lambda _: spark.read.format("one_row").load().collect(),
        },
        _SHORT * options.rounds,
    )
    yield _ratio("one key", "one row of nothing", taken_s, Bar.at_most, _ONE_KEY_BOUND)

    def totals(df: DataFrame) -> tuple[Any, ...]:
        return tuple(df.selectExpr("count(*)", "sum(id)", "sum(quantity)", "max(note)").collect()[0])

    parquet = spark.read.parquet(str(folder / "*.parquet"))
    bare = spark.read.format("arrow_files").load(str(folder))
    assert totals(orders()) == totals(parquet) == totals(bare)

    def drained(df: DataFrame) -> None:
        df.write.format("noop").mode("overwrite").save()

    taken_s = _alternating(
        {
            "full read": lambda _: drained(orders()),
            "Parquet": lambda _: drained(spark.read.parquet(str(folder / "*.parquet"))),
            "bare source": lambda _: drained(spark.read.format("arrow_files").load(str(folder))),
        },
        options.rounds,
    )
    inverse = {name: [1 / second_s for second_s in seconds] for name, seconds in taken_s.items()}
    most = _ratio("bare source", "Parquet", taken_s, Bar.at_least, _FULL_READ_BOUND, of=inverse)
    print(f"a Python data source without a cluster reaches {most.ratio:.2f} of the rate of Parquet")
    yield _ratio("full read", "Parquet", taken_s, Bar.at_least, _FULL_READ_BOUND, of=inverse)

    ids = np.random.default_rng(1).choice(options.rows, min(options.keys, options.rows), replace=False)
    keys = spark.createDataFrame(
        pa.table({"customer": [f"C{number % customers}" for number in ids.tolist()], "id": ids.tolist()})
    )
    keys = keys.cache()
    assert keys.count() == len(ids)

    def looked_up() -> DataFrame:
        return secateur.spark.lookup(keys, "orders", ["customer", "id"], address=address)

    assert totals(looked_up()) == totals(keys.join(parquet, ["customer", "id"]))
    taken_s = _alternating(
        {
            "join of a full read": lambda _: drained(keys.join(orders(), ["customer", "id"])),
            "look-up": lambda _: drained(looked_up()),
        },
        options.rounds,
    )
    yield _ratio("join of a full read", "look-up", taken_s, Bar.at_least, _LOOKUP_BOUND)


def _alternating(candidates: dict[str, Callable[[int], object]], rounds: int) -> dict[str, list[float]]:
    """The seconds that each candidate takes in each round, in turns; the first round does not count."""
    taken: defaultdict[str, list[float]] = defaultdict(list)
    for round_ in range(rounds + 1):
        for name, work in candidates.items():
            began_s = time.perf_counter()
            work(round_)
            taken[name].append(time.perf_counter() - began_s)
    return {name: found[1:] for name, found in taken.items()}


def _ratio(
    candidate: str,
    control: str,
    taken_s: dict[str, list[float]],
    bar: Callable[[str, float, float], Bar],
    bound: float,
    *,
    of: dict[str, list[float]] | None = None,
) -> Bar:
    """The median over the rounds of the ratio within a round; ``of`` has what is compared in place of the seconds."""
    for name in (candidate, control):
        seconds = taken_s[name]
        print(f"{name}: {median(seconds):.3f} s, {min(seconds):.3f} to {max(seconds):.3f}")
    compared = of or taken_s
    ratios = [one / other for one, other in zip(compared[candidate], compared[control], strict=True)]
    what = "rate" if of else "time"
    return bar(f"the {what} of {candidate}, to that of {control},", median(ratios), bound)


def _orders(start: int, stop: int, customers: int) -> pa.Table:
    ids = np.arange(start, stop)
    return pa.table(
        {
            "customer": pa.array([f"C{number % customers}" for number in ids.tolist()]),
            "id": ids,
            "day": pa.array((ids % 365 + 19_000).astype("datetime64[D]")),
            "price": (ids % 10_007) / 100,
            "quantity": (ids % 13).astype(np.int32),
            "note": pa.array([f"order {number:010d} of the day" for number in ids.tolist()]),
        }
    )


if __name__ == "__main__":
    raise SystemExit(main())
