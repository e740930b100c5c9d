"""The codec: encodes and decodes the messages in the headers of frames; and every decoder of msgspec is made here.

A message is an immutable :class:`msgspec.Struct`, or a dataclass. Its fields are decoded from msgpack straight into
their declared types, so receivers need not check them again. A field of type ``Any`` holds a value as
:mod:`~secateur.protocol.values` describes it, with the extension types that msgpack does not know: a message with such
a field is written by the packer of that module, all others by msgspec itself. Types that msgspec does not know either
have the hooks of that module, ``to_plain`` and ``from_plain``. Sets are written in sorted order, and so are the maps of
a message that has sets: equal messages have equal bytes in all processes, and a plan's id can be a digest of them.

A process makes one decoder at a time. With each struct, msgspec keeps what it finds out about the types of its fields,
and keeps it there from before it has found out anything, for structs that hold themselves. It runs Python meanwhile, so
another thread may come in; and that one takes what is there already as whole, for the same struct and for any that has
it in a field. Its first message then ends the process with a segmentation fault: msgspec 0.22 alone does that where two
threads make their first decoder of one struct. So ``msgspec.json.decode(..., type=...)``, which makes one inside, is
not used. A fork waits as well: the child would have the struct half made for ever. Decoders that are made may be shared
by threads, and so may encoders, which keep nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import inspect

from secateur.errors import ProtocolError, SerializationError
from secateur.forks import forks_wait_for
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
    name = getattr(kind, "__name__", str(kind))

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


_making: Final = forks_wait_for(threading.RLock())  # the collector may run a finalizer inside that reads an answer
_of_json: Final[dict[Any, msgspec.json.Decoder[Any]]] = {}


def msgpack_decoder(
    kind: Any,
    *,
    ext_hook: Callable[[int, memoryview], Any] | None = None,
    dec_hook: Callable[[type, Any], Any] | None = None,
) -> msgspec.msgpack.Decoder[Any]:
    """A new decoder of a type from msgpack; the hooks are those of msgspec. To be kept: making one takes long."""
    with _making:
        return msgspec.msgpack.Decoder(kind, ext_hook=ext_hook, dec_hook=dec_hook)


def json_decoder(kind: Any, *, float_hook: Callable[[str], Any] | None = None) -> msgspec.json.Decoder[Any]:
    """A new decoder of a type from JSON; the hook is that of msgspec. To be kept: making one takes long."""
    with _making:
        return msgspec.json.Decoder(kind, float_hook=float_hook)


def described(kind: Any) -> inspect.Type:
    """The parts of a type, as msgspec finds them: it makes a decoder of the type for that."""
    with _making:
        return inspect.type_info(kind)


def from_json(data: bytes | str, kind: type[T]) -> T:
    """The value of a type that is written in JSON.

    Raises:
        msgspec.DecodeError: It is no JSON, or no value of this type.
    """
    decoder = _of_json.get(kind)
    if decoder is None:
        decoder = _of_json[kind] = json_decoder(kind)
    value: T = decoder.decode(data)
    return value
