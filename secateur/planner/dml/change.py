"""UPDATE and DELETE as queries for the new rows of a change, or the keys that it removes.

``UPDATE t SET v = v + 1 WHERE k = 5`` becomes ``FROM t SELECT CAST((v + 1) AS INTEGER) AS "v", "t"."k" WHERE k = 5``,
so that the planner's treatment of queries (names, types, pruning, positions of errors) applies to changes, too. Members
run the query where the rows are, and write its result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from secateur.errors import ProgrammingError
from secateur.partitioning.tables.table import TableDef
from secateur.planner.binding.functions import UNNESTING, aggregate_names
from secateur.planner.dml.composed import Composed
from secateur.planner.dml.expressions import TextSpan
from secateur.planner.dml.target import ChangeTarget
from secateur.planner.statement import PlannedSelect
from secateur.planner.text.compared_syntax import compared_trees
from secateur.planner.text.positions import located, syntax_error
from secateur.planner.text.token_cursor import TokenCursor
from secateur.protocol.statements import ChangeKind


@dataclass(frozen=True, slots=True)
class ChangeQuery:
    """An UPDATE or DELETE of rows that members change where they are, before planning.

    Attributes:
        target: The table that it changes.
        kind: How.
        query: The query that finds the rows.
        columns: The columns of its result.
    """

    target: ChangeTarget
    kind: ChangeKind
    query: Composed
    columns: tuple[str, ...]

    @property
    def table(self) -> TableDef:
        return self.target.table


def read_clause(cursor: TokenCursor, expected: str) -> TextSpan | None:
    """Read from WHERE to RETURNING or the end of the statement, including WHERE; None when there is no WHERE.

    Raises:
        SqlSyntaxError: The next token is not ``expected``.
    """
    start = cursor.offset
    if cursor.at_end or cursor.at("RETURNING"):
        return None
    if not cursor.accept("WHERE"):
        raise cursor.expected(expected)
    end = start
    while not (cursor.at_end or cursor.at("RETURNING")):
        end = cursor.take().end + 1
    return TextSpan(start, max(end, start + len("WHERE")))


def check_reading(sql: str, query: Composed, what: str, offset: int) -> None:
    """Have DuckDB confirm that the query is one expression per column over the rows that pass a condition.

    Args:
        sql: The user's text.
        query: The query that was made of it.
        what: The kind of statement, such as UPDATE.
        offset: The place of errors in the text.

    Raises:
        SqlSyntaxError: There is more text after the condition.
        ProgrammingError: An assigned value depends on more than its row.
    """
    (node,) = compared_trees([query.text])
    if node is None:
        return  # it does not parse: binding it will say where
    behind = ("modifiers", "group_expressions", "group_sets", "having", "qualify", "sample")
    is_grouped = node.get("aggregate_handling") != "STANDARD_HANDLING"  # GROUP BY ALL
    source = node.get("from_table") or {}
    if node.get("type") != "SELECT_NODE" or source.get("sample") or any(node.get(key) for key in behind) or is_grouped:
        raise syntax_error(f"{what} takes one table and a WHERE clause, and nothing behind it", sql, offset)
    for expression in _outside_subqueries(node["select_list"]):
        if expression.get("class") == "WINDOW":
            raise located(
                ProgrammingError,
                "an assigned value is computed from its own row: window functions are not allowed in SET",
                sql,
                offset,
            )
        function = str(expression.get("function_name", "")).lower()
        if function in aggregate_names():
            raise located(
                ProgrammingError,
                f"an assigned value is computed from its own row: {function}() is not allowed in SET",
                sql,
                offset,
            )
        if function in UNNESTING:
            raise located(
                ProgrammingError, "an assigned value is one value: unnest() is not allowed in SET", sql, offset
            )


def is_local(select: PlannedSelect) -> bool:
    """Whether members can run the query where the rows are: all other tables that it reads are replicated."""
    return all(scan.replicated and not scan.is_fetched for scan in select.plan.scans[1:])


def check_columns(sql: str, change: ChangeQuery, select: PlannedSelect) -> None:
    """Refuse a query with other columns than were written.

    Raises:
        ProgrammingError: It has, as ``COLUMNS(*)`` makes them.
    """
    if tuple(name for name, _ in select.plan.columns) != change.columns:
        raise located(
            ProgrammingError,
            "every assignment takes one value: COLUMNS(...) is not allowed in SET",
            sql,
            change.target.end,
        )


def _outside_subqueries(value: Mapping[str, Any] | Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    pending: list[Any] = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, Mapping):
            if part.get("class") == "SUBQUERY":
                continue
            yield part
            pending.extend(part.values())
        elif isinstance(part, list):
            pending.extend(part)
