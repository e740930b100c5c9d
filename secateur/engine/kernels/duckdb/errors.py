"""Translates DuckDB's exceptions to errors of secateur, by one table, and finds where in a text an error is."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import duckdb

from secateur import errors
from secateur.memory_database import open_database
from secateur.partitioning.types.column_type import SqlType
from secateur.partitioning.types.sql_text import quoted

_MEANING: Final[tuple[tuple[type[duckdb.Error], str, type[errors.Error]], ...]] = (
    (duckdb.ParserException, "", errors.SqlSyntaxError),
    (duckdb.SyntaxException, "", errors.SqlSyntaxError),
    (duckdb.BinderException, r'^Referenced table "', errors.UnknownTableError),
    (
        duckdb.BinderException,
        r'^Referenced column "|does not have a column named|^Column .* not found|^Column with name',
        errors.UnknownColumnError,
    ),
    (duckdb.BinderException, r"^Parameter|prepared parameter", errors.ParameterError),
    (duckdb.BinderException, "", errors.ProgrammingError),
    (duckdb.CatalogException, r"^Table with name|^View with name", errors.UnknownTableError),
    (duckdb.CatalogException, "", errors.ProgrammingError),
    (duckdb.ConversionException, "", errors.DataError),
    (duckdb.OutOfRangeException, "", errors.DataError),
    (duckdb.TypeMismatchException, "", errors.DataError),
    (duckdb.InvalidTypeException, "", errors.DataError),
    (
        duckdb.InvalidInputException,
        r"following parameters|count mismatch|Python (integer|Conversion)|transform python|Cannot use",
        errors.ParameterError,
    ),
    (duckdb.InvalidInputException, "", errors.DataError),
    (duckdb.NotImplementedException, r"transform python value", errors.ParameterError),
    (duckdb.NotImplementedException, "", errors.NotSupportedError),
    (duckdb.ConstraintException, "", errors.IntegrityError),
    (duckdb.OutOfMemoryException, "", errors.LimitExceededError),
    (duckdb.InterruptException, "", errors.JobCancelledError),
    (duckdb.PermissionException, "", errors.ProgrammingError),
    (duckdb.IOException, "", errors.ProgrammingError),
    (duckdb.InternalException, r"threw an execution error", errors.DataError),
    (duckdb.Error, r"^Parameter not supported", errors.ParameterError),
)
"""The first row whose exception class and pattern (searched in the message) both match decides."""

_ADVICE: Final[dict[type[errors.Error], str]] = {
    errors.LimitExceededError: (
        "; the kernel's memory limit is reached: read fewer rows or columns, or start the members with a higher limit"
    ),
    errors.JobCancelledError: ": the kernel call was stopped on request",
    errors.InternalError: "; this is a bug, please report it",
}
_FORBIDDEN: Final = "; statements cannot read files, load extensions or change the configuration of the members"

_INFALLIBLE: Final = re.compile(r"^Scalar function .* threw an execution error, but .*? Error: ", re.DOTALL)
"""The text that DuckDB puts around the error of a value in a function that it believed to accept every value."""
_PREFIX: Final = re.compile(r"^[A-Za-z ]+ Error: ")
_EXCERPT: Final = re.compile(r"\s*\n\s*LINE \d+:.*", re.DOTALL)
"""The excerpt and everything behind it show the SQL of the fragment, which is not the user's text."""
_SETTINGS_HINT: Final = re.compile(
    r"\s*\n\s*(?:Possible solutions:|See also https|Database is launched in in-memory|Use \"?SET ).*|, or SET [^.]*",
    re.DOTALL,
)
"""DuckDB's advice to change settings, which are locked here; secateur's own advice takes its place."""
_STACK: Final = re.compile(r"\s*\n\s*Stack Trace:.*", re.DOTALL)
"""The stack trace that DuckDB adds to an internal error shows addresses in its library, which help no user."""
_SYSTEM_HINT: Final = re.compile(r'\s*Did you mean "(?:pg_|duckdb_|sqlite_|pragma_|information_schema)[^"]*"\?')
"""DuckDB offers names of its own catalog, none of which a statement should use."""
_PREPARE: Final = "PREPARE statement AS "
_lock: Final = threading.Lock()


def translated(error: duckdb.Error) -> errors.Error:
    """Return our error for ``error``, with DuckDB's useful text and without its excerpt of the fragment's SQL."""
    # Some releases of Python drop a message that is not valid UTF-8, and keep the class of the error.
    text = _message(str(error)) or f"DuckDB raised {type(error).__name__}; its message is not valid UTF-8"
    target = next(
        (target for source, pattern, target in _MEANING if isinstance(error, source) and re.search(pattern, text)), None
    )
    if target is None:
        # Python has classes for DuckDB's common kinds of errors, and the base class for the others; those of DuckDB
        # itself have classes.
        target = errors.DataError if type(error) is duckdb.Error else errors.InternalError
    advice = (
        _FORBIDDEN if isinstance(error, (duckdb.PermissionException, duckdb.IOException)) else _ADVICE.get(target, "")
    )
    return target(_INFALLIBLE.sub("", text) + advice)


def unreadable(error: UnicodeDecodeError) -> errors.DataError:
    """Return the error for a message of DuckDB that is not valid UTF-8, of which Python does not report the kind."""
    return errors.DataError(_message(error.object.decode(errors="replace")))


def _message(text: str) -> str:
    """Return DuckDB's message without its excerpt of the fragment."""
    text = _PREFIX.sub("", text)
    for noise in (_EXCERPT, _SETTINGS_HINT, _SYSTEM_HINT, _STACK):
        text = noise.sub("", text)
    return text.strip().removesuffix("!")


@dataclass(frozen=True, slots=True)
class ErrorPosition:
    """DuckDB's error about a text that does not bind, and its place in the text, in characters.

    It is needed only after a statement has failed to bind, so it may take time.

    DuckDB reports the position only if errors are JSON and statements are prepared by SQL, which the kernel's own
    database is not configured for. So a second database is asked, as closed as that one, in which the statement's
    relations are empty tables.
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
    with _lock, _database_of_positions().cursor() as cursor:
        try:
            for name, schema in relations.items():
                columns = (
                    ", ".join(f"{quoted(column)} {kind}" for column, kind in schema.items())
                    or '"rows without columns" BOOLEAN'
                )
                cursor.execute(f"CREATE TEMP TABLE {quoted(name)} ({columns})")
            cursor.execute(_PREPARE + sql)
        except (duckdb.Error, UnicodeDecodeError) as error:
            return _position_in(_text_of(error), sql)
    return None


def syntax_error_position(sql: str) -> ErrorPosition | None:
    """Return the syntax error of a text of any kind and its position.

    None when it parses, or when DuckDB reports no position.
    """
    with _lock, _database_of_positions().cursor() as cursor:
        try:
            cursor.extract_statements(sql)
        except (duckdb.Error, UnicodeDecodeError) as error:
            return _position_in(_text_of(error), sql, "")
    return None


def _text_of(error: duckdb.Error | UnicodeDecodeError) -> str:
    """The message, also where it was cut off inside of a character, and Python has none of it."""
    return error.object.decode(errors="replace") if isinstance(error, UnicodeDecodeError) else str(error)


def _position_in(text: str, sql: str, prefix: str = _PREPARE) -> ErrorPosition | None:
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
def _database_of_positions() -> duckdb.DuckDBPyConnection:
    database = open_database(threads="1", async_threads="0")
    for setting, value in (
        ("enable_external_access", "false"),
        ("errors_as_json", "true"),
        ("TimeZone", "'UTC'"),
        ("lock_configuration", "true"),
    ):
        database.execute(f"SET GLOBAL {setting} = {value}")
    return database
