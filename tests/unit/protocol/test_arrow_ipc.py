from __future__ import annotations

import contextlib
import io
import struct
import uuid
from collections.abc import Callable
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from secateur.errors import Error, LimitExceededError, ProtocolError
from secateur.wire import decode_batches, decode_schema, decode_table, decode_tables, encode_table

TABLE = pa.table(
    {
        "n": pa.array([1, None, 3]),
        "s": pa.array(["a", "żółć", None]),
        "d": pa.array(["x", "y", "x"]).dictionary_encode(),
        "u": pa.ExtensionArray.from_storage(
            pa.uuid(), pa.array([uuid.UUID(int=i).bytes for i in range(3)], pa.binary(16))
        ),
        "h": pa.array([10**37, None, -1], pa.decimal128(38, 0)),
        "l": pa.array([[1.0], [], None]),
    }
)


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(TABLE, id="rows"),
        pytest.param(TABLE.slice(1, 1), id="slice"),
        pytest.param(TABLE.slice(0, 0), id="empty"),
    ],
)
def test_a_table_comes_back_as_it_was(table: pa.Table) -> None:
    assert decode_table(encode_table(table)).equals(table)
    assert decode_table(encode_table(table)).schema.equals(table.schema)


def test_a_record_batch_is_a_table() -> None:
    assert decode_table(encode_table(TABLE.to_batches()[0])).equals(TABLE)


@pytest.mark.parametrize("rows", [9_999, 10_000, 100_001])
@pytest.mark.parametrize("is_cut", [False, True])
def test_a_stream_whose_size_is_found_out_first_is_the_same(rows: int, is_cut: bool) -> None:
    columns = {
        "n": pa.array([number if number % 3 else None for number in range(rows)], pa.int32()),
        "text": [f"number {number}" for number in range(rows)],
        "list": [[number] * (number % 4) for number in range(rows)],
        "kind": pa.array(["a", "b", None, "c"] * rows).slice(0, rows).dictionary_encode(),
    }
    table = pa.concat_tables([pa.table(columns).slice(0, rows // 3), pa.table(columns).slice(rows // 3)])
    table = pa.concat_tables([table.slice(7), table.slice(0, 7)]) if is_cut else table
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write(table)
    encoded = encode_table(table)
    assert bytes(encoded) == sink.getvalue().to_pybytes()
    assert decode_table(encoded) == table


def test_decoding_does_not_copy(allocated: Callable[[], int]) -> None:
    data = encode_table(pa.table({"n": pa.array(range(100_000))}))
    before = allocated()
    table = decode_table(data)
    assert allocated() - before < 10_000
    assert table.num_rows == 100_000


def test_a_misaligned_payload_is_aligned() -> None:
    data = bytes(encode_table(TABLE))
    shifted = memoryview(b"x" + data)[1:]
    table = decode_table(shifted)
    assert table.equals(TABLE)
    assert table.column("n").chunk(0).buffers()[1].address % 8 == 0


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"hello", id="text"),
        pytest.param(bytes(encode_table(TABLE))[:-40], id="cut short"),
    ],
)
def test_bytes_that_are_no_table_are_an_error(data: bytes) -> None:
    with pytest.raises(ProtocolError, match=f"a payload of {len(data)} bytes"):
        decode_table(data)


def test_pieces_become_one_table() -> None:
    assert decode_tables([encode_table(TABLE.slice(0, 2)), b"", encode_table(TABLE.slice(2))]).equals(TABLE)
    with pytest.raises(ProtocolError, match="carries no payload"):
        decode_tables([])
    with pytest.raises(ProtocolError, match="different schemas"):
        decode_tables([encode_table(TABLE), encode_table(TABLE.select(["n"]))])


def _in_batches(table: pa.Table, rows: int, options: pa.ipc.IpcWriteOptions | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=rows)
    return sink.getvalue().to_pybytes()


def test_batches_are_there_before_those_behind_them_are_read() -> None:
    data = _in_batches(TABLE, 1)
    file = io.BytesIO(data)
    schema, batches = decode_batches(file)
    assert schema.equals(TABLE.schema)
    read = [file.tell()]
    found = []
    for batch in batches:
        found.append(batch)
        read.append(file.tell())
    assert pa.Table.from_batches(found).equals(TABLE)
    assert read == sorted(set(read))
    assert read[-2] < len(data)


def test_a_stream_without_batches_has_a_schema() -> None:
    schema, batches = decode_batches(io.BytesIO(_in_batches(TABLE.slice(0, 0), 1)))
    assert schema.equals(TABLE.schema)
    assert pa.Table.from_batches(batches, schema).num_rows == 0


def _all(data: bytes) -> int:
    return sum(batch.num_rows for batch in decode_batches(io.BytesIO(data))[1])


@pytest.mark.parametrize("cut", range(0, len(_in_batches(TABLE, 1)) - 8, 101))
def test_a_stream_that_is_cut_has_no_more_rows_than_arrived(cut: int) -> None:
    """At the end of a message nothing is missing for Arrow; the length of the answer says so there."""
    rows = 0
    with contextlib.suppress(ProtocolError):
        rows = _all(_in_batches(TABLE, 1)[:cut])
    assert rows < TABLE.num_rows


def test_batches_of_a_compressed_stream_are_refused() -> None:
    data = _in_batches(pa.table({"n": [1] * 5000}), 5000, pa.ipc.IpcWriteOptions(compression="lz4"))
    with pytest.raises(LimitExceededError, match="compressed"):
        _all(data)


def _raw(
    kind: pa.DataType,
    length: int,
    buffers: list[bytes | None],
    *,
    children: list[pa.Array] | None = None,
    null_count: int = 0,
) -> pa.Array:
    return pa.Array.from_buffers(
        kind, length, [None if data is None else pa.py_buffer(data) for data in buffers], null_count, 0, children
    )


def _ints(*values: int, code: str = "i") -> bytes:
    return struct.pack(f"<{len(values)}{code}", *values)


def _run_ends_that_fall() -> pa.Array:
    ends = np.array([1, 2, 4], np.int32)
    array = pa.RunEndEncodedArray.from_arrays(pa.array(ends), pa.array([1, 2, 3]))
    ends[0] = 3  # the array looks at this memory
    return array


_WILD = 2**30
_TEXT = pa.array(["a", "b"])
_BAD_TEXT = _raw(pa.string(), 3, [None, _ints(0, _WILD, _WILD, 4), b"abcd"])
LYING_ARRAYS = {
    "offset beyond the text": _BAD_TEXT,
    "negative offset": _raw(pa.string(), 2, [None, _ints(0, -_WILD, 4), b"abcd"]),
    "offsets that fall": _raw(pa.string(), 3, [None, _ints(0, 4, 2, 4), b"abcd"]),
    "no UTF-8": _raw(pa.string(), 1, [None, _ints(0, 2), b"\xff\xfe"]),
    "large offset": _raw(pa.large_string(), 2, [None, _ints(0, 2**40, 4, code="q"), b"abcd"]),
    "binary offset": _raw(pa.binary(), 2, [None, _ints(0, _WILD, 4), b"abcd"]),
    "view beyond its buffer": _raw(pa.string_view(), 1, [None, struct.pack("<i4sii", 100, b"aaaa", 0, _WILD), b"abcd"]),
    "view of no buffer": _raw(pa.string_view(), 1, [None, struct.pack("<i4sii", 100, b"aaaa", 7, 0), b"a" * 100]),
    "list offset": _raw(pa.list_(pa.int64()), 2, [None, _ints(0, _WILD, 1)], children=[pa.array([1])]),
    "list view": _raw(pa.list_view(pa.int64()), 2, [None, _ints(0, _WILD), _ints(1, 9)], children=[pa.array([1])]),
    "text in a list": _raw(pa.list_(pa.string()), 1, [None, _ints(0, 3)], children=[_BAD_TEXT]),
    "text in a struct": pa.StructArray.from_arrays([_BAD_TEXT], ["x"]),
    "map offset": _raw(
        pa.map_(pa.string(), pa.int64()),
        2,
        [None, _ints(0, _WILD, 2)],
        children=[pa.StructArray.from_arrays([_TEXT, pa.array([1, 2])], ["key", "value"])],
    ),
    "dictionary index": pa.DictionaryArray.from_buffers(
        pa.dictionary(pa.int32(), pa.string()), 2, [None, pa.py_buffer(_ints(0, _WILD))], _TEXT
    ),
    "negative dictionary index": pa.DictionaryArray.from_buffers(
        pa.dictionary(pa.int32(), pa.string()), 2, [None, pa.py_buffer(_ints(0, -9))], _TEXT
    ),
    "text of a dictionary": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), _BAD_TEXT),
    "run ends that fall": _run_ends_that_fall(),
    "union child": _raw(
        pa.sparse_union([pa.field("x", pa.int64())], [0]), 2, [None, bytes([0, 5])], children=[pa.array([1, 2])]
    ),
    "union offset": _raw(
        pa.dense_union([pa.field("x", pa.int64())], [0]),
        2,
        [None, bytes([0, 0]), _ints(0, _WILD)],
        children=[pa.array([1])],
    ),
    "number of NULLs": _raw(pa.int64(), 8, [b"\x00", _ints(*range(8), code="q")], null_count=1),
    "number of NULLs of a time": _raw(pa.time64("us"), 8, [b"\x00", _ints(*range(8), code="q")], null_count=1),
}


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("array", [pytest.param(array, id=name) for name, array in LYING_ARRAYS.items()])
def test_an_array_that_contradicts_itself_is_refused(array: pa.Array, ranges: bool) -> None:
    data = encode_table(pa.table([array], ["x"]))
    with pytest.raises(ProtocolError, match="should be an Arrow IPC stream"):
        decode_table(data, ranges=ranges)
    with pytest.raises(ProtocolError, match="should be an Arrow IPC stream"):
        _all(bytes(data))


def test_values_out_of_range_are_refused_unless_kernels_made_them() -> None:
    large = (2**127 - 1).to_bytes(16, "little")
    table = pa.table(
        {
            "t": pa.array([86_400_000_000]).view(pa.time64("us")),
            "h": pa.array([large], pa.binary(16)).view(pa.decimal128(38)),
        }
    )
    with pytest.raises(ProtocolError, match="range"):
        decode_table(encode_table(table))
    assert decode_table(encode_table(table), ranges=False).column("h").chunk(0).view(pa.binary(16)).to_pylist() == [
        large
    ]


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
@pytest.mark.parametrize("is_dictionary", [False, True], ids=["rows", "dictionary"])
def test_compressed_buffers_are_refused_before_they_are_unpacked(codec: str, is_dictionary: bool) -> None:
    column = pa.array(["\0" * 100_000_000])
    if is_dictionary:
        column = column.dictionary_encode()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(
        sink, pa.schema([("s", column.type)]), options=pa.ipc.IpcWriteOptions(compression=codec)
    ) as writer:
        writer.write(pa.record_batch([column], ["s"]))
    data = sink.getvalue().to_pybytes()
    assert len(data) < 1_000_000
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(LimitExceededError, match="without compression"):
        decode_table(data)
    assert pa.default_memory_pool().max_memory() == before


def test_changed_bytes_never_make_a_table_that_kernels_choke_on() -> None:
    """Whatever single bytes are changed, the stream is refused or can be read to its last value."""
    random = Random(7)
    streams = [
        bytes(encode_table(table))
        for table in (TABLE, TABLE.slice(1, 1), pa.table({"x": _TEXT, "y": [[{"a": "b"}], []]}))
    ]
    read = refused = 0
    for _ in range(3000):
        data = bytearray(random.choice(streams))
        for _ in range(random.choice((1, 1, 2, 4))):
            data[random.randrange(len(data))] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
        try:
            table = decode_table(bytes(data))
        except Error:
            refused += 1
        else:
            table.combine_chunks().take(list(range(min(table.num_rows, 10))))
            read += 1
    assert read
    assert refused


def test_a_schema_that_is_none_is_an_error() -> None:
    assert decode_schema(TABLE.schema.serialize().to_pybytes()).equals(TABLE.schema)
    with pytest.raises(ProtocolError, match="should be an Arrow schema"):
        decode_schema(b"hello")
