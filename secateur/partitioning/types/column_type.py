"""Column types: the SQL name, the Arrow form in memory, and whether a column may be a partitioning column.

One value, :class:`SqlType`, carries a type everywhere: in DDL, in the catalog, on the wire and in
result descriptions. The dialect and its names are DuckDB's.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import Final

import msgspec
import pyarrow as pa

from secateur.errors import NotSupportedError

__all__ = ["SqlType", "TypeKind", "parse_type", "type_of_arrow"]


class TypeKind(Enum):
    """The closed set of type constructors. The value is the SQL name that DuckDB prints."""

    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INTEGER = "INTEGER"
    BIGINT = "BIGINT"
    HUGEINT = "HUGEINT"
    UTINYINT = "UTINYINT"
    USMALLINT = "USMALLINT"
    UINTEGER = "UINTEGER"
    UBIGINT = "UBIGINT"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL"
    VARCHAR = "VARCHAR"
    BLOB = "BLOB"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMPTZ = "TIMESTAMP WITH TIME ZONE"
    INTERVAL = "INTERVAL"
    UUID = "UUID"
    LIST = "LIST"

    # Kinds are looked up in dictionaries many times a statement, and Enum's own hash is a Python function.
    __hash__ = object.__hash__


_INTEGERS: Final = {
    TypeKind.TINYINT: (-(2**7), 2**7 - 1),
    TypeKind.SMALLINT: (-(2**15), 2**15 - 1),
    TypeKind.INTEGER: (-(2**31), 2**31 - 1),
    TypeKind.BIGINT: (-(2**63), 2**63 - 1),
    TypeKind.UTINYINT: (0, 2**8 - 1),
    TypeKind.USMALLINT: (0, 2**16 - 1),
    TypeKind.UINTEGER: (0, 2**32 - 1),
    TypeKind.UBIGINT: (0, 2**64 - 1),
    TypeKind.HUGEINT: (-(2**127), 2**127 - 1),
}

_ARROW: Final[dict[TypeKind, pa.DataType]] = {
    TypeKind.BOOLEAN: pa.bool_(),
    TypeKind.TINYINT: pa.int8(),
    TypeKind.SMALLINT: pa.int16(),
    TypeKind.INTEGER: pa.int32(),
    TypeKind.BIGINT: pa.int64(),
    TypeKind.HUGEINT: pa.decimal128(38, 0),
    TypeKind.UTINYINT: pa.uint8(),
    TypeKind.USMALLINT: pa.uint16(),
    TypeKind.UINTEGER: pa.uint32(),
    TypeKind.UBIGINT: pa.uint64(),
    TypeKind.FLOAT: pa.float32(),
    TypeKind.DOUBLE: pa.float64(),
    TypeKind.VARCHAR: pa.string(),
    TypeKind.BLOB: pa.binary(),
    TypeKind.DATE: pa.date32(),
    TypeKind.TIME: pa.time64("us"),
    TypeKind.TIMESTAMP: pa.timestamp("us"),
    TypeKind.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    TypeKind.INTERVAL: pa.month_day_nano_interval(),
    TypeKind.UUID: pa.uuid(),
}

_ALIASES: Final = {
    "BOOL": TypeKind.BOOLEAN,
    "INT1": TypeKind.TINYINT,
    "INT2": TypeKind.SMALLINT,
    "SHORT": TypeKind.SMALLINT,
    "INT": TypeKind.INTEGER,
    "INT4": TypeKind.INTEGER,
    "SIGNED": TypeKind.INTEGER,
    "INT8": TypeKind.BIGINT,
    "LONG": TypeKind.BIGINT,
    "REAL": TypeKind.FLOAT,
    "FLOAT4": TypeKind.FLOAT,
    "FLOAT8": TypeKind.DOUBLE,
    "DOUBLE PRECISION": TypeKind.DOUBLE,
    "NUMERIC": TypeKind.DECIMAL,
    "DEC": TypeKind.DECIMAL,
    "TEXT": TypeKind.VARCHAR,
    "STRING": TypeKind.VARCHAR,
    "CHAR": TypeKind.VARCHAR,
    "BPCHAR": TypeKind.VARCHAR,
    "NVARCHAR": TypeKind.VARCHAR,
    "BYTEA": TypeKind.BLOB,
    "BINARY": TypeKind.BLOB,
    "VARBINARY": TypeKind.BLOB,
    "DATETIME": TypeKind.TIMESTAMP,
    "TIMESTAMPTZ": TypeKind.TIMESTAMPTZ,
}

_NAMES: Final = {kind.value: kind for kind in TypeKind} | _ALIASES
_TYPE_TEXT: Final = re.compile(
    r"\s*([A-Za-z][A-Za-z0-9_ ]*?)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?\s*((?:\[\s*\]\s*)*)"
)
_DECIMAL_PRECISION_MAX: Final = 38
_TYPES_CACHED_MAX: Final = 1024


class SqlType(msgspec.Struct, frozen=True, array_like=True):
    """A column type.

    Attributes:
        kind: The type constructor.
        precision: Decimal digits in all, for DECIMAL; else 0.
        scale: Decimal digits behind the point, for DECIMAL; else 0.
        element: The type of the elements, for LIST; else None.
    """

    kind: TypeKind
    precision: int = 0
    scale: int = 0
    element: SqlType | None = None

    def __post_init__(self) -> None:
        is_decimal = self.kind is TypeKind.DECIMAL
        if (self.element is not None) is not (self.kind is TypeKind.LIST) or not (
            1 <= self.precision <= _DECIMAL_PRECISION_MAX and 0 <= self.scale <= self.precision
            if is_decimal
            else self.precision == self.scale == 0
        ):
            raise ValueError(
                f"there is no type {self.kind.value} of precision {self.precision}, scale {self.scale} and element type"
                f" {self.element}"
            )

    def __str__(self) -> str:
        """The SQL text, such as ``DECIMAL(10,2)`` or ``FLOAT[]``; :func:`parse_type` reads it back."""
        if self.kind is TypeKind.DECIMAL:
            return f"DECIMAL({self.precision},{self.scale})"
        if self.element is not None:
            return f"{self.element}[]"
        return self.kind.value

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type in which a column of this type lives in memory and on the wire."""
        if self.kind is TypeKind.DECIMAL:
            return pa.decimal128(self.precision, self.scale)
        if self.element is not None:
            return pa.list_(self.element.arrow)
        return _ARROW[self.kind]

    @property
    def is_integer(self) -> bool:
        return self.kind in _INTEGERS

    @property
    def integer_range(self) -> tuple[int, int]:
        """Smallest and largest value, both inclusive, of an integer type."""
        return _INTEGERS[self.kind]

    def has_integer(self, value: int) -> bool:
        """Whether this is an integer type that an integer fits in."""
        limits = _INTEGERS.get(self.kind)
        return limits is not None and limits[0] <= value <= limits[1]

    @property
    def is_float(self) -> bool:
        return self.kind in (TypeKind.FLOAT, TypeKind.DOUBLE)

    @property
    def can_partition(self) -> bool:
        """Whether a column of this type may be in a hash or range component."""
        return self.kind not in (
            TypeKind.FLOAT,
            TypeKind.DOUBLE,
            TypeKind.HUGEINT,
            TypeKind.TIME,
            TypeKind.INTERVAL,
            TypeKind.LIST,
        )


@lru_cache(_TYPES_CACHED_MAX)
def parse_type(text: str) -> SqlType:
    """Read the SQL text of a type.

    Raises:
        NotSupportedError: The name is none of ours, or a DECIMAL has a precision outside 1..38.
    """
    match = _TYPE_TEXT.fullmatch(text)
    kind = _NAMES.get(re.sub(r"\s+", " ", match[1]).upper()) if match else None
    if match is None or kind is None or kind is TypeKind.LIST:
        raise NotSupportedError(f"type {text!r} is not supported; use one of {', '.join(k.value for k in TypeKind)}")
    if kind is TypeKind.DECIMAL:
        precision = int(match[2] or 18)
        scale = int(match[3] or (0 if match[2] else 3))
        if not 1 <= precision <= _DECIMAL_PRECISION_MAX or scale > precision:
            raise NotSupportedError(
                f"type {text!r}: the precision must be 1 to {_DECIMAL_PRECISION_MAX} and the scale at most the"
                " precision"
            )
        result = SqlType(kind, precision, scale)
    else:
        result = SqlType(kind)
    for _ in range(match[4].count("[")):
        result = SqlType(TypeKind.LIST, element=result)
    return result


def type_of_arrow(arrow: pa.DataType) -> SqlType:
    """The column type that holds every value of an Arrow type.

    Raises:
        NotSupportedError: No column type holds it.
    """
    for kind, candidate in _ARROW.items():
        if candidate == arrow:
            return SqlType(TypeKind.DECIMAL, 38, 0) if kind is TypeKind.HUGEINT else SqlType(kind)
    if pa.types.is_dictionary(arrow):
        return type_of_arrow(arrow.value_type)
    if pa.types.is_decimal(arrow) and arrow.precision <= _DECIMAL_PRECISION_MAX and 0 <= arrow.scale <= arrow.precision:
        return SqlType(TypeKind.DECIMAL, arrow.precision, arrow.scale)
    if pa.types.is_timestamp(arrow):
        return SqlType(TypeKind.TIMESTAMP if arrow.tz is None else TypeKind.TIMESTAMPTZ)
    if pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow):
        return SqlType(TypeKind.VARCHAR)
    if pa.types.is_large_binary(arrow) or pa.types.is_binary_view(arrow) or pa.types.is_fixed_size_binary(arrow):
        return SqlType(TypeKind.BLOB)
    if pa.types.is_date64(arrow):
        return SqlType(TypeKind.DATE)
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow):
        return SqlType(TypeKind.LIST, element=type_of_arrow(arrow.value_type))
    raise NotSupportedError(f"Arrow type {arrow} has no column type; cast the column first")
