"""DuckDB's logical types, as its bound plans say them, and the types of columns that they are."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from secateur.partitioning.types.column_type import NESTED, TEXTUAL, UNIT_TIMESTAMPS, SqlType, TypeKind
from secateur.partitioning.types.sql_text import quoted, text_literal

_WITH_MORE: Final = NESTED | UNIT_TIMESTAMPS | TEXTUAL | {TypeKind.DECIMAL}
_PLAIN: Final = {kind.value: SqlType(kind) for kind in TypeKind if kind not in _WITH_MORE}
INEXACT: Final = frozenset({"FLOAT", "DOUBLE", "INTERVAL", "TIME WITH TIME ZONE"})
"""Types that have values which are equal and differ."""
INSTANTS: Final = {
    TypeKind.DATE: (TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ),
    TypeKind.TIMESTAMP: (TypeKind.TIMESTAMPTZ,),
}
"""The types that hold the instants of another. Every session is in UTC."""


class Node(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A part of DuckDB's bound plan.

    A field that a new release of DuckDB adds makes the plan unreadable, so that nothing is left out in silence: such a
    statement is gathered, and not pruned.
    """


class ChildType(Node, frozen=True):
    """A field of a struct, or a member of a union."""

    first: str
    second: LogicalType


class ExtraTypeInfo(Node, frozen=True, tag_field="type"):
    """What a type has beside its id."""

    alias: str = ""
    extension_info: Any = None


class DecimalInfo(ExtraTypeInfo, frozen=True, kw_only=True, tag="DECIMAL_TYPE_INFO"):
    """Of DECIMAL."""

    width: int
    scale: int = 0


class ListInfo(ExtraTypeInfo, frozen=True, kw_only=True, tag="LIST_TYPE_INFO"):
    """Of LIST, and of MAP, which is a list of structs of key and value."""

    child_type: LogicalType


class ArrayInfo(ExtraTypeInfo, frozen=True, kw_only=True, tag="ARRAY_TYPE_INFO"):
    """Of ARRAY."""

    child_type: LogicalType
    size: int


class StructInfo(ExtraTypeInfo, frozen=True, kw_only=True, tag="STRUCT_TYPE_INFO"):
    """Of STRUCT, TUPLE and UNION; a union has its tag first."""

    child_types: tuple[ChildType, ...] = ()


class EnumInfo(ExtraTypeInfo, frozen=True, kw_only=True, tag="ENUM_TYPE_INFO"):
    """Of ENUM."""

    values_count: int
    values: tuple[str, ...]


class StringInfo(ExtraTypeInfo, frozen=True, kw_only=True, tag="STRING_TYPE_INFO"):
    """Of VARCHAR with a collation."""

    collation: str = ""


class GenericInfo(ExtraTypeInfo, frozen=True, tag="GENERIC_TYPE_INFO"):
    """Of a type with another name, like JSON."""


TypeInfo = DecimalInfo | ListInfo | ArrayInfo | StructInfo | EnumInfo | StringInfo | GenericInfo


class LogicalType(Node, frozen=True):
    """A type.

    Attributes:
        id: Its name, as in ``INTEGER`` and ``LIST``.
        type_info: Its parameters.
    """

    id: str
    type_info: TypeInfo | None = None

    @property
    def sql(self) -> str:
        """The type as DuckDB reads and shows it."""
        info = self.type_info
        if info is not None and info.alias:
            return info.alias
        match info:
            case DecimalInfo():
                return f"DECIMAL({info.width},{info.scale})"
            case ListInfo(child_type=LogicalType(type_info=StructInfo(child_types=(key, value)))) if self.id == "MAP":
                return f"MAP({key.second.sql}, {value.second.sql})"
            case ListInfo():
                return f"{info.child_type.sql}[]"
            case ArrayInfo():
                return f"{info.child_type.sql}[{info.size}]"
            case StructInfo() if self.id == "VARIANT":
                return "VARIANT"
            case StructInfo() if self.id == "TUPLE":
                return f"TUPLE({', '.join(field.second.sql for field in info.child_types)})"
            case StructInfo():
                named = info.child_types[1:] if self.id == "UNION" else info.child_types
                fields = ", ".join(f"{quoted(field.first)} {field.second.sql}" for field in named)
                return f"{self.id}({fields})"
            case EnumInfo():
                return f"ENUM({', '.join(text_literal(value) for value in info.values)})"
            case _:
                return '"NULL"' if self.id == "NULL" else self.id

    @property
    def is_integer(self) -> bool:
        """Whether it is one of the types of integers."""
        return self.id in _INTEGERS

    @property
    def collation(self) -> str:
        """The collation of a VARCHAR, empty without one."""
        return self.type_info.collation if isinstance(self.type_info, StringInfo) else ""


_INTEGERS = frozenset(
    {
        *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
        *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
    }
)


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
