"""Conditions and FROM clauses of DuckDB's parse trees: conjuncts, joined tables, and references to columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from secateur.partitioning.tables.identifier import folded
from secateur.planner.checks.select_node import Node
from secateur.planner.text.parse_tree import nodes_in

_PLAIN_JOINS: Final = frozenset({"REGULAR", "CROSS", "NATURAL"})


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


def preserved_leaves(table: Node) -> Iterator[Node]:
    """Yield the items of a FROM clause of which each row of its result has a row.

    The side of an outer join that may be missing is left out.
    """
    pending = [table]
    while pending:
        item = pending.pop()
        if item.get("type") != "JOIN":
            yield item
            continue
        if joins_plainly(item) or item["join_type"] in ("LEFT", "SEMI", "ANTI"):
            pending.append(item["left"])
        if joins_plainly(item) or item["join_type"] == "RIGHT":
            pending.append(item["right"])


def same_tree(was: object, now: object, decide: Callable[[Node, Node], bool | Collection[str]]) -> bool:
    """Whether two parts of trees are equal, apart from what ``decide`` says of two of their nodes.

    Args:
        was: One part.
        now: The other.
        decide: Whether two nodes count as equal; or, where that depends on their attributes, those that do not matter.
    """
    pending = [(was, now)]
    while pending:
        was, now = pending.pop()
        if isinstance(was, dict) and isinstance(now, dict):
            found = decide(was, now)
            if found is False or (found is not True and was.keys() != now.keys()):
                return False
            if found is not True:
                pending.extend((was[key], now[key]) for key in was if key not in found)
        elif isinstance(was, list) and isinstance(now, list):
            if len(was) != len(now):
                return False
            pending.extend(zip(was, now, strict=True))
        elif type(was) is not type(now) or was != now:
            return False
    return True


def said_in(bare: Node, own: Node, means: Callable[[Sequence[str], str], bool]) -> bool:
    """Whether a condition on the bare columns of a scan is one of the user's conditions.

    Args:
        bare: The condition, over names of columns without those of tables.
        own: The user's.
        means: Whether a name in the user's condition, in its parts, is a column of the scan, by its folded name.
    """

    def decide(left: Node, right: Node) -> bool | Collection[str]:
        if not left.get("class") == right.get("class") == "COLUMN_REF":
            return ()
        (column, *fields), theirs = ([folded(name) for name in side["column_names"]] for side in (left, right))
        name = theirs[: len(theirs) - len(fields)]
        return theirs[len(name) :] == fields and bool(name) and means(name, column)

    return same_tree(bare, own, decide)


def joins_plainly(join: Node) -> bool:
    """Whether a join is an inner one whose rows are pairs of rows that meet its condition."""
    return join["join_type"] == "INNER" and join["ref_type"] in _PLAIN_JOINS
