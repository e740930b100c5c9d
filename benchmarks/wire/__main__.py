"""What do frames cost over bare sockets?

Question: is a request and its answer within 1.5x of a bare asyncio protocol that echoes length-prefixed msgpack, how
many requests does one connection carry, and how fast do large payloads travel?
Data: the header of a one-key statement, alone and with 1 KB and 64 MB of payload.
Control: the bare echo, from a blocking socket, in the same run; the answers are compared before anything is timed.
Metric: median and 99th percentile of the calls of each round, and the spread of the medians over the rounds; the server
has a process of its own.

Run: ``python -m benchmarks.wire [--rounds N] [--calls N]``.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import socket
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgpack
import msgspec

from benchmarks.wire.echo import LENGTH, EchoLater, EchoNow, serve
from secateur.wire import Channel, Peer

__all__ = ["main"]

_HEADER: Final[dict[str, Any]] = {
    "plan": "4f1c2b0e9a8d7c6b",
    "params": ["C2"],
    "pruning": True,
    "topology_version": 3,
    "catalog_version": 7,
}
_LARGE_BYTES: Final = 64 << 20
_IN_FLIGHT: Final = 64


@dataclass(frozen=True, slots=True)
class Latency:
    """The latency of one kind of request, in microseconds.

    It has the median of the round medians, their spread, and the median of the 99th percentiles.
    """

    what: str
    median_us: float
    low_us: float
    high_us: float
    p99_us: float


def _percentiles(ask: Callable[[], object], calls: int) -> tuple[float, float]:
    seconds = []
    for _ in range(calls):
        start = time.perf_counter()
        ask()
        seconds.append(time.perf_counter() - start)
    seconds.sort()
    return statistics.median(seconds) * 1e6, seconds[int(len(seconds) * 0.99)] * 1e6


def _measure(ways: dict[str, Callable[[], object]], rounds: int, calls: int) -> list[Latency]:
    """Ask every way in turn in each round, so that a busy moment of the machine meets all of them."""
    found: dict[str, list[tuple[float, float]]] = {what: [] for what in ways}
    for number in range(rounds + 1):
        for what, ask in ways.items():
            measured = _percentiles(ask, calls)
            if number:  # the first round warms up
                found[what].append(measured)
    return [
        Latency(
            what,
            statistics.median(m for m, _ in each),
            min(m for m, _ in each),
            max(m for m, _ in each),
            statistics.median(p for _, p in each),
        )
        for what, each in found.items()
    ]


def _megabytes_per_s(channel: Channel, rounds: int) -> float:
    payload = bytes(_LARGE_BYTES)
    rates = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        channel.request(EchoNow(), payload)
        rates.append(2 * _LARGE_BYTES / (time.perf_counter() - start) / 1e6)
    return statistics.median(rates[1:])


async def _requests_per_s(port: int, kind: type[EchoNow] | type[EchoLater], rounds: int, calls: int) -> float:
    peer = Peer("127.0.0.1", port)

    async def ask_in_turn() -> None:
        for _ in range(calls // _IN_FLIGHT):
            await peer.request(kind(**_HEADER))

    rates = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        await asyncio.gather(*(ask_in_turn() for _ in range(_IN_FLIGHT)))
        rates.append(calls // _IN_FLIGHT * _IN_FLIGHT / (time.perf_counter() - start))
    await peer.close()
    return statistics.median(rates[1:])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wire", description="Cost of frames over bare sockets.")
    parser.add_argument("--rounds", type=int, default=7, help="rounds that count (default: %(default)s)")
    parser.add_argument("--calls", type=int, default=2000, help="calls a round (default: %(default)s)")
    options = parser.parse_args()

    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()  # so that the wait below ends if the process does
    port, bare_port = ours.recv()
    channel = Channel("127.0.0.1", port)
    bare = socket.create_connection(("127.0.0.1", bare_port))
    bare.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask_bare() -> Any:
        packed = msgpack.packb({**_HEADER, "id": 1, "op": "echo"})
        bare.sendall(LENGTH.pack(len(packed)) + packed)
        return msgpack.unpackb(bare.recv(1 << 16)[LENGTH.size :])

    kilobyte = bytes(1000)
    if {**msgspec.structs.asdict(channel.request(EchoNow(**_HEADER)).message), "id": 1, "op": "echo"} != ask_bare():
        raise SystemExit("the two echoes answer differently")
    control, *others = _measure(
        {
            "bare asyncio echo (control)": ask_bare,
            "request, answered at once": lambda: channel.request(EchoNow(**_HEADER)),
            "request with 1 KB each way": lambda: channel.request(EchoNow(**_HEADER), kilobyte),
            "request, answered from a task": lambda: channel.request(EchoLater(**_HEADER)),
        },
        options.rounds,
        options.calls,
    )
    print(f"{'':32}{'p50 us':>9}{'low-high':>16}{'p99 us':>9}{'ratio':>8}")
    for way in (control, *others):
        ratio = way.median_us / control.median_us
        print(f"{way.what:32}{way.median_us:9.1f}{way.low_us:8.1f}-{way.high_us:<7.1f}{way.p99_us:9.1f}{ratio:8.2f}")
    for kind, what in ((EchoNow, "at once"), (EchoLater, "from tasks")):
        rate = asyncio.run(_requests_per_s(port, kind, options.rounds, options.calls * 4))
        print(f"{rate:,.0f} requests/s on one connection with {_IN_FLIGHT} in flight, answered {what}")
    print(
        f"{_megabytes_per_s(channel, options.rounds):,.0f} MB/s of payload through an echo of {_LARGE_BYTES >> 20} MiB"
    )
    channel.close()
    bare.close()
    ours.send(None)
    process.join(10)


if __name__ == "__main__":
    main()
