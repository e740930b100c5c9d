"""The file of a COPY statement: its path, its format, and the options that DuckDB takes for it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import PurePath
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec

OptionValue: TypeAlias = bool | int | str | tuple[str, ...]
"""A tuple is a list of texts or of names; ``("*",)`` names every column."""


class CopyFormat(Enum):
    """The formats. The value is the name in SQL."""

    CSV = "csv"
    PARQUET = "parquet"
    JSON = "json"

    @classmethod
    def of_path(cls, path: str) -> CopyFormat:
        """The format that a path suggests; CSV when it suggests none."""
        suffixes = [suffix.lower() for suffix in PurePath(path).suffixes]
        return next((_SUFFIXES[suffix] for suffix in reversed(suffixes) if suffix in _SUFFIXES), cls.CSV)


_SUFFIXES: Final = {
    ".csv": CopyFormat.CSV,
    ".tsv": CopyFormat.CSV,
    ".parquet": CopyFormat.PARQUET,
    ".json": CopyFormat.JSON,
    ".jsonl": CopyFormat.JSON,
    ".ndjson": CopyFormat.JSON,
}


class CopyFile(msgspec.Struct, frozen=True):
    """The file that COPY reads or writes, or the pattern of the files that it reads.

    Attributes:
        path: Where it is; for reading also a pattern with ``*`` and ``?``.
        format: Its format.
        given: The options that the statement has, by name, in their order; those that it does not have are DuckDB's to
            choose.
    """

    path: str
    format: CopyFormat
    given: tuple[tuple[str, OptionValue], ...] = ()


class Direction(Enum):
    """Whether a file is read or written. The value is the word in SQL."""

    READ = "FROM"
    WRITE = "TO"


class OptionKind(Enum):
    """The kind of value that an option has."""

    FLAG = "a boolean"
    """No value means true."""
    NUMBER = "a number"
    TEXT = "a text"
    """A text in quotes, or one word."""
    TEXTS = "a text, or several in parentheses"
    NAMES = "names of columns in parentheses, or *"


_DATES: Final = {"DATEFORMAT": OptionKind.TEXT, "TIMESTAMPFORMAT": OptionKind.TEXT}
_CSV: Final = {
    "HEADER": OptionKind.FLAG,
    "DELIMITER": OptionKind.TEXT,
    "QUOTE": OptionKind.TEXT,
    "ESCAPE": OptionKind.TEXT,
    **_DATES,
}
_COMPRESSED: Final = {"COMPRESSION": OptionKind.TEXT}

OPTIONS: Final[Mapping[tuple[CopyFormat, Direction], Mapping[str, OptionKind]]] = MappingProxyType(
    {
        (CopyFormat.CSV, Direction.READ): {
            **_CSV,
            **_COMPRESSED,
            "NULL": OptionKind.TEXTS,
            "SKIP": OptionKind.NUMBER,
            "COMMENT": OptionKind.TEXT,
            "ENCODING": OptionKind.TEXT,
            "NEW_LINE": OptionKind.TEXT,
            "DECIMAL_SEPARATOR": OptionKind.TEXT,
            "THOUSANDS": OptionKind.TEXT,
            "NULL_PADDING": OptionKind.FLAG,
            "STRICT_MODE": OptionKind.FLAG,
            "AUTO_DETECT": OptionKind.FLAG,
            "SAMPLE_SIZE": OptionKind.NUMBER,
            "MAX_LINE_SIZE": OptionKind.NUMBER,
            "BUFFER_SIZE": OptionKind.NUMBER,
            "PARALLEL": OptionKind.FLAG,
            "ALLOW_QUOTED_NULLS": OptionKind.FLAG,
            "FORCE_NOT_NULL": OptionKind.NAMES,
            "IGNORE_ERRORS": OptionKind.FLAG,
        },
        (CopyFormat.CSV, Direction.WRITE): {
            **_CSV,
            **_COMPRESSED,
            "NULL": OptionKind.TEXT,
            "FORCE_QUOTE": OptionKind.NAMES,
            "PREFIX": OptionKind.TEXT,
            "SUFFIX": OptionKind.TEXT,
        },
        (CopyFormat.PARQUET, Direction.READ): {"BINARY_AS_STRING": OptionKind.FLAG},
        (CopyFormat.PARQUET, Direction.WRITE): {
            **_COMPRESSED,
            "COMPRESSION_LEVEL": OptionKind.NUMBER,
            "ROW_GROUP_SIZE": OptionKind.NUMBER,
            "PARQUET_VERSION": OptionKind.TEXT,
        },
        (CopyFormat.JSON, Direction.READ): {
            **_DATES,
            **_COMPRESSED,
            "ARRAY": OptionKind.FLAG,
            "AUTO_DETECT": OptionKind.FLAG,
            "RECORDS": OptionKind.TEXT,
            "MAXIMUM_DEPTH": OptionKind.NUMBER,
            "MAXIMUM_OBJECT_SIZE": OptionKind.NUMBER,
            "IGNORE_ERRORS": OptionKind.FLAG,
        },
        (CopyFormat.JSON, Direction.WRITE): {**_DATES, **_COMPRESSED, "ARRAY": OptionKind.FLAG},
    }
)
"""The options that are passed to DuckDB.

Others would write several files, files beside the named one, or tables of a database that no user sees.
"""

SYNONYMS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "DELIM": "DELIMITER",
        "SEP": "DELIMITER",
        "NULLSTR": "NULL",
        "DATE_FORMAT": "DATEFORMAT",
        "TIMESTAMP_FORMAT": "TIMESTAMPFORMAT",
        "CODEC": "COMPRESSION",
    }
)
