"""INSERT: plain VALUES are evaluated by the controller; rows of a query are cast to the types of the table.

::

    [WITH ...] INSERT [OR REPLACE | OR IGNORE] INTO t [AS x] [(a, b, ...)] [BY NAME] { VALUES (...), ... | <query> }
      [ON CONFLICT ...] [RETURNING ...]

Each value is cast to the type of its column separately, as the dialect does; columns that are not named get
their default, or NULL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from msgspec.structs import replace

from secateur.engine.kernels.duckdb.kernel import default_kernel
from secateur.errors import UnknownColumnError
from secateur.partitioning.tables.conform import conform, first_of_each_key
from secateur.partitioning.tables.row_ids import without_row_ids
from secateur.partitioning.tables.table import Column, TableDef
from secateur.partitioning.types.sql_text import quoted, text_literal
from secateur.planner.binding.evaluation import calls_only_bounded
from secateur.planner.dml.assignments import QUERY_WORDS, DoUpdate, check_conflicts, read_conflict
from secateur.planner.dml.composed import Composed, Composer
from secateur.planner.dml.row_changes import Change, ChangeText, read_returning
from secateur.planner.dml.target import read_target
from secateur.planner.dml.values import IN_LIST, Value, default_value, of_columns, read_columns, read_list, read_value
from secateur.planner.text.parameters import Parameters
from secateur.planner.text.token_cursor import TextSpan, TokenCursor, read_expression
from secateur.planner.text.tokens import TokenKind
from secateur.protocol.changes import DuplicateMatchPolicy
from secateur.protocol.statements import (
    BatchInsert,
    EvaluatedInsert,
    InsertMode,
    InsertRows,
    InsertTemplate,
    Literal,
    Statement,
    TextualParameters,
    as_texts,
    privileges_of,
)
from secateur.protocol.tokens import Privilege

_QUERY: Final = re.compile(r"\b(?:SELECT|FROM|TABLE)\b", re.IGNORECASE)
_CELLS_MAX: Final = 1000
"""A longer statement is evaluated by the controller: the longer it is, the less what asking costs matters."""


@dataclass(frozen=True, slots=True)
class InsertValues(Statement):
    """INSERT ... VALUES, before evaluation, which makes an :class:`EvaluatedInsert` of it for each call.

    Attributes:
        table: The table.
        columns: Those that get the values, in order.
        sql: The query that evaluates them.
        mode: The treatment of keys that exist already.
        template: How a client makes the rows from the parameters, if it can, with None for each literal; else None.
        rows: The place of the VALUES clause in the user's text.
        textual: The parameters that are texts to check.
    """

    is_cached = True
    table: TableDef
    columns: tuple[str, ...]
    sql: str
    mode: InsertMode
    template: InsertTemplate | None
    rows: TextSpan
    textual: TextualParameters = ()

    def evaluate(self, params: Sequence[Any], catalog_version: int) -> EvaluatedInsert:
        """The rows for these parameters.

        Raises:
            DataError: A value that its column cannot hold.
            NullKeyError: NULL, or nothing, for a column that is NOT NULL.
        """
        values = as_texts(params, self.textual)
        found = default_kernel().run(self.sql, {}, values, names=list(self.columns))
        rows = without_row_ids(conform(found, self.table))
        if self.mode is InsertMode.UPSERT:
            rows = first_of_each_key(rows, self.table)
        template = None if self.template is None else _with_literals(self.template, rows)
        return EvaluatedInsert(InsertRows(self.table, self.mode, catalog_version, template), rows)


def _with_literals(template: InsertTemplate, rows: pa.Table) -> InsertTemplate | None:
    """The template with the values of its literals, as the columns have them; None if Python has no object for one."""
    cells = (
        tuple(
            Literal(rows.column(name)[position].as_py()) if isinstance(cell, Literal) else cell
            for name, cell in zip(template.columns, row, strict=True)
        )
        for position, row in enumerate(template.rows)
    )
    try:
        return replace(template, rows=tuple(cells))
    except (OverflowError, ValueError):  # a day or an instant outside the years of Python
        return None


@dataclass(frozen=True, slots=True)
class ValuesRows:
    """The rows of a VALUES clause.

    Attributes:
        values: Row by row, in the order of the columns.
        span: The place of the clause in the text.
    """

    values: tuple[tuple[Value, ...], ...]
    span: TextSpan


@dataclass(frozen=True, slots=True)
class Insert(Change):
    """A parsed INSERT.

    Attributes:
        columns: Those that get the values, in order; None for BY NAME.
        source: The rows, or the query for them.
        mode: The treatment of keys that exist already.
        update: How a row that exists already is changed; None for the way of ``mode``.
    """

    columns: tuple[str, ...] | None
    source: ValuesRows | TextSpan
    mode: InsertMode
    update: DoUpdate | None

    @property
    def privileges(self) -> tuple[Privilege, ...]:
        return privileges_of(self.mode)

    @property
    def assigned(self) -> list[tuple[str, Value]]:
        found: list[tuple[str, Value]] = []
        if isinstance(self.source, ValuesRows) and self.columns is not None:
            for row in self.source.values:
                found += zip(self.columns, row, strict=True)
        return found + (list(self.update.assignments.items()) if self.update is not None else [])

    @property
    def duplicate_match(self) -> DuplicateMatchPolicy:
        return DuplicateMatchPolicy.REFUSED if self.mode is InsertMode.APPEND else DuplicateMatchPolicy.FIRST

    @property
    def is_load(self) -> bool:
        """Whether the rows can be sent to their partitions unchanged."""
        if self.returning is not None or self.update is not None:
            return False
        # A replaced row keeps the columns that are not named.
        return (
            self.mode is not InsertMode.UPSERT or self.columns is None or len(self.columns) == len(self.table.columns)
        )

    @property
    def is_computed(self) -> bool:
        """Whether members have to compute the rows of a VALUES clause.

        That is so if its values may be those of queries, or of functions that planning does not evaluate.
        """
        values = (value for row in self.source.values for value in row) if isinstance(self.source, ValuesRows) else ()
        texts = (value.text(self.sql) for value in values if value.span is not None and not value.is_literal)
        return any(_QUERY.search(text) or not calls_only_bounded(text) for text in texts)

    def values(self) -> InsertValues:
        """The rows of a VALUES clause, for a statement that is a load."""
        assert isinstance(self.source, ValuesRows)
        assert self.columns is not None
        # Defaults are in the query, so that all values of a statement are of one moment.
        absent = [name for name in self.table.defaults if name not in self.columns]
        columns = (*self.columns, *absent)
        template = _template(columns, self._rows(self.source, absent), self.parameters, self.mode)
        composer = Composer(self.sql, self.parameters, self.ctes).say("SELECT * FROM ")
        # Lists may have any length here: who evaluates the query names the column of one that is wrong.
        self.say_rows(composer, self.columns, absent, of_any_length=True)
        return InsertValues(self.table, columns, composer.finish().text, self.mode, template, self.source.span)

    def query(self) -> Composed:
        """The query for the rows; that of VALUES has each value cast to the type of its column."""
        composer = Composer(self.sql, self.parameters, self.ctes)
        if isinstance(self.source, TextSpan) and self.ctes is None:
            return composer.say(self.source).finish()
        if isinstance(self.source, TextSpan):
            return composer.say("SELECT * FROM (", self.source, ")").finish()
        assert self.columns is not None
        return self.cast_query(self.columns)

    def batch(self, *, is_row_compiled: bool) -> BatchInsert | None:
        """Return the form of the statement for executemany.

        None unless it has one row, of parameters and literals, and no parameter elsewhere.
        """
        source, columns = self.source, self.columns
        if (
            not isinstance(source, ValuesRows)
            or columns is None
            or len(source.values) != 1
            or self.ctes is not None
            or self.returning is not None
        ):
            return None
        (row,) = source.values
        cells = tuple(
            (value.parameter, name) for value, name in zip(row, columns, strict=True) if value.parameter is not None
        )
        if not all(value.is_plain or value.span is None for value in row) or len(cells) < len(self.parameters.spans):
            return None
        table = self.table
        if any(
            name not in {name for _, name in cells} or table.column(name).type.is_float for name in table.primary_key
        ):
            return None  # NaN is a key of its own each time to a client
        composer = Composer(self.sql, self.parameters).say(self.sql[: source.span.start], "SELECT ")
        number = 0
        for position, (value, name) in enumerate(zip(row, columns, strict=True)):
            number += value.parameter is not None
            # With their type in the text, all lists of values have one plan.
            listed = f"unnest(CAST(${number} AS {table.column(name).type}[]))"
            composer.say(", " if position else "", *(value.words if value.parameter is None else (listed,)))
        return BatchInsert(composer.say(self.sql[source.span.end :]).finish().text, cells, is_row_compiled)

    def cast_query(self, columns: Sequence[str]) -> Composed:
        """The query, its columns cast to the types of those of the table, and with their names."""
        composer = Composer(self.sql, self.parameters, self.ctes)
        self.say_rows(composer.say("SELECT * FROM "), columns)
        return composer.finish()

    def say_rows(
        self,
        composer: Composer,
        columns: Sequence[str],
        absent: Sequence[str] = (),
        *,
        of_any_length: bool = False,
    ) -> None:
        """Say the rows as an item of a FROM clause, with the names and types of columns of the table.

        Args:
            composer: Receives the text.
            columns: Those that the rows have, in order.
            absent: Others, which get their default.
            of_any_length: Whether lists of these types may have any length.
        """
        names = (*columns, *absent)
        types = {name: self.table.column(name).type for name in names}
        cast_to = {name: type_.of_any_length if of_any_length else type_ for name, type_ in types.items()}
        if isinstance(self.source, TextSpan):
            given = [f"c{position}" for position in range(len(columns))]
            values = [*given, *(self.table.column(name).default or "NULL" for name in absent)]
            items = (
                f"CAST({value} AS {cast_to[name]}) AS {quoted(name)}" for value, name in zip(values, names, strict=True)
            )
            composer.say(
                f"(SELECT {', '.join(items)} FROM (\n", self.source, f"\n) AS source({', '.join(given)})) AS v"
            )
            return
        composer.say("(VALUES ")
        for number, row in enumerate(self._rows(self.source, absent)):
            composer.say(", (" if number else "(")
            for position, (value, name) in enumerate(zip(row, names, strict=True)):
                composer.say(", " if position else "", "CAST(", *value.words, f" AS {cast_to[name]})")
            composer.say(")")
        composer.say(f") AS v({', '.join(map(quoted, names))})")

    def _rows(self, source: ValuesRows, absent: Sequence[str]) -> list[tuple[Value, ...]]:
        """The rows of the clause, with the defaults of other columns behind their values."""
        defaults = [default_value(self.table.column(name)) for name in absent]
        return [(*row, *defaults) for row in source.values]


def read_insert(text: ChangeText) -> Insert:
    """Read an INSERT statement.

    Raises:
        UnknownTableError, UnknownColumnError: With the position of the name.
        ProgrammingError: A row with more or fewer values than columns, or a column named twice.
        NotSupportedError: A form that we do not have.
    """
    cursor = text.cursor
    cursor.expect("INSERT")
    mode, start = InsertMode.APPEND, cursor.offset
    if cursor.accept("OR", "REPLACE"):
        mode = InsertMode.UPSERT
    elif cursor.accept("OR"):
        cursor.expect("IGNORE")
        mode = InsertMode.IGNORE
    cursor.expect("INTO")
    target = read_target(cursor, text.find, of_insert=True)
    table = target.table
    if mode is not InsertMode.APPEND:
        check_conflicts(cursor, table, start)
    columns: tuple[str, ...] | None = tuple(column.name for column in table.visible_columns)
    if cursor.at("(") and not any(cursor.at("(", word) for word in (*QUERY_WORDS, "(")):
        columns = read_columns(cursor, table)
    if cursor.accept("BY", "NAME"):
        columns = None
    elif cursor.accept("BY"):
        cursor.expect("POSITION")
    source: ValuesRows | TextSpan
    start = cursor.offset
    if cursor.accept("DEFAULT", "VALUES"):
        columns = tuple(column.name for column in table.visible_columns)
        source = ValuesRows((tuple(map(default_value, table.visible_columns)),), TextSpan(start, cursor.end))
    elif cursor.at("VALUES"):
        if columns is None:
            raise cursor.unsupported("BY NAME with VALUES", "name the columns behind the table")
        rows = _read_rows(cursor, [table.column(name) for name in columns])
        source = ValuesRows(rows, TextSpan(start, cursor.end))
    else:
        source = read_expression(cursor, "ON CONFLICT", "RETURNING", what="VALUES or a query")
    mode, update = read_conflict(cursor, table, mode)
    returning = read_returning(cursor, target, text.parameters)
    return Insert(cursor.sql, text.parameters, target, text.ctes, returning, columns, source, mode, update)


def _read_rows(cursor: TokenCursor, columns: Sequence[Column]) -> tuple[tuple[Value, ...], ...]:
    cursor.expect("VALUES")
    rows: list[tuple[Value, ...]] = []
    while True:
        offset = cursor.offset
        rows.append(of_columns(cursor, read_list(cursor, _read_cell), columns, offset, f"row {len(rows) + 1} has "))
        if not cursor.accept(",") or not cursor.at("("):  # the dialect takes a comma behind the last row
            return tuple(rows)


def _read_cell(cursor: TokenCursor) -> Value | None:
    token = cursor.peek()
    if token is not None and token.kind is TokenKind.QUOTED and any(cursor.at_ahead(1, end) for end in IN_LIST):
        message = f"column {token.text!r} cannot be used here: VALUES reads no table; a text has single quotes:"
        raise cursor.error(UnknownColumnError, f"{message} {text_literal(token.text)}")
    return read_value(cursor, *IN_LIST)


def _template(
    columns: Sequence[str], rows: Sequence[Sequence[Value]], parameters: Parameters, mode: InsertMode
) -> InsertTemplate | None:
    """Return how a client makes the rows from parameters; None when it cannot, or it is not worthwhile."""
    if mode is InsertMode.UPSERT and len(rows) > 1:
        return None  # whether two rows have one key is for the controller to see
    if not parameters.count or len(rows) * len(columns) > _CELLS_MAX:
        return None
    made = [{value.span is None and not value.is_literal for value in values} for values in zip(*rows, strict=True)]
    if {True, False} in made:
        return None
    # What is made of each row anew, the client makes as for a column that is not there.
    columns = [name for name, is_made in zip(columns, made, strict=True) if is_made == {False}]
    cells: list[tuple[int | Literal, ...]] = []
    for values in rows:
        row = [value for value, is_made in zip(values, made, strict=True) if is_made == {False}]
        if not all(value.is_plain for value in row):
            return None
        cells.append(tuple(Literal(None) if value.parameter is None else value.parameter for value in row))
    return InsertTemplate(tuple(columns), tuple(cells), parameters.count, parameters.names)
