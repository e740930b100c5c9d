"""Column types: those that SQLAlchemy lacks, their text in DDL, and the way back from the text."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any, Final

from sqlalchemy import types as sqltypes
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.sqlite.json import JSONIndexType, JSONPathType
from sqlalchemy.sql import compiler
from sqlalchemy.types import TypeEngine

from secateur.partitioning.types.column_type import UNIT_TIMESTAMPS, SqlType, TypeKind
from secateur.partitioning.types.result_type import Constructor, ResultType, column_type_of, parse_result_type

_FLOAT_BITS: Final = 24
"""The largest precision that a FLOAT has; a FLOAT of SQLAlchemy without one is a DOUBLE."""


class _OwnInteger(sqltypes.Integer):
    """An integer of a size that SQLAlchemy has no name for; the class is called as the type."""

    __visit_name__ = "own_integer"


class TINYINT(_OwnInteger):
    """An integer of 8 bits."""


class UTINYINT(_OwnInteger):
    """An integer of 8 bits without sign."""


class USMALLINT(_OwnInteger):
    """An integer of 16 bits without sign."""


class UINTEGER(_OwnInteger):
    """An integer of 32 bits without sign."""


class UBIGINT(_OwnInteger):
    """An integer of 64 bits without sign."""


class HUGEINT(_OwnInteger):
    """An integer of at most 38 digits."""


class NestedType(sqltypes.UserDefinedType[Any]):
    """A STRUCT or MAP, whose values are dicts; lists of known types are :class:`sqlalchemy.ARRAY`.

    Args:
        text: The type in SQL, such as ``STRUCT(site VARCHAR, rack INTEGER)``.
    """

    cache_ok = True

    def __init__(self, text: str) -> None:
        self.text = text

    def get_col_spec(self, **_: Any) -> str:
        return self.text


class UnitTimestamp(sqltypes.TIMESTAMP):
    """A TIMESTAMP_S, TIMESTAMP_MS or TIMESTAMP_NS, whose values are of the class datetime.

    Args:
        unit: ``"S"``, ``"MS"`` or ``"NS"``.
    """

    def __init__(self, unit: str) -> None:
        super().__init__()
        self.unit = unit


class FixedArray(TypeEngine[Any]):
    """A list of a fixed length, such as ``FLOAT[384]``, whose values are lists.

    Args:
        item_type: The type of the elements, or its class.
        length: The number of elements.
    """

    __visit_name__ = "fixed_array"

    def __init__(self, item_type: Any, length: int) -> None:
        self.item_type: TypeEngine[Any] = sqltypes.to_instance(item_type)
        self.length = length


class Interval(postgresql.INTERVAL):
    """An INTERVAL, whose values are of the class timedelta; as a literal, it is written with microseconds."""

    cache_ok = True

    @classmethod
    def adapt_emulated_to_native(cls, interval: sqltypes.Interval, **_: Any) -> Interval:  # type: ignore[override]
        return cls()

    def literal_processor(self, dialect: Any) -> Callable[[Any], str]:
        return lambda value: f"to_microseconds({value // value.resolution})"


class Numeric(sqltypes.Numeric[Any]):
    """A DECIMAL. DuckDB divides decimals as doubles, whose values become decimals by their shortest digits."""

    def result_processor(self, dialect: Any, coltype: Any) -> Callable[[Any], Any] | None:
        if not self.asdecimal:
            return super().result_processor(dialect, coltype)
        return lambda value: Decimal(repr(value)) if isinstance(value, float | int) else value


class Uuid(sqltypes.Uuid[Any]):
    """A UUID, as text where the type was made with ``as_uuid=False``."""

    def bind_processor(self, dialect: Any) -> Callable[[Any], Any] | None:
        return None

    def result_processor(self, dialect: Any, coltype: Any) -> Callable[[Any], Any] | None:
        return None if self.as_uuid else lambda value: None if value is None else str(value)


COLSPECS: Final[dict[type[TypeEngine[Any]], type[TypeEngine[Any]]]] = {
    sqltypes.Interval: Interval,
    sqltypes.JSON.JSONIndexType: JSONIndexType,  # paths as DuckDB has them: $."a"[0]
    sqltypes.JSON.JSONPathType: JSONPathType,
    sqltypes.Numeric: Numeric,
    sqltypes.Uuid: Uuid,
    postgresql.INTERVAL: Interval,
}


class SecateurTypeCompiler(compiler.GenericTypeCompiler):
    """Types of SQLAlchemy as types of DDL and of casts."""

    def visit_own_integer(self, type_: Any, **_: Any) -> str:
        return type(type_).__name__

    def visit_FLOAT(self, type_: Any, **_: Any) -> str:
        precision = type_.precision
        return "FLOAT" if precision is not None and precision <= _FLOAT_BITS else "DOUBLE"

    def visit_REAL(self, type_: Any, **_: Any) -> str:
        return "FLOAT"

    def visit_DOUBLE_PRECISION(self, type_: Any, **_: Any) -> str:
        return "DOUBLE"

    def visit_BINARY(self, type_: Any, **_: Any) -> str:
        return "BLOB"

    def visit_VARBINARY(self, type_: Any, **_: Any) -> str:
        return "BLOB"

    def visit_text(self, type_: Any, **_: Any) -> str:
        return "VARCHAR"

    def visit_unicode_text(self, type_: Any, **_: Any) -> str:
        return "VARCHAR"

    def visit_enum(self, type_: Any, **_: Any) -> str:
        is_enum = type_.native_enum and type_.enums
        return str(SqlType(TypeKind.ENUM, values=tuple(type_.enums))) if is_enum else "VARCHAR"

    def visit_JSON(self, type_: Any, **_: Any) -> str:
        return "JSON"

    def visit_uuid(self, type_: Any, **_: Any) -> str:
        return "UUID"

    def visit_DATETIME(self, type_: Any, **kw: Any) -> str:
        return self.visit_TIMESTAMP(type_, **kw)

    def visit_TIMESTAMP(self, type_: Any, **_: Any) -> str:
        if isinstance(type_, UnitTimestamp):
            return f"TIMESTAMP_{type_.unit}"
        return "TIMESTAMP WITH TIME ZONE" if type_.timezone else "TIMESTAMP"

    def visit_INTERVAL(self, type_: Any, **_: Any) -> str:
        return "INTERVAL"

    def visit_ARRAY(self, type_: Any, **kw: Any) -> str:
        return self.process(type_.item_type, **kw) + "[]" * (type_.dimensions or 1)

    def visit_fixed_array(self, type_: Any, **kw: Any) -> str:
        return f"{self.process(type_.item_type, **kw)}[{type_.length}]"


_SCALARS: Final[dict[TypeKind, Callable[[], TypeEngine[Any]]]] = {
    TypeKind.BOOLEAN: sqltypes.BOOLEAN,
    TypeKind.TINYINT: TINYINT,
    TypeKind.SMALLINT: sqltypes.SMALLINT,
    TypeKind.INTEGER: sqltypes.INTEGER,
    TypeKind.BIGINT: sqltypes.BIGINT,
    TypeKind.HUGEINT: HUGEINT,
    TypeKind.UTINYINT: UTINYINT,
    TypeKind.USMALLINT: USMALLINT,
    TypeKind.UINTEGER: UINTEGER,
    TypeKind.UBIGINT: UBIGINT,
    TypeKind.FLOAT: sqltypes.REAL,
    TypeKind.DOUBLE: sqltypes.DOUBLE,
    TypeKind.VARCHAR: sqltypes.VARCHAR,
    TypeKind.JSON: sqltypes.JSON,
    TypeKind.BLOB: sqltypes.BLOB,
    TypeKind.DATE: sqltypes.DATE,
    TypeKind.TIME: sqltypes.TIME,
    TypeKind.TIMESTAMP: sqltypes.TIMESTAMP,
    TypeKind.TIMESTAMPTZ: lambda: sqltypes.TIMESTAMP(timezone=True),
    **{kind: partial(UnitTimestamp, kind.value.removeprefix("TIMESTAMP_")) for kind in UNIT_TIMESTAMPS},
    TypeKind.INTERVAL: Interval,
    TypeKind.UUID: sqltypes.UUID,
}


def reflected_type(text: str) -> TypeEngine[Any]:
    """The type of SQLAlchemy for a column whose type is written like this.

    Types that no column of a table has, only a view's, are :class:`NestedType` with their text.
    """
    return _reflected(parse_result_type(text))


def _reflected(kind: ResultType) -> TypeEngine[Any]:
    if kind.constructor is Constructor.LIST:
        item = _reflected(kind.parts[0])
        if kind.length is not None:
            return FixedArray(item, kind.length)
        if isinstance(item, sqltypes.ARRAY):
            return sqltypes.ARRAY(item.item_type, dimensions=(item.dimensions or 1) + 1)
        return sqltypes.ARRAY(item, dimensions=1)
    column_type = column_type_of(kind.text)
    if column_type is not None and column_type.kind is TypeKind.DECIMAL:
        return sqltypes.DECIMAL(column_type.precision, column_type.scale)
    if column_type is not None and column_type.kind is TypeKind.ENUM:
        return sqltypes.Enum(*column_type.values)
    made = None if column_type is None else _SCALARS.get(column_type.kind)
    return NestedType(kind.text) if made is None else made()
