"""Scan, partitioned edge, aggregation: the engine beside DuckDB and Ray Data on the same rows."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final, Literal

import duckdb
import pyarrow as pa

import secateur
from benchmarks.engine.events import DDL, aggregated, make_events, two_stages
from benchmarks.record import Bar
from secateur import Connection, JobConfig
from secateur.dag import DAG

__all__ = ["DUCKDB", "RAY_DATA", "Throughput", "bars_of_throughput", "measure_throughput"]

DUCKDB: Final = "DuckDB, one process"
RAY_DATA: Final = "Ray Data, groupby"
_STAGES: Final = {"aggregate()": aggregated, "accumulate(), combine()": two_stages}
_SQL: Final = "SELECT g, count(*) AS n, CAST(sum(v) AS BIGINT) AS s FROM events GROUP BY g"
_MEMBERS: Final = 3
_BLOCK_ROWS: Final = 500_000
_DUCKDB_RATIO_MIN: Final = 0.5
_RAY_DATA_RATIO_MIN: Final = 5.0

Runtime = Literal["embedded", "ray"]


@dataclass(frozen=True, slots=True)
class Throughput:
    """One way to group the table.

    Attributes:
        what: Engine and plan.
        groups: How many groups there are.
        rows: Rows of the table.
        seconds: Median over the rounds.
        low_s: Shortest round.
        high_s: Longest round.
        processor_s: Median of the processor time, which does not depend on who else uses the machine; None if some of
            the work is done by other processes.
    """

    what: str
    groups: int
    rows: int
    seconds: float
    low_s: float
    high_s: float
    processor_s: float | None


def measure_throughput(
    runtime: Runtime, rows: int, groups: int, *, rounds: int, ray_data_rounds: int
) -> list[Throughput]:
    """Group one table by all means, in turn.

    Args:
        runtime: Where the members live; they are three.
        rows: Rows of the table.
        groups: Its groups.
        rounds: Rounds that count; one more warms up.
        ray_data_rounds: In how many of them Ray Data takes part, which needs the Ray runtime; it takes long.

    Returns:
        DuckDB first.
    """
    events = make_events(rows, groups)
    with (
        duckdb.connect(config={"threads": os.cpu_count() or 1}) as control,
        secateur.start(members=_MEMBERS, runtime=runtime) as cluster,
    ):
        control.execute("CREATE TABLE events AS FROM events")
        with cluster.connect() as connection:
            connection.execute(DDL)
            connection.table("events").load(events)
            candidates: dict[str, tuple[Callable[[], pa.Table], int]] = {
                DUCKDB: (lambda: control.sql(_SQL).to_arrow_table(), rounds)
            }
            for plan, dag in _STAGES.items():
                candidates[f"secateur, {runtime}, {plan}"] = (_job(connection, dag), rounds)
            if ray_data_rounds:
                candidates[RAY_DATA] = (_ray_data(events), ray_data_rounds)
            return _in_turn(candidates, rounds, rows, groups, elsewhere=runtime == "ray")


def bars_of_throughput(measured: Sequence[Throughput]) -> list[Bar]:
    """Each plan of ours beside DuckDB in the same run, and the faster one beside Ray Data."""
    bars: list[Bar] = []
    runs: list[list[Throughput]] = []
    for entry in measured:
        if entry.what == DUCKDB:
            runs.append([])
        runs[-1].append(entry)
    for control, *others in runs:
        ours = [entry for entry in others if entry.what != RAY_DATA]
        for entry in ours:
            what = f"{entry.what}, {entry.groups:,} groups: speed / {DUCKDB}"
            bars.append(Bar.at_least(what, control.seconds / entry.seconds, _DUCKDB_RATIO_MIN))
        for entry in others:
            if entry.what == RAY_DATA:
                what = f"secateur, {entry.groups:,} groups: speed of the slower plan / {RAY_DATA}"
                bars.append(Bar.at_least(what, entry.seconds / max(mine.seconds for mine in ours), _RAY_DATA_RATIO_MIN))
    return bars


def _job(connection: Connection, dag: Callable[[], DAG]) -> Callable[[], pa.Table]:
    return lambda: connection.submit(dag(), JobConfig(), light=True).result()


def _ray_data(events: pa.Table) -> Callable[[], pa.Table]:
    """Ray Data over blocks that are in the object store before the clock starts."""
    import ray
    from ray.data.aggregate import Count, Sum

    ray.data.DataContext.get_current().enable_progress_bars = False
    blocks = [
        events.slice(start, _BLOCK_ROWS).select(["g", "v"]).combine_chunks()
        for start in range(0, events.num_rows, _BLOCK_ROWS)
    ]
    dataset = ray.data.from_arrow(blocks).materialize()

    def group() -> pa.Table:
        grouped = dataset.groupby("g").aggregate(Count(), Sum("v"))
        return pa.concat_tables(ray.get(grouped.to_arrow_refs())).rename_columns(["g", "n", "s"])

    return group


def _in_turn(
    candidates: dict[str, tuple[Callable[[], pa.Table], int]], rounds: int, rows: int, groups: int, *, elsewhere: bool
) -> list[Throughput]:
    expected: list[dict[str, Any]] | None = None
    for what, (group, _) in candidates.items():  # also the round that warms up
        found = (
            group()
            .select(["g", "n", "s"])
            .cast(pa.schema([("g", pa.int64()), ("n", pa.int64()), ("s", pa.int64())]))
            .sort_by("g")
            .to_pylist()
        )
        expected = found if expected is None else expected
        if found != expected:
            raise SystemExit(f"{what} gave another answer than {DUCKDB}: no times are taken from wrong answers")
    times: dict[str, list[tuple[float, float]]] = {what: [] for what in candidates}
    for number in range(rounds):
        for what, (group, wanted) in candidates.items():
            if number < wanted:
                processor, start = time.process_time(), time.perf_counter()
                group()
                times[what].append((time.perf_counter() - start, time.process_time() - processor))
    results = []
    for what, found in times.items():
        processor_s = None if elsewhere and what != DUCKDB else median(used for _, used in found)
        results.append(
            Throughput(
                what, groups, rows, median(seconds for seconds, _ in found), min(found)[0], max(found)[0], processor_s
            )
        )
    return results
