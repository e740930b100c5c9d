"""The clock of a statement: functions such as ``now()`` become a parameter, which is bound once per execution.

All stages and steps of a statement, the selection of its partitions, and every member read the same instant: it is a
hidden parameter behind those of the user, a TIMESTAMPTZ, that the client binds. Functions of the clock are written as
casts of it; the time zone of the session is UTC.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from secateur.partitioning.types.sql_text import CLOCKS, folded
from secateur.planner.binding.query import Query
from secateur.planner.text.syntax import SyntaxNode, called_without_arguments, nodes_of, parse_query
from secateur.planner.text.tokens import tokenize

_KEYWORDS: Final = frozenset({"current_timestamp", "current_date", "current_time", "localtimestamp", "localtime"})
"""Functions of the clock that are called without parentheses."""
_NAMED: Final = re.compile(rf"\b(?:{'|'.join(CLOCKS)})\b", re.IGNORECASE)


def reads_clock(query: Query) -> bool:
    """Whether a statement calls a function of the clock."""
    sql = query.spliced.sql
    return _NAMED.search(sql) is not None and any(map(_calls_clock, nodes_of(parse_query(sql, tokenize(sql)).node)))


def is_unsettled(query: Query) -> bool:
    """Whether a statement reads the clock in a way that was not exchanged for its parameter.

    DuckDB may have made a constant of it when it bound the statement.
    """
    return query.parameters.clock is not None and not query.settled and reads_clock(query)


def settled(query: Query, clock: int) -> Query:
    """Return a query whose functions of the clock are casts of a parameter.

    The query itself is returned if it has none, or if one may be the name of a column, or is not written as a call:
    then each evaluation has a time of its own, and the query is not divided.

    Args:
        query: The query.
        clock: The index of the parameter, counted from 0.
    """
    sql, root = query.sql.encode(), query.syntax.node
    calls = [(node, name) for node in nodes_of(root) if (name := _clock_of(node))]
    words = {name for node, name in calls if node["class"] == "COLUMN_REF"}
    if not calls or not words.isdisjoint(_names_of_columns(query, root)):
        return query
    for node, name in sorted(calls, key=lambda call: -int(call[0]["query_location"])):
        made = f"${clock + 1}"
        for kind in ("TIMESTAMPTZ", *CLOCKS[name]):
            made = f"CAST({made} AS {kind})"
        start, end = node["query_location"], node["query_location"] + node["query_location_length"]
        if not sql[start:end].lower().startswith((name.encode(), f'"{name}"'.encode())):
            return query
        sql = sql[:start] + made.encode() + sql[end:]
    return replace(query, settled=sql.decode())


def _clock_of(node: SyntaxNode) -> str:
    """The name of the function of the clock that a node calls; empty for anything else."""
    name = folded(called_without_arguments(node))
    return name if name in CLOCKS else ""


def _calls_clock(node: SyntaxNode) -> bool:
    name = _clock_of(node)
    return bool(name) and (node["class"] == "FUNCTION" or name in _KEYWORDS)


def _names_of_columns(query: Query, root: SyntaxNode) -> set[str]:
    """The names that columns may have; a column named as a keyword of the clock has precedence over it."""
    columns = {folded(column.name) for scan in query.scans for column in scan.visible_columns}
    for node in nodes_of(root):
        columns |= {folded(name) for name in (node.get("alias", ""), *node.get("column_name_alias", ()))}
        columns |= {folded(name) for name in node.get("aliases", ())}
    return columns
