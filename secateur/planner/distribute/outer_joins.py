"""Outer, semi, anti, mark, single and ASOF joins: which side stays where it is, and how the other reaches it."""

from __future__ import annotations

from math import inf, prod
from typing import Final

from msgspec.structs import replace

from secateur.planner.cost_model import CostModel
from secateur.planner.distribute.exchanges import Exchanges, route_by
from secateur.planner.distribute.placed import (
    AtCoordinator,
    AtEveryMember,
    AtMembers,
    Place,
    Placed,
    PlaceRelation,
    moved,
)
from secateur.planner.distribute.regions import common_conditions
from secateur.planner.tree import relations as rel
from secateur.planner.tree.columns import column_types
from secateur.planner.tree.equal_columns import EqualColumns, equal_columns
from secateur.planner.tree.rewriting import Join, column_of, conditions_of, inputs_of, put_back

_KEEP_LEFT: Final = frozenset({"LEFT", "SEMI", "ANTI", "MARK", "SINGLE", "FULL", "OUTER"})
_KEEP_RIGHT: Final = frozenset({"RIGHT", "FULL", "OUTER"})
_FILTERS: Final = frozenset({"SEMI", "ANTI"})
_LEFT_ONLY: Final = _FILTERS | {"MARK"}


class OuterJoin:
    """A join of two sides, of which one or both keep rows without a match."""

    def __init__(
        self, relation: Join, needed: frozenset[int], place: PlaceRelation, exchanges: Exchanges, model: CostModel
    ) -> None:
        self._relation = relation
        self._exchanges = exchanges
        self._model = model
        left, right = relation.children
        self._width = width = len(column_types(left))
        shown = 0 if relation.join_type in _LEFT_ONLY else len(column_types(right))
        self._shown = range(width + shown)  # the columns of both sides that it returns
        conditions = conditions_of(relation)
        read = inputs_of(conditions) | needed.intersection(self._shown)
        self._left_needed = frozenset(column for column in read if column < width)
        self._right_needed = frozenset(column - width for column in read if column >= width)
        known = [*conditions, *common_conditions(conditions)]
        self._equal = EqualColumns(equal_columns(known))
        self._never_null = EqualColumns(equal_columns(known, null_is_equal=False))
        # Whether a value is among others is NULL, and not FALSE, where one of them is NULL, or where it is NULL and
        # there are others: then a row has to meet other rows than those equal to it. Keys of tables are never NULL.
        compared = (
            relation.conditions[len(relation.mark_types) :] if isinstance(relation, rel.LogicalJoin) else (relation,)
        )
        self._meets_unequal = relation.join_type == "MARK" and bool(compared)
        # Of an ASOF join, a row of the left meets one row of all rows of the right.
        self._keeps_left = isinstance(relation, rel.LogicalAsofJoin) or relation.join_type in _KEEP_LEFT
        self._keeps_right = relation.join_type in _KEEP_RIGHT
        self._left = place(left, self._left_needed)
        self._right = place(right, self._right_needed)

    def joined(self) -> Placed:
        """The rows of the join."""
        spot = self._meet()
        left, right = self._left, self._right
        columns = [(column, column) for column in self._shown]
        rows = left.rows if self._keeps_left and not self._keeps_right else max(left.rows, right.rows)
        if self._relation.join_type in _FILTERS and left.rows <= left.largest * self._model.materialized_share_max:
            # DuckDB moves these joins between the others, by guesses at how many rows each of them leaves.
            joined = self._exchanges.computed_first(left.relation, lambda first: self._over(first, right.relation))
        else:
            joined = self._over(left.relation, right.relation)
        return Placed(joined, moved(spot, columns), rows)

    def _over(self, left: rel.AnyRelation, right: rel.AnyRelation) -> rel.AnyRelation:
        return replace(self._relation, children=(left, right))

    def _meet(self) -> Place:
        """Send rows so that both sides meet; returns where, by columns of both sides."""
        here, there = self._left.place, self._right.place
        if isinstance(there, AtMembers):
            there = there.shifted(self._width)
        if isinstance(here, AtMembers) and isinstance(there, AtMembers):
            is_met = here.meets(there, self._equal, self._never_null)
            if self._meets_unequal:
                exact, other = here.with_keys(here.keys), there.with_keys(there.keys)
                is_met = here.anchor is not None and exact.meets(other, self._equal, self._never_null)
            if is_met:
                return self._both(here, there)
        elif not isinstance(here, AtMembers) and not isinstance(there, AtMembers):
            both = isinstance(here, AtEveryMember) and isinstance(there, AtEveryMember)
            return AtEveryMember() if both else AtCoordinator()
        if self._keeps_right and not self._keeps_left and isinstance(there, AtMembers):
            if not isinstance(here, AtEveryMember):
                self._left = self._broadcast(self._left, self._left_needed)
            return there
        if not self._keeps_right and isinstance(here, AtMembers):
            if isinstance(there, AtEveryMember):
                return here
            if isinstance(there, AtMembers) and self._is_left_sent(here, there):
                return there.with_keys(frozenset())
            self._right = self._sent_right(here)
            return here
        # The rows of a side that are each kept once are in one place.
        self._left = self._exchanges.at_coordinator(self._left, self._left_needed)
        self._right = self._exchanges.at_coordinator(self._right, self._right_needed)
        return AtCoordinator()

    def _is_left_sent(self, here: AtMembers, there: AtMembers) -> bool:
        """Send the left side to the members of the right one, where it is smaller and the right one would go to all."""
        left, needed, rights = self._left, self._left_needed, column_types(self._right.relation)
        if left.nbytes(needed) >= self._right.nbytes(self._right_needed) or self._meets_unequal:
            return False
        columns = range(self._width, self._width + len(rights))
        if here.route_of(columns, rights, self._equal) is not None:
            return False
        found = there.route_of(range(self._width), column_types(left.relation), self._equal)
        if found is None:
            return False
        anchor, key = found
        rows = self._exchanges.send(left, {*needed, *key}, route_by(key, anchor, keeps_unmatched=True))
        self._left = _at_every_member(left, rows)
        return True

    def _both(self, here: AtMembers, there: AtMembers) -> AtMembers:
        """Where the rows of two sides are that meet where they are."""
        if self._keeps_left and self._keeps_right:
            return here.with_keys(frozenset(), here.some_keys | there.some_keys)
        kept, filled = (there, here) if self._keeps_right else (here, there)
        return kept.with_keys(kept.keys, kept.nullable_keys | filled.some_keys)

    def _broadcast(self, side: Placed, needed: frozenset[int]) -> Placed:
        return _at_every_member(side, self._exchanges.send(side, needed))

    def _sent_right(self, here: AtMembers) -> Placed:
        """The right side, whose rows matter only where they match, at the members of the left side."""
        right, needed = self._once_each(self._right), self._right_needed
        if right.nbytes(needed) >= self._model.routed_bytes_min and not self._meets_unequal:
            types = column_types(right.relation)
            columns = range(self._width, self._width + len(types))
            found = here.route_of(columns, types, self._equal)
            if found is not None:
                anchor, key = found
                return _at_every_member(right, self._exchanges.send(right, {*needed, *key}, route_by(key, anchor)))
        return self._broadcast(right, needed)

    def _once_each(self, right: Placed) -> Placed:
        """The right side of a semi or anti join, where it matters only whether there is such a row: each row once."""
        needed = sorted(self._right_needed)
        values = prod(right.distinct.get(column, inf) for column in needed)
        # Without a column it would be one group, also of no rows.
        is_worth = needed and values <= right.rows * self._model.distinct_share_max
        if not is_worth or self._relation.join_type not in _FILTERS:
            return right
        types = column_types(right.relation)
        groups = tuple(column_of(column, types[column]) for column in needed)
        distinct = rel.LogicalAggregate(children=(right.relation,), groups=groups)
        return right.over(put_back(distinct, needed, types), rows=values)


def _at_every_member(side: Placed, rows: rel.AnyRelation) -> Placed:
    return side.over(rows, place=AtEveryMember())
