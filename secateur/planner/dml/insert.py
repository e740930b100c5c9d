"""INSERT: rows given as VALUES are evaluated here, rows from a query become a query whose columns have the types of the table.

::

    INSERT [OR REPLACE | OR IGNORE] INTO t [AS x] [(a, b, ...)] [BY NAME] { VALUES (...), ... | <query> } [ON CONFLICT ...]

Each value is cast to the type of its column by itself, as the dialect does it; columns that are not named become NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlglot import Token, TokenType

from secateur.engine.kernels.duckdb_kernel import default_kernel
from secateur.errors import ProgrammingError, UnknownColumnError
from secateur.partitioning.conform import conform
from secateur.partitioning.distinct_keys import first_of_each_key
from secateur.partitioning.table import TableDef
from secateur.planner.dml.conflict import DoUpdate, read_conflict
from secateur.planner.dml.expressions import read_expression
from secateur.planner.dml.target import read_table
from secateur.planner.query import near_names, spliced
from secateur.planner.statement import InsertMode, InsertRows, InsertShape
from secateur.planner.text.dialect import quoted
from secateur.planner.text.parameters import Parameters
from secateur.planner.text.positions import located
from secateur.planner.text.token_cursor import TokenCursor

__all__ = ["InsertQuery", "InsertValues", "read_insert"]

_OPENING: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
_CLOSING: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})
_LITERALS: Final = frozenset({TokenType.STRING, TokenType.NUMBER, TokenType.NULL, TokenType.TRUE, TokenType.FALSE})
_CELLS_MAX: Final = 1000
"""A longer statement is evaluated by the controller: the longer it is, the less what asking costs matters."""


@dataclass(frozen=True, slots=True)
class InsertValues:
    """INSERT ... VALUES, not evaluated.

    Attributes:
        table: The table.
        columns: Those that get the values, in order.
        sql: The query that evaluates them.
        mode: What happens to keys that are there already.
        shape: How the rows come from the parameters, when a client can make them by itself; else None.
    """

    table: TableDef
    columns: tuple[str, ...]
    sql: str
    mode: InsertMode
    shape: InsertShape | None

    def evaluate(self, params: Sequence[Any]) -> InsertRows:
        """The rows for these parameters.

        Raises:
            DataError: A value that its column cannot hold.
            NullKeyError: NULL, or nothing, for a column that is NOT NULL.
        """
        rows = conform(default_kernel().run(self.sql, {}, list(params), names=list(self.columns)), self.table)
        if self.mode is InsertMode.UPSERT:
            rows = first_of_each_key(rows, self.table)
        return InsertRows(self.table, rows, self.mode, self.shape)


@dataclass(frozen=True, slots=True)
class InsertQuery:
    """INSERT ... SELECT, not planned.

    Attributes:
        table: The table.
        columns: Those that get the query's columns, in order; None for BY NAME.
        query: The tokens of the query.
        mode: What happens to keys that are there already.
    """

    table: TableDef
    columns: tuple[str, ...] | None
    query: tuple[Token, ...]
    mode: InsertMode


def read_insert(cursor: TokenCursor, parameters: Parameters, find: Callable[[str], TableDef]) -> InsertValues | InsertQuery:
    """Read an INSERT statement.

    Args:
        cursor: At the word INSERT; its tokens have numbered parameters.
        parameters: As read from the same tokens.
        find: The catalog's lookup by name.

    Raises:
        SqlSyntaxError: At the first token that cannot be.
        UnknownTableError, UnknownColumnError: With the position of the name.
        ProgrammingError: A row with more or fewer values than columns, or a column named twice.
        NotSupportedError: A form that we do not have.
    """
    cursor.expect("INSERT")
    mode = InsertMode.APPEND
    if cursor.accept("OR", "REPLACE"):
        mode = InsertMode.UPSERT
    elif cursor.accept("OR"):
        cursor.expect("IGNORE")
        mode = InsertMode.IGNORE
    cursor.expect("INTO")
    table = read_table(cursor, find)
    if cursor.accept("AS"):
        cursor.name("an alias")
    columns: tuple[str, ...] | None = tuple(column.name for column in table.columns)
    if cursor.at("(") and not (cursor.at("(", "SELECT") or cursor.at("(", "WITH") or cursor.at("(", "FROM") or cursor.at("(", "VALUES")):
        columns = _read_columns(cursor, table)
    if cursor.accept("BY", "NAME"):
        columns = None
    elif cursor.accept("BY"):
        cursor.expect("POSITION")
    if cursor.at("DEFAULT"):
        raise cursor.unsupported("DEFAULT VALUES", "give the values of the primary key at least")
    if not cursor.at("VALUES"):
        if cursor.at_end:
            raise cursor.expected("VALUES or a query")
        query = cursor.rest()
        span = read_expression(cursor, "ON CONFLICT", "RETURNING")
        mode = _read_end(cursor, table, mode)
        return InsertQuery(table, columns, tuple(token for token in query if token.start < span.end), mode)
    if columns is None:
        raise cursor.unsupported("BY NAME with VALUES", "name the columns behind the table")
    rows = _read_rows(cursor, columns)
    mode = _read_end(cursor, table, mode)
    return InsertValues(table, columns, _values_query(cursor.sql, table, columns, rows, parameters), mode, _shape(columns, rows, parameters, mode))


def _read_end(cursor: TokenCursor, table: TableDef, mode: InsertMode) -> InsertMode:
    conflict = read_conflict(cursor, table, mode)
    if isinstance(conflict, DoUpdate):
        raise cursor.unsupported("DO UPDATE", "use INSERT OR REPLACE to replace rows")
    if cursor.at("RETURNING"):
        raise cursor.unsupported("RETURNING", "read the rows with SELECT")
    cursor.expect_end()
    return conflict


def _read_columns(cursor: TokenCursor, table: TableDef) -> tuple[str, ...]:
    declared = {column.name.casefold(): column.name for column in table.columns}
    found: list[str] = []
    cursor.expect("(")
    while True:
        offset = cursor.offset
        name = cursor.name("a column")
        column = declared.get(name.casefold())
        if column is None:
            message = f"table {table.name} has no column {name!r}; {near_names(name, list(declared.values()))}"
            raise located(UnknownColumnError, message, cursor.sql, offset, len(name), table=table.name)
        if column in found:
            raise located(ProgrammingError, f"column {column!r} is named twice", cursor.sql, offset, len(name))
        found.append(column)
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Value:
    """Where a value stands in the text; ``is_literal`` when it is one token that is. DEFAULT, which is NULL, is a literal of no length."""

    start: int
    end: int
    is_literal: bool


_DEFAULT: Final = _Value(0, 0, True)


def _read_rows(cursor: TokenCursor, columns: Sequence[str]) -> list[list[_Value]]:
    cursor.expect("VALUES")
    rows: list[list[_Value]] = []
    while True:
        offset = cursor.offset
        values = _read_row(cursor)
        if len(values) != len(columns):
            message = f"row {len(rows) + 1} has {len(values)} value{'' if len(values) == 1 else 's'} for the {len(columns)} columns {', '.join(columns)}"
            raise located(ProgrammingError, message, cursor.sql, offset)
        rows.append(values)
        if not cursor.accept(","):
            break
    return rows


def _values_query(sql: str, table: TableDef, columns: Sequence[str], rows: Sequence[Sequence[_Value]], parameters: Parameters) -> str:
    """The query that evaluates the rows, each value cast to the type of its column."""
    types = [str(table.column(name).type) for name in columns]
    numbered = [(start, end, f"${index + 1}") for start, end, index in parameters.spans]
    texts = []
    for row in rows:
        values = ("NULL" if value is _DEFAULT else spliced(sql, value.start, value.end, numbered) for value in row)
        texts.append(f"({', '.join(f'CAST({text} AS {type_})' for text, type_ in zip(values, types, strict=True))})")
    return f"SELECT * FROM (VALUES {', '.join(texts)}) AS v({', '.join(map(quoted, columns))})"


def _shape(columns: Sequence[str], rows: Sequence[Sequence[_Value]], parameters: Parameters, mode: InsertMode) -> InsertShape | None:
    """What a client can make the rows from by itself; None when it cannot, or it is not worth its while."""
    if mode is InsertMode.UPSERT and len(rows) > 1:
        return None  # whether two rows have one key is for the controller to see
    if not parameters.count or len(rows) * len(columns) > _CELLS_MAX:
        return None
    index_of = {(start, end): index for start, end, index in parameters.spans}
    if not all(value.is_literal or (value.start, value.end) in index_of for row in rows for value in row):
        return None
    cells = tuple(tuple(index_of.get((value.start, value.end)) for value in row) for row in rows)
    return InsertShape(tuple(columns), cells, parameters.count, parameters.names)


def _read_row(cursor: TokenCursor) -> list[_Value]:
    cursor.expect("(")
    values: list[_Value] = []
    while True:
        if cursor.at("DEFAULT", ",") or cursor.at("DEFAULT", ")"):
            cursor.take()
            values.append(_DEFAULT)
        else:
            values.append(_read_value(cursor))
        if cursor.accept(")"):
            return values
        if not cursor.accept(","):
            raise cursor.expected("',' or ')'")


def _read_value(cursor: TokenCursor) -> _Value:
    start, end, depth = cursor.offset, cursor.offset, 0
    kinds: list[TokenType] = []
    while depth or not (cursor.at(",") or cursor.at(")")):
        token = cursor.take()
        end = token.end + 1
        kinds.append(token.token_type)
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
    if start == end:
        raise cursor.expected("a value")
    return _Value(start, end, len(kinds) == 1 and kinds[0] in _LITERALS)
