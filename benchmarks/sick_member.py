"""Does a member that is frozen, or slow, hold up statements that do not need it?

Question: is the 99th percentile of reads and writes that need only healthy members within 1.5 times that of a healthy
cluster while one member is suspended for 200 ms again and again, and while it is frozen? How long do writes wait that
need it?
Data: a table of 24 partitions with one backup on three Ray members; reads and writes of single rows, by key.
Control: the same statements before, in the same run. Metric: milliseconds of each statement of one client; of a client
that writes to keys of the sick member, the longest.

A member that is frozen is given up after ``--silence`` seconds, and its backups serve its partitions from then on; when
it goes on it comes back as another member. Run: ``python -m benchmarks.sick_member [--seconds N] [--silence N]``.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Final

import numpy as np
import psutil

import secateur
from benchmarks.record import Bar, print_bars
from secateur.cluster import Cluster

_DDL: Final = "CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS 24 BACKUPS 1"
_READ: Final = "SELECT v FROM t WHERE id = ?"
_WRITE: Final = "INSERT OR REPLACE INTO t VALUES (?, ?)"
_ROWS: Final = 2_000
_SLOW_S: Final = 0.2
_BETWEEN_S: Final = 0.02


class _Needing(threading.Thread):
    """Writes to keys of the sick member, one after the other."""

    def __init__(self, address: str, keys: list[int]) -> None:
        super().__init__(name="needs the sick member")
        self.longest_s = 0.0
        self.ended = threading.Event()
        self._address = address
        self._keys = itertools.cycle(keys)

    def run(self) -> None:
        with secateur.connect(self._address) as connection:
            while not self.ended.wait(0.02):
                began_s = time.perf_counter()
                connection.execute(_WRITE, [next(self._keys), 1])
                self.longest_s = max(self.longest_s, time.perf_counter() - began_s)


def main() -> int:
    """Start the cluster, make a member sick, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=15.0, help="how long each state is measured")
    parser.add_argument("--silence", type=float, default=1.5, help="member_silence_s of the cluster")
    options = parser.parse_args()
    bars: list[Bar] = []
    with (
        secateur.start(members=3, runtime="ray", member_silence_s=options.silence) as cluster,
        cluster.connect() as connection,
    ):
        connection.execute(_DDL)
        connection.executemany(_WRITE, [(key, 0) for key in range(_ROWS)])
        sick, process = "m1", _process_of(cluster, "m1")
        holders = dict(
            connection.execute(
                "SELECT partition, [primary_member] || backup_members FROM secateur.partitions WHERE table_name = 't'"
            ).fetchall()
        )
        table = connection.table("t")
        copies = {key: holders[table.partition_of({"id": key})] for key in range(_ROWS)}
        apart = [key for key in copies if sick not in copies[key]]
        needing = [key for key in copies if copies[key][0] == sick]
        _statements(connection, apart, 2.0)  # to warm up
        for title, state in (("slow by 200 ms", _suspended_often), ("frozen", _frozen)):
            healthy = _statements(connection, apart, options.seconds)
            client = _Needing(cluster.address, needing)
            with state(process):
                client.start()
                ill = _statements(connection, apart, options.seconds)
                client.ended.set()
                client.join()
            for kind in healthy:
                before, during = np.percentile(healthy[kind], 99), np.percentile(ill[kind], 99)
                print(f"{kind:<6} of healthy members, p99: {before:.2f} ms healthy, {during:.2f} ms {title}")
                bars.append(Bar.at_most(f"p99 of a {kind} while a member is {title}, to healthy", during / before, 1.5))
            print(f"longest write that needs the member that is {title}: {client.longest_s:.2f} s")
            if state is _frozen:
                bars.append(Bar.at_most("longest write that needs the frozen member, seconds", client.longest_s, 2.0))
    print_bars(bars)
    return 0 if all(bar.met for bar in bars) else 1


def _statements(connection: secateur.Connection, keys: list[int], seconds: float) -> dict[str, list[float]]:
    """The milliseconds of each statement, by kind."""
    found: dict[str, list[float]] = {"read": [], "write": []}
    until_s = time.perf_counter() + seconds
    for key in itertools.cycle(keys):
        for kind, work in (("read", (_READ, [key])), ("write", (_WRITE, [key, 1]))):
            began_s = time.perf_counter()
            connection.execute(*work)
            found[kind].append((time.perf_counter() - began_s) * 1000)
        if time.perf_counter() >= until_s:
            break
    return found


@contextlib.contextmanager
def _frozen(process: int) -> Iterator[None]:
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


@contextlib.contextmanager
def _suspended_often(process: int) -> Iterator[None]:
    """The process runs for a moment, and is then suspended, so that what it answers comes late."""
    ended = threading.Event()

    def suspend() -> None:
        while not ended.is_set():
            os.kill(process, signal.SIGSTOP)
            ended.wait(_SLOW_S)
            os.kill(process, signal.SIGCONT)
            ended.wait(_BETWEEN_S)

    thread = threading.Thread(target=suspend, name="suspends a member")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _process_of(cluster: Cluster, member_id: str) -> int:
    address = next(member.address for member in cluster.members() if member.id == member_id)
    port = int(address.rpartition(":")[2])
    for link in psutil.net_connections("tcp"):
        if link.status == psutil.CONN_LISTEN and link.laddr.port == port and link.pid is not None:
            return link.pid
    raise LookupError(f"no process listens at {address}")


if __name__ == "__main__":
    raise SystemExit(main())
