"""Does one client with heavy statements hold up the lookups of eight others?

Question: is the 99th percentile of lookups by key of eight client processes at most 3 times as long while one more
process runs heavy statements without a pause?
Data: a table of a million rows in 24 partitions and one of 100,000, on three Ray members.
Heavy statements, in turn: a GROUP BY of the whole table by a column that is no key, a join of both tables on a column
that is no key, and a sort of the whole table.
Control: the same lookups without the heavy client, before and after it, in the same run.
Metric: milliseconds of each lookup, of all eight processes together.

Each lookup client waits ``--pause-ms`` between two lookups: without a pause, the eight of them take all that two cores
have, and the control measures the queue of the operating system. Run:
``python -m benchmarks.heavy_statement [--seconds N] [--rounds N] [--pause-ms N] [--check]``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from typing import Final

import numpy as np
import pyarrow as pa

import secateur
from benchmarks.record import Bar, print_bars
from secateur.cluster import Cluster

_LOOKUPS: Final = 8
_ROWS: Final = 1_000_000
_OTHER_ROWS: Final = 100_000
_LOOKUP: Final = "SELECT amount, day FROM orders WHERE id = ?"
_HEAVY: Final = {
    "group by": "SELECT customer, count(*), sum(amount), min(day), max(day) FROM orders GROUP BY customer",
    "join": "SELECT c.city, count(*), sum(o.amount) FROM orders o JOIN customers c ON o.customer = c.number GROUP BY 1",
    "sort": "SELECT id, amount, row_number() OVER (PARTITION BY day ORDER BY amount, id) AS n FROM orders"
    " QUALIFY n <= 10",
}


def main() -> int:
    """Start the cluster, measure with and without the heavy client, print.

    Returns:
        0; with ``--check`` 1 if a bar was missed.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8.0, help="how long each phase of a round is measured")
    parser.add_argument("--rounds", type=int, default=3, help="how often it alternates between without and with")
    parser.add_argument("--pause-ms", type=float, default=20.0, help="what a client waits between two lookups")
    parser.add_argument("--kernel-threads", type=int, default=None, help="kernel_threads of the cluster")
    parser.add_argument("--check", action="store_true", help="fail when a bar is missed")
    parser.add_argument("--client", choices=("lookup", "heavy"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client == "lookup":
        return _look_up(options.seconds, options.pause_ms / 1000)
    if options.client == "heavy":
        return _run_heavy(options.seconds)
    settings = {} if options.kernel_threads is None else {"kernel_threads": options.kernel_threads}
    with secateur.start(members=3, runtime="ray", **settings) as cluster:
        _fill(cluster)
        _phase(cluster, min(3.0, options.seconds), options.pause_ms, is_heavy=True)  # to warm up
        without: list[float] = []
        beside: list[float] = []
        heavy: dict[str, list[float]] = {}
        for _ in range(options.rounds):
            without += _phase(cluster, options.seconds, options.pause_ms, is_heavy=False)[0]
            lookups, times = _phase(cluster, options.seconds, options.pause_ms, is_heavy=True)
            beside += lookups
            for name, each in times.items():
                heavy.setdefault(name, []).extend(each)
        without += _phase(cluster, options.seconds, options.pause_ms, is_heavy=False)[0]
    _print_lookups("without a heavy client", without)
    _print_lookups("beside a heavy client", beside)
    for name, each in heavy.items():
        print(f"heavy {name:<9} {len(each):>4} times, median {np.median(each):.0f} ms")
    bars = [
        Bar.at_most(
            "p99 of lookups beside one heavy client, to without it",
            float(np.percentile(beside, 99) / np.percentile(without, 99)),
            3.0,
        )
    ]
    print_bars(bars)
    return int(options.check and not all(bar.met for bar in bars))


def _fill(cluster: Cluster) -> None:
    chosen = np.random.default_rng(7)
    orders = pa.table(
        {
            "id": np.arange(_ROWS),
            "customer": chosen.integers(0, _OTHER_ROWS, _ROWS),
            "day": chosen.integers(0, 365, _ROWS),
            "amount": chosen.integers(1, 100_000, _ROWS),
        }
    )
    customers = pa.table({"number": np.arange(_OTHER_ROWS), "city": chosen.integers(0, 5_000, _OTHER_ROWS)})
    with cluster.connect() as connection:
        connection.execute(
            "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT, day BIGINT, amount BIGINT)"
            " PARTITION BY HASH (id) PARTITIONS 24"
        )
        connection.execute(
            "CREATE TABLE customers (number BIGINT PRIMARY KEY, city BIGINT) PARTITION BY HASH (number) PARTITIONS 24"
        )
        connection.table("orders").load(orders)
        connection.table("customers").load(customers)


def _phase(
    cluster: Cluster, seconds: float, pause_ms: float, *, is_heavy: bool
) -> tuple[list[float], dict[str, list[float]]]:
    """Milliseconds of the lookups, and of the heavy statements by name."""
    clients = [_started(cluster, "lookup", seconds, pause_ms) for _ in range(_LOOKUPS)]
    heavy = [_started(cluster, "heavy", seconds, pause_ms)] if is_heavy else []
    for client in clients + heavy:
        assert client.stdout is not None
        assert client.stdout.readline() == "ready\n"
    for client in clients + heavy:
        client.stdin.write("go\n")  # type: ignore[union-attr]
        client.stdin.flush()  # type: ignore[union-attr]
    found = [json.loads(client.communicate()[0]) for client in clients]
    times = [json.loads(client.communicate()[0]) for client in heavy]
    return [each for lookups in found for each in lookups], times[0] if times else {}


def _started(cluster: Cluster, kind: str, seconds: float, pause_ms: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.heavy_statement", "--client", kind]
    return subprocess.Popen(
        [*command, "--seconds", str(seconds), "--pause-ms", str(pause_ms)],
        env={**os.environ, "ADDRESS": cluster.address, "SECATEUR_TOKEN": cluster.token or ""},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _look_up(seconds: float, pause_s: float) -> int:
    chosen = random.Random(os.getpid())
    taken: list[float] = []
    with secateur.connect(os.environ["ADDRESS"]) as connection:
        for _ in range(50):
            connection.execute(_LOOKUP, [chosen.randrange(_ROWS)]).fetchall()
        print("ready", flush=True)
        sys.stdin.readline()
        until_s = time.perf_counter() + seconds
        while (began_s := time.perf_counter()) < until_s:
            connection.execute(_LOOKUP, [chosen.randrange(_ROWS)]).fetchall()
            taken.append((time.perf_counter() - began_s) * 1000)
            time.sleep(pause_s * (0.5 + chosen.random()))
    print(json.dumps(taken))
    return 0


def _run_heavy(seconds: float) -> int:
    taken: dict[str, list[float]] = {name: [] for name in _HEAVY}
    with secateur.connect(os.environ["ADDRESS"]) as connection:
        connection.execute("SELECT 1").fetchall()
        print("ready", flush=True)
        sys.stdin.readline()
        until_s = time.perf_counter() + seconds
        while time.perf_counter() < until_s:
            for name, sql in _HEAVY.items():
                began_s = time.perf_counter()
                connection.execute(sql).fetchall()
                taken[name].append((time.perf_counter() - began_s) * 1000)
                if time.perf_counter() > until_s:
                    break
    print(json.dumps({name: each for name, each in taken.items() if each}))
    return 0


def _print_lookups(title: str, taken: list[float]) -> None:
    p50, p99 = np.percentile(taken, [50, 99])
    print(f"lookups {title:<24} {len(taken):>7} times, p50 {p50:.2f} ms, p99 {p99:.2f} ms, longest {max(taken):.1f} ms")


if __name__ == "__main__":
    raise SystemExit(main())
