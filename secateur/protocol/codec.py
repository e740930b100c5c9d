"""The codec: encodes and decodes the messages in the headers of frames.

A message is an immutable :class:`msgspec.Struct`, or a dataclass. Its fields are decoded from msgpack straight into
their declared types, so receivers need not check them again. A field of type ``Any`` holds a value as
:mod:`~secateur.protocol.values` describes it, with the extension types that msgpack does not know: a message with such
a field is written by the packer of that module, all others by msgspec itself. Types that msgspec does not know either
have the hooks of that module, ``to_plain`` and ``from_plain``. Sets are written in sorted order, and so are the maps of
a message that has sets: equal messages have equal bytes in all processes, and a plan's id can be a digest of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import inspect

from secateur.errors import ProtocolError, SerializationError
from secateur.protocol.decoders import described, msgpack_decoder
from secateur.protocol.values import (
    PACK_ERRORS,
    UNCOUNTED_BYTES_MAX,
    UNPACK_ERRORS,
    check_size,
    from_ext,
    from_plain,
    pack,
    pack_flat,
    plain_parts,
    to_plain,
)

T = TypeVar("T")

_NATIVE: Final = (
    inspect.NoneType,
    inspect.BoolType,
    inspect.IntType,
    inspect.FloatType,
    inspect.StrType,
    inspect.BytesType,
    inspect.LiteralType,
    inspect.EnumType,
    inspect.StructType,
    inspect.DataclassType,
    inspect.CustomType,
    inspect.CollectionType,
    inspect.TupleType,
    inspect.DictType,
    inspect.UnionType,
)
"""The types that msgspec encodes exactly as the packer of values does, or for which it asks a hook."""
_UNPACKABLE: Final = (inspect.DataclassType, inspect.CustomType, inspect.SetType, inspect.FrozenSetType)
"""The types that the packer of values does not know; it knows structs and their fields."""
DECODE_ERRORS: Final = (*UNPACK_ERRORS, LookupError, msgspec.MsgspecError)
"""What msgspec raises for bytes that are no value of a type."""
_encoder: Final = msgspec.msgpack.Encoder(enc_hook=to_plain)
_sorting_encoder: Final = msgspec.msgpack.Encoder(enc_hook=to_plain, order="deterministic")


class Codec(Generic[T]):
    """Writes and reads the values of one type. What its fields need is found out at the first use.

    Attributes:
        encode: A value as bytes. Raises SerializationError when a value inside of it does not travel; the message names
            its type.
        decode: The value of bytes; fields that are not known here are skipped. Raises ProtocolError when they are no
            such value, naming the field, and LimitExceededError when they would become too many objects
            (:func:`~secateur.protocol.values.check_size`).
        decode_small: As ``decode``, for at most :data:`~secateur.protocol.values.UNCOUNTED_BYTES_MAX` bytes: without
            a call of Python. It may raise :data:`DECODE_ERRORS` instead.
    """

    encode: Callable[[T], bytes]
    decode: Callable[[bytes | memoryview], T]
    decode_small: Callable[[bytes | memoryview], T]

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self.encode = self._encode_first
        self.decode = self.decode_small = self._decode_first

    def _encode_first(self, value: T) -> bytes:
        self.encode = _writer_of(self._kind)
        return self.encode(value)

    def _decode_first(self, data: bytes | memoryview) -> T:
        self.decode_small = msgpack_decoder(self._kind, ext_hook=from_ext, dec_hook=from_plain).decode
        self.decode = _reader_of(self._kind, self.decode_small)
        return self.decode(data)


_codecs: Final[dict[Any, Codec[Any]]] = {}


def encode(value: Any) -> bytes:
    """Encode a struct or a dataclass; see :class:`Codec`."""
    return _codec_of(type(value)).encode(value)


def decode(data: bytes | memoryview, kind: type[T]) -> T:
    """Decode a value of a known type; see :class:`Codec`."""
    value: T = _codec_of(kind).decode(data)
    return value


def _codec_of(kind: Any) -> Codec[Any]:
    codec = _codecs.get(kind)
    if codec is None:
        codec = _codecs[kind] = Codec(kind)
    return codec


def _reader_of(kind: Any, decode_one: Callable[[bytes | memoryview], T]) -> Callable[[bytes | memoryview], T]:
    name = _name(kind)

    def read(data: bytes | memoryview) -> T:
        if len(data) > UNCOUNTED_BYTES_MAX:
            check_size(data)
        try:
            return decode_one(data)
        except msgspec.ValidationError as error:
            raise ProtocolError(
                f"{name} cannot be read: {error}: both ends have to run one version of secateur"
            ) from error
        except DECODE_ERRORS as error:
            raise ProtocolError(
                f"{len(data)} bytes that should be {name} are not: {type(error).__name__}: {error}"
            ) from error

    return read


def _writer_of(kind: Any) -> Callable[[Any], bytes]:
    """The fastest encoder of values of a type."""
    parts = list(_parts(described(kind), set()))
    has_sets = any(isinstance(part, inspect.SetType | inspect.FrozenSetType) for part in parts)
    if all(isinstance(part, _NATIVE) for part in parts):
        return partial(_write_native, _sorting_encoder if has_sets else _encoder)
    if has_sets:
        return partial(_write_parts, has_sets=True)
    whole = parts[0]
    if (
        isinstance(whole, inspect.StructType)
        and whole.array_like
        and whole.tag is None
        and not any(isinstance(part, _UNPACKABLE) for field in whole.fields for part in _outside_structs(field.type))
    ):
        return pack_flat
    return partial(_write_parts, has_sets=False)


def _write_native(encoder: msgspec.msgpack.Encoder, message: Any) -> bytes:
    try:
        return encoder.encode(message)
    except PACK_ERRORS as error:
        raise SerializationError(f"cannot send {type(message).__name__}: {error}") from error


def _write_parts(message: Any, *, has_sets: bool) -> bytes:
    return pack(plain_parts(message, has_sets=has_sets))


def _parts(part: inspect.Type, seen: set[int]) -> Iterator[inspect.Type]:
    """All types that a type is made of, itself among them."""
    if id(part) in seen:
        return
    seen.add(id(part))
    yield part
    for item in _inner(part):
        yield from _parts(item, seen)


def _outside_structs(part: inspect.Type) -> Iterator[inspect.Type]:
    """As :func:`_parts`, without the types that structs are made of."""
    yield part
    if not isinstance(part, inspect.StructType):
        for item in _inner(part):
            yield from _outside_structs(item)


def _inner(part: inspect.Type) -> Sequence[inspect.Type]:
    match part:
        case inspect.StructType(fields=fields) | inspect.DataclassType(fields=fields):
            return [field.type for field in fields]
        case inspect.CollectionType(item_type=item):
            return [item]
        case inspect.TupleType(item_types=items) | inspect.UnionType(types=items):
            return items
        case inspect.DictType(key_type=key, value_type=value):
            return [key, value]
        case _:
            return []


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", str(kind))
