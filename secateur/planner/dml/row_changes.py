"""Statements that change rows, and what they share: their target, and RETURNING over the rows that they change.

A change that reads beyond the partition of its row is a query for
:class:`~secateur.engine.sql.row_changes.RowChanges`. One member computes them for all partitions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from secateur.engine.sql.row_changes import RowAction
from secateur.errors import DataError, ProgrammingError
from secateur.partitioning.tables.row_ids import WITH_ROW_IDS
from secateur.partitioning.tables.table import Column, TableDef
from secateur.partitioning.types.coerce import coerce
from secateur.partitioning.types.column_type import TEXTUAL, TypeKind
from secateur.partitioning.types.sql_text import quoted
from secateur.planner.binding.functions import UNNESTING, aggregate_names
from secateur.planner.dml.composed import Composed, Composer
from secateur.planner.dml.target import ChangeTarget, FindTable
from secateur.planner.dml.values import Value, Words, default_value, item
from secateur.planner.text.parameters import Parameters
from secateur.planner.text.positions import located
from secateur.planner.text.syntax import SyntaxNode, nodes_of, parse_query
from secateur.planner.text.token_cursor import TextSpan, TokenCursor, read_expression
from secateur.planner.text.tokens import tokenize
from secateur.protocol.changes import DuplicateMatchPolicy
from secateur.protocol.statements import TextualParameters
from secateur.protocol.tokens import Privilege

MERGE_ACTION: Final = "merge_action"
"""The function that returns the action on the row, in the RETURNING of a MERGE."""


@dataclass(frozen=True, slots=True)
class ChangeText:
    """A statement that changes rows, before it is read.

    Attributes:
        cursor: At its first word; its tokens have numbered parameters.
        parameters: As read from the same tokens.
        find: Finds a table.
        ctes: The WITH clause in front of it.
    """

    cursor: TokenCursor
    parameters: Parameters
    find: FindTable
    ctes: TextSpan | None


@dataclass(frozen=True, slots=True)
class Returning:
    """The RETURNING clause of a change.

    Attributes:
        query: The query over the changed rows, which reads the table alone.
        names_action: Whether it has one parameter more than the statement: the action of the row.
    """

    query: Composed
    names_action: bool


@dataclass(frozen=True, slots=True)
class Change(ABC):
    """A parsed statement that changes rows."""

    sql: str
    parameters: Parameters
    target: ChangeTarget
    ctes: TextSpan | None
    returning: Returning | None

    @property
    def table(self) -> TableDef:
        """The table that it changes."""
        return self.target.table

    @property
    @abstractmethod
    def privileges(self) -> tuple[Privilege, ...]:
        """What it needs with the table."""

    @property
    @abstractmethod
    def assigned(self) -> Sequence[tuple[str, Value]]:
        """The columns that it names, with the values that it gives them."""

    @property
    def duplicate_match(self) -> DuplicateMatchPolicy:
        """The treatment of a row that is found twice."""
        return DuplicateMatchPolicy.FIRST

    def textual_parameters(self) -> TextualParameters:
        """Find the parameters that are values of columns whose texts have to be checked, as those of JSON have.

        They stand for themselves there, and nowhere else. DuckDB would make a STRUCT of a dict, and of a list one with
        elements of one type, which JSON does not ask for. So a client checks and converts such a value as it does that
        of a row which it loads, and its error names the column. Literals are checked here.

        Raises:
            DataError: A literal is none of its column; with its place.
        """
        columns = {column.name: column for column in self.table.columns if column.type.contains(TEXTUAL)}
        if not columns:
            return ()
        uses = Counter(index for _, _, index in self.parameters.spans)
        found: dict[int, Column] = {}
        for name, value in self.assigned:
            column = columns.get(name)
            if column is None:
                continue
            if value.parameter is not None and uses[value.parameter] == 1:
                # A MAP comes as pairs, which are no parameter.
                if not column.type.contains({TypeKind.MAP}):
                    found[value.parameter] = column
            elif value.span is not None and value.is_literal and column.type.kind in TEXTUAL:
                text = value.text(self.sql)
                if not text.startswith("'"):
                    continue
                try:
                    coerce(text[1:-1].replace("''", "'"), column.type, column=name)
                except DataError as error:
                    raise located(DataError, error.message, self.sql, value.span.start, len(text)) from None
        return tuple(found.items())


def target_text(target: ChangeTarget) -> str:
    """The target as an item of a FROM clause; its schema says that it is the target, which has its row ids there."""
    return f"{quoted(WITH_ROW_IDS)}.{quoted(target.table.name)} AS {quoted(target.alias)}"


def column_of(target: ChangeTarget, column: str) -> str:
    """A column of the target, as a value."""
    return f"{quoted(target.alias)}.{quoted(column)}"


def row_changes_items(
    composer: Composer, target: ChangeTarget, action: Words, values: Mapping[str, Words], *, is_there: bool = True
) -> None:
    """Write the select list of a query for row changes.

    Args:
        composer: Receives the text.
        target: The table that is changed.
        action: The action of the row.
        values: The new values by column; other columns keep theirs.
        is_there: Whether the target is visible, so that its old key and columns can be named; else columns without a
            value get their default.
    """
    table = target.table
    composer.say("CAST(", *action, ' AS VARCHAR) AS "action"')
    for position, name in enumerate(table.primary_key):
        old = column_of(target, name) if is_there else f"CAST(NULL AS {table.column(name).type})"
        composer.say(f', {old} AS "old {position}"')
    for column in table.columns:
        stays = (column_of(target, column.name),) if is_there else default_value(column).words
        composer.say(", ", *item(values.get(column.name, stays), column.type, column.name))


def action_text(action: RowAction) -> str:
    """An action as a value."""
    return f"'{action.value}'"


def read_returning(
    cursor: TokenCursor, target: ChangeTarget, parameters: Parameters, *, with_action: bool = False
) -> Returning | None:
    """Read the clause, which ends the statement and may name ``merge_action`` where ``with_action``; None without it.

    ``RETURNING expression, ...`` has the columns that the user wants of the changed rows. It is a query over those rows
    in place of the table, one line for each. It sees the old values of a deleted row, and the new values of every
    other.

    Raises:
        SqlSyntaxError: Something else comes.
        ProgrammingError: A value that is not one of a single row.
    """
    if not cursor.accept("RETURNING"):
        cursor.expect_end()
        return None
    start = cursor.offset
    composer = Composer(cursor.sql, parameters).say("SELECT ")
    names_action = False
    while True:
        if with_action and _is_action(cursor):
            cursor.take()
            composer.say(f"CAST(${parameters.total + 1} AS VARCHAR) AS {MERGE_ACTION}")
            names_action = True
        else:
            composer.say(read_expression(cursor, ","))
        if not cursor.accept(","):
            break
        composer.say(", ")
    composer.say(f" FROM {quoted(target.table.name)} AS {quoted(target.alias)}")
    query = composer.finish()
    nodes = nodes_of(parse_query(query.text, tokenize(query.text)).node)
    if any(node.get("class") == "SUBQUERY" or of_other_rows(node) for node in nodes):
        raise cursor.error(
            ProgrammingError,
            "RETURNING takes values of the changed row alone: no aggregates, windows or subqueries",
            start,
        )
    return Returning(query, names_action)


def of_other_rows(node: SyntaxNode) -> str:
    """The call of a node that is computed of other rows than one, or makes several of it, for an error; else empty."""
    name = str(node.get("function_name", "")).lower()
    if node.get("class") == "WINDOW":
        return "window functions are"
    return f"{name}() is" if name in aggregate_names() or name in UNNESTING else ""


def _is_action(cursor: TokenCursor) -> bool:
    token = cursor.peek()
    is_whole = cursor.peek(1) is None or cursor.at_ahead(1, ",")
    return token is not None and token.text.casefold() == MERGE_ACTION and is_whole
