"""The report of a TPC suite: one JSON file for programs, one table for people."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.tpc.timing import QueryTimes

__all__ = ["Bar", "bars_of", "print_report", "write_json"]

_TOTAL_RATIO_MAX: Final = 2.0
_SPARK_RATIO_MAX: Final = 0.25
_QUERY_RATIO_MAX: Final = 5.0
_LIBRARIES: Final = ("duckdb", "numpy", "pyarrow", "pyspark", "ray")


@dataclass(frozen=True, slots=True)
class Bar:
    """A ratio that was promised.

    Attributes:
        what: Candidate against control.
        ratio: Measured in this run.
        bound: The most it may be.
    """

    what: str
    ratio: float
    bound: float

    @property
    def met(self) -> bool:
        return self.ratio <= self.bound


def bars_of(times: Sequence[QueryTimes], spark_ms: Mapping[int, float]) -> list[Bar]:
    """Hold the measurements against what was promised; against Spark only the queries that it ran."""
    worst = max(times, key=lambda query: query.secateur_ms / query.duckdb_ms)
    bars = [
        Bar(
            f"{len(times)} queries: total / DuckDB's",
            _sum(query.secateur_ms for query in times) / _sum(query.duckdb_ms for query in times),
            _TOTAL_RATIO_MAX,
        ),
        Bar(
            f"the worst query, q{worst.number:02}: time / DuckDB's",
            worst.secateur_ms / worst.duckdb_ms,
            _QUERY_RATIO_MAX,
        ),
    ]
    if spark_ms:
        mine = _sum(query.secateur_ms for query in times if query.number in spark_ms)
        bars.append(Bar(f"{len(spark_ms)} queries: total / Spark's", mine / _sum(spark_ms.values()), _SPARK_RATIO_MAX))
    return bars


def write_json(
    path: Path,
    benchmark: str,
    settings: Mapping[str, Any],
    times: Sequence[QueryTimes],
    spark_ms: Mapping[int, float],
    bars: Sequence[Bar],
) -> None:
    """Write everything that was measured, with what it was measured on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    report = {
        "suite": benchmark,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "cores": os.cpu_count(),
            "processor": platform.machine(),
            "system": platform.system(),
            "python": platform.python_version(),
        },
        "versions": {name: version(name) for name in _LIBRARIES},
        "settings": dict(settings),
        "queries": [asdict(query) | {"spark_ms": spark_ms.get(query.number)} for query in times],
        "bars": [asdict(bar) | {"met": bar.met} for bar in bars],
    }
    path.write_text(json.dumps(report, indent=2) + "\n")


def print_report(
    benchmark: str,
    settings: Mapping[str, Any],
    times: Sequence[QueryTimes],
    spark_ms: Mapping[int, float],
    bars: Sequence[Bar],
) -> None:
    """Print the table and the bars."""
    console = Console(highlight=False, width=None if Console().is_terminal else 120)
    title = (
        f"{benchmark} at scale factor {settings['scale']}, {settings['members']} members ({settings['runtime']}),"
        " medians in ms"
    )
    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left")
    for column in (
        "query",
        "rows",
        "secateur",
        "of runs",
        "DuckDB",
        "ratio",
        "CPU ratio",
        "DuckDB over Arrow",
        "planning",
        "Spark",
    ):
        table.add_column(column, justify="right")
    for query in times:
        spark = spark_ms.get(query.number)
        table.add_row(
            f"q{query.number:02}",
            f"{query.rows:,}",
            f"{query.secateur_ms:,.0f}",
            f"{query.secateur_low_ms:,.0f} to {query.secateur_high_ms:,.0f}",
            f"{query.duckdb_ms:,.0f}",
            f"{query.secateur_ms / query.duckdb_ms:.1f}",
            f"{query.secateur_cpu_ms / query.duckdb_cpu_ms:.1f}",
            f"{query.arrow_ms:,.0f}",
            f"{query.plan_ms:,.0f}",
            "" if spark is None else f"{spark:,.0f}",
        )
    mine, duckdb_ms, arrow_ms, plan_ms, cpu_ms, duckdb_cpu_ms = (
        _sum(getattr(query, name) for query in times)
        for name in ("secateur_ms", "duckdb_ms", "arrow_ms", "plan_ms", "secateur_cpu_ms", "duckdb_cpu_ms")
    )
    spark_total = f"{_sum(spark_ms.values()):,.0f}" if spark_ms else ""
    table.add_section()
    ratios = (f"{mine / duckdb_ms:.1f}", f"{cpu_ms / duckdb_cpu_ms:.1f}")
    table.add_row(
        "all", "", f"{mine:,.0f}", "", f"{duckdb_ms:,.0f}", *ratios, f"{arrow_ms:,.0f}", f"{plan_ms:,.0f}", spark_total
    )
    console.print(table)
    for bar in bars:
        console.print(f"{'met' if bar.met else 'MISSED'}: {bar.what} is {bar.ratio:.2f}, at most {bar.bound}")


def _sum(values: Iterable[float]) -> float:
    return sum(values, 0.0)
