"""What a member keeps of the frames of a load."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pyarrow as pa
import pytest

from secateur.cluster.member import pieces_to_keep

MIB = 1 << 20


def frame(nbytes: int) -> pa.Table:
    """Rows whose memory is one buffer of Arrow's pool, as that of a frame is."""
    sink = pa.BufferOutputStream()
    rows = pa.table({"k": pa.array(range(nbytes // 1000)), "note": pa.array([b"x" * 992] * (nbytes // 1000))})
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


@pytest.mark.parametrize(
    ("nbytes", "kept"),
    [pytest.param(4 * MIB, False, id="large"), pytest.param(MIB // 2, True, id="small")],
)
def test_a_partition_of_a_large_frame_does_not_keep_the_others(
    nbytes: int, kept: bool, allocated: Callable[[], int]
) -> None:
    rows = frame(nbytes)
    parts = [(7, rows.num_rows // 4), (9, rows.num_rows - rows.num_rows // 4)]
    pieces = asyncio.run(pieces_to_keep(rows, parts))
    assert [(partition, piece.num_rows) for partition, piece in pieces.items()] == parts
    assert pa.concat_tables(pieces.values()).equals(rows)
    before = allocated()
    del rows
    freed = before - allocated()
    assert (freed < nbytes // 2) is kept, freed


def test_a_frame_of_one_partition_is_not_copied(allocated: Callable[[], int]) -> None:
    rows = frame(4 * MIB)
    before = allocated()
    [piece] = asyncio.run(pieces_to_keep(rows, [(7, rows.num_rows)])).values()
    assert piece.equals(rows)
    del rows
    assert allocated() == before
