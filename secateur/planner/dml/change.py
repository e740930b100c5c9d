"""UPDATE and DELETE as queries: the rows that a change leaves behind, or the keys that it removes.

``UPDATE t SET v = v + 1 WHERE k = 5`` becomes ``FROM t SELECT CAST((v + 1) AS INTEGER) AS "v", "t"."k" WHERE k = 5``: the same words in the same order, so that
what the planner knows of queries (names, types, pruning, positions of errors) holds for changes, too. Members run the query where the rows are, and write its
result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlglot import Token

from secateur.errors import NotSupportedError, ProgrammingError
from secateur.partitioning.table import TableDef
from secateur.planner.dml.target import Target
from secateur.planner.query import spliced
from secateur.planner.statement import ChangeKind, SelectStatement
from secateur.planner.text.dialect import tokenize
from secateur.planner.text.folding import folded
from secateur.planner.text.parameters import Parameters
from secateur.planner.text.positions import located, syntax_error
from secateur.planner.text.second_reading import read_statement
from secateur.planner.text.token_cursor import TokenCursor

__all__ = ["ChangeQuery", "check_reading", "check_scans", "inserted", "read_condition"]

_UNNESTING: Final = frozenset({"unnest", "unlist"})


@dataclass(frozen=True, slots=True)
class ChangeQuery:
    """An UPDATE or DELETE, not planned.

    Attributes:
        target: What it changes.
        kind: How.
        tokens: Those of the query that finds the rows; where they stand in the user's text, or where they are put in.
        splices: The spans of the user's text that are replaced to make the text of that query.
        columns: The columns of the query's result.
    """

    target: Target
    kind: ChangeKind
    tokens: tuple[Token, ...]
    splices: tuple[tuple[int, int, str], ...]
    columns: tuple[str, ...]

    @property
    def table(self) -> TableDef:
        return self.target.table


def inserted(text: str, offset: int) -> list[Token]:
    """The tokens of a text that is put in at an offset of the user's."""
    return [Token(token.token_type, token.text, line=1, col=1, start=offset, end=offset - 1) for token in tokenize(text)]


def read_condition(cursor: TokenCursor, expected: str) -> tuple[Token, ...]:
    """The tokens from WHERE to the end of the statement; none when it ends here.

    Raises:
        SqlSyntaxError: Something else comes next than what is ``expected``.
        NotSupportedError: RETURNING.
    """
    if not (cursor.at_end or cursor.at("WHERE") or cursor.at("RETURNING")):
        raise cursor.expected(expected)
    found = cursor.rest()
    while not cursor.at_end:
        if cursor.at("RETURNING"):
            raise cursor.unsupported("RETURNING", "read the rows with SELECT")
        cursor.take()
    return found


def check_reading(sql: str, change: ChangeQuery, parameters: Parameters) -> None:
    """Have DuckDB confirm that the query is one expression per column over the rows of one table that a condition chooses.

    Raises:
        SqlSyntaxError: It is more: something stands behind the condition.
        ProgrammingError: An assigned value is not a value of its row alone.
    """
    first, last = change.tokens[0].start, change.tokens[-1].end + 1
    numbered = [(start, end, f"${index + 1}") for start, end, index in parameters.spans]
    reading = read_statement(spliced(sql, first, last, [*change.splices, *numbered]))
    if reading is None:
        return  # it does not parse: binding it will say where
    node = reading.tree
    behind = ("modifiers", "group_expressions", "group_sets", "having", "qualify", "sample")
    is_grouped = node.get("aggregate_handling") != "STANDARD_HANDLING"  # GROUP BY ALL
    source = node.get("from_table") or {}
    if node.get("type") != "SELECT_NODE" or source.get("type") != "BASE_TABLE" or source.get("sample") or any(node.get(key) for key in behind) or is_grouped:
        raise syntax_error(f"{change.kind.name} takes one table and a WHERE clause, and nothing behind it", sql, change.target.end)
    for expression in _outside_subqueries(node["select_list"]):
        if expression.get("class") == "WINDOW":
            raise located(ProgrammingError, "an assigned value is computed from its own row: window functions are not allowed in SET", sql, change.target.end)
        if str(expression.get("function_name", "")).lower() in _UNNESTING:
            raise located(ProgrammingError, "an assigned value is one value: unnest() is not allowed in SET", sql, change.target.end)


def check_scans(sql: str, change: ChangeQuery, select: SelectStatement) -> None:
    """Refuse what members cannot compute where the rows are.

    Raises:
        NotSupportedError: A subquery reads a table that is not replicated; with its position.
        ProgrammingError: The query has other columns than were written, as ``COLUMNS(*)`` makes them.
    """
    for scan in select.plan.scans[1:]:
        if not scan.replicated:
            named = [token for token in change.tokens if folded(token.text) == folded(scan.table) and change.target.end <= token.start <= token.end]
            offset = named[0].start if named else change.target.end
            message = (
                f"{change.kind.name} runs at the owners of the rows, where the whole of {scan.table} is not to be had: run the subquery first and pass its "
                f"values as parameters, or make {scan.table} a REPLICATED table"
            )
            raise located(NotSupportedError, message, sql, offset, len(scan.table))
    if tuple(name for name, _ in select.plan.columns) != change.columns:
        raise located(ProgrammingError, "every assignment takes one value: COLUMNS(...) is not allowed in SET", sql, change.target.end)


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
