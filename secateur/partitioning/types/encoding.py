"""Keys as bytes and in their order: the canonical bytes that are hashed, successors, and what sorts as keys do.

The canonical bytes have two forms of one rule: :func:`scalar_encoder` for one Python value, :func:`encode_array` for an
Arrow array. The classes of encodings are closed:

======================  ====================================================================
type                    bytes
======================  ====================================================================
every integer           8, little endian, two's complement (as BIGINT)
TIMESTAMP, TIMESTAMPTZ  8, little endian, microseconds since 1970 in UTC
DECIMAL(p, s), p <= 18  8, little endian, the unscaled integer
DATE                    4, little endian, days since 1970
BOOLEAN                 4, little endian, 0 or 1
DECIMAL(p, s), p > 18   1 to 16, minimal big-endian two's complement of the unscaled integer
VARCHAR                 its UTF-8 bytes
BLOB                    its bytes
UUID                    36, its lower-case text
======================  ====================================================================

Source: the ``HashExpression`` of Apache Spark for all but the unsigned integers and UUID, which Spark does not have.

An inclusive bound becomes an exclusive one by its successor: ``VALUE = 9`` is ``9 <= VALUES < 10``. The largest BIGINT
has no successor: then the column before it advances and this one starts over. The largest key of all has no successor.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from secateur.errors import InternalError
from secateur.partitioning.types.arrow_layout import fixed_width
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.partitioning.types.counting import Counting, counting_of
from secateur.partitioning.types.decimals import unscaled

_PACK_INT64: Final = struct.Struct("<q").pack
_PACK_UINT64: Final = struct.Struct("<Q").pack
_PACK_INT32: Final = struct.Struct("<i").pack
_BOOLEANS: Final = {False: _PACK_INT32(0), True: _PACK_INT32(1)}
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_EPOCH: Final = datetime(1970, 1, 1)
_EPOCH_UTC: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NARROW_PRECISION_MAX: Final = 18
_UUID_TEXT_BYTES: Final = 36
_WORD_PAIR: Final = np.dtype((np.uint64, 2))
_SIXTEEN_BYTES: Final = np.dtype((np.uint8, 16))
_UUID_DASHES: Final = (8, 13, 18, 23)
_UUID_DIGITS: Final = np.array([i for i in range(_UUID_TEXT_BYTES) if i not in _UUID_DASHES])


@dataclass(frozen=True, slots=True)
class WordKeys:
    """Rows whose encodings are all one machine word.

    Attributes:
        words: uint64 or uint32, one per row; the bytes of a row are its little-endian bytes. Anything at null rows.
        valid: bool per row, or None when there is no null.
    """

    words: npt.NDArray[np.uint64] | npt.NDArray[np.uint32]
    valid: npt.NDArray[np.bool_] | None


@dataclass(frozen=True, slots=True)
class ByteKeys:
    """Rows whose encodings are strings of bytes inside one buffer.

    Attributes:
        data: uint8, all bytes.
        starts: int64, where each row begins in ``data``.
        lengths: int64, how many bytes each row has. Anything inside ``data`` at null rows.
        valid: bool per row, or None when there is no null.
    """

    data: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    valid: npt.NDArray[np.bool_] | None


EncodedColumn = WordKeys | ByteKeys


def is_narrow_decimal(type_: SqlType) -> bool:
    """Whether a DECIMAL hashes as a BIGINT: its unscaled integer always fits in 8 bytes."""
    return type_.kind is TypeKind.DECIMAL and type_.precision <= _NARROW_PRECISION_MAX


def scalar_encoder(type_: SqlType) -> Callable[[Any], bytes]:
    """The function that turns one canonical, non-null value of a type into the bytes to hash.

    The functions are strict on purpose: a value that is not canonical raises one of ValueError, TypeError,
    AttributeError, KeyError or struct.error instead of being hashed as something else. Cost: 50 ns for integers and
    strings, up to 1 microsecond for decimals and UUIDs.
    """
    match type_.kind:
        case TypeKind.UBIGINT:
            return _PACK_UINT64
        case _ if type_.is_integer and type_.can_partition:
            return _PACK_INT64
        case TypeKind.VARCHAR:
            return str.encode
        case TypeKind.BLOB:
            return _encode_blob
        case TypeKind.BOOLEAN:
            return _BOOLEANS.__getitem__
        case TypeKind.DATE:
            return _encode_date
        case TypeKind.TIMESTAMP:
            return _timestamp_encoder(_EPOCH)
        case TypeKind.TIMESTAMPTZ:
            return _timestamp_encoder(_EPOCH_UTC)
        case TypeKind.DECIMAL:
            return _decimal_encoder(type_)
        case TypeKind.UUID:
            return _encode_uuid
        case _:
            raise InternalError(
                f"a column of type {type_} was about to partition a table; its scheme should have been refused"
            )


def _encode_blob(value: bytes) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError
    return value


def _encode_date(value: date) -> bytes:
    # A datetime is a date to Python: without this check its time of day would be lost silently.
    if type(value) is not date:
        raise TypeError
    return _PACK_INT32(value.toordinal() - _EPOCH_DAY)


def _encode_uuid(value: UUID) -> bytes:
    return UUID.__str__(value).encode()


def _timestamp_encoder(epoch: datetime) -> Callable[[datetime], bytes]:
    def encode(value: datetime) -> bytes:
        since = value - epoch
        return _PACK_INT64((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds)

    return encode


def _decimal_encoder(type_: SqlType) -> Callable[[Decimal], bytes]:
    scale, narrow = type_.scale, is_narrow_decimal(type_)

    def encode(value: Decimal) -> bytes:
        units = unscaled(value, scale)
        if narrow:
            return _PACK_INT64(units)
        bits = (units if units >= 0 else ~units).bit_length()
        return units.to_bytes(bits // 8 + 1, "big", signed=True)

    return encode


def encode_array(array: pa.Array, type_: SqlType) -> EncodedColumn:
    """Encode an Arrow array of a partitioning column: one chunk, of exactly ``type_.arrow``.

    Returns:
        One encoding per row. Integers, dates, timestamps, strings and binaries are views of the Arrow buffers: nothing
        is copied.
    """
    match type_.kind:
        case TypeKind.BOOLEAN:
            return WordKeys(fixed_width(array.cast(pa.uint8()), np.uint8).astype(np.uint32), _valid_mask(array))
        case TypeKind.DATE:
            return WordKeys(fixed_width(array, np.uint32), _valid_mask(array))
        case TypeKind.TIMESTAMP | TypeKind.TIMESTAMPTZ | TypeKind.BIGINT | TypeKind.UBIGINT:
            return WordKeys(fixed_width(array, np.uint64), _valid_mask(array))
        case _ if type_.is_integer and type_.can_partition:
            # Arrow and NumPy have the same names of integers; to_pandas_dtype() needs pandas before PyArrow 22.
            return WordKeys(fixed_width(array, str(array.type)).astype(np.int64).view(np.uint64), _valid_mask(array))
        case TypeKind.DECIMAL if is_narrow_decimal(type_):
            return WordKeys(np.ascontiguousarray(decimal_words(array)[:, 0]), _valid_mask(array))
        case TypeKind.DECIMAL:
            return _encode_wide_decimals(array)
        case TypeKind.VARCHAR | TypeKind.BLOB:
            return _encode_binary(array)
        case TypeKind.UUID:
            return _encode_uuids(array)
        case _:
            raise InternalError(
                f"a column of type {type_} was about to partition a table; its scheme should have been refused"
            )


def _valid_mask(array: pa.Array) -> npt.NDArray[np.bool_] | None:
    """One bool per row, False at nulls; None when there is no null."""
    if array.null_count == 0:
        return None
    mask: npt.NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
    return mask


def decimal_words(array: pa.Array) -> npt.NDArray[np.uint64]:
    """The unscaled 128-bit integers of a decimal128 array as uint64 of shape (rows, 2): low word, high word."""
    return fixed_width(array, _WORD_PAIR)


def uuid_bytes(array: pa.Array) -> npt.NDArray[np.uint8]:
    """The bytes of a UUID array as uint8 of shape (rows, 16), most significant first."""
    return fixed_width(array.storage, _SIXTEEN_BYTES)


def _encode_binary(array: pa.Array) -> ByteKeys:
    _, offsets, data = array.buffers()
    if offsets is None or len(array) == 0:
        empty = np.empty(0, dtype=np.int64)
        return ByteKeys(np.empty(0, dtype=np.uint8), empty, empty, None)
    ends = np.frombuffer(offsets, dtype=np.int32, count=len(array) + 1, offset=4 * array.offset).astype(np.int64)
    content = np.empty(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    return ByteKeys(content, ends[:-1], np.diff(ends), _valid_mask(array))


def _encode_uuids(array: pa.Array) -> ByteKeys:
    raw = uuid_bytes(array)
    text = np.full((len(raw), _UUID_TEXT_BYTES), ord("-"), dtype=np.uint8)
    text[:, _UUID_DIGITS] = np.frombuffer(raw.tobytes().hex().encode(), np.uint8).reshape(-1, 32)
    starts = np.arange(len(raw), dtype=np.int64) * _UUID_TEXT_BYTES
    return ByteKeys(text.reshape(-1), starts, np.full(len(raw), _UUID_TEXT_BYTES, dtype=np.int64), _valid_mask(array))


def _encode_wide_decimals(array: pa.Array) -> ByteKeys:
    """Minimal two's complement: a leading byte goes when it only repeats the sign bit of the byte behind it."""
    big_endian = np.ascontiguousarray(decimal_words(array)).view(np.uint8).reshape(-1, 16)[:, ::-1]
    data = np.ascontiguousarray(big_endian)
    sign = np.where(data[:, :1] >= 128, np.uint8(255), np.uint8(0))
    redundant = (data[:, :-1] == sign) & ((data[:, 1:] ^ sign) < 128)
    dropped = np.cumprod(redundant, axis=1, dtype=np.uint8).sum(axis=1, dtype=np.int64)
    starts = np.arange(len(data), dtype=np.int64) * 16 + dropped
    return ByteKeys(data.reshape(-1), starts, 16 - dropped, _valid_mask(array))


def successor(key: Sequence[Any], types: Sequence[SqlType]) -> tuple[Any, ...] | None:
    """Return the smallest key that is greater than the given one, in lexicographic order; None after the greatest."""
    values = list(key)
    for position in range(len(values) - 1, -1, -1):
        following = next_value(values[position], types[position])
        if following is not None:
            return (*values[:position], following, *(minimum(type_) for type_ in types[position + 1 :]))
    return None


def next_value(value: Any, type_: SqlType) -> Any:
    """The smallest value greater than a canonical one, or None after the greatest of the type."""
    match type_.kind:
        case TypeKind.VARCHAR:
            return value + "\0"
        case TypeKind.BLOB:
            return value + b"\0"
        case _:
            counting = _counting(type_)
            following = counting.index(value) + 1
            return counting.value(following) if following <= counting.largest else None


def minimum(type_: SqlType) -> Any:
    """The smallest canonical value of a type."""
    match type_.kind:
        case TypeKind.VARCHAR:
            return ""
        case TypeKind.BLOB:
            return b""
        case _:
            counting = _counting(type_)
            return counting.value(counting.smallest)


def order_key_of(type_: SqlType) -> Callable[[Any], Any]:
    """The function from values to objects whose Python order is the column's and that equal :func:`order_array`'s."""
    match type_.kind:
        case TypeKind.VARCHAR:
            return str.encode
        case TypeKind.BLOB:
            return bytes
        case _:
            return _counting(type_).index


def _counting(type_: SqlType) -> Counting:
    counting = counting_of(type_)
    if counting is None:
        raise InternalError(f"values of type {type_} were about to be ordered as a key; such a column cannot partition")
    return counting


def order_array(array: pa.Array, type_: SqlType) -> npt.NDArray[Any]:
    """The order keys of a column of a fixed width of up to 64 bits, without nulls."""
    match type_.kind:
        case TypeKind.BOOLEAN:
            return fixed_width(array.cast(pa.uint8()), np.uint8)
        case TypeKind.DATE:
            return fixed_width(array, np.int32)
        case TypeKind.TIMESTAMP | TypeKind.TIMESTAMPTZ:
            return fixed_width(array, np.int64)
        case TypeKind.DECIMAL:
            return np.ascontiguousarray(decimal_words(array)[:, 0]).view(np.int64)
        case _:
            return fixed_width(array, str(array.type))
