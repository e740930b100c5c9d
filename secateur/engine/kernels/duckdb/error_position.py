"""The position of an error in a text, as DuckDB reports it.

It is needed only after a statement has failed to bind, so it may take time.

DuckDB reports the position only if errors are JSON and statements are prepared by SQL, which the kernel's own database
is not configured for. This module uses a second database, as closed as that one, in which the statement's relations are
empty tables.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import duckdb

from secateur.memory_database import open_database
from secateur.partitioning.tables.identifier import quoted
from secateur.partitioning.types.column_type import SqlType

_PREFIX: Final = "PREPARE statement AS "
_lock: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class ErrorPosition:
    """DuckDB's error about a text that does not bind.

    Attributes:
        message: In its words.
        offset: The position in the text, in characters.
        length: The number of characters.
    """

    message: str
    offset: int
    length: int


def bind_error_position(sql: str, relations: Mapping[str, Mapping[str, SqlType | str]]) -> ErrorPosition | None:
    """Return the error of one SELECT and its position; None when it binds, or when DuckDB reports no position.

    Args:
        sql: One SELECT over the names of ``relations``, parameters as ``$1``.
        relations: Relation name to column name to SQL type, in column order.

    Cost: some milliseconds, at the first call some ten more.
    """
    with _lock, _database().cursor() as cursor:
        try:
            for name, schema in relations.items():
                columns = (
                    ", ".join(f"{quoted(column)} {kind}" for column, kind in schema.items())
                    or '"rows without columns" BOOLEAN'
                )
                cursor.execute(f"CREATE TEMP TABLE {quoted(name)} ({columns})")
            cursor.execute(_PREFIX + sql)
        except (duckdb.Error, UnicodeDecodeError) as error:
            return _read(_text(error), sql)
    return None


def syntax_error_position(sql: str) -> ErrorPosition | None:
    """Return the syntax error of a text of any kind and its position.

    None when it parses, or when DuckDB reports no position.
    """
    with _lock, _database().cursor() as cursor:
        try:
            cursor.extract_statements(sql)
        except (duckdb.Error, UnicodeDecodeError) as error:
            return _read(_text(error), sql, "")
    return None


def _text(error: duckdb.Error | UnicodeDecodeError) -> str:
    """The message, also where it was cut off inside of a character, and Python has none of it."""
    return error.object.decode(errors="replace") if isinstance(error, UnicodeDecodeError) else str(error)


def _read(text: str, sql: str, prefix: str = _PREFIX) -> ErrorPosition | None:
    try:
        said: dict[str, Any] = json.loads(text[text.index("{") :])
        # Both count bytes.
        start, length = json.loads(said["location"])
        start -= len(prefix)
        raw = sql.encode()
        offset = len(raw[:start].decode(errors="ignore"))
        return (
            ErrorPosition(
                str(said["exception_message"]), offset, max(1, len(raw[start : start + length].decode(errors="ignore")))
            )
            if start >= 0
            else None
        )
    except (ValueError, KeyError, TypeError):
        return None


@cache
def _database() -> duckdb.DuckDBPyConnection:
    database = open_database(threads="1", async_threads="0")
    for setting, value in (
        ("enable_external_access", "false"),
        ("errors_as_json", "true"),
        ("TimeZone", "'UTC'"),
        ("lock_configuration", "true"),
    ):
        database.execute(f"SET GLOBAL {setting} = {value}")
    return database
