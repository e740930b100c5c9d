"""Run the suite: ``python -m benchmarks.engine``."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Final

from benchmarks.engine.light_jobs import measure_light_jobs
from benchmarks.engine.metrics_cost import measure_metrics_cost
from benchmarks.engine.picture import start_up_svg
from benchmarks.engine.report import Measured, bars_of, print_report
from benchmarks.engine.shared_memory import measure_carriage
from benchmarks.engine.start_up import Runtime, measure_start_up
from benchmarks.engine.throughput import measure_throughput
from benchmarks.record import print_bars, write_record

__all__ = ["main"]

_PARTS: Final = ("start-up", "throughput", "light-jobs", "metrics", "shared-memory")
_SIZES: Final[dict[Runtime, tuple[int, ...]]] = {"embedded": (2, 4, 8, 16), "ray": (2, 16)}
_LIBRARIES: Final = ("duckdb", "msgpack", "numpy", "pyarrow", "ray")


def main() -> int:
    """Measure, write the JSON and the picture, print the tables.

    Returns:
        0; with ``--check`` 1 if a bar was missed.
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.engine", description="What jobs cost: to start, by row, many at once."
    )
    parser.add_argument("--only", choices=_PARTS, action="append", help="one part, instead of all; may be repeated")
    parser.add_argument("--no-ray", action="store_true", help="the embedded runtime alone, without Ray Data")
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows to group (default: %(default)s)")
    parser.add_argument(
        "--groups", type=int, nargs="+", default=[1_000, 100_000], help="numbers of groups (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=9, help="rounds of each part (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1_000, help="light jobs at once (default: %(default)s)")
    parser.add_argument(
        "--json",
        type=Path,
        default=Path("build/bench/engine.json"),
        help="where the report goes, the picture beside it (default: %(default)s)",
    )
    parser.add_argument("--check", action="store_true", help="fail when a bar is missed")
    options = parser.parse_args()

    measured = _measure(options)
    bars = bars_of(measured)
    write_record(options.json, "engine", _LIBRARIES, asdict(measured), bars)
    if measured.start_up:
        options.json.with_name("engine-start-up.svg").write_text(start_up_svg(measured.start_up))
    print_report(measured)
    print_bars(bars)
    print(f"written to {options.json}")
    return int(options.check and not all(bar.met for bar in bars))


def _measure(options: argparse.Namespace) -> Measured:
    wanted = options.only or _PARTS
    runtimes: list[Runtime] = ["embedded"] if options.no_ray else ["embedded", "ray"]
    measured = Measured()
    if "metrics" in wanted:
        _say("Small batches with and without metrics")
        measured.metrics = measure_metrics_cost(10 * options.rounds)
    if "light-jobs" in wanted:
        _say(f"{options.jobs:,} light jobs")
        measured.light_jobs = measure_light_jobs(options.jobs)
    if "start-up" in wanted:
        for runtime in runtimes:
            _say(f"Starting jobs, {runtime}")
            measured.start_up += measure_start_up(runtime, _SIZES[runtime], rounds=options.rounds, jobs=100)
    if "throughput" in wanted:
        for groups in options.groups:
            for runtime in runtimes:
                _say(f"Grouping {options.rows:,} rows into {groups:,} groups, {runtime}")
                measured.throughput += measure_throughput(
                    runtime, options.rows, groups, rounds=options.rounds, ray_data_rounds=2 if runtime == "ray" else 0
                )
    if "shared-memory" in wanted:
        _say("Batches to another process")
        measured.shared_memory = measure_carriage(3 * options.rounds, with_ray=not options.no_ray)
    return measured


def _say(text: str) -> None:
    print(f"{text} ...", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
