"""CHECK: a condition over the columns of one row, which no row of a table fails.

::

    [CONSTRAINT name] CHECK (<condition>)

It passes where it is TRUE or NULL, as in SQL. Every member evaluates it when rows enter and when a log is read, so it
has to be equal for equal rows, at any time and place.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from secateur.engine.kernels.duckdb.kernel import default_kernel
from secateur.errors import Error, ProgrammingError, UnknownColumnError
from secateur.partitioning.tables.identifier import folded
from secateur.partitioning.tables.table import CheckDef, Column
from secateur.planner.binding.suggestions import similar_names
from secateur.planner.ddl.row_expression import RowExpression, row_expression
from secateur.planner.dml.expressions import TextSpan, read_parenthesized
from secateur.planner.text.token_cursor import TokenCursor
from secateur.planner.text.tokens import tokenize
from secateur.protocol.clocks import CLOCKS

_INSTEAD = "a condition is the same at any time and place: compare with a column that has the value as its DEFAULT"


@dataclass(frozen=True, slots=True)
class WrittenCheck:
    """A CHECK that was read before all columns of its table are known.

    Attributes:
        name: Its name; None if none is written.
        span: The place of the condition, in its parentheses.
    """

    name: str | None
    span: TextSpan


def read_check(cursor: TokenCursor, name: str | None) -> WrittenCheck:
    """Read what follows CHECK.

    Raises:
        SqlSyntaxError: There is no parenthesis.
    """
    if not cursor.at("("):
        raise cursor.expected("'(' and a condition")
    return WrittenCheck(name, read_parenthesized(cursor))


def checks_of(
    cursor: TokenCursor, written: Sequence[WrittenCheck], table: str, columns: Sequence[Column]
) -> tuple[CheckDef, ...]:
    """Resolve the CHECKs of a statement against the columns of its table.

    Raises:
        Error: As :func:`check_of`.
    """
    found: list[CheckDef] = []
    named = [each.name for each in written if each.name is not None]
    for each in written:
        taken = [check.name for check in found]
        found.append(check_of(cursor, each, table, columns, taken if each.name is not None else [*taken, *named]))
    return tuple(found)


def check_of(
    cursor: TokenCursor, written: WrittenCheck, table: str, columns: Sequence[Column], taken: Collection[str]
) -> CheckDef:
    """Resolve a CHECK against the columns of its table.

    Args:
        cursor: That of the statement.
        written: What was read.
        table: The name of the table.
        columns: Its columns.
        taken: The names of its other checks.

    Raises:
        SqlSyntaxError: The condition does not parse.
        UnknownColumnError: It names a column that there is not.
        NotSupportedError: It is not of one row alone, or not deterministic.
        ProgrammingError: It is no condition, or its name is taken.
    """
    expression = row_expression(cursor, "CHECK", written.span)
    expression.check(cursor, _INSTEAD)
    by_name = {folded(column.name): column.name for column in columns}
    read: dict[str, None] = {}
    for node in expression.nodes():
        if node.get("class") == "COLUMN_REF":
            first = folded(node["column_names"][0])
            if first in by_name:
                read[by_name[first]] = None
            elif first in CLOCKS and len(node["column_names"]) == 1:
                raise expression.refused(cursor, first, _INSTEAD)
            elif first == folded(table) and len(node["column_names"]) > 1:
                raise expression.refused(cursor, f"{table}.{node['column_names'][-1]}", "name the column alone")
            else:
                known = similar_names(node["column_names"][0], list(by_name.values()))
                message = f"table {table} has no column {node['column_names'][0]!r}; {known}"
                raise _error(cursor, UnknownColumnError, expression, message)
    _check_type(cursor, expression, columns)
    if not read:
        raise _error(cursor, ProgrammingError, expression, "the condition reads no column")
    used = tuple(column.name for column in columns if column.name in read)
    name = written.name
    if name is None:
        name = _free_name(f"{table}_{used[0]}_check" if len(used) == 1 else f"{table}_check", taken)
    elif folded(name) in map(folded, taken):
        raise _error(cursor, ProgrammingError, expression, f"table {table} has two constraints named {name!r}")
    return CheckDef(name, _on_one_line(expression.text[1:-1]), used)


def _check_type(cursor: TokenCursor, expression: RowExpression, columns: Sequence[Column]) -> None:
    relations = {"one row": {column.name: column.type for column in columns}}
    try:
        ((_, kind),) = default_kernel().describe(f'SELECT {expression.text} AS holds FROM "one row"', relations)
    except Error as error:
        message = error.message.partition("\n")[0]
        raise _error(cursor, type(error), expression, f"CHECK {expression.text}: {message}") from error
    if kind != "BOOLEAN":
        raise _error(
            cursor, ProgrammingError, expression, f"CHECK takes a condition, and the expression is of type {kind}"
        )


def _error(cursor: TokenCursor, kind: type[Error], expression: RowExpression, message: str) -> Error:
    span = expression.span
    return cursor.error(kind, message, span.start, span.end - span.start)


def _free_name(name: str, taken: Collection[str]) -> str:
    known = set(map(folded, taken))
    number = 0
    while folded(f"{name}{number or ''}") in known:
        number += 1
    return f"{name}{number or ''}"


def _on_one_line(text: str) -> str:
    """A text without its comments and line breaks."""
    made = ""
    end = 0
    for token in tokenize(text):
        made += " " * (bool(made) and token.start > end) + text[token.start : token.end + 1]
        end = token.end + 1
    return made
