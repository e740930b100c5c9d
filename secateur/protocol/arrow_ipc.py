"""Tables as payloads: reads and writes Arrow IPC streams, and checks those that other processes sent.

Kernels trust an array's own description: an offset or a dictionary index that points out of its buffer crashes the
process. Bytes from another process therefore become a table only through :func:`decode_table`, which checks all of
them. Checking costs less than writing the same bytes did (5 ms for a million rows of 32 MB, of which only texts are
checked one by one), so streams of authenticated members are checked as well, and no code has to decide which peer to
trust.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import IO, Final

import pyarrow as pa

from secateur.errors import LimitExceededError, ProtocolError

_ALIGNMENT_BYTES: Final = 8
_READ_OPTIONS: Final = pa.ipc.IpcReadOptions()
_WRITE_OPTIONS: Final = pa.ipc.IpcWriteOptions()
"""Made once: pyarrow would look into the environment for defaults at every stream, for 10 us."""

_SIZED_ROWS_MIN: Final = 10_000
"""From so many rows on, what it costs to find out the size of a stream is little beside what it saves."""
_METADATA_BYTES_MAX: Final = 16 << 20
"""Most metadata of one message: names and types of columns, or places of buffers.

Each field becomes an object of many times its size.
"""
_CONTINUATION: Final = 0xFFFFFFFF
_U16, _I32, _U32, _I64 = (struct.Struct(f"<{code}") for code in "HiIq")
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
# Places of fields in the tables of Arrow's Message.fbs: Message, DictionaryBatch, RecordBatch.
_HEADER_TYPE, _HEADER, _BODY_LENGTH = 1, 2, 3
_DATA: Final = 1
_COMPRESSION: Final = 3


def encode_table(table: pa.Table | pa.RecordBatch) -> memoryview:
    """Write a table as one Arrow IPC stream; one copy of the data. Costs about 6 us plus the copy."""
    if table.num_rows < _SIZED_ROWS_MIN:
        sink = pa.BufferOutputStream()
        _write(table, sink)
        return memoryview(sink.getvalue())
    # A stream that grows copies what it has again and again: 8 MiB take 1.0 ms so, and 0.4 ms with their size known.
    counted = pa.MockOutputStream()
    _write(table, counted)
    buffer = pa.allocate_buffer(counted.size())
    _write(table, pa.FixedSizeBufferWriter(buffer))
    return memoryview(buffer)


def _write(table: pa.Table | pa.RecordBatch, sink: pa.NativeFile) -> None:
    with pa.ipc.new_stream(sink, table.schema, options=_WRITE_OPTIONS) as writer:
        writer.write(table)


def decode_table(data: bytes | memoryview, *, ranges: bool = True) -> pa.Table:
    """Read one Arrow IPC stream without copying: the table keeps ``data`` alive, and takes no more memory than that.

    Everything that a kernel uses to find values is checked: lengths, offsets, indices of dictionaries, run ends, counts
    of NULLs, texts, at every depth. Compressed buffers are refused before they are unpacked: 45 KB of them can become a
    gigabyte, and a sender on the same network gains nothing from compression.

    Args:
        data: The output of :func:`encode_table`, or bytes from an untrusted peer.
        ranges: Whether values must also lie in the range of their type, as stored rows must. Kernels make a few correct
            values that do not: a HUGEINT of 39 digits, ``TIME '24:00:00'``.

    Raises:
        ProtocolError: The bytes are not such a stream, or its arrays contradict themselves.
        LimitExceededError: The stream is compressed, or its metadata are too large.
    """
    try:
        buffer = pa.py_buffer(data)
        _check_messages(memoryview(buffer))
        if buffer.address % _ALIGNMENT_BYTES:
            buffer = pa.py_buffer(bytes(data))  # kernels are allowed to assume alignment
        table = pa.ipc.open_stream(buffer, options=_READ_OPTIONS).read_all()
        if ranges:
            table.validate(full=True)
        else:
            _validate_structure(table)
    except (pa.ArrowException, OSError, ValueError, IndexError, struct.error) as error:
        raise ProtocolError(
            f"a payload of {len(data)} bytes should be an Arrow IPC stream and is not: {error}"
        ) from error
    return table


def decode_tables(parts: Sequence[bytes | memoryview]) -> pa.Table:
    """Read an answer that came in pieces, each a stream with the same schema, as one table; chunks are not copied.

    Raises:
        ProtocolError: There is no piece, one is not a stream, or their schemas differ.
    """
    tables = [decode_table(part, ranges=False) for part in parts if len(part)]
    if not tables:
        raise ProtocolError("an answer that should carry a table carries no payload")
    if any(table.schema != tables[0].schema for table in tables):
        raise ProtocolError("the pieces of an answer have different schemas")
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables)


def decode_batches(file: IO[bytes]) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Read one Arrow IPC stream as it arrives: its schema, and each batch once it is here.

    Batches are checked as by :func:`decode_table` without ``ranges``, one after the other, each with the dictionaries
    before it.

    Raises:
        ProtocolError: The bytes are not such a stream, also while the batches are read.
        LimitExceededError: The stream is compressed, or its metadata are too large.
    """
    try:
        messages = pa.ipc.MessageReader.open_stream(file)
        head = [messages.read_next_message().serialize()]
    except (pa.ArrowException, OSError, StopIteration, ValueError) as error:
        raise _no_stream(error) from error
    return decode_table(head[0], ranges=False).schema, _batches(messages, head)


def _batches(messages: pa.ipc.MessageReader, head: list[pa.Buffer]) -> Iterator[pa.RecordBatch]:
    while True:
        try:
            message = messages.read_next_message()
        except StopIteration:
            return
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _no_stream(error) from error
        if message.type == "dictionary":
            head.append(message.serialize())
        else:
            yield from decode_table(b"".join([*head, message.serialize()]), ranges=False).to_batches()


def _no_stream(error: Exception) -> ProtocolError:
    return ProtocolError(f"what arrives should be an Arrow IPC stream and is not: {error}")


def decode_schema(data: bytes | memoryview) -> pa.Schema:
    """Read what ``Schema.serialize`` wrote.

    Raises:
        ProtocolError: The bytes are not a schema.
        LimitExceededError: There are too many of them.
    """
    if len(data) > _METADATA_BYTES_MAX:
        raise _too_much_metadata(len(data))
    try:
        return pa.ipc.read_schema(pa.py_buffer(data))
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        raise ProtocolError(f"{len(data)} bytes should be an Arrow schema and are not: {error}") from error


def _validate_structure(table: pa.Table) -> None:
    """Check everything that full validation checks, except the ranges of times and decimals, which count as bytes."""
    table.validate()
    for column in table.columns:
        bare = _without_range(column.type)
        for chunk in column.chunks:
            (chunk if bare is None else chunk.view(bare)).validate(full=True)


def _without_range(kind: pa.DataType) -> pa.DataType | None:
    """Return a type of the same width that accepts every value.

    None for nested types, and for types whose ranges full validation does not check.
    """
    if pa.types.is_decimal(kind):
        return pa.binary(kind.bit_width // 8)
    if pa.types.is_time(kind) or pa.types.is_date64(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    return None


def _check_messages(stream: memoryview) -> None:
    """Walk over the messages of a stream, without unpacking any.

    Metadata are unverified FlatBuffers: the values read here may be invalid, which Arrow reports afterwards.

    Source: Arrow columnar format, "Encapsulated message format"; FlatBuffers internals.

    Raises:
        LimitExceededError: A message is compressed, or its metadata are too large.
        ValueError: A message has an impossible length.
        struct.error, IndexError: The stream ends inside of a message, or metadata point out of it.
    """
    position = 0
    while position + _U32.size <= len(stream):
        (metadata_bytes,) = _U32.unpack_from(stream, position)
        position += _U32.size
        if metadata_bytes == _CONTINUATION:
            (metadata_bytes,) = _U32.unpack_from(stream, position)
            position += _U32.size
        if metadata_bytes == 0:
            return
        if metadata_bytes > len(stream) - position:
            raise ValueError(f"a message announces {metadata_bytes} bytes of metadata, {len(stream) - position} follow")
        if metadata_bytes > _METADATA_BYTES_MAX:
            raise _too_much_metadata(metadata_bytes)
        metadata = stream[position : position + metadata_bytes]
        (root,) = _U32.unpack_from(metadata, 0)
        kind = _field(metadata, root, _HEADER_TYPE)
        if kind and metadata[kind] in (_DICTIONARY_BATCH, _RECORD_BATCH):
            batch = _table(metadata, root, _HEADER)
            if batch and metadata[kind] == _DICTIONARY_BATCH:
                batch = _table(metadata, batch, _DATA)
            if batch and _field(metadata, batch, _COMPRESSION):
                raise LimitExceededError(
                    "a payload carries compressed Arrow buffers, which a few bytes make as large as they like: write"
                    " the stream without compression",
                    limit="compression",
                )
        length = _field(metadata, root, _BODY_LENGTH)
        body_bytes = _I64.unpack_from(metadata, length)[0] if length else 0
        if body_bytes < 0:
            raise ValueError(f"a message announces a body of {body_bytes} bytes")
        position += metadata_bytes + body_bytes


def _field(metadata: memoryview, table: int, slot: int) -> int:
    """Return the position of a field of a FlatBuffers table; 0 when the table does not have it."""
    vtable = table - _I32.unpack_from(metadata, table)[0]
    place = 4 + 2 * slot
    if vtable < 0 or place >= _U16.unpack_from(metadata, vtable)[0]:
        return 0
    (offset,) = _U16.unpack_from(metadata, vtable + place)
    return table + offset if offset else 0


def _table(metadata: memoryview, table: int, slot: int) -> int:
    """Return the position of the table that a field refers to; 0 when there is none."""
    field = _field(metadata, table, slot)
    return field + _U32.unpack_from(metadata, field)[0] if field else 0


def _too_much_metadata(size: int) -> LimitExceededError:
    return LimitExceededError(
        f"an Arrow message has {size:,} bytes of metadata, {_METADATA_BYTES_MAX:,} are allowed: send fewer columns",
        limit="metadata",
    )
