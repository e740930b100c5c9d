"""The report of the suite: tables for people. The JSON has the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.engine.light_jobs import LightJobs, bars_of_light_jobs
from benchmarks.engine.metrics_cost import MetricsCost, bars_of_metrics
from benchmarks.engine.shared_memory import Carriage
from benchmarks.engine.start_up import StartUp, bars_of_start_up
from benchmarks.engine.throughput import DUCKDB, Throughput, bars_of_throughput
from benchmarks.record import Bar

__all__ = ["Measured", "bars_of", "print_report"]


@dataclass
class Measured:
    """What was measured; a part that was left out is empty."""

    start_up: list[StartUp] = field(default_factory=list)
    throughput: list[Throughput] = field(default_factory=list)
    light_jobs: LightJobs | None = None
    metrics: MetricsCost | None = None
    shared_memory: list[Carriage] = field(default_factory=list)


def bars_of(measured: Measured) -> list[Bar]:
    """Hold the measurements against what was promised."""
    bars = bars_of_start_up(measured.start_up) + bars_of_throughput(measured.throughput)
    bars += [] if measured.light_jobs is None else bars_of_light_jobs(measured.light_jobs)
    return bars + ([] if measured.metrics is None else bars_of_metrics(measured.metrics))


def print_report(measured: Measured) -> None:
    """Print the tables."""
    console = Console(highlight=False, width=None if Console().is_terminal else 130)
    if measured.start_up:
        table = _table("Start-up of a job of two vertices", "", "members", "frames", "p50, ms", "of rounds")
        for entry in sorted(measured.start_up, key=lambda entry: (entry.runtime, not entry.pruned, entry.members)):
            what = f"{entry.runtime}, {'one key' if entry.pruned else 'all partitions'}"
            table.add_row(
                what,
                str(entry.members),
                f"{entry.frames:g}",
                f"{entry.p50_ms:.2f}",
                f"{entry.low_ms:.2f} to {entry.high_ms:.2f}",
            )
        console.print(table)
    if measured.throughput:
        _print_throughput(console, measured.throughput)
    if measured.light_jobs is not None:
        jobs = measured.light_jobs
        table = _table("Light jobs on all of three members", "", "all, s", "p50, ms", "p99, ms")
        table.add_row(f"{jobs.jobs:,} one after another", f"{jobs.alone_s:.2f}", f"{jobs.alone_p50_ms:.2f}", "")
        table.add_row(
            f"{jobs.jobs:,} at once, {jobs.memory_mb:.0f} MB more",
            f"{jobs.together_s:.2f}",
            f"{jobs.p50_ms:.0f}",
            f"{jobs.p99_ms:.0f}",
        )
        console.print(table)
    if measured.metrics is not None:
        cost = measured.metrics
        table = _table(f"{cost.batches:,} batches of {cost.rows} rows through five vertices", "", "processor time, ms")
        table.add_row("with metrics", f"{cost.counted_s * 1_000:.1f}")
        table.add_row("without", f"{cost.uncounted_s * 1_000:.1f}")
        console.print(table)
    if measured.shared_memory:
        table = _table("A batch to another process of the host", "", "KiB", "p50, ms", "MB/s")
        for carriage in measured.shared_memory:
            table.add_row(
                carriage.way, f"{carriage.batch_bytes >> 10:,}", f"{carriage.p50_ms:.2f}", f"{carriage.mb_per_s:,.0f}"
            )
        console.print(table)


def _print_throughput(console: Console, measured: Sequence[Throughput]) -> None:
    table = _table(
        f"{measured[0].rows:,} rows grouped",
        "",
        "groups",
        "seconds",
        "of rounds",
        "processor s",
        "speed / DuckDB",
        "by processor",
    )
    control = measured[0]
    for entry in measured:
        control = entry if entry.what == DUCKDB else control
        processor = "" if entry.processor_s is None else f"{entry.processor_s:.3f}"
        by_processor = (
            ""
            if entry.processor_s is None or control.processor_s is None
            else f"{control.processor_s / entry.processor_s:.2f}"
        )
        spread = f"{entry.low_s:.3f} to {entry.high_s:.3f}"
        table.add_row(
            entry.what,
            f"{entry.groups:,}",
            f"{entry.seconds:.3f}",
            spread,
            processor,
            f"{control.seconds / entry.seconds:.2f}",
            by_processor,
        )
    console.print(table)


def _table(title: str, *columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left")
    for column in columns:
        table.add_column(column, justify="right" if column else "left")
    return table
