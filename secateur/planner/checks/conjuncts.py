"""Conditions and FROM clauses of DuckDB's parse trees: conjuncts, joined tables, and equated columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from secateur.planner.checks.select_node import Node
from secateur.planner.text.folding import folded

__all__ = [
    "Equalities",
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


class Equalities:
    """The columns of scans that are equal in every row which inner joins make of them.

    Args:
        nodes: All nodes of the statement.
        columns: The columns of each scan, by its relation.

    Cost: linear in the conditions, times the scans of a FROM clause.
    """

    def __init__(self, nodes: Iterable[Node], columns: Mapping[str, Collection[str]]) -> None:
        self._columns = {relation: frozenset(map(folded, names)) for relation, names in columns.items()}
        self._classes: dict[tuple[str, str], set[tuple[str, str]]] = {}
        for node in nodes:
            if node.get("type") == "SELECT_NODE":
                self._read(node)

    def are_equal(self, one: tuple[str, str], other: tuple[str, str]) -> bool:
        """Whether two columns, each a relation and the folded name of a column, are equal."""
        return other in self._classes.get(one, ())

    def _read(self, select: Node) -> None:
        # Below anything but an inner join, items are joined separately from the rest.
        parts: list[tuple[list[Node], list[Node]]] = [([], list(flat_and(select["where_clause"])))]
        pending: list[tuple[Node, list[Node], list[Node]]] = [(select["from_table"], *parts[0])]
        while pending:
            item, tables, conditions = pending.pop()
            if item.get("type") != "JOIN":
                tables.append(item)
            elif joins_plainly(item):
                conditions += flat_and(item["condition"])
                pending += [(item["right"], tables, conditions), (item["left"], tables, conditions)]
                self._unite_named(item)
            else:
                for side in (item["left"], item["right"]):
                    parts.append(([], []))
                    pending.append((side, *parts[-1]))
        everywhere = [table for tables, _ in parts for table in tables]
        for tables, conditions in parts:
            own = {str(table.get("table_name")) for table in tables}
            for condition in conditions:
                if condition.get("type") == "COMPARE_EQUAL":
                    sides = [self._column(condition[side], everywhere) for side in ("left", "right")]
                    if None not in sides and all(side is not None and side[0] in own for side in sides):
                        self._unite(*(side for side in sides if side is not None))

    def _unite_named(self, join: Node) -> None:
        """Unite the columns of USING, or those of a NATURAL join, which are all that both sides have.

        On the left they are those of one inner join after the other.
        """
        left, right = (list(inner_leaves(join[side])) for side in ("left", "right"))
        names = set(map(folded, join["using_columns"]))
        if join["ref_type"] == "NATURAL":
            names = self._names_of(left) & self._names_of(right)
        for name in names:
            for one in (table["table_name"] for table in left if self._has(table, name)):
                for other in (table["table_name"] for table in right if self._has(table, name)):
                    self._unite((one, name), (other, name))

    def _names_of(self, tables: Iterable[Node]) -> set[str]:
        return {
            name
            for table in tables
            if table.get("type") == "BASE_TABLE"
            for name in self._columns.get(table["table_name"], ())
        }

    def _column(self, node: Node, tables: Iterable[Node]) -> tuple[str, str] | None:
        """The relation and the column that a reference means."""
        if node.get("class") != "COLUMN_REF" or not 1 <= len(node["column_names"]) <= 2:
            return None
        *alias, name = map(folded, node["column_names"])
        found = [
            table
            for table in tables
            if (folded(table["alias"] or table.get("table_name", "")) == alias[0] if alias else self._has(table, name))
        ]
        return (found[0]["table_name"], name) if len(found) == 1 and self._has(found[0], name) else None

    def _has(self, table: Node, name: str) -> bool:
        return (
            table.get("type") == "BASE_TABLE"
            and not table["column_name_alias"]
            and name in self._columns.get(table["table_name"], ())
        )

    def _unite(self, one: tuple[str, str], other: tuple[str, str]) -> None:
        united = self._classes.get(one, {one}) | self._classes.get(other, {other})
        self._classes.update(dict.fromkeys(united, united))


def joins_plainly(join: Node) -> bool:
    """Whether a join is an inner one whose rows are pairs of rows that meet its condition."""
    return join["join_type"] == "INNER" and join["ref_type"] in _PLAIN_JOINS
