"""How long is a cluster without a controller when that is killed, and where does the time go?

Question: from SIGKILL of the controller's process, when does another process listen at its address, when is a statement
answered that only a controller can plan, and how long does a statement wait whose plan is known?
Data: a table of 24 partitions with one backup on three Ray members; in each round a text that nobody has asked before.
Control: an actor without any code that is killed in the same round: how long Ray takes to start that anew.
Metric: seconds since the kill, medians and the longest of the rounds.

Run: ``python -m benchmarks.controller_restart [--rounds N] [--silence N]``.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import statistics
import threading
import time
from typing import Any, Final

import psutil

import secateur

_DDL: Final = "CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS 24 BACKUPS 1"
_KNOWN: Final = "SELECT v FROM t WHERE id = ?"
_LOOK_S: Final = 0.01
_SETTLE_S: Final = 8.0
"""Between two rounds: processes that Ray starts in the background are to be there again."""


class _Idle:
    """The control: an actor that does nothing."""

    def process(self) -> int:
        return os.getpid()


class _Known(threading.Thread):
    """Asks for what needs no controller, again and again."""

    def __init__(self, address: str) -> None:
        super().__init__(name="asks for what is known")
        self.longest_s = 0.0
        self.ended = threading.Event()
        self._connection = secateur.connect(address)
        self._connection.execute(_KNOWN, [1]).fetchall()

    def run(self) -> None:
        with self._connection as connection:
            key = 0
            while not self.ended.wait(_LOOK_S):
                key = (key + 1) % 1000
                began_s = time.perf_counter()
                connection.execute(_KNOWN, [key]).fetchall()
                self.longest_s = max(self.longest_s, time.perf_counter() - began_s)


def main() -> None:
    """Start the cluster, kill the controller again and again, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--silence", type=float, default=1.5, help="member_silence_s of the cluster")
    options = parser.parse_args()
    found: dict[str, list[float]] = {
        "an empty actor of Ray runs again": [],
        "another process listens": [],
        "a new statement is answered": [],
        "longest statement whose plan is known": [],
    }
    with secateur.start(members=3, runtime="ray", member_silence_s=options.silence, start_timeout_s=300) as cluster:
        import ray

        idle: Any = ray.remote(_Idle).options(num_cpus=0, max_restarts=-1, max_task_retries=-1).remote()
        ray.get(idle.process.remote())
        host, _, port = cluster.address.removeprefix("secateur://").rpartition(":")
        with cluster.connect() as connection:
            connection.execute(_DDL)
            connection.executemany("INSERT INTO t VALUES (?, ?)", [(key, key) for key in range(1000)])
            for turn in range(options.rounds):
                time.sleep(_SETTLE_S)
                known = _Known(cluster.address)
                known.start()
                process = psutil.Process(_listening(int(port)))
                began_s = time.perf_counter()
                process.kill()
                listens = threading.Thread(
                    target=lambda process=process, began_s=began_s: found["another process listens"].append(
                        _accepts(process, host, int(port)) - began_s
                    )
                )
                listens.start()
                connection.execute(f"SELECT max(v) + {turn} FROM t WHERE id < 10").fetchall()
                found["a new statement is answered"].append(time.perf_counter() - began_s)
                listens.join()
                known.ended.set()
                known.join()
                found["longest statement whose plan is known"].append(known.longest_s)
                number = ray.get(idle.process.remote())
                began_s = time.perf_counter()
                os.kill(number, signal.SIGKILL)
                ray.get(idle.process.remote())
                found["an empty actor of Ray runs again"].append(time.perf_counter() - began_s)
                print(", ".join(f"{what}: {seconds[-1]:.2f} s" for what, seconds in found.items()), flush=True)
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for what, seconds in found.items():
        print(f"{what}: median {statistics.median(seconds):.2f} s, longest {max(seconds):.2f} s")


def _accepts(process: psutil.Process, host: str, port: int) -> float:
    """When a connection is accepted by another process than this one, which has been killed."""
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        time.sleep(_LOOK_S)
    while True:
        try:
            with socket.create_connection((host, port), timeout=1.0):
                return time.perf_counter()
        except OSError:
            time.sleep(_LOOK_S)


def _listening(port: int) -> int:
    """The process that listens at a port of this machine."""
    for link in psutil.net_connections("tcp"):
        if link.status == psutil.CONN_LISTEN and link.laddr.port == port and link.pid is not None:
            return link.pid
    raise LookupError(f"no process listens at port {port}")


if __name__ == "__main__":
    main()
