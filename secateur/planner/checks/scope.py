"""Resolves the names in a statement, in DuckDB's parse tree: column lineage.

A name is followed through subqueries, common table expressions, set operations and aliases to the columns of scans that
it stands for unchanged. That way a condition on the rows of a scan is recognized as one of the user's conditions, which
calls the columns as the query around them does.

Source: the lineage of a column through views (Cui, Widom, Wiener, 2000), for columns that are only passed on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from secateur.partitioning.tables.identifier import folded
from secateur.planner.checks.column_names import all_folded, called, named_by, shown_columns
from secateur.planner.checks.conjuncts import leaves, preserved_leaves
from secateur.planner.checks.select_node import Node, is_plain_star
from secateur.planner.text.parse_tree import conditions_of

QUERIES: Final = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
"""The types of the nodes of queries."""

_READING: Final = {"UNION": None, "INTERSECT": None, "EXCEPT": None}
_HAVING_ALL_ROWS: Final = {"UNION": 0, "INTERSECT": None, "EXCEPT": 1}
"""The number of the first branches of a set operation that have each of its rows; None for all of them."""

_SERIES: Final = frozenset({"generate_series", "range"})
"""Table functions with one column, which gets the name of the item by default; so does that of UNNEST of one list."""

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
        in_every_row: Whether a name means only columns of scans that have a row in each row of the query: not those in
            a branch of UNION, on the right of EXCEPT, or on the side of an outer join that may be missing.
    """

    scans: Mapping[str, Sequence[str]]
    read_by_position: frozenset[str] = frozenset()
    definitions: Mapping[str, tuple[Node, Scope] | None] = field(default_factory=dict)
    select: Node | None = None
    outer: Scope | None = None
    in_every_row: bool = False

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
        tables = self._called(*qualifier)
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

    def tables(self, name: Sequence[str]) -> list[Node]:
        """The items of FROM of which a name is a column: several for a name of USING, none if that is not known.

        Args:
            name: The parts of the name.
        """
        if self.select is None or not 1 <= len(name) <= 2:
            return []
        *qualifier, column = all_folded(name)
        tables = self._called(*qualifier)
        is_only = bool(qualifier) and len(tables) == 1 and self.shows(tables[0], column) is None
        return tables if is_only else [table for table in tables if self.shows(table, column)]

    def shows(self, table: Node, column: str) -> bool | None:
        """Whether an item of FROM has a column with a folded name; None if that is not known."""
        lineages = self._of(table, column)
        return None if lineages is None else bool(lineages)

    def lineages(self, query: Node) -> list[_Lineage]:
        """The lineages of the columns of a query that stands here; empty where one is not known.

        They are without columns of the queries around.
        """
        alone = replace(self, select=None, outer=None)
        return [alone._at(query, position) or frozenset() for position in range(alone._width(query))]

    def _called(self, *qualifier: str) -> list[Node]:
        """The items of FROM, all of them or those with a folded name."""
        assert self.select is not None
        tables = leaves(self.select["from_table"])
        return [table for table in tables if not qualifier or called(table) == qualifier[0]]

    def _of_item(self, item: Node) -> _Lineage | None:
        return self.columns(item["column_names"]) if item.get("class") == "COLUMN_REF" else frozenset()

    def _of(self, table: Node, column: str) -> list[_Lineage] | None:
        """The lineage of a column of an item of FROM; empty if it has no such column, None if that is not known."""
        aliases = all_folded(table.get("column_name_alias") or ())
        match table:
            case {"type": "BASE_TABLE", "table_name": relation}:
                found = self._defined(table)
                if found is not None:
                    definition, reached = found
                    defined = all_folded(definition["aliases"])
                    lineages = reached._of_query(definition["query_node"], [*aliases, *defined[len(aliases) :]], column)
                elif relation not in self.scans:
                    return None
                else:
                    shown = shown_columns(table, self.scans[relation])
                    lineages = [frozenset({(relation, shown[column])})] if column in shown else []
            case {"type": "SUBQUERY"}:
                lineages = self._of_query(table["subquery"]["node"], aliases, column)
            case {"type": "EMPTY"}:
                return []
            case {"type": "TABLE_FUNCTION", "function": {"function_name": function, "children": given}} if (
                folded(function) in _SERIES or (folded(function) == "unnest" and len(given) == 1)
            ) and table["with_ordinality"] == "WITHOUT_ORDINALITY":
                return [frozenset()] if column == (aliases or [folded(table["alias"] or function)])[0] else []
            case _:
                return [frozenset()] if column in aliases else None
        return lineages if not lineages or self._has_row_of(table) else [frozenset()]

    def _defined(self, table: Node) -> tuple[Node, Scope] | None:
        """As :meth:`definition`; names in it mean the same kind of columns as here."""
        found = self.definition(table)
        return None if found is None else (found[0], replace(found[1], in_every_row=self.in_every_row))

    def _has_row_of(self, table: Node) -> bool:
        """Whether a name may mean a column of an item of FROM."""
        preserved = () if self.select is None else preserved_leaves(self.select["from_table"])
        return not self.in_every_row or any(table is each for each in preserved)

    def _of_query(self, query: Node, aliases: Sequence[str], column: str) -> list[_Lineage] | None:
        """The same for a query, whose first columns have some aliases."""
        names: Sequence[str | None] | None = named_by(query)
        if names is None and aliases and query["type"] == "SELECT_NODE":
            starred = self.inside(query)._star(query)
            names = None if starred is None else [name for _, name in starred]
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
                if named_by(query) is not None:
                    return inside._of_item(query["select_list"][position])
                names = inside._star(query)
                return None if names is None else replace(inside, outer=None).columns(names[position])
            case "SET_OPERATION_NODE" if "NAME" not in query["setop_type"]:
                counted = _HAVING_ALL_ROWS if self.in_every_row else _READING
                parts = [inside._at(branch, position) for branch in branches(query, counted)]
                return None if None in parts else frozenset().union(*(part for part in parts if part is not None))
            case _:
                return None

    def _star(self, query: Node) -> list[list[str]] | None:
        """The names of the columns of a SELECT that lists all those of one scan; None if it is another SELECT."""
        match query["select_list"], query["from_table"]:
            case [star], {"type": "BASE_TABLE", "table_name": relation} as table if (
                is_plain_star(star) and relation in self.scans and self.definition(table) is None
            ):
                shown = shown_columns(table, self.scans[relation])
                return [[called(table), name] for name in shown] if len(shown) == len(self.scans[relation]) else None
            case _:
                return None

    def _width(self, query: Node) -> int:
        """The number of columns of a query; 0 if it is not known."""
        first = next(branches(query, _READING))
        inside = self.inside(query).inside(first)
        return len(named_by(first) or (inside._star(first) if first["type"] == "SELECT_NODE" else None) or ())


def branches(query: Node, counted: Mapping[str, int | None]) -> Iterator[Node]:
    """Yield the branches of a set operation; for one that is a set operation itself, its branches instead.

    Args:
        query: The set operation.
        counted: The operations whose branches are meant, and how many of the first ones; None for all of them. One of
            another kind, or with common table expressions of its own, is a branch.
    """
    # Not recursive: INTERSECT and EXCEPT of many branches are trees as deep.
    pending = [query]
    while pending:
        part = pending.pop()
        kind = str(part.get("setop_type"))
        if kind in counted and (part is query or not part["cte_map"]["map"]):
            pending += reversed(part["children"][: counted[kind]])
        else:
            yield part


def conditions_with_scopes(query: Node, scope: Scope) -> Iterator[tuple[Node, Scope]]:
    """Yield the conjuncts of all filters of a query that stands in a scope, each with its own scope."""
    for node, inside in _nodes_with_scopes(query, scope):
        yield from ((conjunct, inside) for conjunct in conditions_of(node))


def set_operations_with_scopes(query: Node, scope: Scope) -> Iterator[tuple[Node, Scope]]:
    """Yield the set operations of a query that stands in a scope, each with that of its clauses."""
    for node, inside in _nodes_with_scopes(query, scope):
        if node.get("type") == "SET_OPERATION_NODE":
            yield node, inside


def _nodes_with_scopes(query: Node, scope: Scope) -> Iterator[tuple[Node, Scope]]:
    """Yield the nodes of a query that stands in a scope, each with that of its clauses."""
    pending: list[tuple[Any, Scope]] = [(query, scope)]
    while pending:
        part, around = pending.pop()
        if isinstance(part, list):
            pending.extend((item, around) for item in part)
        elif isinstance(part, dict):
            inside = around.inside(part) if part.get("type") in QUERIES else around
            yield part, inside
            pending.extend((value, inside) for key, value in part.items() if key != "cte_map")
            for entry in (part.get("cte_map") or {}).get("map", ()):
                found = inside.definitions[folded(entry["key"])]
                pending.append((entry["value"], around if found is None else found[1]))
