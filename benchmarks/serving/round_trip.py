"""Where does the time of a short call go: into messages, our frames, the member, or cold caches?

Question: what do an echo, an echo in our frames and a `get` take, and how much of the processor time of a call is due
to what ran on the processor since the call before?
Data: one table of 100,000 rows on three Ray members; everything takes its turn in each of some rounds.
Control: a bare asyncio protocol that echoes length-prefixed msgpack, from a blocking socket; and for the caches a fixed
piece of work, to write a request and read an answer as the client does, that is done three times after each call.
Metric: the median of a call and processor time of the client for it (`/proc/self/schedstat`); the medians of the first
and the third repetition of the piece of work after the call. In microseconds.

Run: ``python -m benchmarks.serving.round_trip [--rounds N] [--calls N]``.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import secateur
from benchmarks.serving.bare_echo import bare_echo
from benchmarks.wire.echo import EchoNow, serve
from secateur.protocol.operations import Operation
from secateur.protocol.query import FoundRows, GetRows
from secateur.wire import Channel, FrameDecoder, FrameKind, Limits, encode_frame

__all__ = ["main"]

_DDL: Final = """
CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR, v BIGINT) PARTITION BY HASH (id) PARTITIONS 271
"""
_ROWS: Final = 100_000
_SCHEDSTAT: Final = Path("/proc/self/schedstat")

Call = Callable[[int], Any]


def main() -> int:
    """Start everything, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="rounds in which everything takes its turn")
    parser.add_argument("--calls", type=int, default=300, help="calls of each candidate in a round")
    options = parser.parse_args()
    with (
        bare_echo() as echo,
        _framed_echo() as framed,
        secateur.start(members=3, runtime="ray") as cluster,
        cluster.connect() as connection,
    ):
        connection.execute(_DDL)
        connection.table("t").load(
            {"id": range(_ROWS), "name": [f"name {key}" for key in range(_ROWS)], "v": [0] * _ROWS}
        )
        calls: dict[str, Call] = {
            "nothing": lambda _: None,
            "echo": echo,
            "echo in frames": framed,
            "get": connection.table("t").get,
            "SELECT by key": lambda key: connection.execute("SELECT * FROM t WHERE id = ?", [key]).fetchone(),
        }
        rounds: dict[str, list[tuple[float, ...]]] = {name: [] for name in calls}
        for number in range(options.rounds + 1):
            for name, call in calls.items():
                found = (*_measured(call, options.calls), *_work_after(call, options.calls))
                if number:  # the first one warms up
                    rounds[name].append(found)
    print(f"{'':16}{'p50':>8}{'client':>8}{'work':>8}{'again':>8}")
    for name, results in rounds.items():
        print(f"{name:16}" + "".join(f"{statistics.median(values):8.1f}" for values in zip(*results, strict=True)))
    return 0


def _measured(call: Call, count: int) -> tuple[float, float]:
    """The median of some calls, and the processor time of this thread for one."""
    seconds = []
    begun_ns = _processor_ns()
    for number in range(count):
        start_s = time.perf_counter()
        call(number * 7919 % _ROWS)
        seconds.append(time.perf_counter() - start_s)
    return statistics.median(seconds) * 1e6, (_processor_ns() - begun_ns) / count / 1e3


def _work_after(call: Call, count: int) -> tuple[float, float]:
    """The medians of the first and the third piece of work after some calls."""
    work = _work()
    first, third = [], []
    for number in range(count):
        call(number * 7919 % _ROWS)
        times = [time.perf_counter()]
        for _ in range(3):
            work()
            times.append(time.perf_counter())
        first.append(times[1] - times[0])
        third.append(times[3] - times[2])
    return statistics.median(first) * 1e6, statistics.median(third) * 1e6


def _work() -> Callable[[], Any]:
    """What a client does for a `get` on its way to the socket and back, without the socket."""
    operation, decoder = Operation.GET_ROWS, FrameDecoder(Limits())
    answer = operation.replies.encode(FoundRows([], [[1], ["name 1"], [0]]))
    data = bytes(encode_frame(FrameKind.RESPONSE, answer, request_id=7)[0])

    def work() -> Any:
        request = operation.requests.encode(GetRows(3, 4, [[12345]]))
        encode_frame(FrameKind.REQUEST, request, operation=operation.code, request_id=7)
        frame = decoder.only(data)
        assert frame is not None
        return operation.replies.decode(frame.header)

    return work


def _processor_ns() -> int:
    return int(_SCHEDSTAT.read_text().split()[0])


@contextmanager
def _framed_echo() -> Iterator[Call]:
    """A call of a server of ours in another process, which only sends back what it gets."""
    here, there = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(there,), daemon=True)
    server.start()
    port, _ = here.recv()
    channel = Channel("127.0.0.1", port)
    try:
        yield lambda key: channel.request(EchoNow("4f1c2b0e9a8d7c6b4f1c2b0e", [key]))
    finally:
        channel.close()
        here.send(None)
        server.join()


if __name__ == "__main__":
    raise SystemExit(main())
