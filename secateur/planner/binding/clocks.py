"""The clock of a statement: functions such as ``now()`` become a parameter, which is bound once per execution.

All stages and steps of a statement, the selection of its partitions, and every member read the same instant: it is a
hidden parameter behind those of the user, a TIMESTAMPTZ, that the client binds. Functions of the clock are written as
casts of it; the time zone of the session is UTC.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from sqlglot import exp

from secateur.partitioning.tables.identifier import folded
from secateur.planner.binding.query import Query
from secateur.planner.text.deep_json import same_json
from secateur.planner.text.dialect import to_sql
from secateur.planner.text.parser_cross_check import read_statements
from secateur.protocol.clocks import CLOCKS

_NODES: Final[dict[type[exp.Expr], str]] = {
    exp.CurrentTimestamp: "current_timestamp",
    exp.CurrentDate: "current_date",
    exp.CurrentTime: "current_time",
    exp.Localtimestamp: "localtimestamp",
    exp.Localtime: "localtime",
}


def reads_clock(tree: exp.Expr) -> bool:
    """Whether a statement calls a function of the clock."""
    return any(_clock(node) for node in tree.walk())


def is_unsettled(query: Query) -> bool:
    """Whether a statement reads the clock in a way that was not exchanged for its parameter.

    DuckDB may have made a constant of it when it bound the statement.
    """
    return query.parameters.clock is not None and not query.settled and reads_clock(query.tree)


def settled(query: Query, clock: int) -> Query:
    """Return a query whose functions of the clock are casts of a parameter.

    The query itself is returned if it has none, or if DuckDB's parser does not confirm that nothing else has changed:
    then each evaluation has a time of its own, and the query is not divided.

    Args:
        query: The query; its tree is changed.
        clock: The index of the parameter, counted from 0.
    """
    calls = [(node, name) for node in query.tree.walk() if (name := _clock(node))]
    words = {name for node, name in calls if not isinstance(node, exp.Anonymous)}
    if not calls or not words.isdisjoint(_names_of_columns(query)):
        return query
    replaced = []
    for node, name in calls:
        made: exp.Expr = exp.Parameter(this=exp.Literal.number(clock + 1))
        for kind in ("TIMESTAMPTZ", *CLOCKS[name]):
            made = exp.cast(made, kind, dialect="duckdb")
        node.replace(made)
        replaced.append((made, node))
    sql = to_sql(query.tree)
    before, after = read_statements([query.sql, sql])
    if before is not None and after is not None and same_json(_settled(before.tree, clock + 1), after.tree):
        return replace(query, settled=sql)
    for made, node in replaced:
        made.replace(node)
    return query


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


def _settled(part: Any, clock: int) -> Any:
    """Replace each clock in a part of a tree by a parameter: the start of the statement as a TIMESTAMPTZ."""
    if isinstance(part, list):
        return [_settled(item, clock) for item in part]
    if not isinstance(part, dict):
        return part
    match part:
        case {"class": "COLUMN_REF", "column_names": [name]} | {
            "class": "FUNCTION",
            "function_name": name,
            "arguments": [],
        } if folded(name) in CLOCKS:
            parameter = {"class": "PARAMETER", "type": "VALUE_PARAMETER", "alias": "", "identifier": str(clock)}
            shown: dict[str, Any] = _cast(parameter, "TIMESTAMP WITH TIME ZONE")
            for kind in CLOCKS[folded(name)]:
                shown = _cast(shown, kind)
            return {**shown, "alias": part["alias"]}
        case _:
            return {key: _settled(value, clock) for key, value in part.items()}


def _cast(value: dict[str, Any], kind: str) -> dict[str, Any]:
    type_ = {"class": "TYPE", "children": [], "name": kind}
    return {
        "class": "CAST",
        "type": "OPERATOR_CAST",
        "alias": "",
        "child": value,
        "try_cast": False,
        "type_expr": type_,
    }
