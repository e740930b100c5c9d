"""Reads CREATE and ALTER RESOURCE GROUP.

Source: the names of the limits are those of StarRocks and of PostgreSQL's ``statement_timeout``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from secateur.errors import ProgrammingError
from secateur.planner.set_option import read_milliseconds
from secateur.planner.statement import AlterResourceGroup, CreateResourceGroup
from secateur.planner.text.token_cursor import TokenCursor
from secateur.planner.text.tokens import Token, TokenKind
from secateur.protocol.access import ResourceGroup

_SIZE: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) *(b|kb|mb|gb|tb|kib|mib|gib|tib)?", re.IGNORECASE)
_UNITS: Final = {
    "b": 1,
    **{unit: 1000**power for power, unit in enumerate(("kb", "mb", "gb", "tb"), 1)},
    **{unit: 1 << 10 * power for power, unit in enumerate(("kib", "mib", "gib", "tib"), 1)},
}
_WEIGHT_MAX: Final = 1000.0
_RATE_MAX: Final = 1e9
_COUNT_MAX: Final = 1 << 53


def read_create_resource_group(cursor: TokenCursor) -> CreateResourceGroup:
    """Read a CREATE RESOURCE GROUP statement.

    Raises:
        ProgrammingError: A limit has no such value.
    """
    cursor.expect("CREATE", "RESOURCE", "GROUP")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    group = ResourceGroup(cursor.name("the name of a resource group").casefold())
    limits, roles = _limits(cursor), _roles(cursor)
    cursor.expect_end()
    return CreateResourceGroup(replace(group, **limits, roles=roles or ()), if_not_exists)


def read_alter_resource_group(cursor: TokenCursor) -> AlterResourceGroup:
    """Read an ALTER RESOURCE GROUP statement; what it does not name stays, and DEFAULT takes a limit away.

    Raises:
        ProgrammingError: A limit has no such value.
    """
    cursor.expect("ALTER", "RESOURCE", "GROUP")
    name = cursor.name("the name of a resource group").casefold()
    limits, roles = _limits(cursor), _roles(cursor)
    cursor.expect_end()
    if not limits and roles is None:
        raise cursor.expected("WITH (...) or FOR")
    return AlterResourceGroup(name, limits, roles)


def _roles(cursor: TokenCursor) -> tuple[str, ...] | None:
    """The roles behind FOR: nothing for PUBLIC; None where there is no FOR."""
    if not cursor.accept("FOR"):
        return None
    roles = tuple(cursor.listed(lambda cursor: cursor.name("the name of a role").casefold()))
    return () if "public" in roles else roles


def _limits(cursor: TokenCursor) -> dict[str, Any]:
    if not cursor.accept("WITH"):
        return {}
    return dict(cursor.in_parentheses(_limit))


def _limit(cursor: TokenCursor) -> tuple[str, Any]:
    offset = cursor.offset
    word = cursor.name("a limit").casefold()
    if word not in _READERS:
        message = f"a resource group has no {word!r}: there is {', '.join(_READERS)}"
        raise cursor.error(ProgrammingError, message, offset, len(word))
    field, read = _READERS[word]
    cursor.expect("=")
    if cursor.accept("DEFAULT"):
        return field, getattr(ResourceGroup(""), field)
    value_offset = cursor.offset
    return field, read(cursor, cursor.take(), value_offset)


def _bytes(cursor: TokenCursor, token: Token, offset: int) -> int:
    found = _SIZE.fullmatch(token.text.strip())
    size = 0 if found is None else round(float(found[1]) * _UNITS[(found[2] or "b").lower()])
    if not 1 <= size <= _COUNT_MAX:
        message = "max_memory is a number of bytes, or a size such as '1GB' or '512MiB'"
        raise cursor.error(ProgrammingError, message, offset, token.end - token.start + 1)
    return size


def _number(name: str, largest: float, *, is_whole: bool) -> Callable[[TokenCursor, Token, int], float]:
    def read(cursor: TokenCursor, token: Token, offset: int) -> float:
        try:
            value = float(token.text) if token.kind is TokenKind.NUMBER else math.nan
        except ValueError:
            value = math.nan
        if not 0 < value <= largest or (is_whole and value != int(value)):
            kind = "a whole number from 1 to" if is_whole else "a number above 0 and up to"
            message = f"{name} is {kind} {largest:,.0f}"
            raise cursor.error(ProgrammingError, message, offset, token.end - token.start + 1)
        return int(value) if is_whole else value

    return read


_READERS: Final[Mapping[str, tuple[str, Callable[[TokenCursor, Token, int], Any]]]] = {
    "weight": ("weight", _number("weight", _WEIGHT_MAX, is_whole=False)),
    "max_running": ("max_running", _number("max_running", _COUNT_MAX, is_whole=True)),
    "statement_timeout": ("statement_timeout_ms", lambda *given: read_milliseconds(*given) or None),
    "max_memory": ("max_memory", _bytes),
    "max_rows": ("max_rows", _number("max_rows", _COUNT_MAX, is_whole=True)),
    "rate": ("rate", _number("rate", _RATE_MAX, is_whole=False)),
}
"""By the word of a limit: the field of the group, and what reads its value."""
