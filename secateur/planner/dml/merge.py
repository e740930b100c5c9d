"""MERGE INTO: changes the rows of a table depending on matching rows of a source.

::

    [WITH ...] MERGE INTO t [[AS] x] USING source { ON condition | USING (a, ...) }
      WHEN MATCHED [AND condition] THEN { UPDATE [SET a = value, ... | SET * | BY NAME] | DELETE | DO NOTHING | ERROR
        [message] }
      WHEN NOT MATCHED [BY TARGET] [AND condition] THEN { INSERT [[(a, ...)] VALUES (...) | * | BY NAME] | DO NOTHING
        | ERROR [message] }
      WHEN NOT MATCHED BY SOURCE [AND condition] THEN { UPDATE SET ... | DELETE | DO NOTHING | ERROR [message] }
    [RETURNING ...]

Of the clauses of one kind the first whose condition is true decides. The query for the row changes has one part for
each kind, in which only the names are visible that the dialect allows there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from secateur.engine.sql.row_changes import RowAction
from secateur.errors import ProgrammingError, SqlSyntaxError
from secateur.partitioning.tables.table import Column, TableDef
from secateur.partitioning.types.sql_text import quoted
from secateur.planner.dml.assignments import read_assignments
from secateur.planner.dml.composed import Composed, Composer
from secateur.planner.dml.row_changes import (
    Change,
    ChangeText,
    action_text,
    column_of,
    read_returning,
    row_changes_items,
    target_text,
)
from secateur.planner.dml.target import is_alias, read_target
from secateur.planner.dml.values import Value, Words, cast_words, default_value, of_columns, read_columns, read_list
from secateur.planner.text.positions import located
from secateur.planner.text.token_cursor import (
    TextSpan,
    TokenCursor,
    read_expression,
    read_parenthesized,
)
from secateur.protocol.changes import DuplicateMatchPolicy
from secateur.protocol.tokens import Privilege

_SOURCE = '"source rows"'
_BEHIND = ("WHEN", "RETURNING")


class _Kind(Enum):
    """Which rows a clause applies to."""

    MATCHED = "MATCHED"
    NOT_MATCHED = "NOT MATCHED"
    BY_SOURCE = "NOT MATCHED BY SOURCE"


class _Columns(Enum):
    """Which side's columns give the values that the statement does not name."""

    BY_POSITION = "by position"
    BY_NAME = "by name"


@dataclass(frozen=True, slots=True)
class _Clause:
    """One WHEN clause.

    Attributes:
        kind: Which rows it applies to.
        condition: A condition on them; None for all.
        action: The action; None for nothing, or for an error.
        said: The action as a value.
        values: The new values by column; or that they are the source's columns.
    """

    kind: _Kind
    condition: TextSpan | None
    action: RowAction | None
    said: Words
    values: dict[str, Value] | _Columns


@dataclass(frozen=True, slots=True)
class Merge(Change):
    """A parsed MERGE.

    Attributes:
        source: The item of a FROM clause whose rows are merged.
        alias: The source's name in the statement.
        on: When rows match: a condition, or columns that both have.
        clauses: In the order of the text.
    """

    source: TextSpan
    alias: str
    on: TextSpan | tuple[str, ...]
    clauses: tuple[_Clause, ...]

    @property
    def privileges(self) -> tuple[Privilege, ...]:
        done = {Privilege(clause.action.lower()): None for clause in self.clauses if clause.action is not None}
        return tuple(done) or (Privilege.SELECT,)

    @property
    def assigned(self) -> list[tuple[str, Value]]:
        named = (clause.values for clause in self.clauses if not isinstance(clause.values, _Columns))
        return [item for values in named for item in values.items()]

    @property
    def duplicate_match(self) -> DuplicateMatchPolicy:
        return DuplicateMatchPolicy.REFUSED

    def source_query(self) -> Composed:
        """The query for the rows of the source, to ask for its columns."""
        composer = Composer(self.sql, self.parameters, self.ctes)
        return composer.say("SELECT * FROM ", self.source).finish()

    @property
    def needs_columns(self) -> bool:
        """Whether :meth:`row_changes` needs the columns of the source."""
        return any(isinstance(clause.values, _Columns) for clause in self.clauses)

    def row_changes(self, columns: Sequence[str]) -> Composed:
        """Return the query for the row changes.

        Args:
            columns: The columns of the source; not used unless :attr:`needs_columns`.

        Raises:
            ProgrammingError: The source has another number of columns than the table, or one that the table does not
                have.
        """
        composer = Composer(self.sql, self.parameters)
        if self.ctes is not None:
            composer.say(self.ctes, ", ")
        else:
            composer.say("WITH ")
        composer.say(f"{_SOURCE} AS MATERIALIZED (SELECT * FROM ", self.source, ")")
        for number, kind in enumerate(dict.fromkeys(clause.kind for clause in self.clauses)):
            composer.say(" UNION ALL " if number else " ")
            self._say_part(composer, kind, [clause for clause in self.clauses if clause.kind is kind], columns)
        return composer.finish()

    def _say_part(self, composer: Composer, kind: _Kind, clauses: Sequence[_Clause], columns: Sequence[str]) -> None:
        """The row changes of the clauses of one kind."""
        target, table = self.target, self.table
        is_there = kind is not _Kind.NOT_MATCHED
        values = [self._values(clause, columns) for clause in clauses]
        composer.say("SELECT ")
        chosen: dict[str, Words] = {}
        for column in table.columns:
            stays: Words = (column_of(target, column.name),) if is_there else default_value(column).words
            each = [cast_words(own[column.name], column.type) if column.name in own else stays for own in values]
            chosen[column.name] = stays if all(value == stays for value in each) else _decided(clauses, each)
        action = _decided(clauses, [clause.said for clause in clauses])
        row_changes_items(composer, target, action, chosen, is_there=is_there)
        there, given = target_text(target), f"{_SOURCE} AS {quoted(self.alias)}"
        match kind:
            case _Kind.MATCHED:
                joined = f"{there} JOIN {given}"
            case _Kind.NOT_MATCHED:
                joined = f"{given} ANTI JOIN {there}"
            case _Kind.BY_SOURCE:
                joined = f"{there} ANTI JOIN {given}"
        composer.say(f" FROM {joined} ON ", *self._condition())

    def _condition(self) -> Words:
        if isinstance(self.on, TextSpan):
            return ("(", self.on, ")")
        return (
            " AND ".join(f"{column_of(self.target, name)} = {quoted(self.alias)}.{quoted(name)}" for name in self.on),
        )

    def _values(self, clause: _Clause, columns: Sequence[str]) -> dict[str, Words]:
        if not isinstance(clause.values, _Columns):
            return {name: value.words for name, value in clause.values.items()}
        table = self.table
        if clause.values is _Columns.BY_NAME:
            return {table.visible_column(name).name: (f"{quoted(self.alias)}.{quoted(name)}",) for name in columns}
        own = table.visible_columns
        if len(columns) != len(own):
            message = (
                f"the source has {len(columns)} columns for the {len(own)} of {table.name}: name the values,"
                " or say BY NAME"
            )
            raise located(ProgrammingError, message, self.sql, self.source.start, self.source.end - self.source.start)
        return {
            column.name: (f"{quoted(self.alias)}.{quoted(name)}",) for column, name in zip(own, columns, strict=True)
        }


def read_merge(text: ChangeText) -> Merge:
    """Read a MERGE statement.

    Raises:
        UnknownTableError, UnknownColumnError: With the position of the name.
        ProgrammingError: A list of values with fewer or more values than columns.
    """
    cursor = text.cursor
    cursor.expect("MERGE", "INTO")
    target = read_target(cursor, text.find)
    cursor.expect("USING")
    source, alias = _read_source(cursor)
    on: TextSpan | tuple[str, ...]
    if cursor.accept("ON"):
        on = read_expression(cursor, "WHEN", what="a condition")
    else:
        if not cursor.at("USING", "("):
            raise cursor.expected("ON or USING (columns)")
        cursor.expect("USING")
        on = cursor.names("a column")
    clauses: list[_Clause] = []
    while not clauses or cursor.at("WHEN"):
        offset = cursor.offset
        clause = _read_clause(cursor, target.table)
        if any(before.kind is clause.kind and before.condition is None for before in clauses):
            message = f"this clause is never reached: a WHEN {clause.kind.value} without a condition stands before it"
            raise cursor.error(SqlSyntaxError, message, offset, len("WHEN"))
        clauses.append(clause)
    returning = read_returning(cursor, target, text.parameters, with_action=True)
    return Merge(cursor.sql, text.parameters, target, text.ctes, returning, source, alias, on, tuple(clauses))


def _read_source(cursor: TokenCursor) -> tuple[TextSpan, str]:
    """``u``, ``u AS s``, ``(query) AS s`` or ``(query) AS s(a, b)``, and the name by which the statement calls it."""
    start, alias = cursor.offset, ""
    if cursor.at("("):
        end = read_parenthesized(cursor).end
    else:
        alias = cursor.name("the name of a table, or a query in parentheses")
        end = cursor.offset
    if cursor.accept("AS") or is_alias(cursor):
        alias = cursor.name("an alias")
        end = cursor.end
        if cursor.at("("):
            end = read_parenthesized(cursor).end
    if not alias:
        raise cursor.expected("AS and a name for the query")
    return TextSpan(start, end), alias


def _read_clause(cursor: TokenCursor, table: TableDef) -> _Clause:
    cursor.expect("WHEN")
    kind = _Kind.MATCHED
    if cursor.accept("NOT"):
        cursor.expect("MATCHED")
        kind = _Kind.NOT_MATCHED
        if cursor.accept("BY", "SOURCE"):
            kind = _Kind.BY_SOURCE
        elif cursor.accept("BY"):
            cursor.expect("TARGET")
    else:
        cursor.expect("MATCHED")
    condition = read_expression(cursor, "THEN", what="a condition") if cursor.accept("AND") else None
    cursor.expect("THEN")
    if cursor.accept("DO"):
        cursor.expect("NOTHING")
        return _Clause(kind, condition, None, ("NULL",), {})
    if cursor.accept("ERROR"):
        said: Words = (f"error('Merge error condition WHEN {kind.value}')",)
        if not (cursor.at_end or any(map(cursor.at, _BEHIND))):
            message = read_expression(cursor, *_BEHIND)
            said = (f"error('Merge error condition WHEN {kind.value}: ' || CAST((", message, ") AS VARCHAR))")
        return _Clause(kind, condition, None, said, {})
    values: dict[str, Value] | _Columns
    if kind is _Kind.NOT_MATCHED:
        if not cursor.accept("INSERT"):
            raise cursor.expected("INSERT, DO NOTHING or ERROR")
        action, values = RowAction.INSERT, _read_insert(cursor, table)
    elif cursor.accept("DELETE"):
        action, values = RowAction.DELETE, {}
    elif cursor.accept("UPDATE"):
        action, values = RowAction.UPDATE, _read_update(cursor, table, kind)
    else:
        raise cursor.expected("UPDATE, DELETE, DO NOTHING or ERROR")
    return _Clause(kind, condition, action, (action_text(action),), values)


def _read_update(cursor: TokenCursor, table: TableDef, kind: _Kind) -> dict[str, Value] | _Columns:
    if kind is _Kind.BY_SOURCE and not (cursor.at("SET") and not cursor.at("SET", "*")):
        raise cursor.expected("SET and an assignment")
    if cursor.accept("SET", "*"):
        return _Columns.BY_POSITION
    if cursor.accept("SET"):
        return read_assignments(cursor, table, *_BEHIND)
    return _read_by(cursor)


def _read_insert(cursor: TokenCursor, table: TableDef) -> dict[str, Value] | _Columns:
    if cursor.accept("*"):
        return _Columns.BY_POSITION
    if cursor.accept("DEFAULT", "VALUES"):
        return {}
    columns: Sequence[Column] = table.visible_columns
    if cursor.at("("):
        columns = [table.column(name) for name in read_columns(cursor, table)]
    elif not cursor.at("VALUES"):
        return _read_by(cursor)
    offset = cursor.offset
    cursor.expect("VALUES")
    values = of_columns(cursor, read_list(cursor), columns, offset)
    return {column.name: value for column, value in zip(columns, values, strict=True)}


def _read_by(cursor: TokenCursor) -> _Columns:
    if cursor.accept("BY", "NAME"):
        return _Columns.BY_NAME
    cursor.accept("BY", "POSITION")
    return _Columns.BY_POSITION


def _decided(clauses: Sequence[_Clause], values: Sequence[Words]) -> Words:
    """The value of the first clause whose condition is true; NULL when there is none."""
    words: list[str | TextSpan] = ["CASE"]
    for clause, value in zip(clauses, values, strict=True):
        if clause.condition is None:
            if len(words) == 1:
                return value
            return (*words, " ELSE ", *value, " END")
        words.extend((" WHEN (", clause.condition, ") THEN ", *value))
    return (*words, " END")
