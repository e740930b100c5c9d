"""Finds the tables whose columns a statement reads without naming them, in DuckDB's parse tree.

Scans leave out columns that the text does not name. That is right only if columns are read by name: a star, an alias
that names columns by position, a NATURAL join, a row as a value and the like read all of them.
:mod:`secateur.planner.binding.query` decides it from sqlglot's tree; this module decides it from DuckDB's, in which a
join in parentheses with an alias is a subquery with a star. A column is left out only where both agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from secateur.partitioning.tables.identifier import folded
from secateur.planner.checks.select_node import BEHIND_WHERE, Node

_Table: TypeAlias = tuple[str, str, bool]
"""The alias and the name of a table in FROM, and whether FROM itself reads all of its columns."""

_LOOKING_AT_ALL: Final = frozenset({"NATURAL", "POSITIONAL"})
"""The joins that read columns which they do not name."""


def read_by_position(statement: Node) -> frozenset[str]:
    """Return the tables of which a statement may read columns that it does not name.

    The names are folded and include their schemas; common table expressions are among them.

    Cost: linear in the tree, times the tables that are visible in a query.
    """
    found: set[str] = set()
    # Each part, the tables of the SELECT around, and all visible tables: a row of an outer one may be a value.
    pending: list[tuple[Any, list[_Table], list[_Table]]] = [(statement, [], [])]
    while pending:
        part, own, visible = pending.pop()
        if isinstance(part, list):
            pending.extend((item, own, visible) for item in part)
            continue
        if not isinstance(part, dict):
            continue
        left_out: str | None = None
        match part:
            case {"type": "SELECT_NODE"}:
                tables = list(_tables(part["from_table"], everything=False))
                found.update(name for _, name, is_seen in tables if is_seen)
                pending.append((part["cte_map"], [], visible))
                own, visible, left_out = tables, [*tables, *visible], "cte_map"
            case {"class": "SUBQUERY", "subquery_type": "EXISTS", "subquery": {"node": select}} if _is_counted(select):
                # Only the number of its rows matters; the columns that a star excludes or replaces are named.
                items = [item for item in select["select_list"] if item.get("class") != "STAR" or item["columns"]]
                part = {"subquery": {**select, "select_list": items}}
            case {"class": "STAR", "relation_name": relation}:
                found.update(name for alias, name, _ in visible if alias == folded(relation))
                found.update(name for _, name, _ in own if not relation)
            case {"class": "COLUMN_REF", "column_names": [column]}:
                found.update(name for alias, name, _ in visible if alias == folded(column))
            case {"class": "POSITIONAL_REFERENCE"}:
                found.update(name for _, name, _ in own)
            case {"type": "ORDER_DEFAULT" | "ASCENDING" | "DESCENDING", "expression": {"class": "STAR"}}:
                left_out = "expression"  # ORDER BY ALL refers to the SELECT list
            case _:
                pass
        pending.extend((value, own, visible) for key, value in part.items() if key != left_out)
    return frozenset(found)


def _is_counted(query: Node) -> bool:
    """Whether a query is a SELECT whose number of rows is independent of its columns."""
    return (
        query.get("type") == "SELECT_NODE"
        and not (query["modifiers"] or any(query[clause] for clause in BEHIND_WHERE if clause != "sample"))
        and query["aggregate_handling"] == "STANDARD_HANDLING"
    )


def _tables(table: Node | None, *, everything: bool) -> Iterator[_Table]:
    """Yield the tables in FROM; queries in FROM have a FROM of their own."""
    pending: list[tuple[Any, bool]] = [(table, everything)]
    while pending:
        item, is_seen = pending.pop()
        if isinstance(item, list):
            pending.extend((part, is_seen) for part in item)
        elif not isinstance(item, dict):
            continue
        elif item.get("type") == "BASE_TABLE":
            name = folded(".".join(item["qualified_name"]["path"]))
            yield folded(item["alias"] or item["table_name"]), name, is_seen or bool(item["column_name_alias"])
        elif item.get("type") == "JOIN":
            sees = is_seen or item["ref_type"] in _LOOKING_AT_ALL
            pending.extend([(item["left"], sees), (item["right"], sees)])
        elif item.get("type") not in ("SUBQUERY", "SELECT_NODE", "SET_OPERATION_NODE"):
            # Other items of FROM, such as PIVOT, may read all columns.
            pending.extend((value, True) for value in item.values())
