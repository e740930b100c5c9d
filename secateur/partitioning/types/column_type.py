"""Column types: the SQL name, the Arrow form in memory, and whether a column may be a partitioning column.

One value, :class:`SqlType`, carries a type everywhere: in DDL, in the catalog, on the wire and in
result descriptions. The dialect and its names are DuckDB's.
"""

from __future__ import annotations

import re
from collections.abc import Container
from datetime import date
from enum import Enum
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

import msgspec
import pyarrow as pa

from secateur.errors import NotSupportedError
from secateur.partitioning.types.decimals import DOUBLE_INTEGER_MAX, FLOAT_INTEGER_MAX
from secateur.partitioning.types.sql_text import arguments, field_name, name_and_type, unquoted, without_suffix


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
    JSON = "JSON"
    ENUM = "ENUM"
    BLOB = "BLOB"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMPTZ = "TIMESTAMP WITH TIME ZONE"
    TIMESTAMP_S = "TIMESTAMP_S"
    TIMESTAMP_MS = "TIMESTAMP_MS"
    TIMESTAMP_NS = "TIMESTAMP_NS"
    INTERVAL = "INTERVAL"
    UUID = "UUID"
    LIST = "LIST"
    ARRAY = "ARRAY"
    STRUCT = "STRUCT"
    MAP = "MAP"

    # Kinds are looked up in dictionaries many times a statement, and Enum's own hash is a Python function.
    __hash__ = object.__hash__


NESTED: Final = frozenset({TypeKind.LIST, TypeKind.ARRAY, TypeKind.STRUCT, TypeKind.MAP})
"""The kinds whose values are made of other values."""
UNIT_TIMESTAMPS: Final = frozenset({TypeKind.TIMESTAMP_S, TypeKind.TIMESTAMP_MS, TypeKind.TIMESTAMP_NS})
"""The timestamps of another unit than microseconds, in which the partition function hashes instants."""
TEXTUAL: Final = frozenset({TypeKind.JSON, TypeKind.ENUM})
"""The kinds that lie in memory as texts, of which they have some only."""
OPAQUE: Final = NESTED | UNIT_TIMESTAMPS | TEXTUAL | {TypeKind.INTERVAL}
"""The kinds that are stored and returned, but are no keys, and that only DuckDB compares."""

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

WORD_INTEGERS: Final = frozenset(_INTEGERS) - {TypeKind.HUGEINT}
"""The integers of 8 to 64 bits."""
EXACT_INTEGERS: Final = {TypeKind.FLOAT: FLOAT_INTEGER_MAX, TypeKind.DOUBLE: DOUBLE_INTEGER_MAX}
"""Up to these, floating-point numbers have all integers."""

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
    TypeKind.JSON: pa.string(),
    TypeKind.ENUM: pa.string(),
    TypeKind.BLOB: pa.binary(),
    TypeKind.DATE: pa.date32(),
    TypeKind.TIME: pa.time64("us"),
    TypeKind.TIMESTAMP: pa.timestamp("us"),
    TypeKind.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    TypeKind.TIMESTAMP_S: pa.timestamp("s"),
    TypeKind.TIMESTAMP_MS: pa.timestamp("ms"),
    TypeKind.TIMESTAMP_NS: pa.timestamp("ns"),
    TypeKind.INTERVAL: pa.month_day_nano_interval(),
    TypeKind.UUID: pa.uuid(),
}

_CLASSES: Final[dict[TypeKind, type[Any]]] = {
    **dict.fromkeys(_INTEGERS, int),
    TypeKind.BOOLEAN: bool,
    TypeKind.DOUBLE: float,
    TypeKind.VARCHAR: str,
    TypeKind.BLOB: bytes,
    TypeKind.DATE: date,
    TypeKind.UUID: UUID,
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
    "TIMESTAMP_US": TypeKind.TIMESTAMP,
}

_NAMES: Final = {kind.value: kind for kind in TypeKind} | _ALIASES
_SCALAR_TEXT: Final = re.compile(r"([A-Za-z][A-Za-z0-9_ ]*?)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")
_ENUM_TEXT: Final = re.compile(r"ENUM\s*\(\s*('.*')\s*\)", re.IGNORECASE | re.DOTALL)
_ENUM_VALUE: Final = re.compile(r"\s*'((?:[^']|'')*)'\s*(?:,|\Z)")
_NESTED_TEXT: Final = re.compile(r"(STRUCT|ROW|MAP)\s*(\(.*\))", re.IGNORECASE | re.DOTALL)
DEPTH_MAX: Final = 24
"""The depth to which types may be nested. Arrow reads 64 levels from a stream, and a MAP takes two."""
_DECIMAL_PRECISION_MAX: Final = 38
LENGTH_MAX: Final = 100_000
"""The most elements of an ARRAY, as in DuckDB."""
_APART: Final = OPAQUE | {TypeKind.FLOAT, TypeKind.DOUBLE, TypeKind.HUGEINT, TypeKind.TIME}
_TYPES_CACHED_MAX: Final = 1024
_TEXT_SHOWN_MAX: Final = 200


class Field(msgspec.Struct, frozen=True, array_like=True):
    """A field of a STRUCT, or the key or value of a MAP.

    Attributes:
        name: As written in CREATE TABLE; matched without regard to case.
        type: Its type. A field may be NULL; the key of a MAP is not.
    """

    name: str
    type: SqlType


class SqlType(msgspec.Struct, frozen=True, array_like=True):
    """A column type.

    Attributes:
        kind: The type constructor.
        precision: Decimal digits in all, for DECIMAL; else 0.
        scale: Decimal digits behind the point, for DECIMAL; else 0.
        element: The type of the elements, for LIST and ARRAY; else None.
        fields: The fields of a STRUCT, at least one; ``key`` and ``value`` of a MAP; else empty.
        length: The number of elements of an ARRAY, the list of a fixed length; else 0.
        values: The values of an ENUM in their order, at least one; else empty.
    """

    kind: TypeKind
    precision: int = 0
    scale: int = 0
    element: SqlType | None = None
    fields: tuple[Field, ...] = ()
    length: int = 0
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        is_decimal = self.kind is TypeKind.DECIMAL
        if (
            (self.element is not None) is not (self.kind in (TypeKind.LIST, TypeKind.ARRAY))
            or not (1 <= self.length <= LENGTH_MAX if self.kind is TypeKind.ARRAY else self.length == 0)
            or not self._has_right_fields()
            or bool(self.values) is not (self.kind is TypeKind.ENUM)
            or len(set(self.values)) < len(self.values)
            or not (
                1 <= self.precision <= _DECIMAL_PRECISION_MAX and 0 <= self.scale <= self.precision
                if is_decimal
                else self.precision == self.scale == 0
            )
        ):
            raise ValueError(
                f"there is no type {self.kind.value} of precision {self.precision}, scale {self.scale}, element type"
                f" {self.element}, length {self.length}, fields"
                f" {', '.join(field.name for field in self.fields) or 'none'} and {len(self.values)} values"
            )

    def _has_right_fields(self) -> bool:
        names = [field.name.casefold() for field in self.fields]
        match self.kind:
            case TypeKind.STRUCT:
                return 0 < len(names) == len(set(names))
            case TypeKind.MAP:
                return names == ["key", "value"]
            case _:
                return not names

    @classmethod
    def map_of(cls, key: SqlType, value: SqlType) -> SqlType:
        """``MAP(key, value)``."""
        return cls(TypeKind.MAP, fields=(Field("key", key), Field("value", value)))

    def __str__(self) -> str:
        """The SQL text, such as ``DECIMAL(10,2)`` or ``FLOAT[]``; :func:`parse_type` reads it back."""
        match self.kind:
            case TypeKind.DECIMAL:
                return f"DECIMAL({self.precision},{self.scale})"
            case TypeKind.LIST:
                return f"{self.element}[]"
            case TypeKind.ARRAY:
                return f"{self.element}[{self.length}]"
            case TypeKind.ENUM:
                return "ENUM('" + "', '".join(value.replace("'", "''") for value in self.values) + "')"
            case TypeKind.STRUCT:
                return f"STRUCT({', '.join(f'{field_name(field.name)} {field.type}' for field in self.fields)})"
            case TypeKind.MAP:
                return f"MAP({', '.join(str(field.type) for field in self.fields)})"
            case _:
                return self.kind.value

    @property
    def shown(self) -> str:
        """The SQL text for a message, in which a long one is cut."""
        text = str(self)
        return text if len(text) <= _TEXT_SHOWN_MAX else f"{text[:_TEXT_SHOWN_MAX]}..."

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type in which a column of this type lives in memory and on the wire."""
        match self.kind:
            case TypeKind.DECIMAL:
                return pa.decimal128(self.precision, self.scale)
            case TypeKind.LIST if self.element is not None:
                return pa.list_(self.element.arrow)
            case TypeKind.ARRAY if self.element is not None:
                return pa.list_(self.element.arrow, self.length)
            case TypeKind.STRUCT:
                return pa.struct([pa.field(field.name, field.type.arrow) for field in self.fields])
            case TypeKind.MAP:
                return pa.map_(*(field.type.arrow for field in self.fields))
            case _:
                return _ARROW[self.kind]

    @property
    def parts(self) -> tuple[SqlType, ...]:
        """The types that it is built of: of the elements, of the fields, or of key and value; none for a scalar."""
        return (self.element,) if self.element is not None else tuple(field.type for field in self.fields)

    @property
    def of_any_length(self) -> SqlType:
        """The type with lists of any length in place of those of a fixed one, at any depth."""
        if not self.contains((TypeKind.ARRAY,)):
            return self
        if self.element is not None:
            return SqlType(TypeKind.LIST, element=self.element.of_any_length)
        return SqlType(self.kind, fields=tuple(Field(field.name, field.type.of_any_length) for field in self.fields))

    def contains(self, kinds: Container[TypeKind]) -> bool:
        """Whether its kind, or one inside of it at any depth, is one of these."""
        return self.kind in kinds or any(part.contains(kinds) for part in self.parts)

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
    def value_class(self) -> type[Any] | None:
        """The Python class whose values, and not those of subclasses, are canonical as they stand.

        Integers are if the type has them, and texts if UTF-8 has them. None for a type whose values may have to be
        converted, as those with a zone or a scale.
        """
        return _CLASSES.get(self.kind)

    @property
    def is_float(self) -> bool:
        return self.kind in (TypeKind.FLOAT, TypeKind.DOUBLE)

    @property
    def can_partition(self) -> bool:
        """Whether a column of this type may be in a hash or range component."""
        return self.kind not in _APART


@lru_cache(_TYPES_CACHED_MAX)
def parse_type(text: str) -> SqlType:
    """Read the SQL text of a type.

    Raises:
        NotSupportedError: A name in it is none of ours, a DECIMAL has a precision outside 1..38, a STRUCT has two
            fields of one name, or types are nested too deep.
    """
    return _parsed(text.strip(), text, DEPTH_MAX)


def _parsed(text: str, whole: str, levels: int) -> SqlType:
    """Read ``text``, which is ``whole`` or a part of it, and may contain so many levels of other types."""
    if enum := _ENUM_TEXT.fullmatch(text):
        return _enum(enum[1], whole)
    listed, nested = without_suffix(text), _NESTED_TEXT.fullmatch(text)
    if (listed or nested) and not levels:
        raise NotSupportedError(f"type {_shown(whole)} is nested deeper than {DEPTH_MAX} levels: use fewer")
    if listed:
        element = _parsed(listed[0], whole, levels - 1)
        if listed[1] is None:
            return SqlType(TypeKind.LIST, element=element)
        if not 1 <= listed[1] <= LENGTH_MAX:
            raise NotSupportedError(f"type {_shown(text)} has a length of {listed[1]}: use 1 to {LENGTH_MAX}")
        return SqlType(TypeKind.ARRAY, element=element, length=listed[1])
    if nested is None:
        return _scalar(text, whole)
    parts = arguments(f"STRUCT{nested[2]}", "STRUCT")
    if nested[1].upper() == "MAP":
        if len(parts) != 2:
            raise NotSupportedError(f"type {_shown(text)} needs a type of keys and one of values: MAP(VARCHAR, BIGINT)")
        return SqlType.map_of(*(_parsed(part, whole, levels - 1) for part in parts))
    named = [name_and_type(part) for part in parts]
    if not all(name for name, _ in named):
        raise NotSupportedError(f"type {_shown(text)} needs fields, each with a name and a type: STRUCT(a BIGINT)")
    fields = tuple(Field(unquoted(name), _parsed(kind, whole, levels - 1)) for name, kind in named)
    if len({field.name.casefold() for field in fields}) < len(fields):
        raise NotSupportedError(
            f"type {_shown(text)} has two fields of one name (without regard to case): give each its own"
        )
    return SqlType(TypeKind.STRUCT, fields=fields)


def _enum(listed: str, whole: str) -> SqlType:
    values: list[str] = []
    at = 0
    while at < len(listed):
        value = _ENUM_VALUE.match(listed, at)
        if value is None:
            raise NotSupportedError(f"type {_shown(whole)} needs values as texts: ENUM('small', 'large')")
        values.append(value[1].replace("''", "'"))
        at = value.end()
    if len(set(values)) < len(values):
        twice = next(value for value in values if values.count(value) > 1)
        raise NotSupportedError(f"type {_shown(whole)} has the value {_shown(twice)} twice: list it once")
    return SqlType(TypeKind.ENUM, values=tuple(values))


def _scalar(text: str, whole: str) -> SqlType:
    match = _SCALAR_TEXT.fullmatch(text)
    kind = _NAMES.get(re.sub(r"\s+", " ", match[1]).upper()) if match else None
    if match is None or kind is None or kind in NESTED or kind is TypeKind.ENUM:
        because = "" if text == whole.strip() else f", because of {_shown(text)}"
        raise NotSupportedError(
            f"type {_shown(whole)} is not supported{because}; use one of {', '.join(k.value for k in TypeKind)}"
        )
    if kind is not TypeKind.DECIMAL:
        return SqlType(kind)
    precision = int(match[2] or 18)
    scale = int(match[3] or (0 if match[2] else 3))
    if not 1 <= precision <= _DECIMAL_PRECISION_MAX or scale > precision:
        raise NotSupportedError(
            f"type {_shown(text)}: the precision must be 1 to {_DECIMAL_PRECISION_MAX} and the scale at most the"
            " precision"
        )
    return SqlType(kind, precision, scale)


def _shown(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= _TEXT_SHOWN_MAX else f"{shown[:_TEXT_SHOWN_MAX]}..."


def type_of_arrow(arrow: pa.DataType) -> SqlType:
    """The column type that holds the values of an Arrow type.

    It holds every value, but for timestamps of nanoseconds: they are TIMESTAMP, like those of every other unit, because
    pandas and Parquet have nanoseconds where nobody asked for them. A TIMESTAMP refuses a fraction of a microsecond.

    Raises:
        NotSupportedError: No column type holds it.
    """
    return _of_arrow(arrow, arrow, DEPTH_MAX)


def _of_arrow(arrow: pa.DataType, whole: pa.DataType, levels: int) -> SqlType:
    for kind, candidate in _ARROW.items():
        if candidate == arrow and kind not in UNIT_TIMESTAMPS:
            return SqlType(TypeKind.DECIMAL, 38, 0) if kind is TypeKind.HUGEINT else SqlType(kind)
    if isinstance(arrow, pa.JsonType):
        return SqlType(TypeKind.JSON)
    if pa.types.is_dictionary(arrow):
        return _of_arrow(arrow.value_type, whole, levels)
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
    if pa.types.is_nested(arrow) and not levels:
        raise NotSupportedError(
            f"an Arrow type is nested deeper than {DEPTH_MAX} levels: {_shown(str(whole))}; use fewer"
        )
    if pa.types.is_fixed_size_list(arrow) and 1 <= arrow.list_size <= LENGTH_MAX:
        element = _of_arrow(arrow.value_type, whole, levels - 1)
        return SqlType(TypeKind.ARRAY, element=element, length=arrow.list_size)
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow):
        return SqlType(TypeKind.LIST, element=_of_arrow(arrow.value_type, whole, levels - 1))
    if pa.types.is_map(arrow):
        return SqlType.map_of(
            _of_arrow(arrow.key_type, whole, levels - 1), _of_arrow(arrow.item_type, whole, levels - 1)
        )
    if pa.types.is_struct(arrow):
        names = [arrow.field(index).name for index in range(arrow.num_fields)]
        if not names or len(set(map(str.casefold, names))) < len(names):
            raise NotSupportedError(
                f"Arrow type {_shown(str(arrow))} has no column type, which needs fields whose names differ in more"
                " than case; rename them first"
            )
        return SqlType(
            TypeKind.STRUCT,
            fields=tuple(
                Field(name, _of_arrow(arrow.field(index).type, whole, levels - 1)) for index, name in enumerate(names)
            ),
        )
    because = "" if arrow == whole else f", because of {arrow}"
    raise NotSupportedError(f"Arrow type {whole} has no column type{because}; cast the column first")
