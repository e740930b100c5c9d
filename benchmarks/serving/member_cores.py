"""May a member use more than one core for short statements?

Question: how many look-ups by key a second answer one event loop, two event loops in threads of one process, and two
processes, all over the same read-only partitions?
Data: 200,000 rows of three columns in 64 partitions: a file of Arrow's IPC format, with a batch for each partition,
which every process maps into its memory. Frames, messages and search are those of a member.
Control: one event loop in one process; all arrangements take their turn in each round. Answers are compared first.
Load: four clients in processes of their own. With a window of 1 each waits for its answer before it asks again; with
one of 16 it sends 16 requests at once, which costs so little that a second core is left to the servers.
Metric: answers a second; processor time of servers and of clients for an answer, in microseconds, and how many cores
the servers had (`/proc/*/task/*/schedstat`); the memory of the servers (their proportional set size). Medians of
rounds.

Run: ``python -m benchmarks.serving.member_cores [--rounds N] [--seconds S]``.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from secateur.cluster.loop_thread import LoopThread
from secateur.partitioning.schemes.components import HashComponent
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.tables.table import Column, TableDef
from secateur.partitioning.topology.owner_routing import split
from secateur.partitioning.types.column_type import parse_type
from secateur.protocol.hello import Greeting, Hello
from secateur.protocol.operations import Operation
from secateur.protocol.query import FoundRows, GetRows
from secateur.storage.change import DuplicateKeys
from secateur.storage.layout import TableLayout
from secateur.storage.merge import sort_rows
from secateur.storage.partition import Partition
from secateur.storage.sorted_rows import SortedRows
from secateur.wire import Channel, FrameKind, FrameServer, FrameService, Reply, Request, encode_frame

__all__ = ["main"]

_ROWS: Final = 200_000
_FIRST_KEY: Final = 1 << 17
"""All keys are as long in a message, and so are all answers: a client counts these by their bytes."""
_PARTITIONS: Final = 64
_CLIENTS: Final = 4
_WINDOWS: Final = (1, 16)
_BURSTS: Final = 256
_COMPARED: Final = 50
_ID: Final = parse_type("BIGINT")
_TABLE: Final = TableDef(
    "t",
    1,
    (Column("id", _ID, False), Column("name", parse_type("VARCHAR")), Column("v", _ID)),
    ("id",),
    PartitionScheme(hashes=(HashComponent(("id",), _PARTITIONS),), types=(("id", _ID),)),
)
_spawn: Final = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class _Arrangement:
    """How many processes serve, and the event loops of each; every loop has a port of its own."""

    name: str
    processes: int
    loops: int


_ARRANGEMENTS: Final = (
    _Arrangement("one loop", 1, 1),
    _Arrangement("two loops in threads", 1, 2),
    _Arrangement("two processes", 2, 1),
)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a client does in a round: so many requests at once, for so long."""

    window: int
    seconds: float


@dataclass(frozen=True, slots=True)
class _Round:
    """What one round of an arrangement took; processor times in seconds."""

    answers: int
    wall_s: float
    servers_s: float
    clients_s: float


def main() -> int:
    """Write the file, compare answers, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="rounds in which each arrangement takes its turn")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each arrangement and window in a round")
    options = parser.parse_args()
    found: dict[tuple[str, int], list[_Round]] = {}
    memory: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        path = Path(folder) / "partitions.arrow"
        _write(path)
        started = [(each, *running.enter_context(_servers(each, path))) for each in _ARRANGEMENTS]
        for _, ports, _ in started:
            _compare(ports)
        clients = running.enter_context(_clients())
        for number in range(options.rounds + 1):
            for window in _WINDOWS:
                for arrangement, ports, pids in started:
                    measured = _measured(clients, ports, pids, _Asked(window, options.seconds))
                    memory[arrangement.name] = sum(map(_memory_bytes, pids))
                    if number:  # the first one warms up
                        found.setdefault((arrangement.name, window), []).append(measured)
    _print(found, memory)
    return 0


def _print(found: dict[tuple[str, int], list[_Round]], memory: dict[str, int]) -> None:
    heads = ("window", "answers/s", "of one loop", "server us", "client us", "cores", "MB")
    print(f"{'':22}" + "".join(f"{head:>12}" for head in heads))
    for (name, window), rounds in found.items():
        alone = found[_ARRANGEMENTS[0].name, window]

        def median(value: Callable[[_Round], float], rounds: Sequence[_Round] = rounds) -> float:
            return statistics.median(map(value, rounds))

        ratio = statistics.median(
            each.answers / each.wall_s / (one.answers / one.wall_s) for each, one in zip(rounds, alone, strict=True)
        )
        print(
            f"{name:22}{window:12}{median(lambda each: each.answers / each.wall_s):12,.0f}{ratio:12.2f}"
            f"{median(lambda each: 1e6 * each.servers_s / each.answers):12.1f}"
            f"{median(lambda each: 1e6 * each.clients_s / each.answers):12.1f}"
            f"{median(lambda each: each.servers_s / each.wall_s):12.2f}{memory[name] / 1e6:12.0f}"
        )
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


def _write(path: Path) -> None:
    """The partitions in key order, one batch for each."""
    keys = range(_FIRST_KEY, _FIRST_KEY + _ROWS)
    rows = pa.table([keys, [f"name {key}" for key in keys], [0] * _ROWS], schema=_TABLE.arrow_schema)
    layout, pieces = TableLayout.of(_TABLE), split(rows, _TABLE)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, _TABLE.arrow_schema) as writer:
        for number in range(_PARTITIONS):
            partition = sort_rows(layout, [pieces[number]], DuplicateKeys.REFUSED).table.combine_chunks()
            writer.write_table(partition, max_chunksize=_ROWS)


class _Lookups:
    """Answers `get` of one key as a member does, over partitions that other processes have mapped as well."""

    def __init__(self, path: Path) -> None:
        layout = TableLayout.of(_TABLE)
        assert layout.partition_of_prefix[-1] is not None
        self._partition_of = layout.partition_of_prefix[-1]
        self._partitions: list[Partition] = []
        file = pa.ipc.open_file(pa.memory_map(str(path)))
        for number in range(file.num_record_batches):
            partition = Partition(layout, number)
            partition.install(SortedRows(pa.Table.from_batches([file.get_batch(number)]), layout.order))
            self._partitions.append(partition)

    def handle(self, request: Request[Any]) -> Reply[Any]:
        """The row of a key."""
        if isinstance(request.message, Hello):
            return Reply(Greeting())
        (key,) = request.message.keys
        found = self._partitions[self._partition_of(key)].values_of(key)
        return Reply(FoundRows([0], []) if found is None else FoundRows([], [[value] for value in found]))

    def notify(self, request: Request[Any]) -> None:
        """Ignore it."""


@contextmanager
def _servers(arrangement: _Arrangement, path: Path) -> Iterator[tuple[list[int], list[int]]]:
    """The ports and the processes of an arrangement."""
    pipes, processes = [], []
    for _ in range(arrangement.processes):
        here, there = _spawn.Pipe()
        process = _spawn.Process(target=_serve, args=(there, path, arrangement.loops), daemon=True)
        process.start()
        pipes.append(here)
        processes.append(process)
    try:
        ports = [port for pipe in pipes for port in pipe.recv()]
        yield ports, [process.pid for process in processes if process.pid is not None]
    finally:
        for pipe, process in zip(pipes, processes, strict=True):
            pipe.send(None)
            process.join()


def _serve(pipe: Connection, path: Path, loops: int) -> None:
    """A process that serves: each loop with partitions of its own over the same memory."""
    operations = {Operation.GET_ROWS.code: Operation.GET_ROWS}
    threads, servers = [LoopThread(f"loop {number}") for number in range(loops)], []
    for thread in threads:
        servers.append(FrameServer(FrameService(_Lookups(path), operations)))
        thread.run(servers[-1].start())
    pipe.send([server.port for server in servers])
    pipe.recv()
    for thread, server in zip(threads, servers, strict=True):
        thread.run(server.stop())
        thread.stop()


def _compare(ports: Sequence[int]) -> None:
    """Check the answers of each loop.

    Raises:
        SystemExit: One is wrong.
    """
    for port in ports:
        channel = Channel("127.0.0.1", port)
        for key in random.Random(1).sample(range(_FIRST_KEY, _FIRST_KEY + _ROWS), _COMPARED):
            answer = channel.request(GetRows(1, 1, [[key]])).message
            if answer != FoundRows([], [[key], [f"name {key}"], [0]]):
                raise SystemExit(f"{answer} is not the row of {key}: no times are taken from wrong answers")
        channel.close()


def _measured(clients: Sequence[Connection], ports: Sequence[int], pids: Sequence[int], asked: _Asked) -> _Round:
    """One round: every client asks until its time is over."""
    for number, client in enumerate(clients):
        client.send((ports[number % len(ports)], asked))
    for client in clients:
        client.recv()
    before_s, start_s = sum(map(_processor_s, pids)), time.perf_counter()
    for client in clients:
        client.send(None)
    results = [client.recv() for client in clients]
    wall_s, servers_s = time.perf_counter() - start_s, sum(map(_processor_s, pids)) - before_s
    return _Round(sum(count for count, _ in results), wall_s, servers_s, sum(used_s for _, used_s in results))


@contextmanager
def _clients() -> Iterator[list[Connection]]:
    """The pipes to clients in processes of their own."""
    pipes, processes = [], []
    for number in range(_CLIENTS):
        here, there = _spawn.Pipe()
        processes.append(_spawn.Process(target=_ask, args=(there, number), daemon=True))
        processes[-1].start()
        pipes.append(here)
    try:
        yield pipes
    finally:
        for pipe, process in zip(pipes, processes, strict=True):
            pipe.send(None)
            process.join()


def _ask(pipe: Connection, seed: int) -> None:
    """A client: takes its turn in each round until it is told to end."""
    draw = random.Random(seed)
    bursts = {
        window: [
            b"".join(_frame(draw.randrange(_FIRST_KEY, _FIRST_KEY + _ROWS), number) for number in range(1, window + 1))
            for _ in range(_BURSTS)
        ]
        for window in _WINDOWS
    }
    while (turn := pipe.recv()) is not None:
        port, asked = turn
        _ask_for_a_round(pipe, port, bursts[asked.window], asked)


def _ask_for_a_round(pipe: Connection, port: int, bursts: Sequence[bytes], asked: _Asked) -> None:
    """Send bursts of requests that were made before, and count the bytes of the answers."""
    with socket.create_connection(("127.0.0.1", port)) as connected:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        hello = Operation.HELLO.requests.encode(Hello())
        connected.sendall(
            b"".join(encode_frame(FrameKind.REQUEST, hello, operation=Operation.HELLO.code, request_id=1))
        )
        connected.recv(1 << 16)
        connected.sendall(_frame(_FIRST_KEY, 1))
        wanted_bytes = asked.window * len(connected.recv(1 << 16))
        pipe.send(None)
        pipe.recv()
        count, used_s, end_s = 0, time.process_time(), time.perf_counter() + asked.seconds
        while time.perf_counter() < end_s:
            connected.sendall(bursts[count % _BURSTS])
            missing = wanted_bytes
            while missing:
                missing -= len(connected.recv(1 << 16))
            count += 1
        pipe.send((count * asked.window, time.process_time() - used_s))


def _frame(key: int, request_id: int) -> bytes:
    asked = Operation.GET_ROWS.requests.encode(GetRows(1, 1, [[key]]))
    return b"".join(encode_frame(FrameKind.REQUEST, asked, operation=Operation.GET_ROWS.code, request_id=request_id))


def _processor_s(pid: int) -> float:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def _memory_bytes(pid: int) -> int:
    """The memory of a process, of which it counts what it shares with others in parts."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))


if __name__ == "__main__":
    raise SystemExit(main())
