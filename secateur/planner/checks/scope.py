"""What the names in a statement mean, in DuckDB's parse tree: column lineage.

A name is followed through subqueries, common table expressions, set operations and aliases to the columns of scans that
it stands for unchanged. That way a condition on the rows of a scan is recognized as one of the user's conditions, which
calls the columns as the query around them does.

Source: the lineage of a column through views (Cui, Widom, Wiener, 2000), for columns that are only passed on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from secateur.planner.checks.column_names import all_folded, called, named_by, shown_columns
from secateur.planner.checks.conjuncts import leaves
from secateur.planner.checks.select_node import Node, is_plain_star
from secateur.planner.text.folding import folded
from secateur.planner.text.parse_tree import conditions_of

__all__ = ["QUERIES", "Scope", "conditions_with_scopes"]

QUERIES: Final = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
"""The types of the nodes of queries."""

_Lineage: TypeAlias = frozenset[tuple[str, str]]
"""Columns of scans, each a relation and the folded name of a column: several for a set operation or a name of USING,
none for a value that is computed."""


@dataclass(frozen=True, eq=False)
class Scope:
    """The context of a part of the user's text.

    Attributes:
        scans: The columns of each scan, by its relation.
        read_by_position: The scans of which the statement may read columns that it does not name.
        definitions: The visible common table expressions, by their folded names: each with its own scope, None for one
            that is being defined.
        select: The SELECT around, or None.
        outer: The scope of that SELECT, or None.
    """

    scans: Mapping[str, Sequence[str]]
    read_by_position: frozenset[str] = frozenset()
    definitions: Mapping[str, tuple[Node, Scope] | None] = field(default_factory=dict)
    select: Node | None = None
    outer: Scope | None = None

    def inside(self, query: Node) -> Scope:
        """The scope of the clauses of a query that stands here."""
        found = self
        for entry in query["cte_map"]["map"]:
            found = replace(found, definitions={**found.definitions, folded(entry["key"]): (entry["value"], found)})
        return replace(found, select=query, outer=self) if query["type"] == "SELECT_NODE" else found

    def definition(self, table: Node) -> tuple[Node, Scope] | None:
        """The common table expression that a reference in FROM means, and its scope."""
        return self.definitions.get(folded(table["table_name"])) if len(table["qualified_name"]["path"]) == 1 else None

    def columns(self, name: Sequence[str]) -> _Lineage | None:
        """The columns that a name means; None if that is not known.

        Args:
            name: The parts of the name.
        """
        if self.select is None or not 1 <= len(name) <= 2:
            return None
        *qualifier, column = all_folded(name)
        tables = [
            table for table in leaves(self.select["from_table"]) if not qualifier or called(table) == qualifier[0]
        ]
        found = [self._of(table, column) for table in tables]
        present = [lineage for lineages in found if lineages is not None for lineage in lineages]
        if present:
            return frozenset().union(*present)
        if None in found:
            return None
        aliased = [item for item in self.select["select_list"] if not qualifier and folded(item["alias"]) == column]
        if aliased:
            return self._of_item(aliased[0])
        return None if self.outer is None else self.outer.columns(name)

    def _of_item(self, item: Node) -> _Lineage | None:
        return self.columns(item["column_names"]) if item.get("class") == "COLUMN_REF" else frozenset()

    def _of(self, table: Node, column: str) -> list[_Lineage] | None:
        """The lineage of a column of an item of FROM; empty if it has no such column, None if that is not known."""
        aliases = all_folded(table.get("column_name_alias") or ())
        match table:
            case {"type": "BASE_TABLE", "table_name": relation}:
                found = self.definition(table)
                if found is not None:
                    definition, reached = found
                    defined = all_folded(definition["aliases"])
                    return reached._of_query(definition["query_node"], [*aliases, *defined[len(aliases) :]], column)
                if relation not in self.scans:
                    return None
                shown = shown_columns(table, self.scans[relation])
                return [frozenset({(relation, shown[column])})] if column in shown else []
            case {"type": "SUBQUERY"}:
                return self._of_query(table["subquery"]["node"], aliases, column)
            case {"type": "EMPTY"}:
                return []
            case _:
                return [frozenset()] if column in aliases else None

    def _of_query(self, query: Node, aliases: Sequence[str], column: str) -> list[_Lineage] | None:
        """The same for a query, whose first columns have some aliases."""
        names = named_by(query)
        if names is None:
            match query:
                case {"type": "SELECT_NODE", "select_list": [star]} if not aliases and is_plain_star(star):
                    qualifier = [star["relation_name"]] if star["relation_name"] else []
                    lineage = replace(self.inside(query), outer=None).columns([*qualifier, column])
                    return None if lineage is None else [lineage]
                case _:
                    return None
        shown = [*aliases, *(name and folded(name) for name in names[len(aliases) :])]
        if shown.count(column) == 1:
            lineage = self._at(query, shown.index(column))
            return None if lineage is None else [lineage]
        return [] if len({*shown} - {None}) == len(shown) else None

    def _at(self, query: Node, position: int) -> _Lineage | None:
        """The lineage of the column at a position of a query, counted from 0."""
        inside = self.inside(query)
        match query["type"]:
            case "SELECT_NODE":
                items = query["select_list"]
                return None if named_by(query) is None else inside._of_item(items[position])
            case "SET_OPERATION_NODE" if "NAME" not in str(query.get("setop_type")):
                parts = [inside._at(child, position) for child in query["children"]]
                return None if None in parts else frozenset().union(*(part for part in parts if part is not None))
            case _:
                return None


def conditions_with_scopes(query: Node, scope: Scope) -> Iterator[tuple[Node, Scope]]:
    """Yield the conjuncts of all filters of a query that stands in a scope, each with its own scope."""
    pending: list[tuple[Any, Scope]] = [(query, scope)]
    while pending:
        part, around = pending.pop()
        if isinstance(part, list):
            pending.extend((item, around) for item in part)
        elif isinstance(part, dict):
            inside = around.inside(part) if part.get("type") in QUERIES else around
            yield from ((conjunct, inside) for conjunct in conditions_of(part))
            pending.extend((value, inside) for key, value in part.items() if key != "cte_map")
            for entry in (part.get("cte_map") or {}).get("map", ()):
                found = inside.definitions[folded(entry["key"])]
                pending.append((entry["value"], around if found is None else found[1]))
