"""``RETURNING expression, ...``: the columns that the user wants of the changed rows.

It is a query over those rows in place of the table, one line for each. It sees the old values of a deleted row, and the
new values of every other.
"""

from __future__ import annotations

from typing import Final

from secateur.errors import ProgrammingError
from secateur.partitioning.tables.identifier import quoted
from secateur.planner.binding.functions import UNNESTING, aggregate_names
from secateur.planner.dml.composed import Composed, Composer
from secateur.planner.dml.expressions import read_expression
from secateur.planner.dml.target import ChangeTarget
from secateur.planner.text.parameters import Parameters
from secateur.planner.text.syntax import SyntaxNode, nodes_of, parse_query
from secateur.planner.text.token_cursor import TokenCursor
from secateur.planner.text.tokens import tokenize

MERGE_ACTION: Final = "merge_action"
"""The function that returns the action on the row, in the RETURNING of a MERGE."""


def read_returning(
    cursor: TokenCursor, target: ChangeTarget, parameters: Parameters, *, with_action: bool = False
) -> tuple[Composed, bool] | None:
    """Read the clause, which ends the statement; None when the statement ends without it.

    Args:
        cursor: At RETURNING or the end.
        target: The table that is changed.
        parameters: Those of the statement.
        with_action: Whether ``merge_action`` is a column.

    Returns:
        The query, and whether it has the action of the row as a parameter more than the statement.

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
    if any(map(_needs_other_rows, nodes_of(parse_query(query.text, tokenize(query.text)).node))):
        raise cursor.error(
            ProgrammingError,
            "RETURNING takes values of the changed row alone: no aggregates, windows or subqueries",
            start,
        )
    return query, names_action


def _needs_other_rows(node: SyntaxNode) -> bool:
    """Whether an expression is computed of other rows than one, or makes several of it."""
    name = str(node.get("function_name", "")).lower()
    return node.get("class") in ("SUBQUERY", "WINDOW") or name in aggregate_names() or name in UNNESTING


def _is_action(cursor: TokenCursor) -> bool:
    token, behind = cursor.peek(), cursor.peek(1)
    return (
        token is not None
        and token.text.casefold() == MERGE_ACTION
        and (behind is None or (cursor.peek(1) is not None and behind.text == ","))
    )
