"""Texts of JSON: whether a text is one as DuckDB has it, and the text of a Python value.

DuckDB reads JSON as RFC 8259 has it, at any depth, and beyond it takes ``NaN``, ``Infinity`` and ``Inf`` for numbers,
in any case and with a sign, and a comma behind the last element of an array or object.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

import msgspec

_decode: Final = msgspec.json.Decoder(msgspec.Raw).decode  # noqa: TID251 - a decoder without fields is made at once
_TOKEN: Final = re.compile(
    r"""
    (?P<text> "(?: [^"\\\x00-\x1f] | \\["\\/bfnrt]
             | \\u(?: (?![dD][89abAB])(?![dD][c-fC-F]) [0-9a-fA-F]{4}
                    | [dD][89abAB][0-9a-fA-F]{2} \\u[dD][c-fC-F][0-9a-fA-F]{2} ) )*+" )
    | (?P<number> -?(?: (?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)? | (?i:nan|inf(?:inity)?) ) )
    | (?P<word> true|false|null )
    | (?P<mark> [][{}:,] )
    """,
    re.VERBOSE,
)
_SPACE: Final = re.compile(r"[ \t\n\r]*+")
_SHOWN_MAX: Final = 20


def check_json(text: str) -> None:
    """Check that a text is JSON.

    Raises:
        ValueError: It is not; the message says where. Cost: some 0.2 us and a nanosecond a character for a text that is
            strictly JSON, 1 us a token for others.
    """
    try:
        _decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        _check_tokens(text)


def is_json(text: str) -> bool:
    """Whether :func:`check_json` takes a text."""
    try:
        check_json(text)
    except ValueError:
        return False
    return True


def _check_tokens(text: str) -> None:
    """As :func:`check_json`, token by token: without recursion, and with what DuckDB takes beyond the standard."""
    at = _SPACE.match(text).end()  # type: ignore[union-attr]
    closing: list[str] = []
    # What may come next: a value, a key, a colon, or a comma; and whether the bracket may close as well.
    wanted, may_close = "a value", False
    while wanted != "end":
        token = _TOKEN.match(text, at)
        kind = "" if token is None else token.lastgroup or ""
        said = "" if token is None else token[0]
        if may_close and closing and said == closing[-1]:
            closing.pop()
            wanted, may_close = "a comma", True
        elif wanted == "a value" and said in ("[", "{"):
            closing.append("]" if said == "[" else "}")
            wanted, may_close = ("a value" if said == "[" else "a key"), True
        elif wanted == "a value" and kind in ("text", "number", "word"):
            wanted, may_close = "a comma", True
        elif wanted == "a key" and kind == "text":
            wanted, may_close = "a colon", False
        elif wanted == "a colon" and said == ":":
            wanted = "a value"
        elif wanted == "a comma" and said == ",":
            wanted, may_close = ("a value" if closing[-1] == "]" else "a key"), True
        else:
            raise _unexpected(text, at, wanted, closing[-1] if may_close and closing else "")
        assert token is not None
        at = _SPACE.match(text, token.end()).end()  # type: ignore[union-attr]
        if wanted == "a comma" and not closing:
            wanted = "end"
    if at < len(text):
        raise _unexpected(text, at, "the end", "")


def _unexpected(text: str, at: int, wanted: str, closing: str) -> ValueError:
    found = repr(text[at : at + _SHOWN_MAX]) if at < len(text) else "nothing"
    expected = f"{wanted} or {closing!r}" if closing else wanted
    return ValueError(f"it is no JSON: at character {at + 1} there is {found}, where {expected} is expected")


def json_of(value: Any) -> str:
    """The text of a Python value: of a dict, list, tuple, str, int, float, bool or None, at any depth.

    Raises:
        ValueError: It has a NaN or an infinity, which JSON does not have, or is inside of itself.
        TypeError: It has a value of another class, or a key that is no str.
    """
    _check_parts(value)
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_DEPTH_MAX: Final = 100


def _check_parts(value: Any) -> None:
    pending = [(value, 0)]
    while pending:
        part, depth = pending.pop()
        if depth > _DEPTH_MAX:
            raise ValueError(f"it is nested deeper than {_DEPTH_MAX} levels, or inside of itself")
        if isinstance(part, dict):
            strange = next((key for key in part if type(key) is not str), None)
            if strange is not None:
                raise TypeError(f"a key of it is {strange!r} ({type(strange).__name__}), and keys of JSON are str")
            pending += [(item, depth + 1) for item in part.values()]
        elif isinstance(part, list | tuple):
            pending += [(item, depth + 1) for item in part]
        elif type(part) not in _SCALARS:
            raise TypeError(f"it has a {type(part).__name__}, which JSON does not have: make a str or float of it")
        elif type(part) is float and not math.isfinite(part):
            raise ValueError(f"it has {part}, which is no number of JSON: give None or a str")
