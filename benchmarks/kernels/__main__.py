"""What does one fragment cost in each kernel, from a key slice to a million rows?

Question: does the arrow kernel answer a key slice of a hundred rows within its bars (filter and projection 60 us,
filter, GROUP BY and three aggregates 200 us), and up to which size is it ahead of DuckDB?
Data: orders of a fixed seed, a hundred a customer; slices of 100, 4,000, 100,000 and 1,000,000 rows in one chunk.
Control: the DuckDB kernel on the same fragment, rows and parameters, in the same run; the answers are compared before
anything is timed. Metric: per round the median of its calls in microseconds; of seven rounds after one to warm up the
median, fastest and slowest. Writes build/bench/kernels.json.

Run: ``python -m benchmarks.kernels``.
"""

from __future__ import annotations

import json
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from secateur.engine.kernels.arrow.fragment import ArrowFragment
from secateur.engine.kernels.duckdb.kernel import default_kernel
from secateur.engine.kernels.fragment import Fragment, KernelName, run_with
from secateur.partitioning.types.column_type import parse_type
from secateur.planner.arrow import arrow_form
from secateur.planner.binding import BoundPlan, bind_to_plan

_ROUNDS: Final = 7
_ROUND_S: Final = 0.05
_SIZES: Final = (100, 4_000, 100_000, 1_000_000)
_OUTPUT: Final = Path("build/bench/kernels.json")
_TYPES: Final = {
    name: parse_type(text)
    for name, text in {
        "customer": "VARCHAR",
        "id": "BIGINT",
        "status": "VARCHAR",
        "amount": "DOUBLE",
        "quantity": "INTEGER",
        "price": "DECIMAL(10,2)",
    }.items()
}
#: What is asked, the parameters, and the bar in microseconds for a hundred rows.
_STATEMENTS: Final[tuple[tuple[str, list[Any], float | None], ...]] = (
    ("SELECT * FROM s0 WHERE id = $1", [555], 60),
    ("SELECT id, amount FROM s0 WHERE customer = $1 AND quantity > 50", ["C5"], 60),
    ("SELECT count(*), sum(amount), avg(quantity) FROM s0 WHERE customer = $1", ["C5"], 200),
    ("SELECT status, count(*), sum(amount), avg(price) FROM s0 WHERE customer = $1 GROUP BY status", ["C5"], 200),
    ("SELECT id, amount FROM s0 WHERE customer = $1 ORDER BY amount DESC LIMIT 10", ["C5"], None),
    ("SELECT status, count(*), sum(amount), avg(quantity) FROM s0 GROUP BY status", [], None),
    ("SELECT customer, sum(quantity) FROM s0 GROUP BY customer", [], None),
)


@dataclass(frozen=True, slots=True)
class Timing:
    """One fragment on one slice in one kernel, in microseconds a call."""

    statement: str
    rows: int
    kernel: str
    median_us: float
    fastest_us: float
    slowest_us: float
    bar_us: float | None


def orders(rows: int) -> pa.Table:
    """Orders of ``rows // 100`` customers, those of one customer together, as a partition sorted by key has them."""
    rng = np.random.default_rng(7)
    return pa.table(
        {
            "customer": pa.array([f"C{row // 100}" for row in range(rows)]),
            "id": np.arange(rows),
            "status": pa.array(["new", "paid", "packed", "sent", "back"]).take(pa.array(rng.integers(0, 5, rows))),
            "amount": rng.random(rows) * 100,
            "quantity": pa.array(rng.integers(0, 100, rows), pa.int32()),
            "price": pa.array(rng.integers(0, 100_000, rows)).cast(pa.decimal128(19, 0)).cast(pa.decimal128(10, 2)),
        }
    )


def fragment_of(sql: str, params: list[Any]) -> Fragment:
    """The fragment that the planner would build."""
    columns = default_kernel().describe(sql, {"s0": _TYPES}, params)
    plan = bind_to_plan(default_kernel(), sql, {"s0": _TYPES}, params)
    assert isinstance(plan, BoundPlan), plan
    compiled = arrow_form(plan.root, plan.text, columns)
    assert isinstance(compiled, ArrowFragment), compiled
    return Fragment.over(sql, {"s0": _TYPES}, columns, compiled)


def timed(call: Callable[[], object]) -> tuple[float, float, float]:
    """Median, fastest and slowest round of the median call, in microseconds."""
    rounds = []
    for _ in range(1 + _ROUNDS):
        calls: list[float] = []
        end = time.perf_counter() + _ROUND_S
        while len(calls) < 3 or time.perf_counter() < end:
            start = time.perf_counter()
            call()
            calls.append(time.perf_counter() - start)
        rounds.append(statistics.median(calls) * 1e6)
    counted = rounds[1:]
    return statistics.median(counted), min(counted), max(counted)


def compare(answer: pa.Table, control: pa.Table, statement: str) -> None:
    """Stop unless both answers have the same rows; doubles to nine digits, rows in any order."""

    def rows(table: pa.Table) -> list[str]:
        return sorted(
            str([f"{value:.9g}" if isinstance(value, float) else value for value in row.values()])
            for row in table.to_pylist()
        )

    if answer.schema != control.schema or rows(answer) != rows(control):
        raise SystemExit(f"the kernels disagree on {statement}: nothing was timed")


def measure() -> list[Timing]:
    """Every statement on every size in both kernels."""
    table = orders(max(_SIZES) + 500)
    timings = []
    for sql, params, bar_us in _STATEMENTS:
        fragment = fragment_of(sql, params)
        for rows in _SIZES:
            relations = {"s0": table.slice(500, rows)}
            answers = {wish: run_with(fragment, relations, params, kernel=wish) for wish in KernelName}
            compare(answers[KernelName.ARROW][0], answers[KernelName.DUCKDB][0], sql)
            for wish, (_, kernel) in answers.items():
                if kernel is wish:
                    spread = timed(partial(run_with, fragment, relations, params, kernel=wish))
                    timings.append(
                        Timing(
                            sql,
                            rows,
                            kernel.value,
                            *spread,
                            bar_us if kernel is KernelName.ARROW and rows == _SIZES[0] else None,
                        )
                    )
    return timings


def report(timings: list[Timing]) -> None:
    """Write the JSON and print the table."""
    _OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    context = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        **{name: version(name) for name in ("pyarrow", "duckdb", "numpy")},
    }
    _OUTPUT.write_text(json.dumps({"context": context, "timings": [asdict(timing) for timing in timings]}, indent=1))
    table = Table("statement", "rows", "arrow us (spread)", "duckdb us (spread)", "ratio", "bar us", box=SIMPLE_HEAD)
    duckdb = {(timing.statement, timing.rows): timing for timing in timings if timing.kernel == KernelName.DUCKDB.value}
    for timing in timings:
        if timing.kernel == KernelName.ARROW.value:
            control = duckdb[timing.statement, timing.rows]
            bar = (
                ""
                if timing.bar_us is None
                else f"{timing.bar_us:.0f} {'met' if timing.median_us <= timing.bar_us else 'MISSED'}"
            )
            table.add_row(
                timing.statement,
                f"{timing.rows:,}",
                f"{timing.median_us:,.0f} ({timing.fastest_us:,.0f}-{timing.slowest_us:,.0f})",
                f"{control.median_us:,.0f} ({control.fastest_us:,.0f}-{control.slowest_us:,.0f})",
                f"{timing.median_us / control.median_us:.2f}",
                bar,
            )
    Console(width=180).print(table)


if __name__ == "__main__":
    report(measure())
