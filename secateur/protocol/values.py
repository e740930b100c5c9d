"""Plain values as bytes: msgpack, with extension types for the SQL values that msgpack does not know.

None, bool, int, float, str, bytes, list and dict are msgpack's own. Tuples become lists. Timestamps with a zone become
UTC: only the instant is sent. Decoding cannot build an object of any other class, so bytes from a stranger are safe to
read.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal, DecimalException
from enum import IntEnum
from typing import Any, Final, Literal
from uuid import UUID

import msgpack
import msgspec
import numpy as np
import pyarrow as pa
from msgspec.structs import astuple

from secateur.errors import LimitExceededError, ProtocolError, SerializationError
from secateur.protocol.arrow_ipc import decode_schema, decode_table, encode_table


class _Ext(IntEnum):
    """Numbers of the extension types. They are part of the protocol: never renumber."""

    DATE = 1
    TIME = 2
    TIMESTAMP = 3
    TIMESTAMPTZ = 4
    DECIMAL = 5
    UUID = 6
    INTERVAL = 7
    HUGEINT = 8


_INT64: Final = struct.Struct("<q")
_EPOCH: Final = datetime(1970, 1, 1)
_EPOCH_UTC: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY: Final = _EPOCH.toordinal()
_MICROSECOND: Final = timedelta(microseconds=1)
_NEARLY_A_DAY: Final = timedelta(hours=23, minutes=59)
"""The largest offset of a zone."""
_SPAN_BYTES: Final = 10  # a timedelta reaches past 64 bits of microseconds
_LEAVES: Final = (bytes, bytearray, memoryview, datetime, date, time, timedelta, Decimal, UUID)
"""The types that :func:`msgspec.to_builtins` leaves as they are: the packer has extension types for them."""
PACK_ERRORS: Final = (TypeError, ValueError, OverflowError)
UNCOUNTED_BYTES_MAX: Final = 64 << 10
"""So few bytes become five megabytes at worst, and counting would cost time for every small frame."""
_OBJECTS_MAX: Final = 1_000_000
"""Lists, maps and values of extension types in one message: each is up to a hundred times as large as its bytes.

A scheme of 100,000 ranges has half.
"""
_ELEMENTS_MAX: Final = 8_000_000
"""Elements of all lists and maps of one message."""
UNPACK_ERRORS: Final = (
    ValueError,
    TypeError,
    OverflowError,
    RecursionError,
    DecimalException,
    struct.error,
    msgpack.UnpackException,
)


def pack(value: Any) -> bytes:
    """Encode a value.

    Raises:
        SerializationError: A value inside it is of a type that does not travel; the message names the type.
    """
    try:
        packed: bytes = packers.packer.pack(value)
    except PACK_ERRORS as error:
        raise _unsendable(error) from error
    return packed


def pack_around(message: msgspec.Struct, name: str) -> tuple[bytes, bytes]:
    """The bytes of a message before and behind those of one field, as :func:`pack_flat` writes it."""
    values, at = astuple(message), message.__struct_fields__.index(name)
    before = msgpack.Packer().pack_array_header(len(values)) + b"".join(map(pack, values[:at]))
    return before, b"".join(map(pack, values[at + 1 :]))


def pack_flat(message: Any) -> bytes:
    """Encode a :class:`msgspec.Struct` as a list of its fields, like :func:`pack` but in one call."""
    try:
        packed: bytes = packers.packer.pack(astuple(message))
    except PACK_ERRORS as error:
        raise _unsendable(error) from error
    return packed


def _unsendable(error: Exception) -> SerializationError:
    return SerializationError(
        f"cannot send a value: {error}; send None, bool, int, float, str, bytes, date, time, datetime, timedelta,"
        " Decimal, UUID, or lists and dicts of them"
    )


def unpack(data: bytes | memoryview) -> Any:
    """Decode what :func:`pack` encoded.

    The size of the result is bounded, not only the bytes: 16 MB of empty lists would become 1.2 GB.

    Raises:
        ProtocolError: The bytes are not exactly one value.
        LimitExceededError: They are too many lists, maps, values of extension types, or elements of these.
    """
    if len(data) > UNCOUNTED_BYTES_MAX:
        return _unpack_counted(data)
    try:
        return msgpack.unpackb(data, ext_hook=from_ext, strict_map_key=False)
    except UNPACK_ERRORS as error:
        raise _no_value(data, error) from error


def _unpack_counted(data: bytes | memoryview, *, keep: bool = True) -> Any:
    """Unpack and count; with ``keep=False`` the counted objects are dropped, so that counting takes no memory."""
    objects = elements = 0

    def count(size: int) -> None:
        nonlocal objects, elements
        objects, elements = objects + 1, elements + size
        if objects > _OBJECTS_MAX:
            raise _too_many(data, f"{_OBJECTS_MAX:,} lists, maps and special values")
        if elements > _ELEMENTS_MAX:
            raise _too_many(data, f"{_ELEMENTS_MAX:,} elements of lists and maps")

    def list_hook(value: list[Any]) -> list[Any]:
        count(len(value))
        return value if keep else []

    def object_hook(value: dict[Any, Any]) -> dict[Any, Any]:
        count(len(value))
        return value if keep else {}

    def ext_hook(code: int, content: bytes) -> Any:
        count(0)
        return from_ext(code, content) if keep else None

    bounds = {"max_array_len": _ELEMENTS_MAX, "max_map_len": _ELEMENTS_MAX}
    try:
        return msgpack.unpackb(
            data, ext_hook=ext_hook, list_hook=list_hook, object_hook=object_hook, strict_map_key=False, **bounds
        )
    except UNPACK_ERRORS as error:
        if any(bound in str(error) for bound in bounds):
            raise _too_many(data, f"{_ELEMENTS_MAX:,} elements of lists and maps") from error
        raise _no_value(data, error) from error


def check_size(data: bytes | memoryview) -> None:
    """Refuse bytes that would become too many objects, before they become any.

    Costs nothing for a small message, and a second reading for a large one.

    Raises:
        ProtocolError: The bytes are not one msgpack value.
        LimitExceededError: They are too many lists, maps, values of extension types, or elements of these.
    """
    if len(data) > UNCOUNTED_BYTES_MAX:
        _unpack_counted(data, keep=False)


def plain_parts(message: Any, *, has_sets: bool) -> Any:
    """The lists, maps and values that a :class:`msgspec.Struct` or a dataclass is made of.

    Where it ``has_sets``, its sets and maps are sorted: the order of a set differs between processes, and equal values
    have equal bytes.
    """
    order: Literal["deterministic"] | None = "deterministic" if has_sets else None
    try:
        return msgspec.to_builtins(message, builtin_types=_LEAVES, enc_hook=to_plain, order=order)
    except PACK_ERRORS as error:
        raise _unsendable(error) from error


def _no_value(data: bytes | memoryview, error: Exception) -> ProtocolError:
    return ProtocolError(f"{len(data)} bytes that should be one msgpack value are not: {type(error).__name__}: {error}")


def _too_many(data: bytes | memoryview, what: str) -> LimitExceededError:
    return LimitExceededError(
        f"a message of {len(data):,} bytes has more than {what}: send fewer values at a time", limit="message_objects"
    )


def _to_ext(value: Any) -> Any:
    """Msgpack asks here for every value that it does not know."""
    match value:
        case datetime():
            if value.tzinfo is None:
                return msgpack.ExtType(_Ext.TIMESTAMP, _INT64.pack((value - _EPOCH) // _MICROSECOND))
            return msgpack.ExtType(_Ext.TIMESTAMPTZ, _INT64.pack((value - _EPOCH_UTC) // _MICROSECOND))
        case date():
            return msgpack.ExtType(_Ext.DATE, _INT64.pack(value.toordinal() - _EPOCH_DAY))
        case time():
            if value.tzinfo is not None:
                raise TypeError(f"a time of day with a zone ({value!r}) has no SQL type")
            return msgpack.ExtType(
                _Ext.TIME,
                _INT64.pack(((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond),
            )
        case timedelta():
            return msgpack.ExtType(_Ext.INTERVAL, (value // _MICROSECOND).to_bytes(_SPAN_BYTES, "little", signed=True))
        case Decimal():
            return msgpack.ExtType(_Ext.DECIMAL, str(value).encode())
        case UUID():
            return msgpack.ExtType(_Ext.UUID, value.bytes)
        case int():
            return msgpack.ExtType(_Ext.HUGEINT, value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))
        case np.datetime64() | np.timedelta64():
            return None if np.isnat(value) else _to_ext(_plain_instant(value))
        case np.generic():
            return value.item()
        case msgspec.Struct():
            return plain_parts(value, has_sets=True)
        case Mapping():  # one that cannot be changed
            return dict(value)
        case _:
            raise TypeError(f"{type(value).__module__}.{type(value).__qualname__} does not travel")


def to_plain(value: Any) -> Any:
    """Msgspec asks here for every value in a struct that it does not know."""
    match value:
        case pa.Schema():
            return value.serialize().to_pybytes()
        case pa.Table():
            return bytes(encode_table(value))
        case Mapping():  # one that cannot be changed
            return dict(value)
        case np.datetime64() | np.timedelta64():
            return None if np.isnat(value) else _plain_instant(value)
        case np.generic():
            return value.item()
        case _:
            raise TypeError(f"{type(value).__module__}.{type(value).__qualname__} does not travel")


def from_plain(kind: type, plain: Any) -> Any:
    """The value of a type that msgspec does not know, which :func:`to_plain` wrote."""
    if kind is pa.Schema:
        return decode_schema(plain)
    if kind is pa.Table:
        return decode_table(plain)
    raise NotImplementedError(f"{kind.__qualname__} does not travel")


def _plain_instant(value: np.datetime64 | np.timedelta64) -> datetime | date | timedelta:
    """The value of a numpy instant or span, whose own ``item()`` gives a bare int for nanoseconds."""
    plain: Any = value.item()
    if isinstance(plain, int):
        plain = value.astype("datetime64[us]" if isinstance(value, np.datetime64) else "timedelta64[us]").item()
    if isinstance(plain, int):
        raise ValueError(f"{value!r} is outside of the calendar")
    return plain


def from_ext(code: int, content: bytes | memoryview) -> Any:
    """The value of an extension type."""
    data = bytes(content)
    match code:
        case _Ext.TIMESTAMP:
            return _EPOCH + timedelta(microseconds=_INT64.unpack(data)[0])
        case _Ext.TIMESTAMPTZ:
            return _aware(_INT64.unpack(data)[0])
        case _Ext.DATE:
            return date.fromordinal(_EPOCH_DAY + _INT64.unpack(data)[0])
        case _Ext.TIME:
            return (_EPOCH + timedelta(microseconds=_INT64.unpack(data)[0])).time()
        case _Ext.INTERVAL:
            return timedelta(microseconds=int.from_bytes(data, "little", signed=True))
        case _Ext.DECIMAL:
            return Decimal(data.decode())
        case _Ext.UUID:
            return UUID(bytes=data)
        case _Ext.HUGEINT:
            return int.from_bytes(data, "little", signed=True)
        case _:
            raise ValueError(f"extension type {code} is unknown")


def _aware(microseconds: int) -> datetime:
    """An instant by its microseconds since 1970.

    One that is up to a day beyond Python's calendar in UTC is given in a zone in which the calendar has it.
    """
    try:
        return _EPOCH_UTC + timedelta(microseconds=microseconds)
    except OverflowError:
        ahead = -_NEARLY_A_DAY if microseconds > 0 else _NEARLY_A_DAY
        return (_EPOCH + (timedelta(microseconds=microseconds) + ahead)).replace(tzinfo=timezone(ahead))


class _Packers(threading.local):
    """One packer for each thread.

    Making a packer costs more than packing a header, so it is reused; it is not thread-safe.
    """

    def __init__(self) -> None:
        self.packer = msgpack.Packer(default=_to_ext)


packers: Final = _Packers()
