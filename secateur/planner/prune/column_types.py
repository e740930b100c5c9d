"""The types of a bound plan as types of columns, and the casts that keep every value apart and in order."""

from __future__ import annotations

from typing import Final

from secateur.partitioning.types.column_type import NESTED, TEXTUAL, UNIT_TIMESTAMPS, SqlType, TypeKind
from secateur.planner.tree.types import DecimalInfo, LogicalType, StringInfo

_WITH_MORE: Final = NESTED | UNIT_TIMESTAMPS | TEXTUAL | {TypeKind.DECIMAL}
_PLAIN: Final = {kind.value: SqlType(kind) for kind in TypeKind if kind not in _WITH_MORE}
INSTANTS: Final = {
    TypeKind.DATE: (TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ),
    TypeKind.TIMESTAMP: (TypeKind.TIMESTAMPTZ,),
}
"""The types that hold the instants of another. Every session is in UTC."""


def sql_type(type_: LogicalType) -> SqlType | None:
    """The type of columns that a type is.

    None for a nested one, a timestamp of another unit than microseconds, one with another name, such as JSON, and a
    text with a collation: they compare in ways of their own.
    """
    if type_.type_info is None:
        return _PLAIN.get(type_.id)
    match type_:
        case LogicalType("DECIMAL", DecimalInfo(alias="", width=width, scale=scale)):
            return SqlType(TypeKind.DECIMAL, width, scale)
        case LogicalType("VARCHAR", StringInfo(alias="", collation="")):
            return _PLAIN["VARCHAR"]
        case _:
            return None


def is_exact(source: SqlType, target: SqlType) -> bool:
    """Whether a cast gives each value an equal one, so that two values compare alike before and after it."""
    if source == target:
        return True
    if source.is_integer and target.is_integer:
        low, high = source.integer_range
        smallest, largest = target.integer_range
        return smallest <= low and high <= largest
    if target.kind is TypeKind.DECIMAL:
        digits = target.precision - target.scale
        if source.is_integer:
            return bool(max(map(abs, source.integer_range)) < 10**digits)
        return (
            source.kind is TypeKind.DECIMAL
            and source.scale <= target.scale
            and source.precision - source.scale <= digits
        )
    if source.kind is TypeKind.BOOLEAN:
        return target.is_integer
    return target.kind in INSTANTS.get(source.kind, ())
