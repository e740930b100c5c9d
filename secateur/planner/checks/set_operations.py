"""The columns to which set operations carry the conditions on other columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TypeAlias

from secateur.planner.checks.scope import Scope, branches
from secateur.planner.checks.select_node import Node

_Column: TypeAlias = tuple[str, str]
"""A column of a scan: its relation, and its folded name."""


class SetOperations:
    """Carries conditions on the rows of one branch of a set operation over to the rows of another.

    A row of INTERSECT is a row of each branch: a row of one branch that cannot be a row of another one has no effect. A
    row on the right of EXCEPT removes only rows on the left that are equal to it, so what holds for all of these may be
    applied to it, but not the other way round. UNION carries nothing.

    Args:
        found: The set operations of a statement, each with the scope of its clauses, outer ones before inner ones.

    Cost: linear in the columns of the branches.
    """

    def __init__(self, found: Iterable[tuple[Node, Scope]]) -> None:
        self._carried: defaultdict[_Column, list[Collection[_Column]]] = defaultdict(list)
        read: set[int] = set()  # as part of a chain of operations of one kind
        for node, scope in found:
            kind, children = node["setop_type"], node["children"]
            for child in children if kind == "INTERSECT" else children[:1]:
                if child.get("setop_type") == kind and not child["cte_map"]["map"]:
                    read.add(id(child))
            if kind in ("INTERSECT", "EXCEPT") and id(node) not in read:
                self._read(node, scope)

    def carries(self, one: _Column, other: _Column) -> bool:
        """Whether a condition on one column may be applied to another as well."""
        return any(other in columns for columns in self._carried.get(one, ()))

    def _read(self, node: Node, scope: Scope) -> None:
        kind = node["setop_type"]
        parts = list(branches(node, {kind: None}))
        sources = parts if kind == "INTERSECT" else parts[:1]
        targets = parts if kind == "INTERSECT" else parts[1:]
        of_rows = replace(scope, in_every_row=True)
        held, meant = [of_rows.lineages(part) for part in sources], [scope.lineages(part) for part in targets]
        for position in range(min(map(len, (*held, *meant)))):
            carried = frozenset().union(*(lineages[position] for lineages in meant))
            for source in frozenset().union(*(lineages[position] for lineages in held)):
                self._carried[source].append(carried)
