"""The control of the suite: a bare echo, and medians of what is measured beside it.

The server is an asyncio protocol in a process of its own that echoes length-prefixed msgpack of about the size of a
statement; the client a blocking socket.
"""

from __future__ import annotations

import multiprocessing
import socket
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import msgpack

from benchmarks.wire.echo import LENGTH, serve

__all__ = ["bare_echo", "medians_us"]

T = TypeVar("T")

_ASKED: Final = {"plan": "4f1c2b0e9a8d7c6b4f1c2b0e", "params": [1, 2, 3, 4, 5], "pruning": True}


@contextmanager
def bare_echo() -> Iterator[Callable[[object], bytes]]:
    """A function that sends a request, and waits for its echo; its argument does not matter."""
    here, there = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(there,), daemon=True)
    server.start()
    _, port = here.recv()
    packed = msgpack.packb(_ASKED)
    frame = LENGTH.pack(len(packed)) + packed
    try:
        with socket.create_connection(("127.0.0.1", port)) as bare:
            bare.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

            def echo(_: object) -> bytes:
                bare.sendall(frame)
                answer = b""
                while len(answer) < len(frame):
                    answer += bare.recv(4096)
                return answer

            yield echo
    finally:
        here.send(None)
        server.join()


def medians_us(
    ways: Mapping[str, Callable[[T], Any]], rounds: int, arguments_of: Callable[[int], Sequence[T]]
) -> dict[str, float]:
    """The median of the medians of several rounds, in which everything takes its turn; in microseconds.

    Args:
        ways: What is measured, by name.
        rounds: How many rounds count; one before them warms up.
        arguments_of: The arguments of the calls of a round.
    """
    found: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        arguments = arguments_of(number)
        for name, call in ways.items():
            median = _median_us(call, arguments)
            if number:
                found[name].append(median)
    return {name: statistics.median(medians) for name, medians in found.items()}


def _median_us(call: Callable[[T], Any], arguments: Sequence[T]) -> float:
    seconds = []
    for argument in arguments:
        start_s = time.perf_counter()
        call(argument)
        seconds.append(time.perf_counter() - start_s)
    return statistics.median(seconds) * 1e6
