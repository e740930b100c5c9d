"""What does the first look-up of a new client cost when a table has many partitions?

Question: is the first read of one key of a table with 100,000 ranges within twice that of a table with 100, and
likewise the first after a range was added?
Data: tables of BIGINT keys, split into ranges of one key each, with one row.
Control: the table with the fewest ranges, in the same rounds. Metric: the median of several rounds, in each of which a
new process that has read another table before connects and reads; milliseconds, with and without the connection.

Run: ``python -m benchmarks.first_read [--ranges 100 100000] [--rounds N] [--check]``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from typing import Final

import secateur
from secateur.cluster import Cluster

_RATIO_MAX: Final = 2.0

_CLIENT: Final = """
import os, sys, time
import secateur
with secateur.connect(os.environ["ADDRESS"]) as connection:
    connection.execute("SELECT k FROM warm WHERE k = ?", [7]).fetchall()
begun = time.perf_counter()
with secateur.connect(os.environ["ADDRESS"]) as connection:
    connected = time.perf_counter()
    rows = connection.execute(f"SELECT k FROM {sys.argv[1]} WHERE k = ?", [7]).fetchall()
    print((connected - begun) * 1000, (time.perf_counter() - connected) * 1000)
assert rows == [(7,)], rows
"""


def main() -> int:
    """Create the tables, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranges", type=int, nargs="+", default=[100, 100_000])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--check", action="store_true", help=f"fail if a ratio is above {_RATIO_MAX:g}")
    options = parser.parse_args()
    with secateur.start(members=3, runtime="embedded") as cluster, cluster.connect() as connection:
        for ranges in options.ranges:
            _create(connection, f"t{ranges}", ranges)
        _create(connection, "warm", 10)
        print("ranges                       connect    first read   ratio")
        ratios: list[float] = []
        for title in ("new client", "new client, new range"):
            if title != "new client":
                for ranges in options.ranges:
                    connection.execute(f"ALTER TABLE t{ranges} DROP PARTITION {ranges - 1} <= VALUES")
                    connection.execute(f"ALTER TABLE t{ranges} ADD PARTITION {ranges - 1} <= VALUES")
            found: dict[int, list[tuple[float, float]]] = {ranges: [] for ranges in options.ranges}
            for _ in range(options.rounds):
                for ranges, times in found.items():
                    times.append(_read(cluster, f"t{ranges}"))
            fewest_ms = statistics.median(read_ms for _, read_ms in found[min(found)])
            for ranges, times in found.items():
                connect_ms, read_ms = (statistics.median(column) for column in zip(*times, strict=True))
                ratios.append(read_ms / fewest_ms)
                line = f"{ranges:>7,} {title:<22} {connect_ms:>6.1f} ms {read_ms:>9.1f} ms {ratios[-1]:>7.2f}"
                print(line, flush=True)
    return 1 if options.check and max(ratios) > _RATIO_MAX else 0


def _create(connection: secateur.Connection, name: str, ranges: int) -> None:
    splits = ", ".join(str(split) for split in range(1, ranges))
    sql = (
        f"CREATE TABLE IF NOT EXISTS {name} (k BIGINT, PRIMARY KEY (k)) PARTITION BY RANGE (k) SPLIT AT ({splits})"
        " BACKUPS 0"
    )
    connection.execute(sql)
    connection.execute(f"INSERT INTO {name} VALUES (7)")


def _read(cluster: Cluster, table: str) -> tuple[float, float]:
    """The milliseconds of a new client for connecting, and for reading one row."""
    environment = {**os.environ, "ADDRESS": cluster.address, "SECATEUR_TOKEN": cluster.token or ""}
    command = [sys.executable, "-c", _CLIENT, table]
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    connect_ms, read_ms = map(float, output.split())
    return connect_ms, read_ms


if __name__ == "__main__":
    raise SystemExit(main())
