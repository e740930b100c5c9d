"""The clock of a statement: functions such as ``now()`` become a parameter, which is bound once per execution.

All stages and steps of a statement, the selection of its partitions, and every member read the same instant: it is a
hidden parameter behind those of the user, a TIMESTAMPTZ, that the client binds. Functions of the clock are written as
casts of it; the time zone of the session is UTC.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sqlglot import exp

from secateur.partitioning.tables.identifier import folded
from secateur.planner.binding.query import Query
from secateur.planner.checks.placed import clocks_difference
from secateur.planner.text.clock_functions import CLOCK
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
        made.meta[CLOCK] = to_sql(node).lower()
        node.replace(made)
        replaced.append((made, node))
    sql = to_sql(query.tree)
    before, after = read_statements([query.sql, sql])
    if before is not None and clocks_difference(before, after, clock + 1) is None:
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
