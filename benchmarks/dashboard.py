"""What does an open dashboard cost the statements of a cluster?

Question: is the throughput of a loaded cluster at most 2 % less while a page of the dashboard is open?
Data: a table of 200,000 rows in 271 partitions on three Ray members, and some hundred different statements in their
lists.
Load: client processes that look up rows of a customer without a pause, and now and then scan without pruning.
Control: the same clients with the HTTP server idle, in the rounds between.
Metric: statements a second, and processor time of members, clients and HTTP server for a statement; the median over
pairs of neighbouring rounds of the ratio of both.

The page is fetched as its script does it, every 0.7 s with the tag of the last answer, by a process of its own without
a browser: what a browser takes to draw it is on another machine. Processor time says what the dashboard takes even
where other work disturbs the rates.

Run: ``python -m benchmarks.dashboard [--pages PATH ...] [--rounds N] [--seconds N] [--clients N] [--check]``.
"""

from __future__ import annotations

import argparse
import base64
import os
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Final

import psutil
import pyarrow as pa

import secateur
from benchmarks.record import Bar, print_bars

_ROWS: Final = 200_000
_CUSTOMERS: Final = 5_000
_STATEMENTS: Final = 200
_SHARE_MAX: Final = 0.02
_PAUSE_S: Final = 0.7
"""As in the script of the pages."""

_CLIENT: Final = """
import os, sys, time
import secateur
with secateur.connect(os.environ["ADDRESS"]) as connection:
    number = int(sys.argv[1]) * 1000
    for line in sys.stdin:
        end, done = time.perf_counter() + float(line), 0
        while time.perf_counter() < end:
            number, done = number + 1, done + 1
            customer = f"C{number % 5000}"
            connection.execute("SELECT sum(amount) FROM orders WHERE customer = ?", [customer]).fetchall()
            if done % 500 == 0:
                connection.execute("SELECT count(*) FROM orders WHERE lower(customer) = 'c7'").fetchall()
        print(done, flush=True)
"""
_SERVER: Final = """
import os, sys
from secateur.server import HttpServer
with HttpServer(os.environ["ADDRESS"]) as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""


def main() -> int:
    """Start everything, alternate between rounds with and without a page, print.

    Returns:
        0; with ``--check`` 1 if a bar was missed.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", nargs="+", default=["/", "/statements", "/partitions?table=orders"])
    parser.add_argument("--rounds", type=int, default=8, help="pairs of rounds for each page")
    parser.add_argument("--seconds", type=float, default=6.0, help="how long a round takes")
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--check", action="store_true", help="fail if a page takes more than its bar")
    parser.add_argument("--poll", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.poll:
        _poll(options.poll, os.environ["SECATEUR_TOKEN"])
    with secateur.start(members=3, start_timeout_s=300) as cluster, cluster.connect() as connection:
        _fill(connection)
        environment = {**os.environ, "ADDRESS": cluster.address, "SECATEUR_TOKEN": cluster.token or ""}
        clients = [_process(environment, "-c", _CLIENT, str(number)) for number in range(options.clients)]
        server = _process(environment, "-c", _SERVER)
        url = _pipe(server.stdout).readline().strip()
        members = _members()
        watched = [*members, *(psutil.Process(one.pid) for one in (*clients, server))]
        bars = []
        print(f"{'page':<34} {'statements/s':>12} {'open':>6} {'ratio':>6} {'processor time':>14} {'server':>7}")
        for page in options.pages:
            rates: list[tuple[float, float]] = []
            costs: list[tuple[float, float]] = []
            shares: list[float] = []
            for number in range(options.rounds + 1):
                without = _round(clients, watched, options.seconds)
                with _open(environment, url + page):
                    open_rate = _round(clients, watched, options.seconds)
                if number:  # the first one warms up
                    rates.append((without[0], open_rate[0]))
                    costs.append((without[1], open_rate[1]))
                    shares.append(open_rate[2])
            rate = statistics.median(after / before for before, after in rates)
            cost = statistics.median(after / before for before, after in costs)
            share = statistics.median(shares)
            before = statistics.median(rate[0] for rate in rates)
            after = statistics.median(rate[1] for rate in rates)
            print(f"{page:<34} {before:>12,.0f} {after:>6,.0f} {rate:>6.3f} {cost:>14.3f} {share:>7.3f}", flush=True)
            bars.append(Bar.at_most(f"the share of statements that {page} costs", 1 - rate, _SHARE_MAX))
            bars.append(Bar.at_most(f"the processor time of a statement more by {page}", cost - 1, _SHARE_MAX))
        for process in (*clients, server):
            process.communicate()
    print_bars(bars)
    return 1 if options.check and not all(bar.met for bar in bars) else 0


def _fill(connection: secateur.Connection) -> None:
    connection.execute(
        "CREATE TABLE orders (customer VARCHAR, id BIGINT, amount BIGINT, PRIMARY KEY (customer, id))"
        " PARTITION BY HASH (customer) PARTITIONS 271"
    )
    rows = {"customer": [f"C{n % _CUSTOMERS}" for n in range(_ROWS)], "id": range(_ROWS), "amount": range(_ROWS)}
    connection.table("orders").load(pa.table(rows))
    for number in range(_STATEMENTS):
        connection.execute(f"SELECT sum(amount) + {number} AS s{number} FROM orders WHERE customer = 'C1'").fetchall()


def _members() -> list[psutil.Process]:
    """The processes of the members and the controller, which Ray names after their actors."""
    below = psutil.Process().children(recursive=True)
    found = [process for process in below if "Actor" in " ".join(process.cmdline())]
    assert found, "the processes of the members were not found"
    return found


def _round(
    clients: Sequence[subprocess.Popen[str]], watched: Sequence[psutil.Process], seconds: float
) -> tuple[float, float, float]:
    """Statements a second of all clients, processor seconds of all watched processes for one, the last one's share."""
    busy_s, server_s, begun_s = _busy_s(watched), _busy_s(watched[-1:]), time.perf_counter()
    for client in clients:
        _pipe(client.stdin).write(f"{seconds}\n")
        _pipe(client.stdin).flush()
    done = sum(int(_pipe(client.stdout).readline()) for client in clients)
    spent_s, server_s = _busy_s(watched) - busy_s, _busy_s(watched[-1:]) - server_s
    return done / (time.perf_counter() - begun_s), spent_s / done, server_s / spent_s


def _busy_s(watched: Sequence[psutil.Process]) -> float:
    return sum(times.user + times.system for times in (process.cpu_times() for process in watched))


@contextmanager
def _open(environment: Mapping[str, str], url: str) -> Iterator[None]:
    """A process that has a page open."""
    page = _process(environment, "-m", "benchmarks.dashboard", "--poll", url)
    assert _pipe(page.stdout).readline() == "open\n"
    try:
        yield
    finally:
        page.terminate()
        page.wait()
        _pipe(page.stdin).close()
        _pipe(page.stdout).close()


def _poll(url: str, token: str) -> None:
    """Fetch a page again and again, as its script does. Never returns."""
    basic = base64.b64encode(f"any:{token}".encode()).decode()
    tag = ""
    while True:
        asked = urllib.request.Request(url, headers={"Authorization": f"Basic {basic}", "If-None-Match": tag})
        try:
            with urllib.request.urlopen(asked) as answer:
                answer.read()
                tag, was_open = answer.headers["ETag"], bool(tag)
                if not was_open:
                    print("open", flush=True)
        except urllib.error.HTTPError as error:
            if error.code != 304:
                raise
        time.sleep(_PAUSE_S)


def _process(environment: Mapping[str, str], *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, *arguments]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


if __name__ == "__main__":
    raise SystemExit(main())
