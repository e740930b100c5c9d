"""The rows of a partition as a file that other programs can read: Arrow IPC, as pyarrow, DuckDB and Spark know it."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from secateur.storage.log.records import LoggedSnapshot
from secateur.storage.partition import Partition


@dataclass(frozen=True, slots=True)
class WrittenSnapshot:
    """A partition that is on disk as it was at a version.

    A table that is dropped here and comes again is another object, and so are its partitions, which begin with the same
    versions.
    """

    partition: Partition
    version: int
    record: LoggedSnapshot


def write_snapshot(table: pa.Table) -> bytes:
    """The bytes of a file with these rows."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def read_snapshot(data: bytes) -> pa.Table:
    """The rows of a file that this member wrote: its checksum was compared, so nothing else is checked."""
    return pa.ipc.open_file(pa.py_buffer(data)).read_all()
