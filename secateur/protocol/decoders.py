"""The decoders of msgspec, of which a process makes one at a time.

With each struct, msgspec keeps what it finds out about the types of its fields, and keeps it there from before it has
found out anything, for structs that hold themselves. It runs Python meanwhile, so another thread may come in; and that
one takes what is there already as whole, for the same struct and for any that has it in a field. Its first message then
ends the process with a segmentation fault: msgspec 0.22 alone does that where two threads make their first decoder of
one struct. So every decoder is made here, and ``msgspec.json.decode(..., type=...)``, which makes one inside, is not
used. A fork waits as well: the child would have the struct half made for ever. Decoders that are made may be shared by
threads, and so may encoders, which keep nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec
import msgspec.inspect

from secateur.forks import forks_wait_for

T = TypeVar("T")

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


def described(kind: Any) -> msgspec.inspect.Type:
    """The parts of a type, as msgspec finds them: it makes a decoder of the type for that."""
    with _making:
        return msgspec.inspect.type_info(kind)


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
