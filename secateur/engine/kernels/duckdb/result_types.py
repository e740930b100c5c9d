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
BIT, UNION, TIMETZ, all others              VARCHAR, as the dialect casts it     string
==========================================  ===================================  ==================================
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import pyarrow as pa

from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.partitioning.types.held_values import guarded_interval_sql, long_intervals_sql
from secateur.partitioning.types.result_type import (
    FINER_TYPES,
    Constructor,
    ResultType,
    column_type_of,
    parse_result_type,
)

_DELIVERED: Final = {'"NULL"': TypeKind.INTEGER.value, "UHUGEINT": TypeKind.HUGEINT.value}
_RESTORED: Final = frozenset({"BIT", "BIGNUM", "TIME WITH TIME ZONE", "UHUGEINT", '"NULL"'})
"""Types that are delivered as others, and that a cast makes of those again without loss, or with an error."""
_CAST_WHEN_READ: Final = (TypeKind.HUGEINT.value, TypeKind.JSON.value, TypeKind.ENUM.value)
"""Types of columns that lie in memory as others; no other type begins so."""
_TYPES_CACHED_MAX: Final = 4096


def _is_carried(text: str) -> bool:
    """Whether Arrow carries values of that type as they are."""
    return column_type_of(text) is not None or text in FINER_TYPES


@lru_cache(_TYPES_CACHED_MAX)
def delivered_type(text: str) -> str:
    """The SQL type as which a result column of type ``text`` is delivered; ``text`` itself wherever Arrow can carry it.

    A kernel casts the columns for which this is another type. Idempotent.
    """
    if _is_carried(text):
        return text
    kind = parse_result_type(text)
    if kind.constructor is Constructor.SCALAR:
        return _DELIVERED.get(text, TypeKind.VARCHAR.value)
    return kind.text_with(lambda part: delivered_type(part.text))


@lru_cache(_TYPES_CACHED_MAX)
def is_restored(text: str) -> bool:
    """Whether a value of type ``text`` is unchanged after it was delivered and cast back, as between two stages.

    The text of a UNION does not identify its member, and that of a VARIANT not its type.
    """
    kind = parse_result_type(text)
    if kind.constructor is Constructor.SCALAR:
        return _is_carried(text) or text in _RESTORED
    return all(is_restored(part.text) for part in kind.parts)


@lru_cache(_TYPES_CACHED_MAX)
def delivery_sql(name: str, text: str) -> str:
    """Return the expression that delivers a result column of type ``text``.

    It is ``name`` itself, a cast, or an error in place of intervals that Arrow cannot carry.
    """
    wanted = delivered_type(text)
    value = name if wanted == text else f"CAST({name} AS {wanted})"
    is_long = long_intervals_sql(name, parse_result_type(text))
    return value if is_long is None else guarded_interval_sql(value, is_long)


@lru_cache(_TYPES_CACHED_MAX)
def arrow_type(text: str) -> pa.DataType:
    """The Arrow type of a delivered result column whose SQL type is ``text``."""
    known = column_type_of(text)
    if known is not None:
        return known.arrow
    if text in FINER_TYPES:
        return FINER_TYPES[text]
    kind = parse_result_type(text)
    parts = [arrow_type(part.text) for part in kind.parts]
    match kind.constructor:
        case Constructor.SCALAR:
            return arrow_type(delivered_type(text))
        case Constructor.LIST:
            return pa.list_(parts[0]) if kind.length is None else pa.list_(parts[0], kind.length)
        case Constructor.STRUCT | Constructor.TUPLE:
            return pa.struct([pa.field(name, part) for name, part in zip(kind.unquoted_names, parts, strict=True)])
        case Constructor.MAP:
            return pa.map_(*parts)


def relation_casts(schema: Mapping[str, SqlType | str]) -> tuple[tuple[str, str], ...]:
    """Return the columns whose SQL type a cast has to restore when DuckDB reads them from Arrow, with that type.

    HUGEINT is such a type: in memory it is ``decimal128(38, 0)``, which DuckDB reads as DECIMAL(38,0). JSON is one, a
    text in memory as ENUM is, and TUPLE, which DuckDB reads as STRUCT. So is a type that is delivered as another, such
    as a BIT between two stages.
    """
    texts = ((name, str(kind)) for name, kind in schema.items())
    return tuple((name, text) for name, text in texts if not _reads_naturally(parse_result_type(text)))


def _reads_naturally(kind: ResultType) -> bool:
    """Whether DuckDB reads the delivered Arrow form of a type as that type."""
    if kind.constructor is Constructor.SCALAR:
        return _is_carried(kind.text) and not kind.text.startswith(_CAST_WHEN_READ)
    return kind.constructor is not Constructor.TUPLE and all(map(_reads_naturally, kind.parts))
