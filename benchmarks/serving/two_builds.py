"""What does a build of secateur answer a second beside an earlier one, on the same machine and in turn?

Question: how many statements a second do one and eight clients get, how long does one take, and how much processor
time does it cost, of two checkouts?
Data: a million orders of five columns, a hundred of each customer, in 271 partitions with one backup, and a replicated
table of four statuses, on three Ray members of each build.
Control: the earlier build, whose cluster and clients are up all the time; those that are not measured are idle. What
both answer is compared first.
Metric: statements a second of all clients in a closed loop, and processor microseconds of the cluster, with all
processes of its Ray, and of the clients for one. Medians of rounds, in which the builds take turns.

Run: ``python -m benchmarks.serving.two_builds --before CHECKOUT [--rows N] [--rounds N] [--seconds N]``, where the
checkout is a folder with another commit (``git worktree add``). Both builds run with the libraries of this environment.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any, Final

import numpy as np
import psutil
import pyarrow as pa

import secateur  # of the build that a process of this file is started for: only what both have may be used

__all__ = ["main"]

_ORDERS_PER_CUSTOMER: Final = 100
_STATUSES: Final = ("delivered", "open", "returned", "shipped")
_ORDERS_DDL: Final = (
    "CREATE TABLE orders (customer_id BIGINT, order_id BIGINT, status VARCHAR, quantity BIGINT, price DOUBLE,"
    " PRIMARY KEY (customer_id, order_id)) PARTITION BY HASH (customer_id) PARTITIONS 271 BACKUPS 1"
)
_STATUSES_DDL: Final = "CREATE TABLE statuses (status VARCHAR, title VARCHAR, PRIMARY KEY (status)) REPLICATED"
_STATEMENTS: Final = {
    "row by key": "SELECT status, quantity FROM orders WHERE customer_id = ? AND order_id = ?",
    "count and sum": "SELECT count(*), sum(quantity) FROM orders WHERE customer_id = ?",
    "IN of 5": "SELECT count(*), sum(quantity) FROM orders WHERE customer_id IN (?, ?, ?, ?, ?)",
    "join": "SELECT title, count(*) FROM orders JOIN statuses USING (status) WHERE customer_id = ? GROUP BY 1"
    " ORDER BY 1",
    "INSERT OR REPLACE": "INSERT OR REPLACE INTO orders VALUES (?, ?, 'open', 3, 1.5)",
    "ON CONFLICT": "INSERT INTO orders VALUES (?, ?, 'open', 3, 1.5) ON CONFLICT DO UPDATE SET quantity = quantity + 1",
}
_COMPARED: Final = 50


@dataclass(frozen=True, slots=True)
class _Measured:
    """What one round of one build gave."""

    a_second: float
    p50_us: float
    p99_us: float
    cluster_us: float
    client_us: float


def main() -> int:
    """Start both clusters, compare their answers, measure in turn, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="the checkout of the earlier build")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each loop")
    parser.add_argument("--clients", default="1,8", help="how many, with commas between them")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--call", nargs=2, metavar=("ADDRESS", "TOKEN"), help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return _serve(options.rows)
    if options.call:
        address, token = options.call
        return _call(address, token, options.rows // _ORDERS_PER_CUSTOMER, options.seed)
    if options.before is None:
        parser.error("--before: the folder of the earlier build is needed")
    counts = [int(count) for count in options.clients.split(",")]
    builds = {"before": options.before.resolve(), "after": Path(__file__).resolve().parents[2]}
    with ExitStack() as stack:
        clusters = {name: stack.enter_context(_cluster(root, options.rows)) for name, root in builds.items()}
        clients = {
            name: [stack.enter_context(_client(clusters[name], number)) for number in range(max(counts))]
            for name in builds
        }
        _compare(clients)
        print(f"{'':<28}{'before':>38}{'after':>38}")
        columns = f"{'a second':>9}{'p50 us':>9}{'p99 us':>9}{'cpu us':>11}"
        print(f"{'clients, statement':<28}{columns}{columns}{'rate':>7}{'cpu':>6}")
        for count in counts:
            for statement in _STATEMENTS:
                rounds: dict[str, list[_Measured]] = {name: [] for name in builds}
                for number in range(options.rounds):
                    for name in sorted(builds, reverse=bool(number % 2)):
                        chosen = clients[name][:count]
                        rounds[name].append(_measure(clusters[name], chosen, statement, options.seconds))
                _print(f"{count}, {statement}", *(_medians(rounds[name]) for name in builds))
    return 0


class _Process:
    """A process of this file with one of the builds; it speaks lines of JSON."""

    def __init__(self, root: Path, *arguments: str) -> None:
        self.root = root
        environment = {**os.environ, "PYTHONPATH": str(root), "RAY_USAGE_STATS_ENABLED": "0"}
        environment.pop("RAY_ADDRESS", None)
        argv = [sys.executable, __file__, *arguments]
        self._process = subprocess.Popen(
            argv, env=environment, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.ready = self.hear()

    def tell(self, message: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        assert self._process.stdout is not None
        for line in self._process.stdout:  # Ray says something as well
            if line.startswith("{"):
                return json.loads(line)
        raise SystemExit(f"a process of {self.root} ended with exit code {self._process.wait()}")

    def processor_s(self) -> float:
        """Of the process and all that it has started."""
        process = psutil.Process(self._process.pid)
        seconds = 0.0
        for each in (process, *process.children(recursive=True)):
            try:
                times = each.cpu_times()
            except psutil.Error:
                continue  # it has ended
            seconds += times.user + times.system
        return seconds

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


@contextmanager
def _cluster(root: Path, rows: int) -> Iterator[_Process]:
    process = _Process(root, "--serve", "--rows", str(rows))
    try:
        at = Path(process.ready["secateur"])
        if not at.is_relative_to(root):
            raise SystemExit(f"{root} has no secateur: {at} was imported")
        yield process
    finally:
        process.end()


@contextmanager
def _client(cluster: _Process, seed: int) -> Iterator[_Process]:
    said = cluster.ready
    process = _Process(
        cluster.root, "--call", said["address"], said["token"], "--rows", str(said["rows"]), "--seed", str(seed)
    )
    try:
        yield process
    finally:
        process.end()


def _compare(clients: dict[str, list[_Process]]) -> None:
    answers = []
    for each in clients.values():
        each[0].tell({"compare": _COMPARED})
        answers.append(each[0].hear())
    if answers[0] != answers[1]:
        raise SystemExit(f"the builds differ: {answers[0]} and {answers[1]}")


def _measure(cluster: _Process, clients: list[_Process], statement: str, seconds: float) -> _Measured:
    began_s = cluster.processor_s()
    for client in clients:
        client.tell({"statement": statement, "seconds": seconds})
    heard = [client.hear() for client in clients]
    calls = sum(each["calls"] for each in heard)
    return _Measured(
        calls / seconds,
        median(each["p50_us"] for each in heard),
        median(each["p99_us"] for each in heard),
        (cluster.processor_s() - began_s) / calls * 1e6,
        mean(each["processor_us"] for each in heard),
    )


def _medians(rounds: list[_Measured]) -> _Measured:
    return _Measured(*(median(getattr(each, name) for each in rounds) for name in _Measured.__slots__))


def _print(name: str, *builds: _Measured) -> None:
    before, after = builds
    cells = "".join(
        f"{each.a_second:>9,.0f}{each.p50_us:>9,.0f}{each.p99_us:>9,.0f}"
        f"{f'{each.cluster_us:,.0f}+{each.client_us:,.0f}':>11}"
        for each in builds
    )
    processor = (after.cluster_us + after.client_us) / (before.cluster_us + before.client_us)
    print(f"{name:<28}{cells}{after.a_second / before.a_second:>7.2f}{processor:>6.2f}", flush=True)


def _say(message: Any) -> None:
    print(json.dumps(message, default=str), flush=True)


def _serve(rows: int) -> int:
    """Be a cluster until there is nothing more to read."""
    ids = np.arange(rows)
    statuses = np.array(_STATUSES)
    orders = pa.table(
        {
            "customer_id": ids // _ORDERS_PER_CUSTOMER,
            "order_id": ids,
            "status": statuses[ids % len(statuses)],
            "quantity": ids % 17,
            "price": ids % 997 / 4,
        }
    )
    with secateur.start(members=3, runtime="ray") as cluster, cluster.connect() as connection:
        connection.execute(_ORDERS_DDL)
        connection.execute(_STATUSES_DDL)
        connection.table("orders").load(orders)
        connection.table("statuses").load({"status": _STATUSES, "title": ["done", "new", "back", "on its way"]})
        token = getattr(cluster, "token", None) or ""
        _say({"secateur": secateur.__file__, "address": cluster.address, "token": token, "rows": rows})
        sys.stdin.read()
    return 0


def _call(address: str, token: str, customers: int, seed: int) -> int:
    """Be a client that does what it reads."""
    chosen = random.Random(seed)
    connection = secateur.connect(address, token=token) if token else secateur.connect(address)
    calls = {name: _random_call(connection, sql, customers, chosen) for name, sql in _STATEMENTS.items()}
    for call in calls.values():  # what the first one of a client loads does not count
        call()
    _say({})
    for line in sys.stdin:
        asked = json.loads(line)
        if "compare" in asked:
            _say({name: [call() for _ in range(asked["compare"])] for name, call in calls.items()})
        else:
            _say(_loop(calls[asked["statement"]], asked["seconds"]))
    return 0


def _random_call(
    connection: secateur.Connection, sql: str, customers: int, chosen: random.Random
) -> Callable[[], list[Any]]:
    marks = sql.count("?")

    def call() -> list[Any]:
        keys = chosen.sample(range(customers), marks)
        if marks == 2:  # an order of the customer
            keys[1] = keys[0] * _ORDERS_PER_CUSTOMER + chosen.randrange(_ORDERS_PER_CUSTOMER)
        cursor = connection.execute(sql, keys)
        return [] if sql.startswith("INSERT") else cursor.fetchall()

    return call


def _loop(call: Callable[[], Any], seconds: float) -> dict[str, float]:
    times_s = []
    processor_s = time.process_time()
    began_s = time.perf_counter()
    end_s = began_s + seconds
    while began_s < end_s:
        call()
        now_s = time.perf_counter()
        times_s.append(now_s - began_s)
        began_s = now_s
    processor_s = time.process_time() - processor_s
    p50_us, p99_us = np.percentile(times_s, [50, 99]) * 1e6
    return {"calls": len(times_s), "p50_us": p50_us, "p99_us": p99_us, "processor_us": processor_s / len(times_s) * 1e6}


if __name__ == "__main__":
    raise SystemExit(main())
