"""DELETE and TRUNCATE: the keys of the rows that go.

::

    DELETE FROM t [[AS] x] [WHERE condition]
    TRUNCATE [TABLE] t
"""

from __future__ import annotations

from collections.abc import Callable

from secateur.partitioning.table import TableDef
from secateur.planner.dml.change import ChangeQuery, inserted, read_condition
from secateur.planner.dml.target import Target, read_target
from secateur.planner.statement import ChangeKind
from secateur.planner.text.dialect import quoted
from secateur.planner.text.token_cursor import TokenCursor

__all__ = ["read_delete", "read_truncate"]


def read_delete(cursor: TokenCursor, find: Callable[[str], TableDef]) -> ChangeQuery:
    """Read a DELETE statement.

    Args:
        cursor: At the word DELETE; its tokens have numbered parameters.
        find: The catalog's lookup by name.

    Raises:
        SqlSyntaxError: At the first token that cannot be.
        UnknownTableError: With the position of the name.
        NotSupportedError: A form that we do not have.
    """
    cursor.expect("DELETE")
    query = cursor.rest()
    cursor.expect("FROM")
    target = read_target(cursor, find)
    if cursor.at("USING"):
        raise cursor.unsupported("USING", "say in WHERE which rows go, with a subquery over a replicated table, or with values as parameters")
    where = read_condition(cursor, "WHERE or the end of the statement")
    keys = _keys(target)
    tokens = [*(token for token in query if token.start < target.end), *inserted(keys, target.end), *where]
    return ChangeQuery(target, ChangeKind.DELETE, tuple(tokens), ((target.end, target.end, keys),), target.table.primary_key)


def read_truncate(cursor: TokenCursor, find: Callable[[str], TableDef]) -> ChangeQuery:
    """Read a TRUNCATE statement, which is a DELETE without a condition.

    Args:
        cursor: At the word TRUNCATE.
        find: The catalog's lookup by name.

    Raises:
        SqlSyntaxError: At the first token that cannot be.
        UnknownTableError: With the position of the name.
    """
    start = cursor.offset
    cursor.expect("TRUNCATE")
    cursor.accept("TABLE")
    query = cursor.rest()
    target = read_target(cursor, find)
    cursor.expect_end()
    keys = _keys(target)
    tokens = [*inserted("FROM", start), *query, *inserted(keys, target.end)]
    return ChangeQuery(target, ChangeKind.DELETE, tuple(tokens), ((start, target.start, "FROM "), (target.end, target.end, keys)), target.table.primary_key)


def _keys(target: Target) -> str:
    return f" SELECT {', '.join(f'{quoted(target.alias)}.{quoted(name)}' for name in target.table.primary_key)}"
