"""The PARTITION BY clause.

::

    PARTITION BY HASH (a, b) PARTITIONS 16 [SEED 7] [, HASH (c) PARTITIONS 3] [, RANGE (c) <ranges>]
    PARTITION BY RANDOM PARTITIONS 16 [, RANGE (c) <ranges>]
    <ranges>   := SPLIT AT (v, ...)  |  SPLIT AT ((v1, v2), ...)  |  (<range>, ...)
                | EVERY <width> [STARTING v] [(<range>, ...)]
    <width>    := n
                | INTERVAL n <unit>
    <unit>     := YEAR | QUARTER | MONTH | WEEK | DAY | HOUR | MINUTE | SECOND | MILLISECOND | MICROSECOND
    <range>    := PARTITION [name] [lower <=] VALUES [< upper] [<own hash>]
                | PARTITION [name] VALUE = v [<own hash>]
                | DEFAULT PARTITION [name] [<own hash>]
    <own hash> := HASH (c) PARTITIONS 8 [SEED s] [, HASH ...]  |  RANDOM PARTITIONS 8  |  NO HASH

RANDOM is for tables without a primary key: it spreads the rows, by their hidden ids.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from secateur.errors import SchemeError, SqlSyntaxError
from secateur.partitioning.schemes.components import (
    ROW_ID,
    HashComponent,
    IntervalPartitioning,
    IntervalUnit,
    no_garbage_collection,
)
from secateur.partitioning.schemes.scheme_rules import RangeSpec, catch_all, single_value, split_at
from secateur.partitioning.types.decimals import negated
from secateur.planner.text.token_cursor import TokenCursor, is_name
from secateur.planner.text.tokens import TokenKind

_DIRECTION: Final = "bounds are written lower <= VALUES < upper"
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
_TYPED: Final[dict[str, Callable[[str], Any]]] = {
    "DATE": date.fromisoformat,
    "TIMESTAMP": datetime.fromisoformat,
    "TIMESTAMPTZ": datetime.fromisoformat,
    "UUID": UUID,
}
_STRINGS: Final = (TokenKind.STRING, TokenKind.DOLLAR_STRING)


@dataclass(frozen=True, slots=True)
class PartitionBy:
    """The clause as written: nothing is checked against the table yet."""

    hashes: tuple[HashComponent, ...] = ()
    range_columns: tuple[str, ...] = ()
    ranges: tuple[RangeSpec, ...] = ()
    every: IntervalPartitioning | None = None


def read_partition_by(cursor: TokenCursor) -> PartitionBy:
    """Read the text after ``PARTITION BY``."""
    hashes: list[HashComponent] = []
    columns: tuple[str, ...] = ()
    ranges: tuple[RangeSpec, ...] = ()
    every: IntervalPartitioning | None = None
    while True:
        if cursor.at("HASH") or cursor.at("RANDOM"):
            hashes.append(read_hash(cursor))
        elif cursor.at("RANGE") and columns:
            raise cursor.expected("HASH (a table has at most one RANGE component)")
        elif cursor.accept("RANGE"):
            columns = cursor.names("a column")
            every = read_every(cursor) if cursor.at("EVERY") else None
            if every is None or cursor.at("("):
                ranges = _read_ranges(cursor, len(columns))
        else:
            raise cursor.expected("HASH (...), RANGE (...) or RANDOM PARTITIONS n")
        if not cursor.accept(","):
            return PartitionBy(tuple(hashes), columns, ranges, every)


def read_hash(cursor: TokenCursor) -> HashComponent:
    """``HASH (a, b) PARTITIONS 16 [SEED 7]`` or ``RANDOM PARTITIONS 16``."""
    columns: tuple[str, ...] = (ROW_ID,)
    if not cursor.accept("RANDOM"):
        cursor.expect("HASH")
        columns = cursor.names("a column")
    cursor.expect("PARTITIONS")
    partitions = cursor.natural("the number of partitions")
    return HashComponent(
        columns, partitions, cursor.integer("the seed, a whole number") if cursor.accept("SEED") else 0
    )


@no_garbage_collection()
def _read_ranges(cursor: TokenCursor, columns: int) -> tuple[RangeSpec, ...]:
    if cursor.accept("SPLIT"):
        cursor.expect("AT")
        return split_at(cursor.in_parentheses(lambda cursor: read_tuple(cursor, columns)))
    if not cursor.at("("):
        raise cursor.expected("SPLIT AT (...), EVERY ... or (PARTITION ..., ...)")
    return tuple(cursor.in_parentheses(lambda cursor: read_range(cursor, columns)))


def read_range(cursor: TokenCursor, columns: int) -> RangeSpec:
    """One ``<range>`` of the grammar."""
    if cursor.accept("DEFAULT"):
        cursor.expect("PARTITION")
        has_no_name = cursor.at("HASH", "(") or cursor.at("RANDOM", "PARTITIONS") or cursor.at("NO", "HASH")
        name = None if has_no_name else _read_name(cursor)
        return catch_all(name, _read_own_hashes(cursor))
    cursor.expect("PARTITION")
    name = _read_name(cursor)
    if cursor.accept("VALUE"):
        cursor.expect("=")
        value = read_tuple(cursor, columns)
        return single_value(value, name, _read_own_hashes(cursor))
    lower = upper = None
    if not cursor.at("VALUES"):
        lower = read_tuple(cursor, columns)
        if not cursor.accept("<="):
            raise cursor.expected(f"<= ({_DIRECTION})")
    cursor.expect("VALUES")
    if cursor.accept("<"):
        upper = read_tuple(cursor, columns)
    elif cursor.at("<="):
        raise cursor.expected(f"< ({_DIRECTION})")
    return RangeSpec(lower, upper, name, _read_own_hashes(cursor))


def _read_name(cursor: TokenCursor) -> str | None:
    token = cursor.peek()
    if token is None or not is_name(token) or cursor.at("VALUES") or cursor.at("VALUE", "="):
        return None
    if token.kind is not TokenKind.QUOTED and at_literal(cursor):
        return None
    return cursor.name("the name of the partition")


def _read_own_hashes(cursor: TokenCursor) -> tuple[HashComponent, ...] | None:
    if cursor.accept("NO"):
        cursor.expect("HASH")
        return ()
    if not (cursor.at("HASH") or cursor.at("RANDOM")):
        return None
    hashes = [read_hash(cursor)]
    while cursor.at(",", "HASH") or cursor.at(",", "RANDOM"):
        cursor.expect(",")
        hashes.append(read_hash(cursor))
    return tuple(hashes)


def read_every(cursor: TokenCursor) -> IntervalPartitioning:
    """Read the clause; the scheme checks whether it fits the column.

    It gives the width of the ranges that are made on demand, and their start::

        EVERY <width> [STARTING v]
        <width> := n  |  INTERVAL n <unit>  |  INTERVAL 'n <unit>'

    Raises:
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


def at_literal(cursor: TokenCursor) -> bool:
    """Whether the next tokens are a value."""
    token, behind = cursor.peek(), cursor.peek(1)
    if token is None:
        return False
    if token.kind in (TokenKind.NUMBER, TokenKind.HEX_STRING, *_STRINGS) or token.word in ("(", "-"):
        return True
    typed = token.text.upper() in _TYPED and behind is not None and behind.kind in _STRINGS
    return typed or any(cursor.at(word) for word in ("TRUE", "FALSE", "NULL"))


def read_tuple(cursor: TokenCursor, columns: int) -> tuple[Any, ...]:
    """One value per range column: ``v`` for one column, ``(v1, v2)`` for several; parentheses around one are allowed.

    Raises:
        SqlSyntaxError: No value, or another number of them than columns.
        SchemeError: A NULL, or a text that is invalid for its type.
    """
    if not cursor.accept("("):
        if columns > 1:
            raise cursor.expected(f"({', '.join(['value'] * columns)}), one value for each range column")
        return (read_literal(cursor),)
    values = [read_literal(cursor)]
    while len(values) < columns:
        if not cursor.accept(","):
            raise cursor.expected(f"{columns} values, one for each range column")
        values.append(read_literal(cursor))
    if not cursor.accept(")"):
        raise cursor.expected(f"')' behind {columns} value{'s' if columns > 1 else ''}, one for each range column")
    return tuple(values)


def read_literal(cursor: TokenCursor) -> Any:
    """One value as a Python object: int, Decimal, str, bool, bytes, date, datetime or UUID."""
    offset, token = cursor.offset, cursor.peek()
    if token is not None and token.kind is TokenKind.NUMBER:
        return _number(cursor)
    if cursor.accept("-"):
        return negated(_number(cursor))
    if cursor.accept("TRUE"):
        return True
    if cursor.accept("FALSE"):
        return False
    if cursor.accept("NULL"):
        raise cursor.error(SchemeError, "a range bound cannot be NULL: partitioning columns are NOT NULL", offset, 4)
    behind = cursor.peek(1)
    if token is None:
        raise cursor.expected("a value")
    if token.kind in _STRINGS:
        return cursor.take().text
    if token.kind is TokenKind.HEX_STRING:
        return bytes.fromhex(cursor.take().text)
    if token.text.upper() in _TYPED and behind is not None and behind.kind in _STRINGS:
        cursor.take()
        text = cursor.take().text
        try:
            return _TYPED[token.text.upper()](text)
        except ValueError:
            raise cursor.error(
                SchemeError,
                f"{text!r} is not a valid {token.text.upper()}",
                offset,
                behind.end - offset + 1,
            ) from None
    raise cursor.expected("a value (a number, a string, TRUE, FALSE, X'..', DATE '..', TIMESTAMP '..' or UUID '..')")


def _number(cursor: TokenCursor) -> int | Decimal:
    token = cursor.peek()
    if token is None or token.kind is not TokenKind.NUMBER:
        raise cursor.expected("a number")
    cursor.take()
    return int(token.text) if token.text.isdecimal() else Decimal(token.text)
