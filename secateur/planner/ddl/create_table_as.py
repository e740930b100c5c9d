"""CREATE TABLE ... AS: a table with the columns of a query, and its rows.

::

    CREATE [OR REPLACE] TABLE [IF NOT EXISTS] t [(a, b, ...)] [PRIMARY KEY (a, b)]
        [PARTITION BY ...] [BACKUPS n] | [REPLICATED] AS query [WITH [NO] DATA]

The query determines the columns, the first of which may get other names; ``SELECT * FROM 'file'`` has those of a file,
which the client reads. The key cannot be inferred: where none is given, the table has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from secateur.errors import NotSupportedError, SchemeError
from secateur.partitioning.tables.table import Column
from secateur.partitioning.types.column_type import parse_type
from secateur.planner.ddl.create_table import described, read_clauses, read_create, resolved_key
from secateur.planner.ddl.table_sql import table_sql
from secateur.planner.statement import PlannedSelect
from secateur.planner.text.positions import located, syntax_error
from secateur.planner.text.token_cursor import TokenCursor
from secateur.planner.text.tokens import Token, TokenKind
from secateur.protocol.statements import CreateTableAs, CreateTableFrom


def is_create_table_as(cursor: TokenCursor) -> bool:
    """Whether the statement at the word CREATE has AS or PRIMARY KEY, or bare names, in place of columns with types."""
    table = 3 if cursor.at("CREATE", "OR", "REPLACE", "TABLE") else 1
    if not cursor.at("CREATE") or not cursor.at_ahead(table, "TABLE"):
        return False
    behind = table + (4 if cursor.at_ahead(table + 1, "IF", "NOT", "EXISTS") else 1)
    qualifier = cursor.peek(behind + 1)
    if qualifier is not None and qualifier.text == ".":
        behind += 2
    ahead = [cursor.peek(behind + offset) for offset in (1, 2)]
    words = [token.text.upper() if token is not None else "" for token in ahead]
    if words[0] == "(":
        has_bare_name = cursor.at_ahead(behind + 3, ",") or cursor.at_ahead(behind + 3, ")")
        return has_bare_name and any(token.word == "AS" for token in cursor.rest())
    return words[0] in ("AS", "PARTITION", "BACKUPS", "REPLICATED", "WITH", "COMMENT") or words == ["PRIMARY", "KEY"]


def read_create_table_as(
    cursor: TokenCursor, plan: Callable[[Sequence[Token]], PlannedSelect]
) -> CreateTableAs[PlannedSelect] | CreateTableFrom:
    """Read the statement: the table that a query makes, or a file, where that is ``FROM 'file'``.

    Raises:
        SchemeError: A key column that the query does not have, or a partition scheme that cannot be.
        SqlSyntaxError: It names more columns than the query has.
        NotSupportedError: A column of a type that tables do not have, or other names for the columns of a file.
    """
    or_replace, if_not_exists = read_create(cursor)
    offset = cursor.offset
    name = cursor.name_in_main("the name of a table")
    renamed = cursor.names("a column") if cursor.at("(") else ()
    key_offset = cursor.offset if cursor.at("PRIMARY", "KEY") else None
    key = cursor.names("a column") if cursor.accept("PRIMARY", "KEY") else ()
    start = cursor.offset
    clauses = read_clauses(cursor, "AS")
    clauses_text = cursor.sql[start : cursor.offset].strip()
    cursor.expect("AS")
    query, with_data = _without_data(cursor.rest())
    if not query:
        raise cursor.expected("a query")
    *words, last = query
    is_whole = [token.word for token in words] in (["FROM"], ["SELECT", "*", "FROM"])
    if is_whole and last.kind is TokenKind.STRING:
        if renamed:
            message = (
                "columns of a file keep their names: leave the names out, and ALTER TABLE ... RENAME COLUMN afterwards"
            )
            raise located(NotSupportedError, message, cursor.sql, offset)
        return CreateTableFrom(name, key, clauses_text, last.text, if_not_exists, or_replace, with_data)
    select = plan(query)
    found = select.plan.columns
    if len(renamed) > len(found):
        message = f"table {name!r} names {len(renamed)} columns, and its query has {len(found)}"
        raise syntax_error(message, cursor.sql, offset, len(name))
    named = [(renamed[at] if at < len(renamed) else own, text) for at, (own, text) in enumerate(found)]
    columns, key = _columns_of(named, key, key_offset or 0, cursor.sql, query[0].start)
    tdef = described(cursor.sql, name, columns, key, clauses, key_offset)
    create = table_sql(tdef, or_replace=or_replace)
    return CreateTableAs(tdef, if_not_exists, or_replace, create, select if with_data else None)


def _without_data(query: tuple[Token, ...]) -> tuple[tuple[Token, ...], bool]:
    """A query without WITH [NO] DATA behind it, and whether its rows are wanted."""
    words = [token.text.upper() for token in query[-3:]]
    if words == ["WITH", "NO", "DATA"]:
        return query[:-3], False
    return (query[:-2] if words[-2:] == ["WITH", "DATA"] else query), True


def _columns_of(
    found: Sequence[tuple[str, str]], key: tuple[str, ...], key_offset: int, sql: str, start: int
) -> tuple[list[Column], tuple[str, ...]]:
    """The columns of a table by their names and types, and its key as they spell it."""
    names = {name.casefold(): name for name, _ in found}
    if len(names) < len(found):
        message = "the query has two columns of one name (without regard to case): give each its own with AS"
        raise located(SchemeError, message, sql, start)
    key = resolved_key(sql, key, key_offset, list(names.values()), "the query")
    columns = []
    for name, text in found:
        try:
            columns.append(Column(name, parse_type(text), nullable=name not in key))
        except NotSupportedError as error:
            message = f"column {name!r}: {error.message}: CAST it in the query"
            raise located(NotSupportedError, message, sql, start) from None
    return columns, key
