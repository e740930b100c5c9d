"""The options with which a caller describes a file of rows, where the file does not describe itself."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import Final, TypedDict

from secateur.errors import ParameterError
from secateur.partitioning.types.column_type import SqlType, parse_type
from secateur.partitioning.types.type_text import arguments, name_and_type, unquoted

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
