from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

from secateur.errors import ProtocolError
from secateur.wire.arrow_ipc import decode_table, decode_tables, encode_table

TABLE = pa.table(
    {
        "n": pa.array([1, None, 3]),
        "s": pa.array(["a", "żółć", None]),
        "d": pa.array(["x", "y", "x"]).dictionary_encode(),
        "u": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([uuid.UUID(int=i).bytes for i in range(3)], pa.binary(16))),
        "h": pa.array([10**37, None, -1], pa.decimal128(38, 0)),
        "l": pa.array([[1.0], [], None]),
    }
)


@pytest.mark.parametrize("table", [pytest.param(TABLE, id="rows"), pytest.param(TABLE.slice(1, 1), id="slice"), pytest.param(TABLE.slice(0, 0), id="empty")])
def test_a_table_comes_back_as_it_was(table: pa.Table) -> None:
    assert decode_table(encode_table(table), validate=True).equals(table)
    assert decode_table(encode_table(table)).schema.equals(table.schema)


def test_a_record_batch_is_a_table() -> None:
    assert decode_table(encode_table(TABLE.to_batches()[0])).equals(TABLE)


def test_decoding_does_not_copy() -> None:
    data = encode_table(pa.table({"n": pa.array(range(100_000))}))
    before = pa.total_allocated_bytes()
    table = decode_table(data)
    assert pa.total_allocated_bytes() - before < 10_000
    assert table.num_rows == 100_000


def test_a_misaligned_payload_is_aligned() -> None:
    data = bytes(encode_table(TABLE))
    shifted = memoryview(b"x" + data)[1:]
    table = decode_table(shifted)
    assert table.equals(TABLE)
    assert table.column("n").chunk(0).buffers()[1].address % 8 == 0


@pytest.mark.parametrize(
    "data", [pytest.param(b"", id="empty"), pytest.param(b"hello", id="text"), pytest.param(bytes(encode_table(TABLE))[:-40], id="cut short")]
)
def test_bytes_that_are_no_table_are_an_error(data: bytes) -> None:
    with pytest.raises(ProtocolError, match=f"a payload of {len(data)} bytes"):
        decode_table(data)


def test_offsets_that_lie_are_found_when_asked() -> None:
    table = pa.table({"s": ["aaaa", "bbbb"]})
    data = bytearray(encode_table(table))
    place = data.index((4).to_bytes(4, "little") + (8).to_bytes(4, "little"))
    data[place : place + 4] = (2**30).to_bytes(4, "little")
    with pytest.raises(ProtocolError):
        decode_table(bytes(data), validate=True)


def test_pieces_become_one_table() -> None:
    assert decode_tables([encode_table(TABLE.slice(0, 2)), b"", encode_table(TABLE.slice(2))]).equals(TABLE)
    with pytest.raises(ProtocolError, match="carries no payload"):
        decode_tables([])
    with pytest.raises(ProtocolError, match="different schemas"):
        decode_tables([encode_table(TABLE), encode_table(TABLE.select(["n"]))])
