"""SHOW, DESCRIBE and SUMMARIZE as queries over the system tables, or over columns that the planner knows.

::

    SHOW TABLES | SHOW ALL TABLES | SHOW DATABASES | SHOW SCHEMAS
    SHOW MEMBERS | SHOW JOBS | SHOW STATEMENTS | SHOW PARTITIONS
    SHOW TOKENS | SHOW ROLES | SHOW GRANTS | SHOW POLICIES
    SHOW CREATE {TABLE | VIEW} t
    {DESCRIBE | DESC | SHOW [COLUMNS FROM]} [TABLE] t   |   {DESCRIBE | DESC} <query>
    SUMMARIZE {t | <query>}

Columns and their names are DuckDB's, except that DESCRIBE of a query does not determine keys and NOT NULL. A table or
view that is named as a system table is described, as it is in DuckDB. SHOW of a setting is handled in
``planner/set_option.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from secateur.errors import AuthenticationError, DatabaseError, UnknownTableError
from secateur.partitioning.tables.table import ExternalTable, TableDef
from secateur.partitioning.types.sql_text import quoted, text_literal
from secateur.planner.text.token_cursor import TokenCursor
from secateur.planner.text.tokens import Token, tokenize
from secateur.planner.views import ViewDef

_QUERIES: Final = ("SELECT", "WITH", "FROM", "VALUES", "(")
_DESCRIBED: Final = ("column_name", "column_type", "null", "key", "default", "extra")
_TABLES: Final = "SELECT table_name AS name FROM secateur.tables ORDER BY name"
_ALL_TABLES: Final = (
    "SELECT 'secateur' AS database, 'main' AS schema, table_name AS name, list(column_name ORDER BY position) AS"
    " column_names, list(data_type ORDER BY position) AS column_types, false AS temporary FROM secateur.columns GROUP"
    " BY table_name ORDER BY name"
)
_LISTED: Final = {
    ("ALL", "TABLES"): _ALL_TABLES,
    ("DATABASES",): "SELECT 'secateur' AS database_name",
    ("SCHEMAS",): "SELECT 'secateur' AS database_name, schema_name, schema_name = 'main' AS current"
    " FROM information_schema.schemata ORDER BY schema_name",
}
_SYSTEM_TABLES: Final = {
    "members": "id",
    "jobs": "submitted DESC",
    "statements": "started DESC",
    "partitions": "table_name, partition",
    "tokens": "created, id",
    "roles": "name",
    "grants": "role, token, table_name, privilege",
    "policies": "table_name, policy_name",
}
"""System tables that SHOW lists by their bare names, and in which order."""


@dataclass(frozen=True, slots=True)
class AboutQuery:
    """A statement about a query of the user, or about a table of another schema than main.

    Attributes:
        sql: The text that has the query; that of the statement, if it is the user's.
        tokens: Those of the query.
        is_summary: Whether minimum, maximum and the like of every column are asked for, or else the columns.
    """

    sql: str
    tokens: tuple[Token, ...]
    is_summary: bool


def read_show(
    cursor: TokenCursor,
    find: Callable[[TokenCursor], TableDef | ViewDef | ExternalTable],
    find_in_schema: Callable[[str, str], object],
) -> str | AboutQuery:
    """Read a statement that begins with SHOW, DESCRIBE, DESC or SUMMARIZE: the query that answers it.

    Raises:
        UnknownTableError: With the position of the name.
    """
    word = cursor.take().text.upper()
    if word == "SUMMARIZE":
        if cursor.at_end:
            raise cursor.expected("a table or a query")
        if any(map(cursor.at, _QUERIES)):
            return AboutQuery(cursor.sql, cursor.rest(), is_summary=True)
        if _has_schema(cursor):
            return _about_table_in_schema(cursor, find_in_schema, is_summary=True)
        return _ended(cursor, summarized_sql(f"SELECT * FROM {quoted(find(cursor).name)}"))
    if word == "SHOW":
        if cursor.accept("TABLES"):
            if cursor.accept("FROM"):
                cursor.expect("MAIN")
            return _ended(cursor, _TABLES)
        for words, sql in _LISTED.items():
            if cursor.accept(*words):
                return _ended(cursor, sql)
        if cursor.accept("CREATE", "TABLE") or cursor.accept("CREATE", "VIEW"):
            return _ended(cursor, f"SELECT sql FROM secateur.tables WHERE table_name = {_text(find(cursor).name)}")
        if (named := _system_table(cursor)) is not None:
            with suppress(UnknownTableError, AuthenticationError):
                return described_relation_sql(find(cursor))
            return f"SELECT * FROM secateur.{named} ORDER BY {_SYSTEM_TABLES[named]}"
        cursor.accept("COLUMNS", "FROM")
    elif any(map(cursor.at, _QUERIES)):
        return AboutQuery(cursor.sql, cursor.rest(), is_summary=False)
    if cursor.at_end:
        return _ALL_TABLES
    cursor.accept("TABLE")
    if _has_schema(cursor):
        return _about_table_in_schema(cursor, find_in_schema, is_summary=False)
    return _ended(cursor, described_relation_sql(find(cursor)))


def _has_schema(cursor: TokenCursor) -> bool:
    """Whether a name in a schema other than main comes next, such as ``secateur.members``."""
    return cursor.at_ahead(1, ".") and not cursor.at("MAIN")


def _about_table_in_schema(cursor: TokenCursor, find: Callable[[str, str], object], *, is_summary: bool) -> AboutQuery:
    start, schema = cursor.offset, cursor.name("the name of a schema")
    cursor.expect(".")
    name = cursor.name("the name of a table")
    try:
        find(schema, name)
    except DatabaseError as error:
        raise cursor.error(type(error), error.message, start, cursor.end - start, **error.details) from None
    query = _ended(cursor, f"SELECT * FROM {quoted(schema)}.{quoted(name)}")
    return AboutQuery(query, tuple(tokenize(query)), is_summary)


def described_sql(columns: Iterable[tuple[str, str]]) -> str:
    """Return the query that answers DESCRIBE for columns of known names and types."""
    return _described_rows([(name, kind, "YES", None, None) for name, kind in columns])


def summarized_sql(query: str) -> str:
    """The query that answers SUMMARIZE for the text of a query."""
    return f"SELECT * FROM (SUMMARIZE {query})"


def _system_table(cursor: TokenCursor) -> str | None:
    """The system table that is the last word of a statement."""
    token = cursor.peek()
    name = "" if token is None else token.text.lower()
    return name if name in _SYSTEM_TABLES and cursor.peek(1) is None else None


def _ended(cursor: TokenCursor, sql: str) -> str:
    cursor.expect_end()
    return sql


def described_relation_sql(relation: TableDef | ViewDef | ExternalTable) -> str:
    """The query that answers DESCRIBE for a table or view."""
    match relation:
        case ViewDef():
            return described_sql(relation.columns)
        case ExternalTable(table):
            return described_relation_sql(table)
        case TableDef():
            key = relation.declared_key
            rows = [
                (
                    column.name,
                    str(column.type),
                    "YES" if column.nullable else "NO",
                    "PRI" if column.name in key else None,
                    column.default,
                )
                for column in relation.visible_columns
            ]
            return _described_rows(rows)


def _described_rows(rows: Sequence[tuple[str, str, str, str | None, str | None]]) -> str:
    listed = ", ".join(f"({', '.join(map(_text, row))}, CAST(NULL AS VARCHAR))" for row in rows)
    return f"SELECT * FROM (VALUES {listed}) AS described({', '.join(map(quoted, _DESCRIBED))})"


def _text(value: str | None) -> str:
    return "CAST(NULL AS VARCHAR)" if value is None else text_literal(value)
