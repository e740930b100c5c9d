"""How long do members work on for a task that was cancelled, and what do many cancelled tasks leave?

Questions: is every member idle 50 ms after the task of an endless statement was cancelled, and do 100,000 cancelled
look-ups, each at another place of its call, leave open files, memory, tasks or statements? Data: 1,000 rows on three
members, which are Ray actors. Metrics: milliseconds from the cancellation until no member executes anything, by asking
them again and again; files and memory of the client before and after.

Run: ``python -m benchmarks.cancelled_tasks [--lookups N]``.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import psutil

import secateur
from secateur import aio
from secateur.cluster import Cluster
from secateur.protocol import GetMemberStats, Role
from secateur.wire import Channel, hello

_ENDLESS: Final = "SELECT count(*) FROM range(1000000000000)"
_ENDLESS_STATEMENTS: Final = 20
_AT_ONCE: Final = 100
_PLACES: Final = 6
"""Turns of the loop that a look-up takes, about."""


def main() -> int:
    """Create the table, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lookups", type=int, default=100_000)
    options = parser.parse_args()
    with secateur.start(members=3, runtime="ray") as cluster:
        with cluster.connect() as conn:
            conn.execute("CREATE TABLE lookups (k BIGINT PRIMARY KEY, v VARCHAR) PARTITION BY HASH (k) PARTITIONS 8")
            conn.table("lookups").load({"k": list(range(1000)), "v": [f"v{key}" for key in range(1000)]})
        asyncio.run(_measured(cluster, options.lookups))
    return 0


async def _measured(cluster: Cluster, lookups: int) -> None:
    members = _members(cluster)
    async with await aio.connect(cluster.address, cluster.token) as conn:
        found = [await _until_idle(conn, members) for _ in range(_ENDLESS_STATEMENTS)]
        print(f"from cancelled to idle: median {statistics.median(found):.1f} ms, at most {max(found):.1f} ms")

        async def look_up(key: int) -> None:
            cur = await conn.execute("SELECT v FROM lookups WHERE k = ?", [key % 1000])
            await cur.fetchone()

        async def cancelled(number: int) -> bool:
            task = asyncio.create_task(look_up(number))
            for _ in range(number % _PLACES):
                await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            return task.cancelled()

        await asyncio.gather(*(look_up(key) for key in range(_AT_ONCE)))
        before = _kept()
        count = 0
        for start in range(0, lookups, _AT_ONCE):
            count += sum(await asyncio.gather(*(cancelled(start + number) for number in range(_AT_ONCE))))
        await look_up(1)
        print(f"{count} of {lookups} look-ups cancelled: {before} before, {_kept()} after")
        print(f"members execute {_busy(members)} statements")
    for member in members:
        member.close()


def _members(cluster: Cluster) -> list[Channel]:
    identity = cluster._settings.identity(Role.CONTROLLER)
    places = [member.address.rpartition(":") for member in cluster.members()]
    return [Channel(host, int(port), hello(cluster.token, identity=identity)) for host, _, port in places]


def _busy(members: Sequence[Channel]) -> int:
    found = [member.request(GetMemberStats()).message for member in members]
    return sum(stats.open_results + stats.running_jobs for stats in found)


async def _until_idle(conn: aio.AsyncConnection, members: Sequence[Channel]) -> float:
    task = asyncio.create_task(conn.execute(_ENDLESS))
    while not await asyncio.to_thread(_busy, members):  # noqa: ASYNC110 - members tell nobody
        await asyncio.sleep(0.002)
    task.cancel()
    begun_s = time.perf_counter()
    with suppress(asyncio.CancelledError):
        await task
    while await asyncio.to_thread(_busy, members):  # noqa: ASYNC110 - members tell nobody
        await asyncio.sleep(0.001)
    return (time.perf_counter() - begun_s) * 1e3


def _kept() -> str:
    gc.collect()
    process = psutil.Process()
    return f"{process.num_fds()} files, {process.memory_info().rss >> 20} MiB, {len(asyncio.all_tasks())} tasks"


if __name__ == "__main__":
    sys.exit(main())
