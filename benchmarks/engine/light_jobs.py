"""A thousand light jobs at once on three members."""

from __future__ import annotations

import resource
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Final

import secateur
from benchmarks.engine.events import DDL, aggregated, make_events
from benchmarks.record import Bar
from secateur import Connection, JobConfig

__all__ = ["LightJobs", "bars_of_light_jobs", "measure_light_jobs"]

_MEMBERS: Final = 3
_ROWS: Final = 64_000
_GROUPS: Final = 100
_P99_RATIO_MAX: Final = 5.0


@dataclass(frozen=True, slots=True)
class LightJobs:
    """Many jobs, first one after another, then all at once; each runs on all members.

    Attributes:
        jobs: How many.
        alone_s: What they take one after another.
        alone_p50_ms: Median of one of these.
        together_s: From the first submission to the last result when all are submitted at once.
        p50_ms: Median from submission to result, all at once.
        p99_ms: 99th percentile of the same.
        memory_mb: By how much the peak of the process's memory grew, members, client and results together.
    """

    jobs: int
    alone_s: float
    alone_p50_ms: float
    together_s: float
    p50_ms: float
    p99_ms: float
    memory_mb: float


def measure_light_jobs(jobs: int) -> LightJobs:
    """Run them in the embedded runtime: one process does all of the work, so its memory is the memory of all.

    Raises:
        Error: A job failed.
        SystemExit: A job gave a wrong answer.
    """
    with secateur.start(members=_MEMBERS, runtime="embedded") as cluster, cluster.connect() as connection:
        connection.execute(DDL)
        connection.table("events").load(make_events(_ROWS, _GROUPS))
        for _ in range(20):
            _run(connection)
        start = time.perf_counter()
        alone = [_run(connection) for _ in range(jobs)]
        alone_s = time.perf_counter() - start
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with ThreadPoolExecutor(jobs) as pool:
            start = time.perf_counter()
            together = list(pool.map(lambda _: _run(connection), range(jobs)))
            together_s = time.perf_counter() - start
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return LightJobs(
        jobs, alone_s, median(alone), together_s, median(together), quantiles(together, n=100)[98], grown / 1024
    )


def bars_of_light_jobs(measured: LightJobs) -> list[Bar]:
    """The slowest of the jobs waits for the work of all, not for much more."""
    return [
        Bar.at_most(
            f"{measured.jobs:,} light jobs at once: p99 / all of them one after another",
            measured.p99_ms / 1_000 / measured.alone_s,
            _P99_RATIO_MAX,
        )
    ]


def _run(connection: Connection) -> float:
    """Milliseconds of one job."""
    start = time.perf_counter()
    found = connection.submit(aggregated(), JobConfig(), light=True).result()
    elapsed = (time.perf_counter() - start) * 1_000
    if found.num_rows != _GROUPS or sum(found["n"].to_pylist()) != _ROWS:
        raise SystemExit(f"a job counted {found.num_rows} groups: no times are taken from wrong answers")
    return elapsed
