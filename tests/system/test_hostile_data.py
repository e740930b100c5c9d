"""Data of clients that lie: an error for them, and nothing for anybody else."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from raw_frames import RawConnection, header_of

import secateur
from secateur.cluster import Cluster
from secateur.connectors import batch_source, collect
from secateur.errors import LimitExceededError, ProtocolError, TopologyChangedError
from secateur.processors import count_rows
from secateur.protocol import Message, Operation, StageRows, WriteRows
from secateur.wire import Channel, hello


def _beyond_the_text() -> pa.Array:
    offsets = np.arange(1001, dtype=np.int32) * 4
    offsets[500:502] = 2**31 - 1
    return pa.StringArray.from_buffers(1000, pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"abcd" * 1000))


def _before_the_text() -> pa.Array:
    offsets = np.arange(1001, dtype=np.int32) * 4
    offsets[500] = -(2**30)
    return pa.StringArray.from_buffers(1000, pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"abcd" * 1000))


def _beyond_the_dictionary() -> pa.Array:
    indices = pa.py_buffer(np.full(1000, 2**30, dtype=np.int32).tobytes())
    return pa.DictionaryArray.from_buffers(
        pa.dictionary(pa.int32(), pa.string()), 1000, [None, indices], pa.array(["a", "b"])
    )


@pytest.mark.parametrize(
    "lying", [_beyond_the_text, _before_the_text, _beyond_the_dictionary], ids=lambda lying: lying.__name__.strip("_")
)
@pytest.mark.parametrize("light", [pytest.param(True, id="light"), pytest.param(False, id="on record")])
def test_a_job_whose_rows_contradict_themselves_costs_no_member(
    cluster: Cluster, conn: secateur.Connection, lying, light: bool
) -> None:  # type: ignore[no-untyped-def]
    rows = pa.table({"x": lying(), "n": range(1000)})
    source = secateur.Pipeline().read_from(batch_source(rows))
    pipeline = source.key_by("x").aggregate(k=count_rows()).sort("x").write_to(collect())
    with pytest.raises(ProtocolError, match="should be an Arrow IPC stream"):
        pipeline.submit(conn, light=light).result()
    assert [member.is_alive for member in cluster.members()] == [True] * 3


def _ask(cluster: Cluster, member: str, message: Message[Any], payload: bytes) -> None:
    (address,) = [known.address for known in cluster.members() if known.id == member]
    host, _, port = address.rpartition(":")
    with closing(Channel(host, int(port), hello(cluster.token))) as channel:
        channel.request(message, payload)


@pytest.mark.parametrize("kind", [WriteRows, StageRows])
def test_rows_of_partitions_that_are_elsewhere_are_refused_before_they_are_unpacked(
    cluster: Cluster, conn: secateur.Connection, table_name: str, kind: type[Any]
) -> None:
    conn.execute(f"CREATE TABLE {table_name} (id BIGINT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 3")
    table = conn.table(table_name)
    table_id = conn._session.table(table_name).table_id
    write, stage = WriteRows(table_id, 0, "append"), StageRows("stray", table_id, 0, [(0, 1)])
    asked: Message[Any] = write if kind is WriteRows else stage
    owner = table.owner_of(0)
    stranger = next(member for member in ("m1", "m2", "m3") if member != owner)
    with pytest.raises(TopologyChangedError):
        _ask(cluster, stranger, asked, b"no Arrow")
    with pytest.raises(ProtocolError, match="should be an Arrow IPC stream"):
        _ask(cluster, owner, asked, b"no Arrow")
    assert conn.execute(f"SELECT count(*) FROM {table_name}").fetchall() == [(0,)]


@pytest.mark.parametrize("parts", [[[0, -1]], [[0]], [0], [["0", 1]], [[0, 1.5]], [[0, 1, 2]], [None]], ids=str)
def test_parts_of_a_load_are_pairs_of_numbers(cluster: Cluster, conn: secateur.Connection, parts: list[Any]) -> None:
    args = {"table_id": 1, "load_id": "odd", "attempt": 0, "parts": parts}
    with (
        RawConnection(cluster, cluster.members()[0].address) as connection,
        pytest.raises(ProtocolError, match=r"StageRows cannot be read: Expected .* - at `\$.parts"),
    ):
        connection.ask(Operation.STAGE_ROWS, header_of(Operation.STAGE_ROWS, args))


def test_compressed_rows_are_refused(cluster: Cluster, conn: secateur.Connection, table_name: str) -> None:
    conn.execute(f"CREATE TABLE {table_name} (id BIGINT PRIMARY KEY, s VARCHAR) PARTITION BY HASH (id) PARTITIONS 1")
    rows = pa.table({"id": [1], "s": ["\0" * 50_000_000]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(rows)
    asked = StageRows("bomb", conn._session.table(table_name).table_id, 0, [(0, 1)])
    with pytest.raises(LimitExceededError, match="without compression"):
        _ask(cluster, conn.table(table_name).owner_of(0), asked, sink.getvalue().to_pybytes())
