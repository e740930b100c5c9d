"""What does an open dashboard cost the statements of a cluster?

Question: is the throughput of a loaded cluster at most 2 % less while a page of the dashboard is open?
Data: a table of 200,000 rows in 271 partitions on three Ray members, and some hundred different statements in their
lists, which are full from the first round on: 1,100 statements on each member.
Load: client processes that look up rows of a customer without a pause, and now and then scan without pruning. Then
again without load, but for ten statements a second.
Control: the same cluster without a page, in blocks of four rounds (:mod:`benchmarks.paired_rounds`).
Metric: statements a second, and processor time of members, controller, clients and HTTP server for a statement, as the
ratio with the page to without; and without load the milliseconds of processor time that the page takes in a second, of
members, controller and HTTP server. Medians over blocks, with their intervals of 95 %.

The bar is 2 % for each. That of the rates is missed when even the favourable end of the interval is beyond it: other
work on the machine disturbs rates more than processor time. Without load, 2 % are those of all cores.

The page is fetched as its script does it, when the last answer says that there may be something new, without a browser:
what a browser takes to draw it is on another machine.

Run: ``python -m benchmarks.dashboard [--pages PATH ...] [--blocks N] [--seconds N] [--clients N] [--quiet] [--check]``.
"""

from __future__ import annotations

import argparse
import base64
import os
import statistics
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import IO, Final

import psutil
import pyarrow as pa

import secateur
from benchmarks.paired_rounds import MedianInterval, abba_block, median_interval
from benchmarks.record import Bar, print_bars
from secateur.server.dashboard import NEXT_HEADER, PERIOD_S

_ROWS: Final = 200_000
_CUSTOMERS: Final = 5_000
_STATEMENTS: Final = 200
_LISTED_MIN: Final = 1_100
_SHARE_MAX: Final = 0.02
_PAGES: Final = ("/", "/statements", "/statements/{fingerprint}", "/partitions?table=orders")
_TRICKLE_S: Final = 0.1
_LOOK_UP: Final = "SELECT sum(amount) FROM orders WHERE customer = ?"

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

Groups = Mapping[str, Sequence[psutil.Process]]


@dataclass(frozen=True, slots=True)
class _Round:
    """What happened within some seconds.

    Attributes:
        seconds: How long it took.
        statements: How many were executed.
        busy_s: Processor seconds of each group of processes.
    """

    seconds: float
    statements: int
    busy_s: Mapping[str, float]


def main() -> int:
    """Start everything, measure each page, print.

    Returns:
        0; with ``--check`` 1 if a bar was missed.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", nargs="+", default=_PAGES, help="{fingerprint} stands for that of the look-ups")
    parser.add_argument("--blocks", type=int, default=8, help="blocks of four rounds, with and without load")
    parser.add_argument("--seconds", type=float, default=3 * PERIOD_S, help="how long a round takes")
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--quiet", action="store_true", help="measure without load only")
    parser.add_argument("--check", action="store_true", help="fail if a page takes more than its bar")
    options = parser.parse_args()
    with secateur.start(members=3, start_timeout_s=300) as cluster, cluster.connect() as connection:
        _fill(connection)
        environment = {**os.environ, "ADDRESS": cluster.address, "SECATEUR_TOKEN": cluster.token or ""}
        clients = [_process(environment, "-c", _CLIENT, str(number)) for number in range(options.clients)]
        server = _process(environment, "-c", _SERVER)
        url = _pipe(server.stdout).readline().strip()
        groups = {
            **_cluster_processes(),
            "server": [psutil.Process(server.pid)],
            "clients": [psutil.Process(client.pid) for client in clients],
        }
        bars: list[Bar] = []

        def blocks(page: str, measure: Callable[[], _Round]) -> list[tuple[list[_Round], list[_Round]]]:
            def opened() -> AbstractContextManager[None]:
                return _open(url + page, cluster.token or "")

            found = [abba_block(measure, opened) for _ in range(options.blocks + 1)]
            return found[1:]  # the first one warms up

        summaries = "SELECT fingerprint FROM secateur.statement_summaries WHERE statement = ?"
        ((fingerprint,),) = connection.execute(summaries, [_LOOK_UP]).fetchall()
        for page in (path.replace("{fingerprint}", fingerprint) for path in options.pages):
            print(page, flush=True)
            if not options.quiet:
                bars += _under_load(page, blocks(page, lambda: _loaded_round(clients, groups, options.seconds)))
            bars += _without_load(page, blocks(page, lambda: _quiet_round(connection, groups, options.seconds)))
        for process in (*clients, server):
            process.communicate()
    print_bars(bars)
    return 1 if options.check and not all(bar.met for bar in bars) else 0


def _under_load(page: str, blocks: Sequence[tuple[list[_Round], list[_Round]]]) -> list[Bar]:
    rates = median_interval([_per_second(with_page) / _per_second(without) for without, with_page in blocks])
    costs = median_interval([_busy_ms(with_page) / _busy_ms(without) for without, with_page in blocks])
    before, after = (statistics.median(map(_per_second, rounds)) for rounds in zip(*blocks, strict=True))
    print(f"    statements/s {before:,.0f}, with the page {after:,.0f}: {rates}")
    print(f"    processor time of a statement with the page to without: {costs}", flush=True)
    return [
        Bar.at_most(f"the share of statements that {page} costs at least", 1 - rates.high, _SHARE_MAX),
        Bar.at_most(f"the processor time of a statement more by {page}, at least", costs.low - 1, _SHARE_MAX),
    ]


def _without_load(page: str, blocks: Sequence[tuple[list[_Round], list[_Round]]]) -> list[Bar]:
    bound_ms = _SHARE_MAX * 1000 * (os.cpu_count() or 1)
    parts = ("members", "controller", "server")
    more = {part: _more_ms(blocks, (part,)) for part in parts}
    total = _more_ms(blocks, parts)
    print(f"    without load, ms of processor time more in a second: {_ms(total)}, of them ", end="")
    print(", ".join(f"{part} {_ms(found)}" for part, found in more.items()), flush=True)
    return [Bar.at_most(f"the milliseconds of processor time that {page} takes in a second", total.median, bound_ms)]


def _more_ms(blocks: Sequence[tuple[list[_Round], list[_Round]]], parts: Sequence[str]) -> MedianInterval:
    return median_interval([_ms_per_s(with_page, parts) - _ms_per_s(without, parts) for without, with_page in blocks])


def _ms_per_s(rounds: Sequence[_Round], parts: Sequence[str]) -> float:
    return 1000 * sum(one.busy_s[part] for one in rounds for part in parts) / sum(one.seconds for one in rounds)


def _per_second(rounds: Sequence[_Round]) -> float:
    return sum(one.statements for one in rounds) / sum(one.seconds for one in rounds)


def _busy_ms(rounds: Sequence[_Round]) -> float:
    return 1000 * sum(sum(one.busy_s.values()) for one in rounds) / sum(one.statements for one in rounds)


def _ms(found: MedianInterval) -> str:
    return f"{found.median:.1f} [{found.low:.1f}, {found.high:.1f}]"


def _fill(connection: secateur.Connection) -> None:
    """Make the table, and fill the lists of the members."""
    connection.execute(
        "CREATE TABLE orders (customer VARCHAR, id BIGINT, amount BIGINT, PRIMARY KEY (customer, id))"
        " PARTITION BY HASH (customer) PARTITIONS 271"
    )
    rows = {"customer": [f"C{n % _CUSTOMERS}" for n in range(_ROWS)], "id": range(_ROWS), "amount": range(_ROWS)}
    connection.table("orders").load(pa.table(rows))
    for number in range(_STATEMENTS):
        connection.execute(f"SELECT sum(amount) + {number} AS s{number} FROM orders WHERE customer = 'C1'").fetchall()
    listed = "SELECT min(n) FROM (SELECT count(*) AS n FROM secateur.statements WHERE error IS NULL GROUP BY member)"
    while connection.execute(listed).fetchall()[0][0] < _LISTED_MIN:
        for number in range(_CUSTOMERS):
            connection.execute(_LOOK_UP, [f"C{number}"]).fetchall()


def _cluster_processes() -> dict[str, list[psutil.Process]]:
    """The processes of the members and the controllers, which Ray names after their actors."""
    below = [(" ".join(process.cmdline()), process) for process in psutil.Process().children(recursive=True)]
    found = {
        "members": [process for name, process in below if "MemberActor" in name],
        "controller": [process for name, process in below if "ControllerActor" in name],
    }
    assert all(found.values()), f"the processes of the cluster were not found among {[name for name, _ in below]}"
    return found


def _loaded_round(clients: Sequence[subprocess.Popen[str]], groups: Groups, seconds: float) -> _Round:
    def execute() -> int:
        for client in clients:
            _pipe(client.stdin).write(f"{seconds}\n")
            _pipe(client.stdin).flush()
        return sum(int(_pipe(client.stdout).readline()) for client in clients)

    return _measured(groups, execute)


def _quiet_round(connection: secateur.Connection, groups: Groups, seconds: float) -> _Round:
    def execute() -> int:
        end_s, done = time.perf_counter() + seconds, 0
        while time.perf_counter() < end_s:
            done += 1
            connection.execute(_LOOK_UP, [f"C{done % _CUSTOMERS}"]).fetchall()
            time.sleep(_TRICKLE_S)
        return done

    return _measured(groups, execute)


def _measured(groups: Groups, execute: Callable[[], int]) -> _Round:
    before, begun_s = _busy_s(groups), time.perf_counter()
    statements = execute()
    seconds, after = time.perf_counter() - begun_s, _busy_s(groups)
    return _Round(seconds, statements, {name: after[name] - before[name] for name in groups})


def _busy_s(groups: Groups) -> dict[str, float]:
    times = {name: [process.cpu_times() for process in processes] for name, processes in groups.items()}
    return {name: sum(one.user + one.system for one in found) for name, found in times.items()}


@contextmanager
def _open(url: str, token: str) -> Iterator[None]:
    """A page that is open, and fetched as its script does it."""
    is_over = threading.Event()
    tag, next_s = _fetch(url, token, "")

    def keep_fresh() -> None:
        known, pause_s = tag, next_s
        while not is_over.wait(pause_s):
            known, pause_s = _fetch(url, token, known)

    thread = threading.Thread(target=keep_fresh)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _fetch(url: str, token: str, tag: str) -> tuple[str, float]:
    """Fetch a page if it has changed.

    Returns:
        Its tag, and the seconds until there may be something new.
    """
    basic = base64.b64encode(f"any:{token}".encode()).decode()
    asked = urllib.request.Request(url, headers={"Authorization": f"Basic {basic}", "If-None-Match": tag})
    try:
        with urllib.request.urlopen(asked) as answer:
            answer.read()
            headers = answer.headers
    except urllib.error.HTTPError as error:
        if error.code != 304:
            raise
        headers = error.headers
    return headers["ETag"], int(headers[NEXT_HEADER]) / 1000


def _process(environment: Mapping[str, str], *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, *arguments]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


if __name__ == "__main__":
    raise SystemExit(main())
