"""COPY between tables and files, which the client reads and writes.

::

    COPY t [(a, b, ...)] FROM 'path' [[WITH] (option [value], ...)]
    COPY { t [(a, b, ...)] | (query) } TO 'path' [[WITH] (option [value], ...)]

Options: FORMAT (csv, parquet or json; without it, what the path suggests), HEADER, DELIMITER, QUOTE, NULL, COMPRESSION.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import TokenType

from secateur.client.files.file_options import FileFormat, FileOptions
from secateur.errors import ProgrammingError
from secateur.partitioning.table import TableDef
from secateur.planner.dml.assignments import read_column
from secateur.planner.dml.composed import Composed, Composer
from secateur.planner.dml.expressions import read_expression
from secateur.planner.dml.target import read_table
from secateur.planner.statement import CopyFrom
from secateur.planner.text.dialect import quoted
from secateur.planner.text.parameters import Parameters
from secateur.planner.text.positions import located
from secateur.planner.text.token_cursor import TokenCursor

__all__ = ["CopyQuery", "read_copy"]

_TRUE: Final = frozenset({"TRUE", "1", "ON"})
_FALSE: Final = frozenset({"FALSE", "0", "OFF"})


@dataclass(frozen=True, slots=True)
class CopyQuery:
    """COPY ... TO, not planned: the query for the rows, and the file they go to."""

    query: Composed
    options: FileOptions


def read_copy(cursor: TokenCursor, parameters: Parameters, find: Callable[[str], TableDef]) -> CopyFrom | CopyQuery:
    """Read a COPY statement.

    Args:
        cursor: At the word COPY; its tokens have numbered parameters.
        parameters: As read from the same tokens.
        find: The catalog's lookup by name.

    Raises:
        SqlSyntaxError: At the first token that cannot be.
        UnknownTableError, UnknownColumnError: With the position of the name.
        ProgrammingError: An option with a value that it cannot have.
        NotSupportedError: An option that we do not have.
    """
    cursor.expect("COPY")
    composer = Composer(cursor.sql, parameters)
    if cursor.accept("("):
        query = composer.say(read_expression(cursor, ")", what="a query")).finish()
        cursor.expect(")")
        cursor.expect("TO")
        return CopyQuery(query, _read_file(cursor))
    table = read_table(cursor, find)
    columns = tuple(column.name for column in table.columns)
    if cursor.accept("("):
        columns = (read_column(cursor, table),)
        while cursor.accept(","):
            columns = (*columns, read_column(cursor, table))
        cursor.expect(")")
    if cursor.accept("TO"):
        query = composer.say(f"SELECT {', '.join(map(quoted, columns))} FROM {quoted(table.name)}").finish()
        return CopyQuery(query, _read_file(cursor))
    if not cursor.accept("FROM"):
        raise cursor.expected("FROM or TO")
    return CopyFrom(table, columns, _read_file(cursor))


def _read_file(cursor: TokenCursor) -> FileOptions:
    """The path and the options, which end the statement."""
    path = _read_string(cursor, "the path of a file, as 'text'")
    options = FileOptions(path, FileFormat.of_path(path))
    cursor.accept("WITH")
    if cursor.accept("("):
        while True:
            options = _read_option(cursor, options)
            if not cursor.accept(","):
                break
        cursor.expect(")")
    cursor.expect_end()
    return options


def _read_option(cursor: TokenCursor, options: FileOptions) -> FileOptions:
    offset = cursor.offset
    token = cursor.take()
    match token.text.upper():
        case "FORMAT":
            return replace(options, format=_read_format(cursor))
        case "HEADER":
            return replace(options, header=_read_flag(cursor))
        case "DELIMITER" | "DELIM" | "SEP":
            return replace(options, delimiter=_read_character(cursor, "a delimiter"))
        case "QUOTE":
            return replace(options, quote=_read_character(cursor, "a quote"))
        case "NULL" | "NULLSTR":
            return replace(options, null=_read_string(cursor, "the text for NULL"))
        case "COMPRESSION":
            return replace(options, compression=cursor.take().text.lower())
        case "ARRAY" | "AUTO_DETECT":
            _read_flag(cursor)
            return options  # found out by looking at the file
        case name:
            raise _unknown_option(cursor, name, offset)


def _unknown_option(cursor: TokenCursor, name: str, offset: int) -> ProgrammingError:
    """The error for an option that COPY does not have."""
    message = f"COPY has no option {name}: it has FORMAT, HEADER, DELIMITER, QUOTE, NULL and COMPRESSION"
    return located(ProgrammingError, message, cursor.sql, offset, len(name))


def _read_format(cursor: TokenCursor) -> FileFormat:
    offset = cursor.offset
    token = cursor.take()
    try:
        return FileFormat(token.text.lower())
    except ValueError:
        message = f"{token.text!r} is no format of COPY: use csv, parquet or json"
        raise located(ProgrammingError, message, cursor.sql, offset, len(token.text)) from None


def _read_flag(cursor: TokenCursor) -> bool:
    """A boolean; nothing is true."""
    if cursor.at(",") or cursor.at(")"):
        return True
    offset = cursor.offset
    token = cursor.take()
    if token.text.upper() in _TRUE:
        return True
    if token.text.upper() not in _FALSE:
        raise located(ProgrammingError, f"{token.text!r} is neither true nor false", cursor.sql, offset, len(token.text))
    return False


def _read_character(cursor: TokenCursor, what: str) -> str:
    offset = cursor.offset
    text = _read_string(cursor, what).replace("\\t", "\t")
    if len(text) > 1:
        raise located(ProgrammingError, f"{what} is one character, not {text!r}", cursor.sql, offset, len(text))
    return text


def _read_string(cursor: TokenCursor, what: str) -> str:
    token = cursor.peek()
    if token is None or token.token_type is not TokenType.STRING:
        raise cursor.expected(what)
    return cursor.take().text
