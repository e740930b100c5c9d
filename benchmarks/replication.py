"""What do backups and a data directory cost?

Question: how much longer do writes of single rows and Spark loads take with one backup than with none, lookups by key
beside them, and writes of single rows with a log on disk that is synced at intervals?
Data: tables of 24 partitions on three Ray members, one without backups and one with one; a second cluster with a data
directory. Writes and lookups by one client; a Spark load overwrites 200,000 rows.
Control: the same without, in the same run, in alternating rounds. Metric: the median over rounds of the milliseconds of
a statement, or of the seconds of a load, as a ratio.

Run: ``python -m benchmarks.replication [--rounds N] [--without-spark] [--check]``.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

import secateur
from benchmarks.record import Bar, print_bars
from secateur import Connection

_DDL: Final = (
    "CREATE TABLE {name} (id BIGINT PRIMARY KEY, v BIGINT, w DOUBLE) PARTITION BY HASH (id) PARTITIONS {partitions}"
    " BACKUPS {backups}"
)
_KEYS: Final = 2_000
_STATEMENTS: Final = 400
_SPARK_ROWS: Final = 200_000
_SPARK_ROUNDS: Final = 5


def main() -> int:
    """Start the clusters, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="alternating rounds of statements")
    parser.add_argument("--without-spark", action="store_true", help="leave the Spark loads out")
    parser.add_argument("--check", action="store_true", help="fail when a bar is missed")
    options = parser.parse_args()
    bars = [*_statements(options.rounds), *([] if options.without_spark else _spark_loads())]
    print_bars(bars)
    return int(options.check and not all(bar.met for bar in bars))


def _statements(rounds: int) -> Iterator[Bar]:
    with (
        tempfile.TemporaryDirectory(prefix="secateur-bench-") as folder,
        secateur.start(members=3, runtime="ray") as in_memory,
        secateur.start(members=3, runtime="ray", data_directory=folder, fsync="interval") as on_disk,
        in_memory.connect() as memory,
        on_disk.connect() as disk,
    ):
        for connection, name, backups in ((memory, "alone", 0), (memory, "copied", 1), (disk, "copied", 1)):
            # Tables with another number of partitions are not co-located, so each has its own number of backups.
            connection.execute(_DDL.format(name=name, backups=backups, partitions=24 + backups))
            connection.table(name).load(_rows(_KEYS))
        taken_ms = _alternating(
            {
                "write without backup": lambda: _writes(memory, "alone"),
                "write with one backup": lambda: _writes(memory, "copied"),
                "write with one backup on disk": lambda: _writes(disk, "copied"),
                "lookup without backup": lambda: _lookups(memory, "alone"),
                "lookup with one backup": lambda: _lookups(memory, "copied"),
            },
            rounds,
        )
    yield _ratio("write with one backup", "write without backup", taken_ms, 2.0)
    yield _ratio("write with one backup on disk", "write with one backup", taken_ms, 1.3)
    yield _ratio("lookup with one backup", "lookup without backup", taken_ms, 1.1)


def _spark_loads() -> Iterator[Bar]:
    from pyspark.sql import SparkSession

    with (
        tempfile.TemporaryDirectory(prefix="secateur-bench-") as scratch,
        secateur.start(members=3, runtime="ray") as cluster,
        cluster.connect() as connection,
    ):
        for name, backups in (("alone", 0), ("copied", 1)):
            connection.execute(_DDL.format(name=name, backups=backups, partitions=24 + backups))
        rows = Path(scratch) / "rows.parquet"
        pq.write_table(_rows(_SPARK_ROWS), rows)
        spark = (
            SparkSession.builder.master("local[*]")
            .appName("secateur replication benchmark")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.warehouse.dir", (Path(scratch) / "warehouse").as_uri())
            .config("spark.ui.enabled", False)
            .config("spark.ui.showConsoleProgress", False)
            .getOrCreate()
        )
        try:
            spark.sparkContext.setLogLevel("ERROR")
            frame = spark.read.parquet(str(rows)).repartition(spark.sparkContext.defaultParallelism).cache()
            frame.count()

            def load(name: str) -> float:
                began_s = time.perf_counter()
                secateur.spark.write(frame, name, mode="overwrite", address=cluster.address)
                return time.perf_counter() - began_s

            taken_s = _alternating(
                {
                    "Spark load without backup": lambda: load("alone"),
                    "Spark load with one backup": lambda: load("copied"),
                },
                _SPARK_ROUNDS,
            )
        finally:
            spark.stop()
    yield _ratio("Spark load with one backup", "Spark load without backup", taken_s, 1.8)


def _alternating(candidates: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """What each candidate takes in each round, in turns; the first round does not count."""
    taken: defaultdict[str, list[float]] = defaultdict(list)
    for _ in range(rounds + 1):
        for name, work in candidates.items():
            taken[name].append(work())
    return {name: found[1:] for name, found in taken.items()}


def _ratio(candidate: str, control: str, taken: dict[str, list[float]], bound: float) -> Bar:
    """The median over the rounds of the ratio within a round."""
    ratios = [one / other for one, other in zip(taken[candidate], taken[control], strict=True)]
    print(f"{candidate}: {median(taken[candidate]):.3f}, {control}: {median(taken[control]):.3f}")
    return Bar.at_most(f"{candidate}, to {control}", median(ratios), bound)


def _writes(connection: Connection, name: str) -> float:
    """The median milliseconds of a write of one row."""
    text = f"INSERT OR REPLACE INTO {name} VALUES (?, ?, 0.5)"
    return _median_ms(lambda key: connection.execute(text, [key, key]))


def _lookups(connection: Connection, name: str) -> float:
    """The median milliseconds of a lookup by key."""
    text = f"SELECT v FROM {name} WHERE id = ?"
    return _median_ms(lambda key: connection.execute(text, [key]).fetchall())


def _median_ms(work: Callable[[int], object]) -> float:
    taken_ms = []
    for key in itertools.islice(itertools.cycle(range(_KEYS)), _STATEMENTS):
        began_s = time.perf_counter()
        work(key)
        taken_ms.append((time.perf_counter() - began_s) * 1000)
    return median(taken_ms)


def _rows(count: int) -> pa.Table:
    return pa.table({"id": range(count), "v": range(count), "w": [0.5] * count})


if __name__ == "__main__":
    raise SystemExit(main())
