"""One SELECT of DuckDB's parse tree, with positions and aliases of its clauses resolved to expressions.

The clauses are ORDER BY, DISTINCT ON and GROUP BY.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from secateur.cached_properties import cached_property
from secateur.partitioning.tables.identifier import folded

Node: TypeAlias = Mapping[str, Any]
"""A node of DuckDB's parse tree, as :class:`~secateur.planner.text.parser_cross_check.DuckDBParse` has it."""

BEHIND_WHERE: Final = ("group_expressions", "group_sets", "having", "sample", "qualify")
"""The clauses between WHERE and the modifiers (ORDER BY, LIMIT, DISTINCT)."""


@dataclass(frozen=True, slots=True)
class OrderItem:
    """One item of ORDER BY: the expression, and its direction and place of NULLs in DuckDB's words."""

    expression: Node
    direction: str
    nulls: str


@dataclass(frozen=True)
class SelectNode:
    """A ``SELECT_NODE``.

    Attributes:
        node: The parse tree.
        items: The expressions of its SELECT list, with ``*`` expanded where the caller knows its columns.
    """

    node: Node
    items: tuple[Node, ...]

    @classmethod
    def of(cls, tree: Node, star: Callable[[Node], Sequence[Node]] | None = None) -> SelectNode | None:
        """Read a tree.

        Args:
            tree: The tree.
            star: The columns that a ``*`` stands for. A star with EXCLUDE, REPLACE or RENAME is never expanded.

        Returns:
            None if the tree is not a SELECT.
        """
        if tree.get("type") != "SELECT_NODE":
            return None
        items: list[Node] = []
        for item in tree["select_list"]:
            items.extend(star(item) if star is not None and is_plain_star(item) else [item])
        return cls(tree, tuple(items))

    @cached_property
    def aliases(self) -> Mapping[str, Node]:
        """The items that have an alias, by its folded name."""
        return {folded(item["alias"]): item for item in self.items if item.get("alias")}

    @cached_property
    def modifiers(self) -> Mapping[str, Node]:
        """The modifiers (ORDER BY, LIMIT, DISTINCT), by type."""
        return {modifier["type"]: modifier for modifier in self.node["modifiers"]}

    @property
    def is_distinct(self) -> bool:
        return "DISTINCT_MODIFIER" in self.modifiers

    @property
    def distinct_on(self) -> list[Node]:
        """The expressions of DISTINCT ON."""
        return [
            self._meant(target)
            for target in self.modifiers.get("DISTINCT_MODIFIER", {}).get("distinct_on_targets") or ()
        ]

    @property
    def order(self) -> list[OrderItem]:
        """The items of ORDER BY; ORDER BY ALL names all columns of the SELECT list."""
        found: list[OrderItem] = []
        for item in self.modifiers.get("ORDER_MODIFIER", {}).get("orders") or ():
            direction = "ASCENDING" if item["type"] == "ORDER_DEFAULT" else item["type"]
            named = (
                self.items
                if item["expression"].get("class") == "STAR"
                else [self._meant(item["expression"], alias_first=True)]
            )
            found.extend(OrderItem(expression, direction, item["null_order"]) for expression in named)
        return found

    @property
    def limit(self) -> tuple[Node | None, Node | None]:
        """LIMIT and OFFSET."""
        modifier = self.modifiers.get("LIMIT_MODIFIER") or self.modifiers.get("LIMIT_PERCENT_MODIFIER") or {}
        return modifier.get("limit"), modifier.get("offset")

    @property
    def limits_by_rows(self) -> bool:
        """Whether LIMIT, if there is one, is a number of rows."""
        return (
            self.modifiers.get("LIMIT_MODIFIER", {}).get("limit_type", "ROW_COUNT") == "ROW_COUNT"
            and "LIMIT_PERCENT_MODIFIER" not in self.modifiers
        )

    @property
    def groups_by_all(self) -> bool:
        return self.node["aggregate_handling"] == "FORCE_AGGREGATES"

    @property
    def grouping_sets(self) -> list[list[Node]]:
        """The expressions of each set by which it groups: one set for a plain GROUP BY, none without GROUP BY."""
        expressions = [self._meant(expression) for expression in self.node["group_expressions"]]
        return [[expressions[index] for index in indexes] for indexes in self.node["group_sets"]]

    def _meant(self, expression: Node, *, alias_first: bool = False) -> Node:
        """Resolve an item of a clause: a number is a column of the SELECT list, a name in ORDER BY may be an alias."""
        literal = expression.get("literal") or {}
        if expression.get("class") == "CONSTANT" and literal.get("kind") == "INTEGER" and literal["text"].isdecimal():
            position = int(literal["text"])
            return self.items[position - 1] if 1 <= position <= len(self.items) else expression
        if alias_first and expression.get("class") == "COLUMN_REF" and len(expression["column_names"]) == 1:
            return self.aliases.get(folded(expression["column_names"][0]), expression)
        return expression


def is_plain_star(item: Node) -> bool:
    """Whether an item of a SELECT list is ``*`` or ``t.*`` without modifiers."""
    return item.get("class") == "STAR" and not any(
        value for key, value in item.items() if key not in ("class", "type", "alias", "relation_name")
    )


def is_bare(select: Node) -> bool:
    """Whether a SELECT has no other clauses than FROM and WHERE, and no common table expressions."""
    return select["aggregate_handling"] == "STANDARD_HANDLING" and not (
        select["cte_map"]["map"] or select["modifiers"] or any(map(select.get, BEHIND_WHERE))
    )


def named_columns(names: Iterable[str], **marks: bool) -> list[Node]:
    """The nodes of some columns by their names."""
    return [
        {"class": "COLUMN_REF", "type": "COLUMN_REF", "alias": "", "column_names": [name], **marks} for name in names
    ]
