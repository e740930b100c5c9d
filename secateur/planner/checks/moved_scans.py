"""Checks the rows of scans that are moved: their columns, the conditions that they have passed, and semi-joins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

from secateur.cached_properties import cached_property
from secateur.partitioning.tables.identifier import folded
from secateur.planner.checks.claims import PlacedText, Source
from secateur.planner.checks.column_names import all_folded, called, listed, shown_columns
from secateur.planner.checks.conjuncts import base_of, leaves, said_in
from secateur.planner.checks.equalities import Equalities
from secateur.planner.checks.scope import Scope, conditions_with_scopes, set_operations_with_scopes
from secateur.planner.checks.select_node import Node, is_bare
from secateur.planner.checks.set_operations import SetOperations
from secateur.planner.text.parse_tree import flat_and, nodes_in

MovedScan = tuple[Node, PlacedText]
"""An item of FROM, and the text of the scan whose rows it is."""


class MovedScans:
    """The moved scans of a statement.

    Args:
        user: DuckDB's parse tree of the user's text.
        texts: The texts of the stages, by their relations.
        sources: The scans by their relations.
        trees: The parse trees of the texts.
    """

    def __init__(
        self, user: Node, texts: Mapping[str, PlacedText], sources: Mapping[str, Source], trees: Mapping[str, Node]
    ) -> None:
        self._user = user
        self._texts = texts
        self._sources = sources
        self._trees = trees
        self.scope = Scope({relation: source.columns for relation, source in sources.items()})

    def text_of(self, table: object) -> PlacedText | None:
        """The text of a stage whose rows an item of FROM is."""
        is_table = isinstance(table, dict) and table.get("type") == "BASE_TABLE"
        return self._texts.get(table["table_name"]) if is_table else None  # type: ignore[index]

    def among(self, tables: Iterable[Node]) -> list[MovedScan]:
        """The moved scans among some items of FROM."""
        return [(table, text) for table in tables if (text := self.text_of(table)) is not None and text.scans]

    def difference(self, relation: str, text: PlacedText, read_by_position: frozenset[str]) -> str | None:
        """Return in what the rows of a moved scan differ from those of a scan that the statement needs; or None."""
        tree, source = self._trees[text.sql], self._sources.get(relation)
        if source is None or tree.get("type") != "SELECT_NODE" or listed(tree) != text.columns or not is_bare(tree):
            return "the rows of a scan"
        if relation in read_by_position and text.columns != source.columns:
            return "which columns it looks at"
        return self._reduction_difference(relation, source, tree)

    def _reduction_difference(self, relation: str, source: Source, tree: Node) -> str | None:
        """Return what of FROM and WHERE does more than to leave out rows that the statement does not need."""
        base = next(leaves(tree["from_table"]))
        there = self._sources.get(base.get("table_name", ""))
        if there is None or there.rows != source.rows or base["sample"] is not None or base["column_name_alias"]:
            return "the rows of a scan"
        joins = (node for node in nodes_in(tree["from_table"], without="subquery") if node.get("type") == "JOIN")
        if not all(self._is_semi_join(relation, base["table_name"], join) for join in joins):
            return "a semi-join"
        is_said = all(self.is_said(relation, conjunct) for conjunct in flat_and(tree["where_clause"]))
        return None if is_said else "the rows of a scan"

    def _is_semi_join(self, relation: str, base: str, join: Node) -> bool:
        kind, right = (join["join_type"], join["ref_type"], join["using_columns"]), join["right"]
        if kind != ("SEMI", "REGULAR", []) or right.get("type") != "SUBQUERY":
            return False
        tree = right["subquery"]["node"]
        other = base_of(tree.get("from_table"))
        there, names = self._sources.get(other), listed(tree)
        if there is None or names is None or not set(names) <= set(there.columns) or not is_bare(tree):
            return False
        others = [name for name, source in self._sources.items() if source.rows == there.rows]
        shown = all_folded(names)
        for conjunct in flat_and(join["condition"]):
            sides = [all_folded(conjunct.get(side, {}).get("column_names", ())) for side in ("left", "right")]
            qualifiers = [side[:-1] for side in sides]
            if conjunct.get("type") != "COMPARE_EQUAL" or qualifiers != [[base], [folded(right["alias"])]]:
                return False
            key, asked = (side[-1] for side in sides)
            if asked not in shown or not any(
                self._equalities.are_equal((relation, key), (name, asked)) for name in others
            ):
                return False
        return self._reduction_difference(other, there, tree) is None

    @cached_property
    def _equalities(self) -> Equalities:
        return Equalities(nodes_in(self._user), self.scope.scans)

    @cached_property
    def _conditions(self) -> list[tuple[Node, Scope]]:
        return list(conditions_with_scopes(self._user, self.scope))

    @cached_property
    def _set_operations(self) -> SetOperations:
        return SetOperations(set_operations_with_scopes(self._user, self.scope))

    def is_said(self, relation: str, conjunct: Node) -> bool:
        """Whether a condition on the rows of a scan is one of the statement's.

        If a scan replaces several references, each of them must have it, or one of those that it has must.
        """
        known = all_folded(self._sources[relation].columns)
        for own, scope in self._conditions:

            def means(name: Sequence[str], column: str, scope: Scope = scope) -> bool:
                found = scope.columns(name)
                if found is None:  # the name is the column's, or one that a query around the scan gives it
                    return name[-1] == column or name[-1] not in known
                meant = relation, column
                return meant in found or any(self._set_operations.carries(source, meant) for source in found)

            if said_in(conjunct, own, means):
                return True
        match conjunct:
            case {"type": "CONJUNCTION_OR" | "CONJUNCTION_AND", "children": children}:
                return all(self.is_said(relation, child) for child in children)
            case _:
                return False

    def is_met(self, conjunct: Node, moved: Iterable[MovedScan], scope: Scope) -> bool:
        """Whether all rows of a moved scan have passed one of the user's conditions."""
        if scope.select is None:
            return False
        for table, text in moved:
            names = {
                item.get("table_name") for item in leaves(scope.select["from_table"]) if called(item) == called(table)
            }

            def means(name: Sequence[str], column: str, names: Iterable[object] = names) -> bool:
                found = scope.columns(name) or ()
                return any((relation, column) in found for relation in names)

            if any(said_in(met, conjunct, means) for met in flat_and(self._trees[text.sql]["where_clause"])):
                return True
        return False

    def is_always_met(self, conjunct: Node, moved: Iterable[MovedScan]) -> bool:
        """Whether a condition is that a column of a moved scan is not NULL which never is."""
        match conjunct:
            case {
                "type": "OPERATOR_NOT",
                "children": [
                    {"type": "OPERATOR_IS_NULL", "children": [{"class": "COLUMN_REF", "column_names": [alias, name]}]}
                ],
            }:
                return any(
                    called(table) == folded(alias)
                    and shown_columns(table, text.columns).get(folded(name)) in all_folded(base.never_null)
                    for table, text in moved
                    if (base := self._base(text)) is not None
                )
            case _:
                return False

    def has_columns(self, text: PlacedText, names: Set[str]) -> bool:
        """Whether a SELECT which mentions some names needs no columns that were left out of a scan which it reads."""
        base = self._base(text)
        left_out = {*all_folded(base.columns)} - {*all_folded(text.columns)} if base is not None else set()
        return not left_out or left_out.isdisjoint(names)

    def _base(self, text: PlacedText) -> Source | None:
        return self._sources.get(base_of(self._trees[text.sql].get("from_table")))
