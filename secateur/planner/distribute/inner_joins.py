"""Inner joins: which inputs of a region stay where they are, and how the rows of the others reach them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf, prod
from typing import TypeAlias

from secateur.engine.exchange.key_routing import can_route
from secateur.partitioning.types.result_type import column_type_of
from secateur.planner.cost_model import CostModel
from secateur.planner.distribute.exchanges import Exchanges, MakeRoute, route_by
from secateur.planner.distribute.placed import (
    AtCoordinator,
    AtEveryMember,
    AtMembers,
    Key,
    Place,
    Placed,
    PlaceRelation,
    moved,
)
from secateur.planner.distribute.regions import Region, conditions_apart
from secateur.planner.distribute.semi_joins import reduced, semi_join
from secateur.planner.tree import expressions as ex
from secateur.planner.tree import relations as rel
from secateur.planner.tree.columns import column_types, relations_in
from secateur.planner.tree.comparisons import compared
from secateur.planner.tree.equal_columns import EqualColumns, equal_columns
from secateur.planner.tree.rewriting import column_of, inputs_of, over_columns, picked
from secateur.planner.tree.stability import unstable_call
from secateur.planner.tree.types import LogicalType

_Part: TypeAlias = tuple[int, ...]
"""Inputs of a region that are joined where they are, by their indices."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some inputs of a region in one relation, and its columns among those of all inputs."""

    relation: rel.AnyRelation
    columns: list[int]


@dataclass(frozen=True, slots=True)
class _Whole:
    """A part, joined as far as it can be before its rows move.

    Attributes:
        inputs: The inputs that it has.
        rows: Its rows.
        columns: Their columns among those of all inputs.
        needed: The positions of those that are needed further on.
    """

    inputs: list[int]
    rows: Placed
    columns: list[int]
    needed: list[int]


class InnerJoin:
    """A region that is being joined: its pieces become fewer, until one kernel call joins what is left."""

    def __init__(
        self, region: Region, needed: frozenset[int], place: PlaceRelation, exchanges: Exchanges, model: CostModel
    ) -> None:
        self._exchanges = exchanges
        self._model = model
        self._region = region
        self._outputs = frozenset(region.outputs[index] for index in needed)
        self._place = place
        inputs, self._conditions = conditions_apart(region)
        self._types = [type_ for one in inputs for type_ in column_types(one)]
        self._equal = EqualColumns(equal_columns(self._conditions))
        self._never_null = EqualColumns(equal_columns(self._conditions, null_is_equal=False))
        self._compared = {self._equal.first(column) for pair in equal_columns(self._conditions) for column in pair}
        used = self._used()
        read = [frozenset(self._own_columns(index, used)) for index in range(len(inputs))]
        first = [index for index, one in enumerate(inputs) if not _aggregates(one)]
        placed = {index: place(inputs[index], read[index]) for index in first}
        for index, one in enumerate(inputs):
            if index not in placed:
                placed[index] = place(self._reduced(index, one, placed), read[index])
        self._placed = [placed[index] for index in range(len(inputs))]
        self._pieces = {
            index: _Piece(one.relation, list(region.columns_of(index))) for index, one in enumerate(self._placed)
        }

    def joined(self) -> Placed:
        """The rows of the region."""
        parts = self._parts()
        if not parts:
            is_alone = any(isinstance(one.place, AtCoordinator) for one in self._placed)
            return self._combined(AtCoordinator() if is_alone else AtEveryMember())
        used = self._used()
        home = max(parts, key=lambda part: self._bytes(part, used))  # the rows of the others move
        for index, one in enumerate(self._placed):
            if isinstance(one.place, AtCoordinator):
                rows = self._exchanges.send(one, self._own_columns(index, used))
                self._pieces[index] = _Piece(rows, self._pieces[index].columns)
        others = [part for part in parts if part is not home]
        shuffled = self._shuffled(home, others[0]) if len(others) == 1 else None
        if shuffled is not None:
            return self._combined(shuffled)
        for part in others:
            self._move(part, home)
        places = [self._members(index) for index in home]
        keys = self._all_keys(frozenset(key for place in places for key in place.keys))
        nullable_keys = frozenset(key for place in places for key in place.nullable_keys)
        return self._combined(places[0].with_keys(keys, nullable_keys))

    def _reduced(self, index: int, relation: rel.AnyRelation, placed: dict[int, Placed]) -> rel.AnyRelation:
        """An input that aggregates, over the rows alone that those of a smaller input are joined with."""
        for other, keys in sorted(placed.items(), key=lambda item: item[1].rows):
            pairs = [*self._compared_directly(index, other)]
            if pairs and not isinstance(keys.place, AtCoordinator):
                columns, values, comparisons = zip(*pairs, strict=True)
                reduce = partial(self._over_keys, placed=placed, other=other, values=values, comparisons=comparisons)
                made = reduced(relation, columns, reduce)
                if made is not None:
                    return made
        return relation

    def _over_keys(
        self,
        scan: rel.LogicalScan,
        columns: Sequence[int],
        *,
        placed: dict[int, Placed],
        other: int,
        values: Sequence[int],
        comparisons: Sequence[str],
    ) -> rel.AnyRelation | None:
        """The rows of a scan that meet those of another input, which go to all members for that; None for all rows."""
        rows, keys = self._place(scan, frozenset(columns)), placed[other]
        share = keys.rows / max(prod(rows.distinct.get(column, rows.rows) for column in columns), 1.0)
        saved = rows.nbytes(range(len(column_types(scan)))) * (1 - share)
        if share > self._model.semi_join_share_max or saved < self._model.semi_join_saved_bytes_min:
            return None
        used = self._own_columns(other, self._used())
        if isinstance(keys.place, AtMembers):
            if keys.nbytes(used) > saved or _are_together(rows, columns, keys, values):
                return None
            placed[other] = keys = keys.over(self._exchanges.send(keys, used), place=AtEveryMember())
        return semi_join(scan, columns, keys.relation, values, comparisons)

    def _compared_directly(self, index: int, other: int) -> Iterator[tuple[int, int, str]]:
        """The columns of two inputs that conditions compare, as these count them, and the comparisons."""
        for condition in self._conditions:
            for left, right in equal_columns([condition]):
                for here, there in ((left, right), (right, left)):
                    if (self._region.input_of(here), self._region.input_of(there)) == (index, other):
                        starts = self._region.starts
                        yield here - starts[index], there - starts[other], condition.type

    def _used(self) -> frozenset[int]:
        return inputs_of(self._conditions) | self._outputs

    def _members(self, index: int) -> AtMembers:
        """Where the rows of an input at members are, among the columns of all inputs."""
        place = self._placed[index].place
        assert isinstance(place, AtMembers)
        return place.shifted(self._region.starts[index])

    def _own_columns(self, index: int, used: Iterable[int]) -> list[int]:
        """The columns of an input that are used, as it counts them."""
        start, columns = self._region.starts[index], self._region.columns_of(index)
        return [column - start for column in used if column in columns]

    def _bytes(self, part: _Part, used: frozenset[int]) -> float:
        """About how many bytes the rows of a part have once they are joined."""
        joined = self._count(part)
        return sum(
            self._placed[index].nbytes(self._own_columns(index, used)) * (joined / max(self._placed[index].rows, 1.0))
            for index in part
        )

    def _count(self, inputs: Iterable[int]) -> float:
        """About how many rows some inputs have when they are joined by what is equal in them.

        Source: Selinger et al., "Access path selection", 1979: values of the smaller side are among those of the other.
        Of several columns together there are no more values than rows.
        """
        left = sorted(inputs, key=lambda index: -self._placed[index].rows)
        if not left:
            return 1.0
        distinct = {index: self._distinct(index) for index in left}
        first = left.pop(0)
        rows, known = self._placed[first].rows, distinct[first]
        while left:
            index = next((one for one in left if known.keys() & distinct[one].keys()), left[0])
            left.remove(index)
            count, own = self._placed[index].rows, distinct[index]
            shared = known.keys() & own.keys()
            here, there = min(rows, prod(known[one] for one in shared)), min(count, prod(own[one] for one in shared))
            rows *= count / max(here, there, 1.0)
            known = known | {one: min(known.get(one, inf), values) for one, values in own.items()}
        return max(rows, 1.0)

    def _distinct(self, index: int) -> dict[int, float]:
        """How many values the columns of an input have that are compared with others, by what is equal in them."""
        one, found = self._placed[index], dict[int, float]()
        for column in self._region.columns_of(index):
            first = self._equal.first(column)
            if first in self._compared:
                values = min(one.distinct.get(column - self._region.starts[index], one.rows), one.rows)
                found[first] = min(found.get(first, inf), values)
        return found

    def _parts(self) -> list[_Part]:
        """The inputs at members, those together whose rows that can be joined are in the same places."""
        parts: list[_Part] = []
        for index, one in enumerate(self._placed):
            if not isinstance(one.place, AtMembers):
                continue
            place = self._members(index)
            met = [
                part
                for part in parts
                if any(place.meets(self._members(other), self._equal, self._never_null) for other in part)
            ]
            members = (*(other for part in reversed(met) for other in part), index)
            parts = [*(part for part in parts if part not in met), members]
        return parts

    def _shuffled(self, home: _Part, other: _Part) -> AtMembers | None:
        """Send the rows of two parts by the hash of the columns in which they are equal, where that moves less.

        Returns:
            Where the joined rows are; None where one part stays.
        """
        used = self._used()
        moving, staying = self._bytes(other, used), self._bytes(home, used)
        if moving < self._model.shuffled_bytes_min or (moving + staying) * self._model.shuffle_share >= moving:
            return None
        owner = {index: part for part in (home, other) for index in part}
        pairs = []
        for left, right in equal_columns(self._conditions):
            parts = [owner.get(self._region.input_of(column)) for column in (left, right)]
            type_ = self._types[left]
            if type_ == self._types[right] and _can_route(type_) and parts in ([home, other], [other, home]):
                pairs.append((left, right) if parts[0] is home else (right, left))
        columns = [column for index in other for column in self._region.columns_of(index)]
        if not pairs or self._route(columns, home) is not None:
            return None
        keys = tuple(left for left, _ in pairs), tuple(right for _, right in pairs)
        for part, key in zip((home, other), keys, strict=True):
            whole = self._whole(part, frozenset(key))
            positions = tuple(whole.columns.index(column) for column in key)
            self._send(whole, route_by(positions, None))
        key_types = tuple(self._types[column] for column in keys[0])
        return AtMembers(f"shuffled {next(self._exchanges.numbers)}", frozenset(keys), key_types, None)

    def _move(self, part: _Part, home: _Part) -> None:
        """Send the rows of a part to those of another."""
        whole = self._whole(part, frozenset())
        found = None
        if whole.rows.nbytes(whole.needed) >= self._model.routed_bytes_min:
            found = self._route(whole.columns, home)
        if found is None:
            self._send(whole)
        else:
            anchor, key = found
            self._send(replace(whole, needed=[*{*whole.needed, *key}]), route_by(key, anchor))

    def _route(self, columns: Sequence[int], home: _Part) -> tuple[str, Key] | None:
        """The scan of a part whose partitions the rows of some columns can follow, and the places of their key."""
        types = [self._types[column] for column in columns]
        routes = (self._members(index).route_of(columns, types, self._equal) for index in home)
        return next((route for route in routes if route is not None), None)

    def _whole(self, part: _Part, key: frozenset[int]) -> _Whole:
        """Join a part as far as it can be before its rows move; ``key`` are columns by which they do."""
        inputs = [*part, *self._reducing(part)]
        inside: list[ex.AnyExpression] = []
        others: list[ex.AnyExpression] = []
        for one in self._conditions:
            read = self._region.inputs_of(one)
            is_inside = read and read <= set(inputs) and unstable_call([one]) is None
            (inside if is_inside else others).append(one)
        self._conditions = others
        columns = [column for index in inputs for column in self._pieces[index].columns]
        inside += self._implied(inside, columns)
        share = 0.5 ** (len(inputs) - len(part))
        count = self._count(part) * share
        relation = _in_one([self._pieces[index] for index in inputs], inside)
        rows = Placed(relation, self._placed[part[0]].place, count, *self._known(columns))
        used = self._used() | key
        return _Whole(inputs, rows, columns, [place for place, column in enumerate(columns) if column in used])

    def _implied(self, conditions: Sequence[ex.AnyExpression], columns: Sequence[int]) -> list[ex.AnyExpression]:
        """The equalities of some columns that follow from those with columns of other inputs, without repetition.

        ``a.k = c.k AND b.k = c.k`` says ``a.k = b.k``: without it, `a` and `b` would be multiplied before they move.
        """
        known = EqualColumns(equal_columns(conditions, null_is_equal=False))
        firsts: dict[tuple[int, LogicalType], int] = {}
        found: list[ex.AnyExpression] = []
        for column in columns:
            type_ = self._types[column]
            first = firsts.setdefault((self._never_null.first(column), type_), column)
            if known.first(first) != known.first(column):
                known.add(first, column)
                found.append(compared("COMPARE_EQUAL", column_of(first, type_), column_of(column, type_)))
        return found

    def _send(self, whole: _Whole, route: MakeRoute | None = None) -> None:
        """Exchange the pieces of a part for the rows that are sent of it."""
        rows = self._exchanges.send(whole.rows, whole.needed, route)
        for index in whole.inputs:
            del self._pieces[index]
        self._pieces[whole.inputs[0]] = _Piece(rows, whole.columns)

    def _reducing(self, part: _Part) -> list[int]:
        """The inputs that every member has, and that leave out rows of a part before it moves."""
        joined = {frozenset(map(self._region.input_of, pair)) for pair in equal_columns(self._conditions)}
        return [
            index
            for index in self._pieces
            if isinstance(self._placed[index].place, AtEveryMember)
            and isinstance(self._placed[index].relation, rel.LogicalFilter)
            and any(frozenset((index, member)) in joined for member in part)
        ]

    def _known(self, columns: Sequence[int]) -> tuple[dict[int, float], dict[int, float]]:
        """The distinct values and the widths of columns, by their positions, as far as these are known."""
        distinct, widths = {}, {}
        for position, column in enumerate(columns):
            index = self._region.input_of(column)
            own, one = column - self._region.starts[index], self._placed[index]
            if own in one.distinct:
                distinct[position] = one.distinct[own]
            if own in one.widths:
                widths[position] = one.widths[own]
        return distinct, widths

    def _all_keys(self, keys: frozenset[Key]) -> frozenset[Key]:
        """Keys, and those with an equal column in place of one of theirs."""
        found = set(keys)
        for key in keys:
            for position, column in enumerate(key):
                for other in range(self._region.width):
                    if other != column and self._equal.first(other) == self._equal.first(column):
                        found.add((*key[:position], other, *key[position + 1 :]))
        return frozenset(found)

    def _combined(self, place: Place) -> Placed:
        """All pieces in one kernel call."""
        pieces, outputs = list(self._pieces.values()), self._region.outputs
        relation = _in_one(pieces, self._conditions)
        columns = [column for piece in pieces for column in piece.columns]
        if outputs != columns:
            relation = picked(relation, [columns.index(column) for column in outputs])
        positions = [(column, position) for position, column in enumerate(outputs)]
        largest = max((one.rows for one in self._placed), default=0.0) if len(self._placed) > 1 else 0.0
        rows = self._count(range(len(self._placed)))
        return Placed(relation, moved(place, positions), rows, *self._known(outputs), largest)


def _are_together(left: Placed, columns: Sequence[int], right: Placed, values: Sequence[int]) -> bool:
    """Whether rows that are equal in some columns are at one member."""
    if not isinstance(left.place, AtMembers) or not isinstance(right.place, AtMembers):
        return False
    width = len(column_types(left.relation))
    equal = EqualColumns((column, width + value) for column, value in zip(columns, values, strict=True))
    return left.place.meets(right.place.shifted(width), equal, equal)


def _aggregates(relation: rel.AnyRelation) -> bool:
    return any(isinstance(one, rel.LogicalAggregate) for one in relations_in(relation))


def _in_one(pieces: Sequence[_Piece], conditions: Sequence[ex.AnyExpression]) -> rel.AnyRelation:
    """Pieces in one relation, whose columns are theirs."""
    relation = pieces[0].relation
    for piece in pieces[1:]:
        relation = rel.LogicalCross(children=(relation, piece.relation))
    if not conditions:
        return relation
    columns = (column for piece in pieces for column in piece.columns)
    positions = {column: position for position, column in enumerate(columns)}
    return rel.LogicalFilter(
        children=(relation,), expressions=tuple(over_columns(one, positions) for one in conditions)
    )


def _can_route(type_: LogicalType) -> bool:
    """Whether rows are sent by values of a type; lists and structs cannot be compared by a hash."""
    found = column_type_of(type_.sql)
    return found is not None and can_route(found.arrow)
