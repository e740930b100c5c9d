"""The clock of a statement: functions such as ``now()`` become a parameter, which is bound once per execution.

All stages and steps of a statement, the selection of its partitions, and every member read the same instant: it is a
hidden parameter behind those of the user, a TIMESTAMPTZ, that the client binds. Functions of the clock are written as
casts of it; the time zone of the session is UTC.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from sqlglot import exp

from secateur.engine.kernels.duckdb.kernel import default_kernel
from secateur.partitioning.tables.identifier import folded
from secateur.planner.binding.query import Query
from secateur.planner.text.deep_json import read_json
from secateur.planner.text.duckdb_parse import nodes_of
from secateur.protocol.clocks import CLOCKS

_NODES: Final[dict[type[exp.Expr], str]] = {
    exp.CurrentTimestamp: "current_timestamp",
    exp.CurrentDate: "current_date",
    exp.CurrentTime: "current_time",
    exp.Localtimestamp: "localtimestamp",
    exp.Localtime: "localtime",
}

_NAMED: Final = re.compile(rf"\b(?:{'|'.join(CLOCKS)})\b", re.IGNORECASE)


def reads_clock(query: Query) -> bool:
    """Whether a statement calls a function of the clock."""
    return _NAMED.search(query.spliced.sql) is not None and any(map(_clock, query.tree.walk()))


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
    sql = query.sql.encode()
    (tree,) = default_kernel().trees([query.sql])
    calls = [(node, name) for node in nodes_of(read_json(tree)) if (name := _clock_of(node))]
    words = {name for node, name in calls if node["class"] == "COLUMN_REF"}
    if not calls or not words.isdisjoint(_names_of_columns(query)):
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


def _clock_of(node: Mapping[str, Any]) -> str:
    """The name of the function of the clock that a node of DuckDB's calls; empty for anything else."""
    match node:
        case {"class": "COLUMN_REF", "column_names": [name]} | {
            "class": "FUNCTION",
            "function_name": name,
            "arguments": [],
        } if folded(name) in CLOCKS:
            return folded(name)
        case _:
            return ""


def _clock(node: exp.Expr) -> str:
    """The name of the function of the clock that a node calls; empty for anything else."""
    if isinstance(node, exp.Anonymous):
        name = folded(node.name)
        return name if name in CLOCKS and not node.expressions else ""
    return _NODES.get(type(node), "")


def _names_of_columns(query: Query) -> set[str]:
    """The names that columns may have; a column named as a keyword of the clock has precedence over it."""
    columns = {folded(column.name) for scan in query.scans for column in scan.table.columns}
    return columns | {folded(name.name) for name in query.tree.find_all(exp.Identifier)}
