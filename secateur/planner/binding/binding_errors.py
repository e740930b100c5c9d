"""Errors of DuckDB's binder in the user's terms: the name or construct, its place in the text, and a suggestion."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from secateur.engine.kernels.duckdb.errors import ErrorPosition, bind_error_position
from secateur.errors import DatabaseError, NotSupportedError, UnknownColumnError, UnknownTableError
from secateur.partitioning.types.column_type import SqlType
from secateur.partitioning.types.sql_text import folded, text_literal
from secateur.planner.binding.catalog_view import similar_names
from secateur.planner.binding.query import Query
from secateur.planner.text.positions import located
from secateur.planner.text.syntax import QUERIES, SyntaxNode, nodes_of
from secateur.planner.text.tokens import Token, tokenize

_NAME: Final = re.compile(
    r'(?:column named|Referenced column|Referenced table|^Column|^column|duplicate alias|CTE name) "([^"]+)"'
)
_CANDIDATES: Final = re.compile(r"Candidate bindings:[ :]*(.*)$", re.MULTILINE)
_QUOTED: Final = re.compile(r'"([^"]+)"')
_QUOTED_TWICE: Final = re.compile(r'""([^"]+)""')
_ROW_NUMBER: Final = "rowid"
"""The column that DuckDB's own tables have in addition."""

_KEYWORDS: Final = (
    (re.compile("^Set operations"), ("UNION", "INTERSECT", "EXCEPT")),
    (re.compile("^GROUP BY term"), ("GROUP",)),
    (re.compile("QUALIFY clause"), ("QUALIFY",)),
)
"""Keywords that locate errors for which DuckDB reports no position."""


def in_users_terms(
    error: DatabaseError, query: Query, schemas: Mapping[str, Mapping[str, SqlType | str]]
) -> DatabaseError:
    """Return the error to raise for DuckDB's error about the text of a bound query.

    Cost: some milliseconds.
    """
    if "found MULTI" in error.message:
        return NotSupportedError(
            "PIVOT without the values of its column is not supported: write them, FOR column IN (values)"
        )
    error_position = bind_error_position(query.sql, schemas)
    said = error.message if error_position is None else error_position.message.strip().removesuffix("!")
    name = _NAME.search(said)
    place = _place(error_position, query, said, None if name is None else name[1])
    message = _with_own_names(error.message, query)
    if isinstance(error, UnknownColumnError) and name is not None and folded(name[1]) == _ROW_NUMBER:
        error, message = (
            NotSupportedError(error.message, **error.details),
            f"{name[1]} is not supported: rows have no numbers; name the primary key",
        )
    match error:
        case UnknownColumnError() if name is not None and "FROM clause is missing" in said:
            message = f"column {name[1]!r} cannot be used here: the query has no FROM clause"
        case UnknownColumnError() if name is not None:
            message = f"column {name[1]!r} does not exist{_hint(name[1], query, said)}"
        case UnknownTableError() if name is not None:
            message = (
                f"{name[1]!r} names no table of this statement;"
                f" {similar_names(name[1], list(dict.fromkeys(_aliases(query.syntax.node))) or ['no FROM clause'])}"
            )
        case _:
            pass
    if place is None:
        return type(error)(message, **error.details)
    start, length = query.spliced.origin(*place)
    if isinstance(error, UnknownColumnError) and name is not None and query.text[start - 1 : start] == '"':
        message += f"; a text has single quotes: {text_literal(name[1])}"
    head, _, rest = message.partition("\n")
    placed = located(type(error), head, query.text, start, length, **error.details)
    return type(error)(f"{placed.message}\n{rest.strip()}", **placed.details) if rest.strip() else placed


def _place(error_position: ErrorPosition | None, query: Query, said: str, name: str | None) -> tuple[int, int] | None:
    """Return offset and length of the error in the text that was bound."""
    if error_position is not None:
        start, length = error_position.offset, error_position.length
        if name is not None:
            find = str.find if "table" in said else str.rfind
            within = find(folded(query.sql[start : start + length]), folded(name))
            if within >= 0:
                return start + within, len(name)
        return start, length
    tokens = tokenize(query.sql)
    if name is not None:
        found = [token for token in tokens if folded(token.text) == folded(name)]
        # Of two equal aliases the second one is the error.
        return None if not found else _span_of(found[min(1, len(found) - 1)] if "uplicate" in said else found[0])
    for pattern, words in _KEYWORDS:
        if pattern.search(said):
            found = [token for token in tokens if token.text.upper() in words]
            return _span_of(found[0]) if len(found) == 1 else None
    return None


def _span_of(token: Token) -> tuple[int, int]:
    return token.start, token.end - token.start + 1


def _hint(name: str, query: Query, said: str) -> str:
    """Suggest a column for an unknown name."""
    nodes = list(nodes_of(query.syntax.node))
    names = [node["column_names"] for node in nodes if "column_names" in node and "class" in node]
    table = next((parts[-2] for parts in names if len(parts) > 1 and folded(parts[-1]) == folded(name)), "")
    scans = [scan for scan in query.scans if not table or folded(scan.alias) == folded(table)]
    if scans and (table or sum(node.get("type") in QUERIES for node in nodes) == 1):
        known = list(dict.fromkeys(column.name for scan in scans for column in scan.visible_columns))
    else:
        listed = _CANDIDATES.search(said)
        known = [] if listed is None else _QUOTED.findall(listed[1])
    known = [column for column in known if folded(column) != folded(name)]
    return f"; {similar_names(name, known)}" if known else ""


def _aliases(root: SyntaxNode) -> Iterator[str]:
    """Yield the names that a statement gives to its tables."""
    items = [node for node in nodes_of(root) if "class" not in node and "type" in node]
    for node in sorted(items, key=lambda node: int(node.get("query_location", -1))):
        if name := node.get("alias") or node.get("table_name"):
            yield name


def _with_own_names(message: str, query: Query) -> str:
    for scan in query.scans:
        message = re.sub(rf"\b(temp\.)?{scan.relation}\b", scan.alias, message)
    return _QUOTED_TWICE.sub(r'"\1"', message)
