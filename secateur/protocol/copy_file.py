"""The file of a COPY statement: its path, its format, and the options that the statement gives."""

from __future__ import annotations

from enum import Enum
from pathlib import PurePath
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
