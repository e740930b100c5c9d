"""The type of a column in a definition, and CREATE TYPE.

::

    CREATE [OR REPLACE] TYPE [IF NOT EXISTS] mood AS ENUM ('sad', 'ok', 'happy')

    <type>  := <scalar> | ENUM ('a', 'b') | <name of a type>
             | { STRUCT | ROW } (name <type>, ...) | MAP (<type>, <type>) | <type>[] | <type>[n]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from secateur.engine.kernels.duckdb.kernel import default_kernel
from secateur.errors import Error, NotSupportedError, ProgrammingError
from secateur.partitioning.tables.table import NamedType
from secateur.partitioning.types.column_type import DEPTH_MAX, LENGTH_MAX, Field, SqlType, TypeKind, parse_type
from secateur.partitioning.types.sql_text import quoted
from secateur.planner.statement import CreateType
from secateur.planner.text.token_cursor import TokenCursor, is_name
from secateur.planner.text.tokens import TokenKind

_WORDS_BEHIND: Final = ("PRECISION", "WITH", "WITHOUT", "TIME", "ZONE", "VARYING")
_REFUSED: Final = frozenset({"UNION"})


def read_type(cursor: TokenCursor, column: str, types: Mapping[str, NamedType]) -> SqlType:
    """Read the type of a column.

    Args:
        cursor: At its first token.
        column: The column's name, for messages.
        types: The named types, by case-folded name.

    Raises:
        NotSupportedError: There are no columns of it.
    """
    return _read(cursor, column, types, 0)


def _read(cursor: TokenCursor, column: str, types: Mapping[str, NamedType], depth: int) -> SqlType:
    start = cursor.offset
    if depth > DEPTH_MAX:
        raise _too_deep(cursor, column, start)
    match cursor.word() if cursor.at_ahead(1, "(") else "":
        case "STRUCT" | "ROW":
            type_ = _struct(cursor, column, types, depth)
        case "MAP":
            cursor.expect("MAP", "(")
            key = _read(cursor, column, types, depth + 1)
            if not cursor.accept(","):
                raise cursor.expected("',' and the type of the values")
            type_ = SqlType.map_of(key, _read(cursor, column, types, depth + 1))
            cursor.expect(")")
        case "ENUM":
            type_ = read_enum(cursor, f"column {column!r}")
        case _:
            type_ = _named(cursor, types) or _scalar(cursor, column)
    while cursor.accept("["):
        offset = cursor.offset
        length = None if cursor.at("]") else cursor.natural("the length of each list, or ']'")
        cursor.expect("]")
        depth += 1
        if depth > DEPTH_MAX:
            raise _too_deep(cursor, column, start)
        if length is None:
            type_ = SqlType(TypeKind.LIST, element=type_)
        elif 1 <= length <= LENGTH_MAX:
            type_ = SqlType(TypeKind.ARRAY, element=type_, length=length)
        else:
            message = f"column {column!r}: lists of the length {length}; it has to be 1 to {LENGTH_MAX}"
            raise cursor.error(NotSupportedError, message, offset, len(str(length)))
    return type_


def _struct(cursor: TokenCursor, column: str, types: Mapping[str, NamedType], depth: int) -> SqlType:
    cursor.take()
    fields: dict[str, Field] = {}

    def field(cursor: TokenCursor) -> None:
        offset = cursor.offset
        name = cursor.name(f"the name of a field of column {column!r}")
        if name.casefold() in fields:
            raise cursor.error(
                NotSupportedError,
                f"column {column!r}: a STRUCT with two fields named {name!r} (without regard to case)",
                offset,
                len(name),
            )
        fields[name.casefold()] = Field(name, _read(cursor, column, types, depth + 1))

    cursor.in_parentheses(field)
    return SqlType(TypeKind.STRUCT, fields=tuple(fields.values()))


def read_enum(cursor: TokenCursor, what: str) -> SqlType:
    """Read ``ENUM ('a', 'b')``.

    Args:
        cursor: At the word ENUM.
        what: What is of this type, for messages.

    Raises:
        NotSupportedError: There are no values, or one is there twice.
    """
    cursor.expect("ENUM")
    values: dict[str, None] = {}

    def value(cursor: TokenCursor) -> None:
        token = cursor.peek()
        if token is None or token.kind is not TokenKind.STRING:
            raise cursor.expected(f"a value of {what} as text, such as 'small'")
        if token.text in values:
            message = f"{what}: the value {token.text!r} is there twice: list it once"
            raise cursor.error(NotSupportedError, message, token.start, token.end - token.start + 1)
        values[cursor.take().text] = None

    cursor.in_parentheses(value)
    return SqlType(TypeKind.ENUM, values=tuple(values))


def _named(cursor: TokenCursor, types: Mapping[str, NamedType]) -> SqlType | None:
    token = cursor.peek()
    named = types.get(token.text.casefold()) if token is not None and is_name(token) else None
    if named is None or cursor.at_ahead(1, "."):
        return None
    cursor.take()
    return named.type


def _scalar(cursor: TokenCursor, column: str) -> SqlType:
    start = cursor.offset
    if cursor.word() in _REFUSED:
        raise cursor.unsupported(
            f"column {column!r}: the type {cursor.word()}",
            "results of queries may have it; a column may be VARCHAR, or a STRUCT",
        )
    cursor.name(f"the type of column {column!r}")
    while any(cursor.at(word) for word in _WORDS_BEHIND):
        cursor.take()
    if cursor.accept("("):
        while not cursor.accept(")"):
            if not cursor.accept(","):
                cursor.natural("a number")
    token = cursor.peek()
    text = cursor.sql[start : token.start if token else cursor.offset].strip()
    try:
        return parse_type(text)
    except NotSupportedError as error:
        raise cursor.error(NotSupportedError, f"column {column!r}: {error.message}", start, len(text)) from None


def _too_deep(cursor: TokenCursor, column: str, start: int) -> NotSupportedError:
    return cursor.error(
        NotSupportedError, f"column {column!r}: its type is nested deeper than {DEPTH_MAX} levels: use fewer", start
    )


def read_create_type(cursor: TokenCursor) -> CreateType:
    """Read a CREATE TYPE statement.

    Raises:
        NotSupportedError: A type that is no ENUM of listed values, or a schema in front of the name.
        ProgrammingError: DuckDB has a type of that name.
    """
    or_replace, if_not_exists = cursor.creates("TYPE")
    offset = cursor.offset
    name = cursor.name_in_main("the name of a type")
    if _is_known(name):
        raise cursor.error(
            ProgrammingError, f"type {name!r} is one of DuckDB's: choose another name", offset, len(name)
        )
    cursor.expect("AS")
    if not cursor.at("ENUM", "("):
        raise cursor.unsupported(f"a type of {cursor.word() or 'this kind'}", "write AS ENUM ('one', 'other')")
    if not cursor.at_ahead(2, "SELECT"):
        type_ = read_enum(cursor, f"type {name!r}")
    else:
        raise cursor.unsupported("an ENUM of a query", "list the values: AS ENUM ('one', 'other')")
    cursor.expect_end()
    return CreateType(NamedType(name, type_), or_replace, if_not_exists)


def _is_known(name: str) -> bool:
    try:
        default_kernel().describe(f"SELECT CAST(NULL AS {quoted(name)})", {})
    except Error:
        return False
    return True
