"""Memory of stored rows, in a process of its own: after one load, and after the table was replaced several times.

It is the process's memory without the raw table.

``python -m benchmarks.storage.memory FILE`` loads the frames of a file, as they come from a socket, and prints one line
of JSON. They are made in another process, so that making them is not measured.
"""

from __future__ import annotations

import gc
import itertools
import json
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa

from benchmarks.storage.trips import trips, trips_rows
from secateur.partitioning.topology.owner_routing import split
from secateur.storage.member_store import MemberStore

__all__ = ["measure", "write_frames"]

_PARTITIONS: Final = 271
_FRAME_ROWS: Final = 100_000
_TABLE: Final = trips(_PARTITIONS)


def write_frames(path: Path, rows: int) -> None:
    """Write a table as frames: which partition has how many of the rows, and the rows as an Arrow stream."""
    batch = trips_rows(_TABLE, rows)
    with path.open("wb") as file:
        for start in range(0, rows, _FRAME_ROWS):
            parts = split(batch.slice(start, _FRAME_ROWS), _TABLE)
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_table(pa.concat_tables(parts.values()).combine_chunks())
            payload = sink.getvalue()
            file.write(
                json.dumps([payload.size, [[partition, piece.num_rows] for partition, piece in parts.items()]]).encode()
                + b"\n"
            )
            file.write(payload)


def measure(path: Path) -> dict[str, float]:
    """Load a file into 271 partitions, replace all of it four times, and look after each.

    Returns:
        Bytes of the raw table, what the store says it takes, and the resident set after one load and after five.
    """
    # A little once through everything, so that code, pools and caches that any process has are not counted as data.
    _load(MemberStore(), path, "warm-up", frames=1)
    before = _resident_bytes()
    store = MemberStore()
    raw = _load(store, path, "first")
    once = _resident_bytes() - before
    for again in range(4):
        _load(store, path, f"again-{again}")
    return {
        "raw": raw,
        "stats": store.stats()[0].nbytes,
        "resident": once,
        "resident_replaced": _resident_bytes() - before,
    }


def _load(store: MemberStore, path: Path, load_id: str, frames: int | None = None) -> int:
    store.create_table(_TABLE, range(_PARTITIONS))
    raw, attempts = 0, dict[int, list[int]]()
    for parts, payload in _frames(path, frames):
        rows = pa.ipc.open_stream(payload).read_all()
        raw += rows.nbytes
        start = 0
        for partition, count in parts:
            store.loads.stage(load_id, _TABLE.table_id, partition, 0, rows.slice(start, count))
            attempts[partition] = [0]
            start += count
    store.loads.prepare(load_id, _TABLE.table_id, "upsert", attempts)
    store.loads.publish(load_id)
    return raw


def _frames(path: Path, count: int | None) -> Iterator[tuple[list[tuple[int, int]], pa.Buffer]]:
    with path.open("rb") as file:
        for head in itertools.islice(iter(file.readline, b""), count):
            size, parts = json.loads(head)
            # As the wire does: the payload is received into a buffer of Arrow's default pool.
            payload = pa.allocate_buffer(size)
            file.readinto(memoryview(payload).cast("B"))
            yield parts, payload


def _resident_bytes() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]))))
