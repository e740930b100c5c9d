"""The report: one JSON file for programs, tables for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.record import Bar, print_bars, write_record
from benchmarks.serving import latency, load
from benchmarks.serving.latency import LatencyResult
from benchmarks.serving.load import LoadResult

__all__ = ["bars_of", "print_report", "write_json"]

_LATENCY_RATIO_MAX: Final = 0.5
_LOAD_RATIO_MIN: Final = 0.5
_LIBRARIES: Final = ("duckdb", "msgpack", "numpy", "pyarrow", "pyspark", "ray")


def bars_of(latencies: Sequence[LatencyResult], loads: Sequence[LoadResult]) -> list[Bar]:
    """Hold the measurements against what was promised."""
    bars = []
    for result in latencies:
        if result.name.endswith(", pruned"):
            ratio = result.p50_ms / latencies[0].p50_ms
            bars.append(Bar.at_most(f"{result.name}: p50 / {latency.CONTROL}", ratio, _LATENCY_RATIO_MAX))
    for loaded in loads[1:]:
        ratio = loaded.rows_per_s / loads[0].rows_per_s
        bars.append(Bar.at_least(f"{loaded.name}: rate / {load.CONTROL}", ratio, _LOAD_RATIO_MIN))
    return bars


def write_json(
    path: Path,
    data: dict[str, Any],
    latencies: Sequence[LatencyResult],
    loads: Sequence[LoadResult],
    bars: Sequence[Bar],
) -> None:
    """Write everything that was measured, with what it was measured on."""
    measured = {
        "data": data,
        "latency": [asdict(result) for result in latencies],
        "load": [asdict(result) for result in loads],
    }
    write_record(path, "serving", _LIBRARIES, measured, bars)


def print_report(latencies: Sequence[LatencyResult], loads: Sequence[LoadResult], bars: Sequence[Bar]) -> None:
    """Print the tables."""
    console = Console(highlight=False, width=None if Console().is_terminal else 120)
    table = Table(box=SIMPLE_HEAD, title="One client, one statement after the other", title_justify="left")
    for column in ("", "p50, ms", "of rounds", "p99, ms", "per second", "p50 / control"):
        table.add_column(column, justify="right" if column else "left")
    for result in latencies:
        spread = f"{result.p50_low_ms:.3f} to {result.p50_high_ms:.3f}"
        ratio = f"{result.p50_ms / latencies[0].p50_ms:.2f}"
        table.add_row(
            result.name, f"{result.p50_ms:.3f}", spread, f"{result.p99_ms:.3f}", f"{result.per_s:,.0f}", ratio
        )
    console.print(table)
    table = Table(box=SIMPLE_HEAD, title="Bulk load", title_justify="left")
    for column in ("", "rows per second", "of runs", "rate / control"):
        table.add_column(column, justify="right" if column else "left")
    for loaded in loads:
        spread = f"{loaded.low_rows_per_s:,.0f} to {loaded.high_rows_per_s:,.0f}"
        table.add_row(
            loaded.name, f"{loaded.rows_per_s:,.0f}", spread, f"{loaded.rows_per_s / loads[0].rows_per_s:.2f}"
        )
    if loads:
        console.print(table)
    print_bars(bars)
