"""The columns that a statement equates: those of scans, also by way of columns of other items of FROM."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from secateur.planner.checks.column_names import all_folded, shown_columns
from secateur.planner.checks.conjuncts import inner_leaves, joins_plainly, leaves
from secateur.planner.checks.scope import Scope
from secateur.planner.checks.select_node import Node
from secateur.planner.text.parse_tree import flat_and

_Column: TypeAlias = tuple[str | int, str]
"""A column of a scan, by its relation, or of another item of FROM, by the id of its node; and its folded name."""


class Equalities:
    """The columns of scans that are equal in every row which inner joins make of them.

    Two of them may be equal because each is equal to one column of a subquery, of a table function or of a common table
    expression beside them. That column counts as one value; the columns that it is made of do not.

    Args:
        nodes: All nodes of the statement, which live as long as this object.
        columns: The columns of each scan, by its relation.

    Cost: linear in the conditions, times the items of a FROM clause.
    """

    def __init__(self, nodes: Iterable[Node], columns: Mapping[str, Sequence[str]]) -> None:
        self._columns = columns
        self._classes: dict[_Column, set[_Column]] = {}
        for node in nodes:
            if node.get("type") == "SELECT_NODE":
                self._read(node)

    def are_equal(self, one: tuple[str, str], other: tuple[str, str]) -> bool:
        """Whether two columns, each a relation and the folded name of a column, are equal."""
        return other in self._classes.get(one, ())

    def _read(self, select: Node) -> None:
        # Below an outer join, items are joined separately from the rest. Conditions above it may name them all the
        # same, and are not met where it has extended them with NULL.
        parts: list[tuple[set[int], list[Node]]] = [(set(), list(flat_and(select["where_clause"])))]
        pending: list[tuple[Node, tuple[set[int], ...], list[Node]]] = [
            (select["from_table"], (parts[0][0],), parts[0][1])
        ]
        scope = Scope(self._columns).inside(select)
        while pending:
            item, reaching, conditions = pending.pop()
            if item.get("type") != "JOIN":
                for tables in reaching:
                    tables.add(id(item))
            elif joins_plainly(item):
                conditions += flat_and(item["condition"])
                pending += [(item["right"], reaching, conditions), (item["left"], reaching, conditions)]
                self._unite_named(item, scope)
            else:
                # Without one of its rows, the right side of an ASOF join and either of a POSITIONAL one have others.
                reached = {"REGULAR": ("left", "right"), "ASOF": ("left",)}.get(item["ref_type"], ())
                for side in ("left", "right"):
                    parts.append((set(), []))
                    around = reaching if side in reached else ()
                    pending.append((item[side], (parts[-1][0], *around), parts[-1][1]))
        for tables, conditions in parts:
            for condition in conditions:
                if condition.get("type") == "COMPARE_EQUAL":
                    names = [condition[side].get("column_names", ()) for side in ("left", "right")]
                    columns = [column for name in names for column in self._meant(name, scope, tables)]
                    if len(columns) == len(names):
                        self._unite(*columns)

    def _meant(self, name: Sequence[str], scope: Scope, tables: Collection[int]) -> Iterator[_Column]:
        """The column that a name means, if it is one of certain items of FROM, or one that USING equates."""
        found = scope.tables(name)
        if found and all(id(table) in tables for table in found):
            one, *others = (self._column(table, all_folded(name)[-1]) for table in found)
            if all(other in self._classes.get(one, ()) for other in others):
                yield one

    def _column(self, table: Node, name: str) -> _Column:
        relation = str(table.get("table_name"))
        columns = self._columns.get(relation)
        return (id(table), name) if columns is None else (relation, shown_columns(table, columns)[name])

    def _unite_named(self, join: Node, scope: Scope) -> None:
        """Unite the columns of USING, or those of a NATURAL join, which are all that both sides have.

        On the left they are those of one inner join after the other.
        """
        sides = join["left"], join["right"]
        names = set(all_folded(join["using_columns"]))
        if join["ref_type"] == "NATURAL":
            scans = [table for side in sides for table in leaves(side) if table.get("table_name") in self._columns]
            names = {name for table in scans for name in shown_columns(table, self._columns[table["table_name"]])}
        for name in names:
            left, right = ([self._column(table, name) for table in _showing(side, name, join, scope)] for side in sides)
            for one in left:
                for other in right:
                    self._unite(one, other)

    def _unite(self, one: _Column, other: _Column) -> None:
        united = self._classes.get(one, {one}) | self._classes.get(other, {other})
        self._classes.update(dict.fromkeys(united, united))


def _showing(side: Node, name: str, join: Node, scope: Scope) -> list[Node]:
    """The items on a side of a join by USING or of a NATURAL one that have a column, joined with inner joins only."""
    found = [table for table in inner_leaves(side) if scope.shows(table, name)]
    is_only = bool(join["using_columns"]) and side.get("type") != "JOIN" and scope.shows(side, name) is None
    return [side] if is_only else found
