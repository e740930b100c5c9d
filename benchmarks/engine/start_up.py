"""What a job costs before its first row: on one member of N, and on all of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from typing import Final, Literal

import secateur
from benchmarks.engine.events import DDL, every_row, make_events, one_row
from benchmarks.record import Bar
from secateur import Connection, JobConfig
from secateur.cluster import Cluster
from secateur.dag import DAG

__all__ = ["StartUp", "bars_of_start_up", "measure_start_up"]

_ROWS: Final = 640
_WARM_UP_JOBS: Final = 20
_COUNTED_JOBS: Final = 10
_START_TIMEOUT_S: Final = 300.0
_RATIO_MAX: Final = 1.1
_CONFIG: Final = JobConfig()

Runtime = Literal["embedded", "ray"]


@dataclass(frozen=True, slots=True)
class StartUp:
    """The cost of a job of two vertices in a cluster of some size.

    Attributes:
        runtime: Where the members live.
        members: How many there are.
        pruned: Whether the job reads one key, and so runs on one member; otherwise it runs on all.
        frames: Frames that all members together received for one job.
        p50_ms: Median over the rounds of the round's median, from submission to result.
        low_ms: Smallest median of a round.
        high_ms: Largest median of a round.
    """

    runtime: Runtime
    members: int
    pruned: bool
    frames: float
    p50_ms: float
    low_ms: float
    high_ms: float


def measure_start_up(runtime: Runtime, sizes: Sequence[int], *, rounds: int, jobs: int) -> list[StartUp]:
    """Run jobs on clusters of several sizes, all of them up at the same time, in turn job by job.

    Args:
        runtime: Where the members live.
        sizes: Members of each cluster.
        rounds: Rounds, of which each gives a median.
        jobs: Jobs of a round on one member; a tenth of them on all.

    Returns:
        Two entries for each size: on one member, and on all.
    """
    rows = make_events(_ROWS, 10)
    with ExitStack() as stack:
        places = []
        for size in sizes:
            cluster = stack.enter_context(
                secateur.start(members=size, runtime=runtime, start_timeout_s=_START_TIMEOUT_S)
            )
            connection = stack.enter_context(cluster.connect())
            connection.execute(DDL)
            connection.table("events").load(rows)
            places.append((size, cluster, connection))
        kinds = [
            (size, cluster, connection, pruned) for size, cluster, connection in places for pruned in (True, False)
        ]
        medians: dict[tuple[int, bool], list[float]] = {(size, pruned): [] for size, _, _, pruned in kinds}
        frames: dict[tuple[int, bool], float] = {}
        for size, cluster, connection, pruned in kinds:
            _run(connection, _dags(pruned, _WARM_UP_JOBS))
            before = _frames(cluster)
            _run(connection, _dags(pruned, _COUNTED_JOBS))
            frames[size, pruned] = (_frames(cluster) - before) / _COUNTED_JOBS
        for _ in range(rounds):
            times: dict[tuple[int, bool], list[float]] = {key: [] for key in medians}
            for number in range(jobs):
                for size, _, connection, pruned in kinds:
                    if pruned or number % 10 == 0:
                        times[size, pruned] += _run(connection, _dags(pruned, 1))
            for key, found in times.items():
                medians[key].append(median(found))
    return [
        StartUp(runtime, *key, frames[key], median(found), min(found), max(found)) for key, found in medians.items()
    ]


def bars_of_start_up(measured: Sequence[StartUp]) -> list[Bar]:
    """A job on one member costs in the largest cluster what it costs in the smallest."""
    bars = []
    for runtime in dict.fromkeys(entry.runtime for entry in measured):
        pruned = sorted(
            (entry for entry in measured if entry.runtime == runtime and entry.pruned), key=lambda entry: entry.members
        )
        first, last = pruned[0], pruned[-1]
        what = f"{runtime}: a job on 1 of {last.members} members / on 1 of {first.members}"
        bars += [
            Bar.at_most(f"{what}, frames", last.frames / first.frames, _RATIO_MAX),
            Bar.at_most(f"{what}, p50", last.p50_ms / first.p50_ms, _RATIO_MAX),
        ]
    return bars


def _dags(pruned: bool, count: int) -> list[DAG]:
    return [one_row(number % _ROWS) if pruned else every_row() for number in range(count)]


def _run(connection: Connection, dags: Sequence[DAG]) -> list[float]:
    """Milliseconds of each job."""
    times = []
    for dag in dags:
        start = time.perf_counter()
        rows = connection.submit(dag, _CONFIG, light=True).result()
        times.append((time.perf_counter() - start) * 1_000)
        if rows.num_rows not in (1, _ROWS):
            raise SystemExit(f"a job gave {rows.num_rows} rows: no times are taken from wrong answers")
    return times


def _frames(cluster: Cluster) -> int:
    return sum(member.frames_received for member in cluster.members())
