"""The EVERY clause of interval partitioning: the width of the ranges that are made on demand, and their start.

::

    EVERY <width> [STARTING v]
    <width> := n  |  INTERVAL n <unit>  |  INTERVAL 'n <unit>'
"""

from __future__ import annotations

from typing import Final

from secateur.errors import SqlSyntaxError
from secateur.partitioning.schemes.interval import IntervalPartitioning, IntervalUnit
from secateur.planner.text.literals import read_literal
from secateur.planner.text.token_cursor import TokenCursor
from secateur.planner.text.tokens import TokenKind

_UNITS: Final = {
    "YEAR": (IntervalUnit.MONTH, 12),
    "QUARTER": (IntervalUnit.MONTH, 3),
    "MONTH": (IntervalUnit.MONTH, 1),
    "WEEK": (IntervalUnit.DAY, 7),
    "DAY": (IntervalUnit.DAY, 1),
    "HOUR": (IntervalUnit.MICROSECOND, 3_600_000_000),
    "MINUTE": (IntervalUnit.MICROSECOND, 60_000_000),
    "SECOND": (IntervalUnit.MICROSECOND, 1_000_000),
    "MILLISECOND": (IntervalUnit.MICROSECOND, 1_000),
    "MICROSECOND": (IntervalUnit.MICROSECOND, 1),
}


def read_every(cursor: TokenCursor) -> IntervalPartitioning:
    """Read the clause; the scheme checks whether it fits the column.

    Raises:
        SqlSyntaxError: At the first invalid token.
        SchemeError: STARTING a NULL, or a text that is invalid for its type.
    """
    cursor.expect("EVERY")
    if cursor.accept("INTERVAL"):
        count, (unit, factor) = _read_interval(cursor)
    else:
        count, (unit, factor) = cursor.natural("a number, or INTERVAL 1 DAY"), (IntervalUnit.NUMBER, 1)
    return IntervalPartitioning(count * factor, unit, read_literal(cursor) if cursor.accept("STARTING") else None)


def _read_interval(cursor: TokenCursor) -> tuple[int, tuple[IntervalUnit, int]]:
    token = cursor.peek()
    if token is None or token.kind is not TokenKind.STRING:
        return cursor.natural("how many units"), _read_unit(cursor)
    cursor.take()
    count, _, word = token.text.strip().partition(" ")
    unit = _UNITS.get(_singular(word.strip())) if word else _read_unit(cursor)
    if unit is None or not count.isdecimal():
        raise cursor.error(
            SqlSyntaxError,
            "expected an interval of one unit, such as '1 day'",
            token.start,
            token.end - token.start + 1,
        )
    return int(count), unit


def _read_unit(cursor: TokenCursor) -> tuple[IntervalUnit, int]:
    token = cursor.peek()
    unit = None if token is None else _UNITS.get(_singular(token.text))
    if unit is None:
        raise cursor.expected(", ".join(_UNITS))
    cursor.take()
    return unit


def _singular(word: str) -> str:
    return word.upper().removesuffix("S")
