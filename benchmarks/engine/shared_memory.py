"""Whether large batches travel faster through shared memory than through sockets, between processes of one host."""

from __future__ import annotations

import asyncio
import mmap
import multiprocessing
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from secateur.protocol.hello import Greeting
from secateur.protocol.message import Message
from secateur.protocol.operations import OperationBase, Server
from secateur.protocol.tokens import TokenRole
from secateur.wire import FrameServer, FrameService, Handled, Peer, Reply, Request, decode_table, encode_table

__all__ = ["Carriage", "measure_carriage", "serve"]

SIZES: Final = (64 << 10, 512 << 10, 4 << 20, 32 << 20)
_DIRECTORY: Final = Path("/dev/shm")
_RAY: Final = "ray.put and an actor call"

Way = Callable[[pa.Table], Awaitable[int]]


@dataclass(frozen=True, slots=True)
class Carriage:
    """One way to hand a batch to another process, which looks at all of its rows.

    Attributes:
        way: How.
        batch_bytes: Bytes of the batch.
        p50_ms: Median from the batch in one process to the answer of the other.
        mb_per_s: Its bytes by that time.
    """

    way: str
    batch_bytes: int
    p50_ms: float
    mb_per_s: float


class Sum(msgspec.Struct, frozen=True):
    """The sum of a batch."""

    total: int


class SumOfFrame(Message[Sum], frozen=True):
    """Add up the batch in the payload."""


class SumOfFile(Message[Sum], frozen=True):
    """Add up the batch in a file."""

    path: str


class SumOperation(OperationBase):
    """What the receiver answers."""

    SUM_OF_FRAME = 1001, Server.MEMBER, SumOfFrame, TokenRole.READ
    SUM_OF_FILE = 1002, Server.MEMBER, SumOfFile, TokenRole.READ


class _Receiver:
    """Adds up what it is sent; the answer says that it has seen all of it."""

    def handle(self, request: Request[Any]) -> Handled:
        """Answer with the sum of the batch in the payload, or in the file that the request names."""
        match request.message:
            case SumOfFile(path):
                with Path(path).open("rb") as file:
                    return Reply(
                        Sum(_total(decode_table(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))))
                    )
            case SumOfFrame():
                return Reply(Sum(_total(decode_table(request.payload))))
            case _:
                return Reply(Greeting())

    def notify(self, request: Request[Any]) -> None:
        """Ignore it."""


class _RayReceiver:
    def total(self, batch: pa.Table) -> int:
        return _total(batch)


def measure_carriage(rounds: int, *, with_ray: bool) -> list[Carriage]:
    """Carry batches of several sizes by each way in turn."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    try:
        with _ray_way() if with_ray else nullcontext() as by_ray:
            return asyncio.run(_carry(ours.recv(), rounds, by_ray))
    finally:
        ours.send(None)
        process.join(10)


def serve(port: Connection) -> None:
    """The other process: sends its port, and ends when the other end of the pipe says so."""

    async def run() -> None:
        server = FrameServer(FrameService(_Receiver(), SumOperation.at_server(Server.MEMBER)))
        await server.start()
        port.send(server.port)
        with suppress(EOFError):
            await asyncio.get_running_loop().run_in_executor(None, port.recv)
        await server.stop()

    asyncio.run(run())


async def _carry(port: int, rounds: int, by_ray: Way | None) -> list[Carriage]:
    peer = Peer("127.0.0.1", port)

    async def by_frame(batch: pa.Table) -> int:
        return (await peer.request(SumOfFrame(), encode_table(batch))).message.total

    async def by_file(batch: pa.Table) -> int:
        """A new file for each batch: pages that are used again would need a way for the receiver to give them back."""
        path = _DIRECTORY / f"secateur-bench-{os.getpid()}"
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write(batch)
        try:
            return (await peer.request(SumOfFile(str(path)))).message.total
        finally:
            path.unlink()

    ways: dict[str, Way] = {"frame over loopback": by_frame}
    if _DIRECTORY.is_dir():
        ways["new file in /dev/shm"] = by_file
    if by_ray is not None:
        ways[_RAY] = by_ray
    results = []
    for size in SIZES:
        batch = pa.table({"a": np.arange(size // 16), "b": np.arange(size // 16)})
        times: dict[str, list[float]] = {way: [] for way in ways}
        for number in range(rounds + 2):
            for way, carry in ways.items():
                start = time.perf_counter()
                found = await carry(batch)
                if number > 1:  # the first rounds warm up
                    times[way].append(time.perf_counter() - start)
                if found != _total(batch):
                    raise SystemExit(f"{way}: {found} arrived: no times are taken from wrong answers")
        results += [
            Carriage(way, size, median(found) * 1_000, size / median(found) / 1e6) for way, found in times.items()
        ]
    await peer.close()
    return results


@contextmanager
def _ray_way() -> Iterator[Way]:
    import ray

    ray.init(include_dashboard=False, log_to_driver=False, logging_level="error")
    actor = ray.remote(num_cpus=0)(_RayReceiver).remote()

    async def by_ray(batch: pa.Table) -> int:
        return int(await asyncio.wrap_future(actor.total.remote(ray.put(batch)).future()))

    try:
        yield by_ray
    finally:
        ray.shutdown()


def _total(table: pa.Table) -> int:
    columns: list[Any] = [chunk.to_numpy() for column in table.columns for chunk in column.chunks]
    return int(sum(values.sum() for values in columns))
