"""Client processes that ask one system at the same time."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection as Pipe
from typing import Any

from benchmarks.beside_postgres.lines import LINES, Line
from benchmarks.beside_postgres.measuring import times_s

__all__ = ["client_processes"]


@contextmanager
def client_processes(
    count: int, connect: Callable[[Any], Any], address: Any, rows: int, seconds: float
) -> Iterator[Callable[[Line], float]]:
    """So many, connected; what this gives lets them make the calls of a line for so long: calls a second."""
    spawn = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    try:
        for number in range(count):
            ours, theirs = spawn.Pipe()
            arguments = (theirs, connect, address, rows, seconds, number / count)
            processes.append(spawn.Process(target=_ask, args=arguments, daemon=True))
            processes[-1].start()
            theirs.close()
            pipes.append(ours)
        for pipe in pipes:
            pipe.recv()

        def rate(line: Line) -> float:
            for pipe in pipes:
                pipe.send(LINES.index(line))
            return sum(pipe.recv() for pipe in pipes)

        yield rate
    finally:
        for process in processes:
            process.terminate()
            process.join()


def _ask(pipe: Pipe, connect: Callable[[Any], Any], address: Any, rows: int, seconds: float, share: float) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the benchmark ends its clients
    with connect(address) as client:
        pipe.send(None)
        while True:
            line = LINES[pipe.recv()]
            arguments = line.arguments(rows)
            first = int(len(arguments) * share)
            taken_s = times_s(client, line, arguments[first:] + arguments[:first], seconds)
            pipe.send(len(taken_s) / sum(taken_s))
