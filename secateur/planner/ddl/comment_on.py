"""COMMENT ON: a text about a table or a column, for people and for the tools that show it.

::

    COMMENT ON TABLE t IS 'text' | NULL
    COMMENT ON COLUMN t.c IS 'text' | NULL
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from secateur.partitioning.tables.table import TableDef
from secateur.planner.dml.assignments import read_column
from secateur.planner.dml.target import found, read_table
from secateur.planner.statement import CommentOn
from secateur.planner.text.token_cursor import TokenCursor
from secateur.planner.text.tokens import TokenKind

_TEXTS: Final = frozenset({TokenKind.STRING, TokenKind.DOLLAR_STRING})


def read_comment_on(cursor: TokenCursor, find: Callable[[str], TableDef]) -> CommentOn:
    """Read a COMMENT ON statement.

    Args:
        cursor: At the word COMMENT.
        find: The catalog's lookup by name.

    Raises:
        SqlSyntaxError: At the first token that cannot be.
        UnknownTableError, UnknownColumnError: With the position of the name.
        NotSupportedError: It is about something else than a table or a column of one.
    """
    cursor.expect("COMMENT", "ON")
    column = None
    if cursor.accept("TABLE"):
        table = read_table(cursor, find)
    elif cursor.accept("COLUMN"):
        if cursor.at("MAIN", ".") and cursor.at_ahead(3, "."):
            cursor.expect("MAIN", ".")
        table = found(cursor, cursor.name("the name of a table"), find)
        cursor.expect(".")
        column = read_column(cursor, table)
    else:
        raise cursor.unsupported(f"COMMENT ON {cursor.word()}", "tables and their columns have comments")
    cursor.expect("IS")
    comment = None if cursor.accept("NULL") else read_text(cursor, "a text in single quotes, or NULL")
    cursor.expect_end()
    return CommentOn(table, column, comment)


def read_text(cursor: TokenCursor, what: str) -> str:
    """Read a text in quotes.

    Raises:
        SqlSyntaxError: Something else comes next; ``what`` says what was expected.
    """
    token = cursor.peek()
    if token is None or token.kind not in _TEXTS:
        raise cursor.expected(what)
    return cursor.take().text
