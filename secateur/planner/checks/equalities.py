"""The columns of scans that a statement equates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from secateur.planner.checks.column_names import all_folded, shown_columns
from secateur.planner.checks.conjuncts import inner_leaves, joins_plainly
from secateur.planner.checks.scope import Scope
from secateur.planner.checks.select_node import Node
from secateur.planner.text.parse_tree import flat_and

__all__ = ["Equalities"]


class Equalities:
    """The columns of scans that are equal in every row which inner joins make of them.

    Args:
        nodes: All nodes of the statement.
        columns: The columns of each scan, by its relation.

    Cost: linear in the conditions, times the scans of a FROM clause.
    """

    def __init__(self, nodes: Iterable[Node], columns: Mapping[str, Sequence[str]]) -> None:
        self._columns = columns
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
        scope = Scope(self._columns).inside(select)
        for tables, conditions in parts:
            own = {table.get("table_name") for table in tables}
            for condition in conditions:
                if condition.get("type") == "COMPARE_EQUAL":
                    sides = [scope.columns(condition[side].get("column_names", ())) or () for side in ("left", "right")]
                    columns = [column for side in sides if len(side) == 1 for column in side if column[0] in own]
                    if len(columns) == len(sides):
                        self._unite(*columns)

    def _unite_named(self, join: Node) -> None:
        """Unite the columns of USING, or those of a NATURAL join, which are all that both sides have.

        On the left they are those of one inner join after the other.
        """
        left, right = (
            [
                (table["table_name"], shown_columns(table, self._columns[table["table_name"]]))
                for table in inner_leaves(join[side])
                if table.get("table_name") in self._columns
            ]
            for side in ("left", "right")
        )
        names = set(all_folded(join["using_columns"]))
        if join["ref_type"] == "NATURAL":
            names = {name for _, shown in left for name in shown}
        for one, shown in left:
            for other, shown_there in right:
                for name in names & shown.keys() & shown_there.keys():
                    self._unite((one, shown[name]), (other, shown_there[name]))

    def _unite(self, one: tuple[str, str], other: tuple[str, str]) -> None:
        united = self._classes.get(one, {one}) | self._classes.get(other, {other})
        self._classes.update(dict.fromkeys(united, united))
