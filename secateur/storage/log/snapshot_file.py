"""The rows of a partition as a file that other programs can read: Arrow IPC, as pyarrow, DuckDB and Spark know it."""

from __future__ import annotations

import pyarrow as pa


def write_snapshot(table: pa.Table) -> bytes:
    """The bytes of a file with these rows."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def read_snapshot(data: bytes) -> pa.Table:
    """The rows of a file that this member wrote: its checksum was compared, so nothing else is checked."""
    return pa.ipc.open_file(pa.py_buffer(data)).read_all()
