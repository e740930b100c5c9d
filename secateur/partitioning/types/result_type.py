"""Types of result columns: those of columns of tables, and all others of the SQL dialect, read from their text."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import lru_cache
from typing import Final

import msgspec
import pyarrow as pa

from secateur.errors import NotSupportedError
from secateur.partitioning.types.column_type import SqlType, parse_type
from secateur.partitioning.types.sql_text import arguments, name_and_type, unquoted, without_suffix

FINER_TYPES: Final[dict[str, pa.DataType]] = {
    "TIME_NS": pa.time64("ns"),
}
"""Scalar types that no column of a table has and that Arrow carries as they are."""

_TYPES_CACHED_MAX: Final = 4096


class Constructor(Enum):
    """The way in which a type is built from others."""

    SCALAR = "scalar"
    LIST = "list"
    """``T[]``, or ``T[3]`` with a length."""
    STRUCT = "STRUCT"
    """Fields with names."""
    TUPLE = "TUPLE"
    """Fields without names; Arrow calls them element1, element2, ..."""
    MAP = "MAP"
    """Two parts: the type of the keys and that of the values."""


class ResultType(msgspec.Struct, frozen=True):
    """The type of a result column.

    Attributes:
        text: Its SQL text, as DuckDB writes it.
        constructor: How it is built.
        parts: The types that it is built of: one for a list, two for a map, one for each field; none for a scalar.
        field_names: The names of the fields of a STRUCT, as SQL writes them: in quotes where they need them.
        length: The number of elements of ``T[n]``; else None.
    """

    text: str
    constructor: Constructor = Constructor.SCALAR
    parts: tuple[ResultType, ...] = ()
    field_names: tuple[str, ...] = ()
    length: int | None = None

    @property
    def unquoted_names(self) -> list[str]:
        """The names of the fields of a STRUCT or a TUPLE, as Arrow has them."""
        if self.constructor is Constructor.TUPLE:
            return [f"element{number}" for number in range(1, len(self.parts) + 1)]
        return [unquoted(name) for name in self.field_names]

    def text_with(self, of_part: Callable[[ResultType], str]) -> str:
        """The text of a type of this constructor with other parts."""
        parts = [of_part(part) for part in self.parts]
        match self.constructor:
            case Constructor.SCALAR:
                return self.text
            case Constructor.LIST:
                return f"{parts[0]}[{'' if self.length is None else self.length}]"
            case Constructor.STRUCT:
                fields = (f"{name} {part}" for name, part in zip(self.field_names, parts, strict=True))
                return f"STRUCT({', '.join(fields)})"
            case Constructor.TUPLE | Constructor.MAP:
                return f"{self.constructor.value}({', '.join(parts)})"


@lru_cache(_TYPES_CACHED_MAX)
def column_type_of(text: str) -> SqlType | None:
    """The column type of that name, or None when ``text`` is a type that only results can have."""
    try:
        return parse_type(text)
    except NotSupportedError:
        return None


@lru_cache(_TYPES_CACHED_MAX)
def parse_result_type(text: str) -> ResultType:
    """Read the SQL text of a type, as DuckDB writes it. A text that is none of the constructors is a scalar."""
    if array := without_suffix(text):
        return ResultType(text, Constructor.LIST, (parse_result_type(array[0]),), length=array[1])
    if fields := arguments(text, Constructor.STRUCT.value):
        names, parts = zip(*map(name_and_type, fields), strict=True)
        return ResultType(text, Constructor.STRUCT, tuple(map(parse_result_type, parts)), names)
    for constructor in (Constructor.TUPLE, Constructor.MAP):
        if parts := tuple(map(parse_result_type, arguments(text, constructor.value))):
            return ResultType(text, constructor, parts)
    return ResultType(text)
