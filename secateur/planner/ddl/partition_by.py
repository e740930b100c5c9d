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

from dataclasses import dataclass
from typing import Final

from secateur.partitioning.schemes.components import ROW_ID, HashComponent
from secateur.partitioning.schemes.garbage_collection import no_garbage_collection
from secateur.partitioning.schemes.interval import IntervalPartitioning
from secateur.partitioning.schemes.scheme_rules import RangeSpec, catch_all, single_value, split_at
from secateur.planner.ddl.every import read_every
from secateur.planner.text.literals import at_literal, read_tuple
from secateur.planner.text.token_cursor import TokenCursor, is_name
from secateur.planner.text.tokens import TokenKind

_DIRECTION: Final = "bounds are written lower <= VALUES < upper"


@dataclass(frozen=True, slots=True)
class PartitionBy:
    """The clause as written: nothing is checked against the table yet."""

    hashes: tuple[HashComponent, ...] = ()
    range_columns: tuple[str, ...] = ()
    ranges: tuple[RangeSpec, ...] = ()
    every: IntervalPartitioning | None = None


def read_partition_by(cursor: TokenCursor) -> PartitionBy:
    """Read the text after ``PARTITION BY``.

    Raises:
        SqlSyntaxError: At the first invalid token.
    """
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
        cursor.expect("AT", "(")
        splits = cursor.listed(lambda cursor: read_tuple(cursor, columns))
        cursor.expect(")")
        return split_at(splits)
    if not cursor.accept("("):
        raise cursor.expected("SPLIT AT (...), EVERY ... or (PARTITION ..., ...)")
    ranges = cursor.listed(lambda cursor: read_range(cursor, columns))
    cursor.expect(")")
    return tuple(ranges)


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
