"""Translates DuckDB's exceptions to errors of secateur, by one table for binding and for execution."""

from __future__ import annotations

import re
from typing import Final

import duckdb

from secateur import errors

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
    r"\s*\n\s*(?:Possible solutions:|See also https|Database is launched in in-memory|Use \"?SET ).*", re.DOTALL
)
"""DuckDB's advice to change settings, which are locked here; secateur's own advice takes its place."""
_STACK: Final = re.compile(r"\s*\n\s*Stack Trace:.*", re.DOTALL)
"""The stack trace that DuckDB adds to an internal error shows addresses in its library, which help no user."""
_SYSTEM_HINT: Final = re.compile(r'\s*Did you mean "(?:pg_|duckdb_|sqlite_|pragma_|information_schema)[^"]*"\?')
"""DuckDB offers names of its own catalog, none of which a statement should use."""


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
