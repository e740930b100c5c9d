"""A DuckDB database in the client's process that reads and writes the files of one COPY.

It is imported with the first COPY: a client that copies nothing does not load it. The user's part in its SQL is only a
path and values of options, as quoted texts.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from secateur.client.copy.csv_texts import explained_csv
from secateur.errors import DataError, Error, NotSupportedError, ProgrammingError
from secateur.partitioning.types.sql_text import quoted, text_literal
from secateur.protocol.copy_file import CopyFile, OptionKind, OptionValue

if TYPE_CHECKING:
    import duckdb

_MEMORY: Final = "512MB"
"""The maximum memory of a file's rows; beyond it they spill to a temporary file for the duration of COPY."""

_EXCERPT: Final = re.compile(r"\s*\n\s*LINE \d+:.*", re.DOTALL)
"""DuckDB's excerpt of its statement, which is not the user's."""


@dataclass(frozen=True, slots=True)
class FileDatabase:
    """The connection, and a folder that goes with it."""

    connection: duckdb.DuckDBPyConnection
    folder: Path


@contextmanager
def file_database(file: CopyFile, doing: str) -> Iterator[FileDatabase]:
    """An empty database for the length of the block; errors of DuckDB are ours afterwards.

    ``doing`` is ``read`` or ``written``, for their messages.

    Raises:
        ProgrammingError: The file cannot be opened, or an option cannot have its value.
        DataError: The file does not read, or has a value that its column cannot hold.
        NotSupportedError: The format has no form for a type.
    """
    import duckdb  # a hard dependency, but some 20 ms to load

    from secateur.memory_database import open_database

    folder = Path(tempfile.mkdtemp(prefix="secateur-copy-"))
    try:
        with open_database(memory_limit=_MEMORY, temp_directory=str(folder / "spill")) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            yield FileDatabase(connection, folder)
    except duckdb.Error as error:
        raise _translated(error, file, doing) from error
    except UnicodeDecodeError as error:
        # DuckDB's message was cut off inside of a character, and Python has none of it.
        raise DataError(
            f"{file.path!r} cannot be {doing} as {file.format.value}: {error.object.decode(errors='replace')}"
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _translated(error: duckdb.Error, file: CopyFile, doing: str) -> Error:
    """Return our error for DuckDB's."""
    import duckdb

    message, path, form = _EXCERPT.sub("", str(error)), repr(file.path), file.format.value
    if explained := explained_csv(message, file.path):
        return DataError(explained)
    # Of the class of all errors alone is what a path of the network would need.
    if isinstance(error, (duckdb.IOException, duckdb.PermissionException)) or type(error) is duckdb.Error:
        return ProgrammingError(f"{path} cannot be {doing} on the machine of this client: {message}")
    if isinstance(error, duckdb.NotImplementedException):
        return NotSupportedError(f"{path} cannot be {doing} as {form}: {message}; cast the column in the query")
    if isinstance(error, (duckdb.BinderException, duckdb.ParserException, duckdb.CatalogException)):
        return ProgrammingError(f"{path} cannot be {doing} as {form} with these options: {message}")
    return DataError(f"{path} cannot be {doing} as {form}: {message}")


def options_sql(file: CopyFile, kinds: Mapping[str, OptionKind]) -> str:
    """The options as DuckDB reads them, in parentheses."""
    said = [
        f"FORMAT {file.format.value}",
        *(f"{name} {_value_sql(value, kinds[name])}" for name, value in file.given),
    ]
    return f"({', '.join(said)})"


def _value_sql(value: OptionValue, kind: OptionKind) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case str():
            return text_literal(value)
        case ("*",) if kind is OptionKind.NAMES:
            return "*"
        case _:
            return f"({', '.join(map(quoted if kind is OptionKind.NAMES else text_literal, value))})"
