"""What does a look-up cost through ``secateur.aio``, beside the blocking client?

Questions: does one look-up take at most 1.3 times as long, and do 32 tasks make as many look-ups of a second of
processor time as eight processes with a blocking client each? Data: 100,000 rows on three members, which are Ray actors
on a processor of their own; all clients share another. Control: the blocking client, in turns of 200 look-ups, and the
eight processes at the same time as each other. Metrics: the median of the ratios of the turns' medians; look-ups a
second of processor time of all client processes together.

Run: ``python -m benchmarks.asyncio_client [--lookups N] [--loop uvloop]``.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Final

import secateur
from benchmarks.paired_rounds import median_interval
from benchmarks.pinning import pinned
from secateur import aio

_ROWS: Final = 100_000
_TURN: Final = 200
_TASKS: Final = 32
_PROCESSES: Final = 8
_SQL: Final = "SELECT v FROM lookups WHERE k = ?"


def main() -> int:
    """Create the table, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lookups", type=int, default=8000)
    parser.add_argument("--loop", choices=("asyncio", "uvloop"), default="asyncio")
    options = parser.parse_args()
    with pinned("two") as on_client, secateur.start(members=3, runtime="ray") as cluster:
        on_client()
        with cluster.connect() as conn:
            conn.execute("CREATE TABLE lookups (k BIGINT PRIMARY KEY, v VARCHAR) PARTITION BY HASH (k) PARTITIONS 16")
            conn.table("lookups").load({"k": list(range(_ROWS)), "v": [f"v{key}" for key in range(_ROWS)]})
            with asyncio.Runner(loop_factory=_loop_factory(options.loop)) as runner:
                runner.run(_measured(conn, cluster.address, cluster.token, options.lookups))
    return 0


def _loop_factory(name: str) -> type[asyncio.AbstractEventLoop] | None:
    if name == "asyncio":
        return None
    import uvloop

    factory: type[asyncio.AbstractEventLoop] = uvloop.Loop
    return factory


async def _measured(blocking: secateur.Connection, address: str, token: str | None, lookups: int) -> None:
    async with await aio.connect(address, token) as conn:
        await _turn(conn)
        _blocking_turn(blocking)
        pairs = [(await _turn(conn), _blocking_turn(blocking)) for _ in range(max(6, lookups // _TURN))]
        ratio = median_interval([ours / theirs for ours, theirs in pairs])
        for name, number in (("aio", 0), ("blocking", 1)):
            print(f"one look-up, {name:<10} {statistics.median(pair[number] for pair in pairs) * 1e6:>8.0f} us")
        print(f"ratio {ratio}")

        async def task(count: int) -> None:
            cur = conn.cursor()
            for key in range(count):
                await cur.execute(_SQL, [key])
                await cur.fetchall()

        await asyncio.gather(*(task(10) for _ in range(_TASKS)))
        ours, theirs = [], []
        for _ in range(5):
            begun_s, used_s = time.perf_counter(), time.process_time()
            await asyncio.gather(*(task(lookups // _TASKS) for _ in range(_TASKS)))
            ours.append((time.process_time() - used_s, time.perf_counter() - begun_s))
            theirs.append(await asyncio.to_thread(_processes, address, token, lookups // _PROCESSES))
        _report(f"{_TASKS} tasks", ours, lookups // _TASKS * _TASKS)
        _report(f"{_PROCESSES} processes", theirs, lookups // _PROCESSES * _PROCESSES)
        ratios = [(theirs_s / ours_s) for (ours_s, _), (theirs_s, _) in zip(ours, theirs, strict=True)]
        print(f"look-ups of a second of processor time, tasks over processes {median_interval(ratios)}")


def _report(name: str, found: Sequence[tuple[float, float]], lookups: int) -> None:
    used_s, wall_s = (statistics.median(one[number] for one in found) for number in (0, 1))
    print(f"{name:<12} {lookups / wall_s:>8.0f} a second, {used_s / lookups * 1e6:>6.0f} us of processor time each")


async def _turn(conn: aio.AsyncConnection) -> float:
    """The median of some look-ups, in seconds."""
    cur, found = conn.cursor(), []
    for key in range(_TURN):
        begun_s = time.perf_counter()
        await cur.execute(_SQL, [key])
        await cur.fetchall()
        found.append(time.perf_counter() - begun_s)
    return statistics.median(found)


def _blocking_turn(conn: secateur.Connection) -> float:
    cur, found = conn.cursor(), []
    for key in range(_TURN):
        begun_s = time.perf_counter()
        cur.execute(_SQL, [key])
        cur.fetchall()
        found.append(time.perf_counter() - begun_s)
    return statistics.median(found)


def _processes(address: str, token: str | None, lookups: int) -> tuple[float, float]:
    """The processor time of some processes that make look-ups at the same time, and how long they take together."""
    context = multiprocessing.get_context("forkserver")
    with context.Manager() as manager, ProcessPoolExecutor(_PROCESSES, context) as pool:
        together = manager.Barrier(_PROCESSES)
        asked = [pool.submit(_process, address, token, lookups, together) for _ in range(_PROCESSES)]
        found = [one.result() for one in asked]
    return sum(used_s for used_s, _ in found), max(wall_s for _, wall_s in found)


def _process(address: str, token: str | None, lookups: int, together: threading.Barrier) -> tuple[float, float]:
    with secateur.connect(address, token) as conn:
        _blocking_turn(conn)
        cur = conn.cursor()
        together.wait()
        begun_s, used_s = time.perf_counter(), time.process_time()
        for key in range(lookups):
            cur.execute(_SQL, [key])
            cur.fetchall()
        return time.process_time() - used_s, time.perf_counter() - begun_s


if __name__ == "__main__":
    sys.exit(main())
