"""What COPY says of a file: its format, and how that is spelled."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import PurePath
from typing import Any, Final

__all__ = ["FileFormat", "FileOptions"]


class FileFormat(Enum):
    """The formats. The value is the name in SQL."""

    CSV = "csv"
    PARQUET = "parquet"
    JSON = "json"
    """One object a line; an array of objects is read as well."""

    @classmethod
    def of_path(cls, path: str) -> FileFormat:
        """The format that a path suggests; CSV when it suggests none."""
        suffixes = [suffix.lower() for suffix in PurePath(path).suffixes]
        return next((_SUFFIXES[suffix] for suffix in reversed(suffixes) if suffix in _SUFFIXES), cls.CSV)


_SUFFIXES: Final = {
    ".csv": FileFormat.CSV,
    ".tsv": FileFormat.CSV,
    ".parquet": FileFormat.PARQUET,
    ".json": FileFormat.JSON,
    ".jsonl": FileFormat.JSON,
    ".ndjson": FileFormat.JSON,
}


@dataclass(frozen=True, slots=True)
class FileOptions:
    """A file of COPY.

    Attributes:
        path: Where it is; for reading also a pattern with ``*`` and ``?``.
        format: Its format.
        header: Whether the first line of CSV has the names of the columns; None to find out when reading, and for yes when writing.
        delimiter: What stands between the values of CSV; None to find out when reading, and for a comma when writing.
        quote: What stands around values of CSV that need it.
        null: What stands for NULL in CSV.
        compression: Of parquet; of the other formats the suffix of the path says it. None for the usual one.
    """

    path: str
    format: FileFormat
    header: bool | None = None
    delimiter: str | None = None
    quote: str = '"'
    null: str = ""
    compression: str | None = None

    def to_wire(self) -> dict[str, Any]:
        """Plain data for msgpack; :meth:`from_wire` reads it back."""
        return {
            "path": self.path,
            "format": self.format.value,
            "header": self.header,
            "delimiter": self.delimiter,
            "quote": self.quote,
            "null": self.null,
            "compression": self.compression,
        }

    @classmethod
    def from_wire(cls, data: dict[str, Any]) -> FileOptions:
        return cls(data["path"], FileFormat(data["format"]), data["header"], data["delimiter"], data["quote"], data["null"], data["compression"])
