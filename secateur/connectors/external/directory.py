"""The files of a folder as an external table may read them: below an allowed directory, and by the folders of Hive.

Hive writes the values of the partitioning columns into the names of the folders, ``dt=2026-11-01/country=de/``, with
percent signs for other characters, and ``__HIVE_DEFAULT_PARTITION__`` for NULL.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import pyarrow as pa

from secateur.errors import DataError, NotSupportedError, ProgrammingError
from secateur.partitioning.types.coerce import coerce
from secateur.partitioning.types.column_type import parse_type

_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_INTEGER: Final = re.compile(r"-?[0-9]{1,18}")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def allowed_path(path: str | Path, directories: Sequence[Path]) -> Path:
    """The path that a name leads to, through links and ``..``.

    Raises:
        NotSupportedError: The cluster lets external tables read no directory, or not this one.
        ProgrammingError: The path is relative, or there is no such file or folder.
    """
    if not directories:
        raise NotSupportedError(
            f"folder {str(path)!r}: external tables read no directories of this cluster's machines: start it with"
            " external_directories=[...]"
        )
    if not Path(path).is_absolute():
        raise ProgrammingError(f"folder {str(path)!r}: give an absolute path; it is one of the members' machines")
    try:
        resolved = Path(path).resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        resolved = None
        reason = error
    if resolved is not None and any(resolved.is_relative_to(directory.resolve()) for directory in directories):
        return resolved
    if resolved is None and any(
        Path(os.path.normpath(path)).is_relative_to(directory.resolve()) for directory in directories
    ):
        raise ProgrammingError(f"there is no {str(path)!r} on the machine of this member: {reason}")
    raise NotSupportedError(
        f"{str(path)!r} is not below a directory that external tables may read: external_directories of this"
        f" cluster has {', '.join(map(str, directories))}"
    )


def files_below(root: Path, suffixes: tuple[str, ...], directories: Sequence[Path]) -> Iterator[str]:
    """Yield the files of a folder and those below it, relative to it, in order.

    Names that begin with ``.`` are left out, and names that begin with ``_`` unless they have a ``=``, as writers of
    such folders put their own files there. Links to folders are not followed.

    Raises:
        NotSupportedError: A file is a link to one that may not be read.
    """
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not _is_hidden(name))
        for name in sorted(names):
            if not _is_hidden(name) and name.lower().endswith(suffixes):
                path = Path(folder, name)
                if path.is_symlink():
                    allowed_path(path, directories)
                yield path.relative_to(root).as_posix()


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def hive_values(file: str) -> dict[str, str | None]:
    """The values in the names of the folders of a file, by column; None for NULL."""
    found: dict[str, str | None] = {}
    for part in Path(file).parts[:-1]:
        column, sign, value = part.partition("=")
        if sign and column:
            found[unquote(column)] = None if value == _NULL else unquote(value)
    return found


def hive_type(column: str, values: Iterable[str | None]) -> pa.DataType:
    """The type of a column in the names of folders: BIGINT or DATE if all values are such, else VARCHAR."""
    texts = {value for value in values if value is not None}
    if texts and all(map(_INTEGER.fullmatch, texts)):
        return pa.int64()
    if texts and all(_is_date(column, text) for text in texts):
        return pa.date32()
    return pa.string()


def _is_date(column: str, text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        coerce(text, parse_type("DATE"), column=column)
    except DataError:
        return False
    return True
