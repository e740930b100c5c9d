"""A file that is to be loaded: what its columns are to be, and the options with which a caller describes it.

The options are for what the file does not say itself.
"""

from __future__ import annotations

import codecs
import glob
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypedDict

import pyarrow as pa

from secateur.client.loads.create_table import columns_of
from secateur.errors import DataError, ParameterError, UnknownColumnError
from secateur.partitioning.tables.table import Column
from secateur.partitioning.types.column_type import SqlType, parse_type
from secateur.partitioning.types.sql_text import arguments, name_and_type, text_literal, unquoted

FORMATS: Final = ("parquet", "csv", "json", "arrow")
"""The formats that can be opened."""

_OF_ONE_FORMAT: Final = {
    "delimiter": ("csv",),
    "header": ("csv",),
    "quote": ("csv",),
    "null": ("csv",),
    "date_format": ("csv", "json"),
    "encoding": ("csv", "json"),
}
_UTF_8: Final = "utf-8"


class FileKeywords(TypedDict, total=False):
    """The arguments of :class:`FileOptions`, for functions that take them as their own."""

    file_format: str | None
    columns: str | None
    delimiter: str | None
    header: bool | None
    quote: str | None
    null: str | tuple[str, ...] | None
    date_format: str | None
    encoding: str | None


@dataclass(frozen=True, slots=True)
class FileOptions:
    """Options for reading a file. None leaves one to the file, and to the columns of the table.

    Attributes:
        file_format: One of :data:`FORMATS`; None takes it from the ending of the name.
        columns: Names of columns of the file and their types as SQL has them, such as ``"a INTEGER, b DECIMAL(10,2)"``.
            A name alone has the type of the table. Of a file with names, those that are not listed are there as well;
            of a CSV file without a header, this is all of them in order.
        delimiter: The character between the values of a CSV file. None is the one of comma, semicolon, tab and bar that
            fits the names of the columns.
        header: Whether the first line of a CSV file has the names. None: if it has any of them.
        quote: The character around values of a CSV file, doubled inside of them; empty for none.
        null: The texts that mean NULL where they are not quoted. With one, an empty field is an empty text.
        date_format: How dates are written, as strptime has it: ``%d/%m/%Y``. None is ISO 8601 alone.
        encoding: The name of the encoding of a CSV or JSON file, as Python has it: ``latin-1``.

    Raises:
        ParameterError: A value that the option cannot have.
    """

    file_format: str | None = None
    columns: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    quote: str | None = None
    null: str | tuple[str, ...] | None = None
    date_format: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.file_format is not None and self.file_format not in FORMATS:
            raise ParameterError(f"there is no format {self.file_format!r}; there is {', '.join(FORMATS)}")
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise ParameterError(f"a delimiter is one character, not {self.delimiter!r}")
        if self.quote is not None and len(self.quote) > 1:
            raise ParameterError(f"a quote is one character, or none, not {self.quote!r}")
        if self.date_format is not None and "%" not in self.date_format:
            raise ParameterError(f"a date format is such as '%d/%m/%Y', not {self.date_format!r}")
        try:
            codecs.lookup(self.encoding or _UTF_8)
        except LookupError as error:
            raise ParameterError(f"there is no encoding {self.encoding!r}; there is utf-8, latin-1, ...") from error

    @property
    def nulls(self) -> tuple[str, ...]:
        """The texts of NULL."""
        return (self.null,) if isinstance(self.null, str) else self.null or ("",)

    @property
    def is_utf_8(self) -> bool:
        return codecs.lookup(self.encoding or _UTF_8).name == _UTF_8

    def check(self, file_format: str) -> None:
        """Refuse an option that a format does not have.

        Raises:
            ParameterError: There is one.
        """
        for name, formats in _OF_ONE_FORMAT.items():
            if getattr(self, name) is not None and file_format not in formats:
                raise ParameterError(
                    f"{name} is for {' and '.join(formats)} files, and this one is read as {file_format}: leave it out"
                )

    def declared(self) -> dict[str, SqlType | None]:
        """The types of the columns that are listed, by name; None for one without a type.

        Raises:
            ParameterError: A name is listed twice, or there is none.
            NotSupportedError: There is no such type.
        """
        found: dict[str, SqlType | None] = {}
        for item in arguments(f"COLUMNS({self.columns})", "COLUMNS") if self.columns is not None else []:
            name, kind = name_and_type(item)
            name = unquoted(name)
            if not name or name.casefold() in map(str.casefold, found):
                raise ParameterError(f"columns {self.columns!r}: write each once, as a INTEGER, b DECIMAL(10,2)")
            found[name] = parse_type(kind) if kind else None
        return found


def pattern_of(path: Path) -> str:
    """A path as SQL has it, where DuckDB would take some of its characters for a pattern."""
    return text_literal(glob.escape(str(path)))


@dataclass(frozen=True, slots=True)
class AskedFile:
    """A file, and what its columns are to be.

    Attributes:
        path: The file, as messages name it.
        options: What is said about it.
        table: The columns of the table; None if there is none yet.
        declared: The types that are said, by name; None for a name alone.
        same_names: Whether each row has to name the columns that others name.
    """

    path: Path
    options: FileOptions
    table: Sequence[Column] | None
    declared: dict[str, SqlType | None]
    same_names: bool

    @property
    def table_names(self) -> list[str]:
        return [column.name for column in self.table or ()]

    @property
    def in_order(self) -> list[str]:
        """The names of the columns of a file that does not name them; empty if they are not known."""
        return list(self.declared) or self.table_names

    def named(
        self, names: Sequence[str], place: Callable[[int], str] | None = None
    ) -> list[tuple[str, SqlType | None]]:
        """The columns of the file, as the table names them, and their types as far as they are known.

        Args:
            names: The names in the file.
            place: Where one of them is, by its position; None if that is of no use.

        Raises:
            UnknownColumnError: The table has no such column, or one that is declared is in neither.
            DataError: A name is there twice, or is none.
        """
        said = {name.casefold(): type_ for name, type_ in self.declared.items()}
        known = {column.name.casefold(): column for column in self.table or ()}
        found: dict[str, tuple[str, SqlType | None]] = {}

        def where(position: int) -> str:
            return f"{self.path}{'' if place is None else place(position)}"

        for position, name in enumerate(names):
            folded = name.casefold()
            if not name or folded in found:
                problem = f"column {name!r} is there twice" if name else "a column has no name"
                raise DataError(f"{where(position)}: {problem}")
            if self.table is not None and folded not in known:
                raise UnknownColumnError(
                    f"{where(position)}: the table has no column {name!r}; it has {', '.join(self.table_names)}",
                    column=name,
                )
            column = known.get(folded)
            found[folded] = (
                name if column is None else column.name,
                said.get(folded) or (None if column is None else column.type),
            )
        lacking = [name for name in self.declared if name.casefold() not in found]
        if lacking:
            raise UnknownColumnError(
                f"{self.path} has no column {lacking[0]!r}, which is said to be there; it has {', '.join(names)}",
                column=lacking[0],
            )
        return list(found.values())

    def columns_of(self, schema: pa.Schema) -> tuple[Column, ...]:
        """The columns of a file that has types of its own."""
        named = self.named(schema.names)
        own = {} if self.table is not None else {column.name: column.type for column in columns_of(schema)}
        return tuple(Column(name, own[name] if type_ is None else type_) for name, type_ in named)
