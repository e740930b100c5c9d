"""SET: the settings of a session."""

from __future__ import annotations

from typing import Final

from secateur.errors import ProgrammingError
from secateur.planner.positions import located
from secateur.planner.query import near_names
from secateur.planner.statement import SetOption
from secateur.planner.token_cursor import TokenCursor

__all__ = ["read_set"]

_OPTIONS: Final = {"pruning": ("on", "off", "verify")}


def read_set(cursor: TokenCursor) -> SetOption:
    """``SET pruning = on | off | verify``; the value may be quoted, ``TO`` may stand for ``=``.

    Raises:
        SqlSyntaxError: At the first token that cannot be.
        ProgrammingError: No such setting, or no such value of it.
    """
    cursor.expect("SET")
    offset = cursor.offset
    name = cursor.name("the name of a setting")
    values = _OPTIONS.get(name.lower())
    if values is None:
        raise located(ProgrammingError, f"there is no setting {name!r}; {near_names(name, list(_OPTIONS))}", cursor.sql, offset, len(name))
    if not cursor.accept("=") and not cursor.accept("TO"):
        raise cursor.expected("'='")
    if cursor.at_end:
        raise cursor.expected(" | ".join(values))
    offset = cursor.offset
    value = cursor.take().text.lower()
    if value not in values:
        raise located(ProgrammingError, f"{name.lower()} is {', '.join(values[:-1])} or {values[-1]}", cursor.sql, offset, len(value))
    cursor.expect_end()
    return SetOption(name.lower(), value)
