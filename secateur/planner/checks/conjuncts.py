"""Conditions and FROM clauses of DuckDB's parse trees: conjuncts, joined tables, and references to columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from secateur.planner.checks.select_node import Node
from secateur.planner.text.folding import folded

__all__ = [
    "base_of",
    "conditions_of",
    "flat_and",
    "inner_leaves",
    "joins_plainly",
    "leaves",
    "nodes_in",
    "references",
    "said_in",
]

_PLAIN_JOINS: Final = frozenset({"REGULAR", "CROSS", "NATURAL"})


def flat_and(condition: Node | None) -> Iterator[Node]:
    """The conjuncts of a condition in their order."""
    pending = [] if condition is None else [condition]
    while pending:
        node = pending.pop()
        if node.get("type") == "CONJUNCTION_AND":
            pending.extend(reversed(node["children"]))
        else:
            yield node


def conditions_of(node: Node) -> Iterator[Node]:
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


def nodes_in(part: object, without: str = "") -> Iterator[Node]:
    """The nodes of a part of a tree; ``without`` names an attribute that is left out."""
    pending = [part]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            yield item
            pending.extend(value for key, value in item.items() if key != without)
        elif isinstance(item, list):
            pending.extend(item)


def references(part: object) -> Iterator[Node]:
    """The references to columns in a part of a tree, those of subqueries among them."""
    return (node for node in nodes_in(part) if node.get("class") == "COLUMN_REF")


def leaves(table: Node) -> Iterator[Node]:
    """Yield the items that a FROM clause joins."""
    pending = [table]
    while pending:
        item = pending.pop()
        if item.get("type") == "JOIN":
            pending += (item["right"], item["left"])
        else:
            yield item


def base_of(table: Node | None) -> str:
    """The name of the first table in FROM; empty if there is another item."""
    first = next(leaves(table), {}) if table else {}
    return str(first.get("table_name", ""))


def inner_leaves(table: Node) -> Iterator[Node]:
    """Yield the items that a FROM clause joins with inner joins only.

    Each row of its result has one row of each of them, which has passed the conditions on it.
    """
    pending = [table]
    while pending:
        item = pending.pop()
        if item.get("type") != "JOIN":
            yield item
        elif joins_plainly(item):
            pending += (item["right"], item["left"])


def said_in(bare: Node, own: Node, means: Callable[[Sequence[str], str], bool]) -> bool:
    """Whether a condition on the bare columns of a scan is one of the user's conditions.

    Args:
        bare: The condition, over names of columns without those of tables.
        own: The user's.
        means: Whether a name in the user's condition, in its parts, is a column of the scan, by its folded name.
    """
    pending: list[tuple[Any, Any]] = [(bare, own)]
    while pending:
        left, right = pending.pop()
        if isinstance(left, dict) and isinstance(right, dict):
            if left.get("class") == right.get("class") == "COLUMN_REF":
                (column, *fields), theirs = ([folded(name) for name in side["column_names"]] for side in (left, right))
                name = theirs[: len(theirs) - len(fields)]
                if theirs[len(name) :] != fields or not name or not means(name, column):
                    return False
            elif left.keys() != right.keys():
                return False
            else:
                pending.extend((left[key], right[key]) for key in left)
        elif isinstance(left, list) and isinstance(right, list):
            if len(left) != len(right):
                return False
            pending.extend(zip(left, right, strict=True))
        elif type(left) is not type(right) or left != right:
            return False
    return True


def joins_plainly(join: Node) -> bool:
    """Whether a join is an inner one whose rows are pairs of rows that meet its condition."""
    return join["join_type"] == "INNER" and join["ref_type"] in _PLAIN_JOINS
