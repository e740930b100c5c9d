"""Walks over DuckDB's parse tree: its nodes, and the conjuncts of its filters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def flat_and(condition: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    """The conjuncts of a condition in their order."""
    pending = [] if condition is None else [condition]
    while pending:
        node = pending.pop()
        if node.get("type") == "CONJUNCTION_AND":
            pending.extend(reversed(node["children"]))
        else:
            yield node


def conditions_of(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the conjuncts of the filters in a SELECT or a join."""
    clauses = (
        ("where_clause", "having", "qualify")
        if node.get("type") == "SELECT_NODE"
        else ("condition",)
        if node.get("type") == "JOIN"
        else ()
    )
    for clause in clauses:
        yield from flat_and(node.get(clause))


def nodes_in(part: object, without: str = "") -> Iterator[Mapping[str, Any]]:
    """The nodes of a part of a tree; ``without`` names an attribute that is left out."""
    pending = [part]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            yield item
            pending.extend(value for key, value in item.items() if key != without)
        elif isinstance(item, list):
            pending.extend(item)
