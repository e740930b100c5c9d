"""Finds the tables whose columns a statement reads without naming them, in DuckDB's parse tree.

Scans leave out columns that the text does not name. That is right only if columns are read by name: a star, an alias
that names columns by position, a NATURAL join, a row as a value and the like read all of them.
:mod:`secateur.planner.binding.query` decides it from sqlglot's tree; this module decides it from DuckDB's, in which a
join in parentheses with an alias is a subquery with a star. A column is left out only where both agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from secateur.planner.checks.select_node import Node
from secateur.planner.text.folding import folded
from secateur.planner.text.parser_cross_check import DuckDBParse

__all__ = ["read_by_position"]

_LOOKING_AT_ALL: Final = frozenset({"NATURAL", "POSITIONAL"})
"""The joins that read columns which they do not name."""


def read_by_position(reading: DuckDBParse) -> frozenset[str]:
    """Return the tables of which a statement may read columns that it does not name.

    The names are folded and include their schemas; common table expressions are among them.

    Cost: linear in the tree.
    """
    counted = {
        id(_query(node))
        for node in reading.nodes
        if node.get("class") == "SUBQUERY" and node.get("subquery_type") == "EXISTS"
    }
    found: set[str] = set()
    for node in reading.nodes:
        if node.get("type") == "SELECT_NODE":
            found.update(_of_select(node, is_counted=id(node) in counted and _keeps_rows_apart(node)))
    return frozenset(found)


def _query(subquery: Node) -> Any:
    query = subquery["subquery"]
    return query.get("node", query) if isinstance(query, dict) else query


def _keeps_rows_apart(select: Node) -> bool:
    """Whether the number of a query's rows is independent of its columns."""
    return not any(
        select[clause] for clause in ("modifiers", "group_expressions", "group_sets", "having", "qualify")
    ) and (select["aggregate_handling"] == "STANDARD_HANDLING")


def _of_select(select: Node, *, is_counted: bool) -> Iterator[str]:
    tables = list(_tables(select["from_table"], everything=False))
    yield from (name for _, name, is_seen in tables if is_seen)
    # Only the number of rows of EXISTS matters; the columns that a star excludes or replaces are named.
    items = [
        item
        for item in select["select_list"]
        if not (is_counted and item.get("class") == "STAR" and not item["columns"])
    ]
    others = [value for key, value in select.items() if key not in ("from_table", "cte_map", "select_list")]
    for node in _expressions([*items, *others]):
        match node:
            case {"class": "STAR", "relation_name": relation}:
                yield from (name for alias, name, _ in tables if not relation or alias == folded(relation))
            case {"class": "COLUMN_REF", "column_names": [column]}:
                yield from (name for alias, name, _ in tables if alias == folded(column))
            case {"class": "POSITIONAL_REFERENCE"}:
                yield from (name for _, name, _ in tables)
            case _:
                pass


def _expressions(parts: list[Any]) -> Iterator[Node]:
    """Yield the nodes of expressions, without those of inner queries.

    ``ORDER BY ALL``, which DuckDB parses as a star, refers to the SELECT list.
    """
    pending = parts
    while pending:
        part = pending.pop()
        if isinstance(part, list):
            pending.extend(part)
        elif isinstance(part, dict):
            yield part
            is_of_list = (
                part.get("type") in ("ORDER_DEFAULT", "ASCENDING", "DESCENDING")
                and (part.get("expression") or {}).get("class") == "STAR"
            )
            pending.extend(
                value for key, value in part.items() if key != "subquery" and not (is_of_list and key == "expression")
            )


def _tables(table: Node | None, *, everything: bool) -> Iterator[tuple[str, str, bool]]:
    """Yield the alias and name of each table in FROM, and whether FROM itself reads all of its columns.

    Queries in FROM have a FROM of their own.
    """
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
