"""Run the suite: ``python -m benchmarks.serving`` (``make bench``)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import secateur
from benchmarks.serving.latency import compare_answers, measure_latency
from benchmarks.serving.load import LoadResult, measure_load
from benchmarks.serving.orders import DDL, make_orders
from benchmarks.serving.report import bars_of, print_report, write_json

__all__ = ["main"]


def main() -> int:
    """Measure, write the JSON, print the tables.

    Returns:
        0; with ``--check`` 1 if a bar was missed.
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.serving", description="Latency of selective statements and rate of Spark loads."
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the table (default: %(default)s)")
    parser.add_argument("--members", type=int, default=3, help="Ray members (default: %(default)s)")
    parser.add_argument(
        "--calls", type=int, default=500, help="calls a round of each pruned statement (default: %(default)s)"
    )
    parser.add_argument(
        "--calls-unpruned",
        type=int,
        default=100,
        help="calls a round of each unpruned statement (default: %(default)s)",
    )
    parser.add_argument("--no-load", action="store_true", help="leave out Spark")
    parser.add_argument(
        "--json",
        type=Path,
        default=Path("build/bench/serving.json"),
        help="where the report goes (default: %(default)s)",
    )
    parser.add_argument("--check", action="store_true", help="fail when a bar is missed")
    options = parser.parse_args()

    orders = make_orders(options.rows)
    with (
        secateur.start(members=options.members, runtime="ray") as cluster,
        cluster.connect() as pruned,
        cluster.connect() as unpruned,
    ):
        unpruned.execute("SET pruning = off")
        pruned.execute(DDL)
        _say(f"Loading {options.rows:,} rows over {options.members} Ray members")
        pruned.table("orders").load(orders)
        _say("Comparing answers with DuckDB")
        compare_answers(pruned, unpruned, orders)
        _say("Timing statements")
        latencies = measure_latency(
            pruned, unpruned, rows=options.rows, calls=options.calls, calls_unpruned=options.calls_unpruned
        )
        loads: list[LoadResult] = []
        if not options.no_load:
            _say("Timing Spark loads")
            loads = measure_load(pruned, cluster.address, orders)
    bars = bars_of(latencies, loads)
    data = {"table": DDL, "rows": options.rows, "bytes": orders.nbytes, "members": options.members}
    write_json(options.json, data, latencies, loads, bars)
    print_report(latencies, loads, bars)
    print(f"written to {options.json}")
    return int(options.check and not all(bar.met for bar in bars))


def _say(text: str) -> None:
    print(f"{text} ...", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
