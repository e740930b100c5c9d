"""What do reads and writes of one row by its key cost, and what do writes cost the reads after them?

Question: how long do get, put and delete of a table handle take, and the SQL statements that do the same, beside an
echo of as many bytes? How much longer do reads take after 10,000 rows were replaced?
Data: 100,000 rows of three columns in 271 partitions on three Ray members, with one backup; one client, one call after
the other, each for another random key.
Control: a bare TCP server in a process of its own that sends back what it gets, over a socket with TCP_NODELAY; the
same rounds. For reads after writes: the same reads of a second table that was loaded and never changed.
Metric: the median over rounds of a round's median, in microseconds, and its ratio to the control.

Run: ``python -m benchmarks.key_value [--rounds N] [--calls N] [--own-core] [--check]``.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import random
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection as Pipe
from statistics import median
from typing import Any, Final

import secateur
from benchmarks.record import Bar, print_bars
from benchmarks.serving.own_core import give_client_a_core
from secateur import Connection

_DDL: Final = """
CREATE TABLE {name} (id BIGINT PRIMARY KEY, name VARCHAR, v BIGINT) PARTITION BY HASH (id) PARTITIONS 271 BACKUPS 1
"""
_ROWS: Final = 100_000
_ECHO_BYTES: Final = 200
_UPSERTS: Final = 10_000
_CONTROL: Final = "echo"


def main() -> int:
    """Start the cluster, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="alternating rounds")
    parser.add_argument("--calls", type=int, default=300, help="calls of each candidate in a round")
    parser.add_argument("--own-core", action="store_true", help="keep all others off the client's core")
    parser.add_argument("--check", action="store_true", help="fail when a bar is missed")
    options = parser.parse_args()
    with _echo() as echo, secateur.start(members=3, runtime="ray") as cluster, cluster.connect() as connection:
        for name in ("changed", "fresh"):
            connection.execute(_DDL.format(name=name))
            connection.table(name).load(
                {"id": range(_ROWS), "name": [f"name {key}" for key in range(_ROWS)], "v": [0] * _ROWS}
            )
        if options.own_core:
            give_client_a_core()
        calls = _alternating({_CONTROL: echo, **_calls(connection)}, options.rounds, options.calls)
        _print(calls)
        reads = _reads_after_writes(connection, options.rounds, options.calls)
        _print(reads)
    bars = [
        *(_bar(name, _CONTROL, calls, 2.5 if name.startswith("get") else 10.0) for name in calls if name != _CONTROL),
        *(_bar(f"changed: {name}", f"fresh: {name}", reads, 1.1) for name in _READS),
    ]
    print_bars(bars)
    return int(options.check and not all(bar.met for bar in bars))


_READS: Final = ("get", "SELECT by key", "aggregate of all")


def _calls(connection: Connection) -> dict[str, Callable[[int], Any]]:
    execute, changed, fresh = connection.execute, connection.table("changed"), connection.table("fresh")
    insert = "INSERT INTO changed VALUES (?, ?, ?) ON CONFLICT"
    return {
        "get": fresh.get,
        "SELECT by key": lambda key: execute("SELECT * FROM fresh WHERE id = ?", [key]).fetchone(),
        "put": lambda key: changed.put((key, "new", 1)),
        "INSERT OR REPLACE": lambda key: execute("INSERT OR REPLACE INTO changed VALUES (?, ?, ?)", [key, "new", 1]),
        "ON CONFLICT DO UPDATE": lambda key: execute(
            f"{insert} (id) DO UPDATE SET v = v + excluded.v", [key, "new", 1]
        ),
        "ON CONFLICT DO NOTHING": lambda key: execute(f"{insert} DO NOTHING", [key, "new", 1]),
        "UPDATE by key": lambda key: execute("UPDATE changed SET v = v + ? WHERE id = ?", [1, key]),
        "delete": changed.delete,
        "DELETE by key": lambda key: execute("DELETE FROM changed WHERE id = ?", [key]),
    }


def _reads_after_writes(connection: Connection, rounds: int, count: int) -> dict[str, list[float]]:
    """Reads of a table at once after 10,000 rows of it were replaced one by one, and of one that is as it was loaded.

    In each round a tenth of the rows is replaced again before the reads begin.
    """
    changed, keys, taken = connection.table("changed"), random.Random(7), defaultdict[str, list[float]](list)
    for round_number in range(rounds + 1):
        for _ in range(_UPSERTS if not round_number else _UPSERTS // 10):
            changed.put((keys.randrange(_ROWS), "new", 1))
        for read in _READS:
            for name in ("fresh", "changed"):
                call = _read(connection, name, read)
                times = _times_us(call, f"{read} {round_number}", 10 if read == "aggregate of all" else count)
                if round_number:
                    taken[f"{name}: {read}"].append(median(times))
    return taken


def _read(connection: Connection, table: str, read: str) -> Callable[[int], Any]:
    match read:
        case "get":
            return connection.table(table).get
        case "SELECT by key":
            return lambda key: connection.execute(f"SELECT * FROM {table} WHERE id = ?", [key]).fetchone()
        case _:
            return lambda _: connection.execute(f"SELECT count(*), sum(v) FROM {table}").fetchone()


def _alternating(calls: Mapping[str, Callable[[int], Any]], rounds: int, count: int) -> dict[str, list[float]]:
    """The median microseconds of each round of each candidate."""
    taken: dict[str, list[float]] = defaultdict(list)
    for round_number in range(rounds + 1):
        for name, call in calls.items():
            times = _times_us(call, f"{name} {round_number}", count)
            if round_number:  # the first one warms up
                taken[name].append(median(times))
    return taken


def _times_us(call: Callable[[int], Any], seed: str, count: int) -> list[float]:
    keys, times = random.Random(seed), []
    for _ in range(count):
        key = keys.randrange(_ROWS)
        began_s = time.perf_counter()
        call(key)
        times.append(1e6 * (time.perf_counter() - began_s))
    return times


def _bar(name: str, control: str, taken_us: Mapping[str, list[float]], bound: float) -> Bar:
    return Bar.at_most(f"{name} / {control}", median(taken_us[name]) / median(taken_us[control]), bound)


def _print(taken_us: Mapping[str, list[float]]) -> None:
    for name, rounds in taken_us.items():
        print(f"{name:28} {median(rounds):10,.0f} us, rounds {min(rounds):,.0f} to {max(rounds):,.0f}")


@contextmanager
def _echo() -> Iterator[Callable[[int], Any]]:
    """A call that sends bytes to a server in another process and reads them back."""
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    connected = socket.create_connection(("127.0.0.1", ours.recv()))
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    data = b"x" * _ECHO_BYTES

    def call(_: int) -> None:
        connected.sendall(data)
        missing = len(data)
        while missing:
            missing -= len(connected.recv(missing))

    try:
        yield call
    finally:
        connected.close()
        ours.send(None)
        process.join()


class _Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(data)


def _serve(pipe: Pipe) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(_Echo, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await loop.run_in_executor(None, pipe.recv)
        server.close()

    asyncio.run(run())


if __name__ == "__main__":
    raise SystemExit(main())
