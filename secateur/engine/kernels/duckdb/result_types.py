"""The delivery of result columns: the type that a kernel delivers for each SQL type, and its Arrow form.

Columns of tables are always a :class:`~secateur.partitioning.types.column_type.SqlType`. Results may be of any type of
the dialect, so this module covers all of them:

==========================================  ===================================  ==================================
SQL type                                    delivered as                         Arrow form
==========================================  ===================================  ==================================
every ``SqlType``                           itself; INTERVAL up to 292 years     ``SqlType.arrow``
STRUCT, MAP, ``T[n]``, ``T[]`` of anything  itself, its parts as delivered       struct, map, fixed_size_list, list
TUPLE                                       itself, its parts as delivered       struct of element1, element2, ...
TIMESTAMP_S, _MS, _NS, TIME_NS              itself                               timestamp or time64 in that unit
``"NULL"`` (an untyped NULL)                INTEGER, as CREATE TABLE AS has it   int32
UHUGEINT                                    HUGEINT, a DataError past its range  decimal128(38, 0)
ENUM, BIT, UNION, JSON, TIMETZ, all others  VARCHAR, as the dialect casts it     string
==========================================  ===================================  ==================================
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import pyarrow as pa

from secateur.errors import NotSupportedError
from secateur.partitioning.types.column_type import SqlType, TypeKind, parse_type
from secateur.partitioning.types.held_values import guarded_interval_sql, list_element_sql, long_intervals_sql

__all__ = ["arrow_type", "delivered_type", "delivery_sql", "is_restored", "relation_casts", "sql_type"]

_FINER: Final[dict[str, pa.DataType]] = {
    "TIMESTAMP_S": pa.timestamp("s"),
    "TIMESTAMP_MS": pa.timestamp("ms"),
    "TIMESTAMP_NS": pa.timestamp("ns"),
    "TIME_NS": pa.time64("ns"),
}
_RESTORED: Final = frozenset({"BIT", "JSON", "BIGNUM", "TIME WITH TIME ZONE", "UHUGEINT", '"NULL"'})
"""Types that are delivered as others, and that a cast makes of those again without loss, or with an error.

So is ENUM.
"""
_SUFFIX: Final = re.compile(r"(.*)\[(\d*)\]", re.DOTALL)
_TYPES_CACHED_MAX: Final = 4096


@lru_cache(_TYPES_CACHED_MAX)
def delivered_type(text: str) -> str:
    """The SQL type as which a result column of type ``text`` is delivered; ``text`` itself wherever Arrow can carry it.

    A kernel casts the columns for which this is another type. Idempotent.
    """
    if sql_type(text) is not None or text in _FINER:
        return text
    if array := _SUFFIX.fullmatch(text):
        return f"{delivered_type(array[1])}[{array[2]}]"
    if fields := _arguments(text, "STRUCT"):
        return f"STRUCT({', '.join(f'{name} {delivered_type(kind)}' for name, kind in map(_field, fields))})"
    if parts := _arguments(text, "TUPLE"):
        return f"TUPLE({', '.join(map(delivered_type, parts))})"
    if parts := _arguments(text, "MAP"):
        return f"MAP({', '.join(map(delivered_type, parts))})"
    return {'"NULL"': TypeKind.INTEGER.value, "UHUGEINT": TypeKind.HUGEINT.value}.get(text, TypeKind.VARCHAR.value)


@lru_cache(_TYPES_CACHED_MAX)
def is_restored(text: str) -> bool:
    """Whether a value of type ``text`` is unchanged after it was delivered and cast back, as between two stages.

    The text of a UNION does not identify its member, and that of a VARIANT not its type.
    """
    if sql_type(text) is not None or text in _FINER or text in _RESTORED:
        return True
    if array := _SUFFIX.fullmatch(text):
        return is_restored(array[1])
    if fields := _arguments(text, "STRUCT"):
        return all(is_restored(kind) for _, kind in map(_field, fields))
    if parts := [*_arguments(text, "TUPLE"), *_arguments(text, "MAP")]:
        return all(map(is_restored, parts))
    return text.startswith("ENUM(")


@lru_cache(_TYPES_CACHED_MAX)
def delivery_sql(name: str, text: str) -> str:
    """Return the expression that delivers a result column of type ``text``.

    It is ``name`` itself, a cast, or an error in place of intervals that Arrow cannot carry.
    """
    wanted = delivered_type(text)
    value = name if wanted == text else f"CAST({name} AS {wanted})"
    is_long = _long_intervals_sql(name, text)
    return value if is_long is None else guarded_interval_sql(value, is_long)


def _long_intervals_sql(value: str, text: str, depth: int = 0) -> str | None:
    """Return the condition that a value of type ``text`` contains an INTERVAL that is too long; None if it cannot."""
    if TypeKind.INTERVAL.value not in text:
        return None
    known = sql_type(text)
    if known is not None:
        return long_intervals_sql(value, known, depth)

    def in_list(values: str, element: str) -> str | None:
        inner = _long_intervals_sql(f"x{depth}", element, depth + 1)
        return None if inner is None else list_element_sql(values, f"x{depth}", inner)

    if array := _SUFFIX.fullmatch(text):
        return in_list(value, array[1])
    conditions: list[str | None] = []
    if fields := _arguments(text, "STRUCT"):
        named = [(_unquoted(name).replace("'", "''"), kind) for name, kind in map(_field, fields)]
        conditions = [_long_intervals_sql(f"struct_extract({value}, '{name}')", kind, depth) for name, kind in named]
    elif parts := _arguments(text, "TUPLE"):
        conditions = [
            _long_intervals_sql(f"struct_extract({value}, {number})", kind, depth)
            for number, kind in enumerate(parts, 1)
        ]
    elif parts := _arguments(text, "MAP"):
        conditions = [in_list(f"map_keys({value})", parts[0]), in_list(f"map_values({value})", parts[1])]
    return " OR ".join(condition for condition in conditions if condition is not None) or None


@lru_cache(_TYPES_CACHED_MAX)
def arrow_type(text: str) -> pa.DataType:
    """The Arrow type of a delivered result column whose SQL type is ``text``."""
    known = sql_type(text)
    if known is not None:
        return known.arrow
    if text in _FINER:
        return _FINER[text]
    if array := _SUFFIX.fullmatch(text):
        element = arrow_type(array[1])
        return pa.list_(element, int(array[2])) if array[2] else pa.list_(element)
    if fields := _arguments(text, "STRUCT"):
        return pa.struct([pa.field(_unquoted(name), arrow_type(kind)) for name, kind in map(_field, fields)])
    if parts := _arguments(text, "TUPLE"):
        return pa.struct([pa.field(f"element{number}", arrow_type(kind)) for number, kind in enumerate(parts, 1)])
    if parts := _arguments(text, "MAP"):
        return pa.map_(arrow_type(parts[0]), arrow_type(parts[1]))
    return arrow_type(delivered_type(text))


@lru_cache(_TYPES_CACHED_MAX)
def sql_type(text: str) -> SqlType | None:
    """The column type of that name, or None when ``text`` is a type that only results can have."""
    try:
        return parse_type(text)
    except NotSupportedError:
        return None


def relation_casts(schema: Mapping[str, SqlType | str]) -> tuple[tuple[str, str], ...]:
    """Return the columns whose SQL type a cast has to restore when DuckDB reads them from Arrow, with that type.

    HUGEINT is such a type: in memory it is ``decimal128(38, 0)``, which DuckDB reads as DECIMAL(38,0). TUPLE is one,
    which it reads as STRUCT. So is a type that is delivered as another, such as an ENUM between two stages.
    """
    texts = ((name, str(kind)) for name, kind in schema.items())
    return tuple((name, text) for name, text in texts if not _reads_naturally(text))


def _reads_naturally(text: str) -> bool:
    known = sql_type(text)
    if known is None:
        return delivered_type(text) == text and TypeKind.HUGEINT.value not in text and "TUPLE(" not in text
    while known.element is not None:
        known = known.element
    return known.kind is not TypeKind.HUGEINT


def _arguments(text: str, constructor: str) -> list[str]:
    """Split ``STRUCT(a T, b U)`` into its arguments; empty when ``text`` is built otherwise."""
    if not (text.startswith(f"{constructor}(") and text.endswith(")")):
        return []
    parts, depth, quote, start = [], 0, "", len(constructor) + 1
    for index in range(start, len(text) - 1):
        char = text[index]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    parts.append(text[start:-1].strip())
    return parts


def _field(text: str) -> tuple[str, str]:
    """Split ``name T`` or ``"quoted name" T`` of a STRUCT, the name as written."""
    if text.startswith('"'):
        end = re.match(r'"(?:[^"]|"")*"', text)
        assert end is not None
        return end[0], text[end.end() :].strip()
    name, _, kind = text.partition(" ")
    return name, kind.strip()


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name
