"""Joins: which inputs stay where they are, and how the rows of the others reach them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from msgspec.structs import replace

from secateur.planner.cost_model import CostModel
from secateur.planner.distribute.exchanges import Exchanges, Route
from secateur.planner.distribute.placed import (
    AtCoordinator,
    AtEveryMember,
    AtMembers,
    EqualColumns,
    Key,
    Place,
    Placed,
    moved,
    replace_keys,
)
from secateur.planner.distribute.regions import Region, as_expression, equal_columns, keys_equal
from secateur.planner.tree import expressions as ex
from secateur.planner.tree import relations as rel
from secateur.planner.tree.columns import column_types
from secateur.planner.tree.rewriting import all_of, column_of, conjuncts, inputs_of, rebased, shifted
from secateur.planner.tree.stability import unstable_call
from secateur.planner.tree.types import LogicalType

PlaceRelation = Callable[[rel.AnyRelation, frozenset[int]], Placed]


@dataclass(slots=True)
class _Part:
    """Inputs of a region that are joined where they are.

    Attributes:
        members: Their indices.
        placed: Each of them.
    """

    members: list[int]
    placed: dict[int, Placed]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some inputs of a region in one relation.

    Attributes:
        relation: The relation.
        columns: Its columns, among those of all inputs.
    """

    relation: rel.AnyRelation
    columns: list[int]


class Routes:
    """Joins relations, and sends the rows of some of them.

    Args:
        exchanges: Gets the stages.
        model: The costs of moving rows.
    """

    def __init__(self, exchanges: Exchanges, model: CostModel) -> None:
        self._exchanges = exchanges
        self._model = model

    def joined(self, region: Region, needed: frozenset[int], place: PlaceRelation) -> Placed:
        """The rows of a region."""
        inputs, conditions = conditions_apart(region)
        used = inputs_of(conditions) | {region.outputs[index] for index in needed}
        placed = [place(one, frozenset(_own_columns(region, index, used))) for index, one in enumerate(inputs)]
        equal = EqualColumns(equal_columns(conditions))
        region_outputs = frozenset(region.outputs[index] for index in needed)
        parts = self._together(region, placed, equal)
        rows = self._rows(region, placed)
        pieces = {index: _Piece(one.relation, list(region.columns_of(index))) for index, one in enumerate(placed)}
        if not parts:
            is_alone = any(isinstance(one.place, AtCoordinator) for one in placed)
            spot: Place = AtCoordinator() if is_alone else AtEveryMember()
            return _combined(region, pieces.values(), conditions, spot, rows, placed)
        home = max(parts, key=lambda part: self._bytes(region, part, used))
        for index, one in enumerate(placed):
            if isinstance(one.place, AtCoordinator):
                columns = _own_columns(region, index, used)
                pieces[index] = _Piece(self._exchanges.send(one, columns), pieces[index].columns)
        shuffled = self._shuffled(region, home, parts, placed, pieces, conditions, region_outputs, equal)
        if shuffled is not None:
            conditions, place_ = shuffled
            return _combined(region, pieces.values(), conditions, place_, rows, placed)
        for part in parts:
            if part is not home:
                conditions = self._moved(region, part, home, placed, pieces, conditions, region_outputs, equal)
        anchor = home.placed[home.members[0]].place
        assert isinstance(anchor, AtMembers)
        keys = frozenset(
            key
            for index in home.members
            if isinstance((spot := home.placed[index].place), AtMembers)
            for key in _shifted(spot.keys, region.starts[index])
        )
        result = replace_keys(anchor, _all_keys(keys, equal, region.width))
        return _combined(region, pieces.values(), conditions, result, rows, placed)

    def _shuffled(
        self,
        region: Region,
        home: _Part,
        parts: Sequence[_Part],
        placed: Sequence[Placed],
        pieces: dict[int, _Piece],
        conditions: list[ex.AnyExpression],
        outputs: frozenset[int],
        equal: EqualColumns,
    ) -> tuple[list[ex.AnyExpression], AtMembers] | None:
        """Send the rows of both of two parts by the hash of the columns in which they are equal, where that moves less.

        Returns:
            The other conditions, and where the joined rows are; None where one part stays.
        """
        others = [part for part in parts if part is not home]
        if len(others) != 1:
            return None
        (other,) = others
        used = inputs_of(conditions) | outputs
        moving, staying = self._bytes(region, other, used), self._bytes(region, home, used)
        if moving < self._model.shuffled_bytes_min or (moving + staying) * self._model.shuffle_share >= moving:
            return None
        types = {
            column: type_
            for index, one in enumerate(placed)
            for column, type_ in zip(region.columns_of(index), column_types(one.relation), strict=True)
        }
        pairs = [
            (left, right) if region.input_of(left) in home.members else (right, left)
            for left, right in equal_columns(conditions)
            if {region.input_of(left) in home.members, region.input_of(right) in home.members} == {True, False}
            and {region.input_of(left) in other.members, region.input_of(right) in other.members} == {True, False}
            and types[left] == types[right]
        ]
        other_columns = [column for index in other.members for column in region.columns_of(index)]
        if not pairs or self._route(region, other_columns, [types[one] for one in other_columns], home, equal):
            return None
        keys = tuple(left for left, _ in pairs), tuple(right for _, right in pairs)
        for part, key in zip((home, other), keys, strict=True):
            group, whole, columns, needed, conditions = self._whole(
                region, part, placed, pieces, conditions, outputs | set(key)
            )
            positions = tuple(columns.index(column) for column in key)
            rows = self._exchanges.send(whole, needed, routed(positions, None))
            _replace_group(pieces, group, _Piece(rows, columns))
        key_types = tuple(types[column] for column in keys[0])
        return conditions, AtMembers(f"shuffled {len(self._exchanges.drafts)}", frozenset(keys), key_types, None)

    def _moved(
        self,
        region: Region,
        part: _Part,
        home: _Part,
        placed: Sequence[Placed],
        pieces: dict[int, _Piece],
        conditions: list[ex.AnyExpression],
        outputs: frozenset[int],
        equal: EqualColumns,
    ) -> list[ex.AnyExpression]:
        """Send the rows of a part to those of another; returns the conditions that are still to be tested."""
        group, whole, columns, needed, others = self._whole(region, part, placed, pieces, conditions, outputs)
        route = None
        if whole.nbytes(needed) >= self._model.routed_bytes_min:
            route = self._route(region, columns, column_types(whole.relation), home, equal)
        if route is None:
            rows = self._exchanges.send(whole, needed)
        else:
            anchor, key = route
            rows = self._exchanges.send(whole, {*needed, *key}, routed(key, anchor))
        _replace_group(pieces, group, _Piece(rows, columns))
        return others

    def _whole(
        self,
        region: Region,
        part: _Part,
        placed: Sequence[Placed],
        pieces: Mapping[int, _Piece],
        conditions: Sequence[ex.AnyExpression],
        outputs: frozenset[int],
    ) -> tuple[list[int], Placed, list[int], list[int], list[ex.AnyExpression]]:
        """A part, joined as far as it can be before its rows move.

        Returns:
            Its inputs; its rows; their columns among those of all inputs; the positions of those that are needed
            further on; and the conditions that are still to be tested.
        """
        group = [*part.members, *self._reducing(region, part, placed, pieces, conditions)]
        inside = [
            one
            for one in conditions
            if region.inputs_of(one) and region.inputs_of(one) <= set(group) and unstable_call([one]) is None
        ]
        others = [one for one in conditions if one not in inside]
        columns = [column for index in group for column in pieces[index].columns]
        share = 0.5 ** (len(group) - len(part.members))
        count = max(part.placed[index].rows for index in part.members) * share
        distinct, widths = _known(region, placed, columns)
        spot = part.placed[part.members[0]].place
        whole = Placed(_joined([pieces[index] for index in group], inside), spot, count, distinct, widths)
        used = inputs_of(others) | outputs
        return group, whole, columns, [place for place, column in enumerate(columns) if column in used], others

    def _reducing(
        self,
        region: Region,
        part: _Part,
        placed: Sequence[Placed],
        pieces: Mapping[int, _Piece],
        conditions: Sequence[ex.AnyExpression],
    ) -> list[int]:
        """The inputs that every member has, and that leave out rows of a part before it moves."""
        joined = {
            frozenset(map(region.input_of, pair))
            for pair in equal_columns(conditions)
            if region.input_of(pair[0]) != region.input_of(pair[1])
        }
        return [
            index
            for index in pieces
            if isinstance(placed[index].place, AtEveryMember)
            and isinstance(placed[index].relation, rel.LogicalFilter)
            and any(frozenset((index, member)) in joined for member in part.members)
        ]

    def _together(self, region: Region, placed: Sequence[Placed], equal: EqualColumns) -> list[_Part]:
        """The inputs at members, those together whose rows that can be joined are in the same places."""
        parts: list[_Part] = []
        for index, one in enumerate(placed):
            if not isinstance(one.place, AtMembers):
                continue
            keys = _shifted(one.place.keys, region.starts[index])
            mine = _Part([index], {index: one})
            for part in list(parts):
                if any(
                    isinstance(other.place, AtMembers)
                    and other.place.group == one.place.group
                    and keys_equal(keys, _shifted(other.place.keys, region.starts[number]), equal)
                    for number, other in part.placed.items()
                ):
                    mine = _Part([*part.members, *mine.members], {**part.placed, **mine.placed})
                    parts.remove(part)
            parts.append(mine)
        return parts

    def _bytes(self, region: Region, part: _Part, used: Iterable[int]) -> float:
        return sum(one.nbytes(_own_columns(region, index, used)) for index, one in part.placed.items())

    def _route(
        self,
        region: Region,
        columns: Sequence[int],
        types: Sequence[LogicalType],
        home: _Part,
        equal: EqualColumns,
    ) -> tuple[str, Key] | None:
        """The scan whose partitions moved rows follow, and their columns in the order of its key."""
        for number in home.members:
            spot = home.placed[number].place
            assert isinstance(spot, AtMembers)
            for key in sorted(spot.keys):
                found = equal.within(tuple(region.starts[number] + column for column in key), columns)
                if found is None or spot.anchor is None:
                    continue
                positions = tuple(columns.index(column) for column in found)
                if tuple(types[column] for column in positions) == spot.types:
                    return spot.anchor, positions
        return None

    def _rows(self, region: Region, placed: Sequence[Placed]) -> float:
        """About how many rows a region has: each row of the largest input meets one of each of the others."""
        if not placed:
            return 1.0
        largest = max(one.rows for one in placed)
        joined = {frozenset(map(region.input_of, pair)) for pair in equal_columns(region.conditions)}
        if len(placed) > 1 and not joined:
            return prod(one.rows for one in placed)
        return largest

    # Outer, semi, anti, mark and single joins

    def outer_joined(
        self, relation: rel.LogicalJoin | rel.LogicalConditionJoin, needed: frozenset[int], place: PlaceRelation
    ) -> Placed:
        """The rows of a join of two sides, of which one or both keep rows without a match."""
        kind = relation.join_type
        left_types, right_types = (column_types(child) for child in relation.children)
        width = len(left_types)
        lefts = list(relation.left_projection_map) or list(range(width))
        rights = (
            []
            if kind in ("SEMI", "ANTI", "MARK")
            else (list(relation.right_projection_map) or list(range(len(right_types))))
        )
        conditions = (
            list(conjuncts([relation.condition]))
            if isinstance(relation, rel.LogicalConditionJoin)
            else [as_expression(condition, width) for condition in relation.conditions]
        )
        read = inputs_of(conditions)
        left_needed = frozenset(
            {column for column in read if column < width} | {lefts[index] for index in needed if index < len(lefts)}
        )
        right_needed = frozenset(
            {column - width for column in read if column >= width}
            | {rights[index - len(lefts)] for index in needed if len(lefts) <= index < len(lefts) + len(rights)}
        )
        left = place(relation.children[0], left_needed)
        right = place(relation.children[1], right_needed)
        equal = EqualColumns(equal_columns(conditions))
        # Of an ASOF join, a row of the left meets one row of all rows of the right.
        is_nearest = isinstance(relation, rel.LogicalAsofJoin)
        keeps_left = is_nearest or kind in ("LEFT", "SEMI", "ANTI", "MARK", "SINGLE", "FULL", "OUTER")
        keeps_right = kind in ("RIGHT", "FULL", "OUTER")
        left, right, spot = self._met(
            left,
            right,
            left_needed,
            right_needed,
            equal,
            width,
            keeps_left=keeps_left,
            keeps_right=keeps_right,
        )
        columns = {column: position for position, column in enumerate(lefts)}
        if not keeps_left:
            columns = {}
        if not keeps_left or kind == "INNER":
            columns |= {width + column: len(lefts) + position for position, column in enumerate(rights)}
        rows = left.rows if keeps_left and not keeps_right else max(left.rows, right.rows)
        return Placed(replace(relation, children=(left.relation, right.relation)), moved(spot, columns), rows)

    def _met(
        self,
        left: Placed,
        right: Placed,
        left_needed: frozenset[int],
        right_needed: frozenset[int],
        equal: EqualColumns,
        width: int,
        *,
        keeps_left: bool,
        keeps_right: bool,
    ) -> tuple[Placed, Placed, Place]:
        """Both sides where their rows meet, and where the rows of the join are, by columns of both sides."""
        here, there = left.place, right.place
        if isinstance(here, AtMembers) and isinstance(there, AtMembers):
            theirs = _shifted(there.keys, width)
            if here.group == there.group and keys_equal(here.keys, theirs, equal):
                if keeps_left and keeps_right:
                    return left, right, replace_keys(here, frozenset())
                if keeps_right:
                    return left, right, replace_keys(there, theirs)
                return left, right, here
        if not isinstance(here, AtMembers) and not isinstance(there, AtMembers):
            both = isinstance(here, AtEveryMember) and isinstance(there, AtEveryMember)
            return left, right, AtEveryMember() if both else AtCoordinator()
        if keeps_left and keeps_right:
            return self._gathered(left, left_needed), self._gathered(right, right_needed), AtCoordinator()
        if keeps_right:
            if not isinstance(there, AtMembers):
                return self._gathered(left, left_needed), right, AtCoordinator()
            if isinstance(here, AtEveryMember):
                return left, right, replace_keys(there, _shifted(there.keys, width))
            sent = self._exchanges.send(left, left_needed)
            return left.over(sent, place=AtEveryMember()), right, replace_keys(there, _shifted(there.keys, width))
        if isinstance(here, AtMembers):
            if isinstance(there, AtEveryMember):
                return left, right, here
            return left, self._moved_right(left, right, right_needed, equal, width), here
        # The left side, whose rows are each kept once, is in one place.
        return left, self._gathered(right, right_needed), AtCoordinator()

    def _moved_right(
        self, left: Placed, right: Placed, needed: frozenset[int], equal: EqualColumns, width: int
    ) -> Placed:
        """The right side, whose rows matter only where they match, at the members of the left side."""
        assert isinstance(left.place, AtMembers)
        types = column_types(right.relation)
        if right.nbytes(needed) >= self._model.routed_bytes_min and left.place.anchor is not None:
            for key in sorted(left.place.keys):
                found = equal.within(key, range(width, width + len(types)))
                if found is not None and tuple(types[column - width] for column in found) == left.place.types:
                    columns = tuple(column - width for column in found)
                    anchor = left.place.anchor
                    sent = self._exchanges.send(
                        right,
                        {*needed, *columns},
                        routed(columns, anchor),
                    )
                    return right.over(sent, place=AtEveryMember())
        return right.over(self._exchanges.send(right, needed), place=AtEveryMember())

    def _gathered(self, one: Placed, needed: frozenset[int]) -> Placed:
        if isinstance(one.place, AtMembers):
            return one.over(self._exchanges.send(one, needed), place=AtCoordinator())
        return one


def conditions_apart(region: Region) -> tuple[list[rel.AnyRelation], list[ex.AnyExpression]]:
    """The inputs with the conditions on each of them alone, and the other conditions."""
    own: dict[int, list[ex.AnyExpression]] = {}
    others = []
    for condition in [*region.conditions, *_implied(region)]:
        inputs = region.inputs_of(condition)
        if len(inputs) == 1 and len(region.inputs) > 1 and unstable_call([condition]) is None:
            (index,) = inputs
            own.setdefault(index, []).append(shifted(condition, -region.starts[index]))
        else:
            others.append(condition)
    return [pushed(own[index], one) if index in own else one for index, one in enumerate(region.inputs)], others


def _replace_group(pieces: dict[int, _Piece], group: Sequence[int], piece: _Piece) -> None:
    for index in group:
        del pieces[index]
    pieces[group[0]] = piece


def _known(
    region: Region, placed: Sequence[Placed], columns: Sequence[int]
) -> tuple[dict[int, float], dict[int, float]]:
    """The distinct values and the widths of columns of a region, as far as these are known."""
    distinct, widths = {}, {}
    for position, column in enumerate(columns):
        index = region.input_of(column)
        own = column - region.starts[index]
        if own in placed[index].distinct:
            distinct[position] = placed[index].distinct[own]
        if own in placed[index].widths:
            widths[position] = placed[index].widths[own]
    return distinct, widths


def routed(key: Key, anchor: str | None) -> Callable[[Sequence[str]], Route]:
    """Makes the route by some columns of the names of all."""
    return lambda names: Route(tuple(names[column] for column in key), anchor)


def pushed(conditions: Sequence[ex.AnyExpression], relation: rel.AnyRelation) -> rel.AnyRelation:
    """A relation whose rows pass conditions, which are tested as early as they can be."""
    match relation:
        case rel.LogicalFilter() if not relation.projection_map:
            return pushed([*conjuncts(relation.expressions), *conditions], relation.children[0])
        case rel.LogicalProject(expressions=columns) if all(
            isinstance(columns[index], ex.InputColumn) for index in inputs_of(conditions)
        ):
            below = [rebased(one, lambda column: columns[column.index]) for one in conditions]
            return replace(relation, children=(pushed(below, relation.children[0]),))
        case rel.LogicalJoin() | rel.LogicalConditionJoin() if relation.join_type in (
            "LEFT",
            "SEMI",
            "ANTI",
            "MARK",
            "SINGLE",
        ):
            width = len(column_types(relation.children[0]))
            lefts = list(relation.left_projection_map) or list(range(width))
            here = [one for one in conditions if all(column < len(lefts) for column in inputs_of([one]))]
            if here:
                below = [rebased(one, lambda column: replace(column, index=lefts[column.index])) for one in here]
                left = pushed(below, relation.children[0])
                relation = replace(relation, children=(left, relation.children[1]))
                conditions = [one for one in conditions if one not in here]
    return rel.LogicalFilter(children=(relation,), expressions=tuple(conditions)) if conditions else relation


def _implied(region: Region) -> list[ex.AnyExpression]:
    """What follows from the ORs among the conditions of a region.

    ``(a = 1 AND x) OR (a = 1 AND y)`` says ``a = 1``; and of the conditions of all branches on one input, their OR.
    """
    found: list[ex.AnyExpression] = []
    for condition in region.conditions:
        if not (isinstance(condition, ex.Conjunction) and condition.type == "CONJUNCTION_OR"):
            continue
        branches = [[_plain(one) for one in conjuncts([branch])] for branch in condition.children]
        found += [one for one in branches[0] if all(one in branch for branch in branches[1:])]
        for index in region.inputs_of(condition):
            own = [[one for one in branch if region.inputs_of(one) == {index}] for branch in branches]
            if all(own):
                either = ex.Conjunction(type="CONJUNCTION_OR", children=tuple(all_of(branch) for branch in own))
                found.append(either)
    return [one for one in found if unstable_call([one]) is None]


def _plain(node: ex.AnyExpression) -> ex.AnyExpression:
    """A condition without its place in the text; of an equality, the smaller column first."""
    if not isinstance(node, ex.Call):
        return node
    node = replace(node, query_location=None, query_location_length=None)
    match node:
        case ex.Call(type="COMPARE_EQUAL", children=(ex.InputColumn() as left, ex.InputColumn() as right)) if (
            left.index > right.index
        ):
            return replace(node, children=(right, left))
        case _:
            return node


def _shifted(keys: frozenset[Key], by: int) -> frozenset[Key]:
    return frozenset(tuple(column + by for column in key) for key in keys)


def _all_keys(keys: frozenset[Key], equal: EqualColumns, width: int) -> frozenset[Key]:
    """Keys, and those of equal columns, of a single column each or as they are."""
    found = set(keys)
    for key in keys:
        for position, column in enumerate(key):
            for other in range(width):
                if other != column and equal.first(other) == equal.first(column):
                    found.add((*key[:position], other, *key[position + 1 :]))
    return frozenset(found)


def _own_columns(region: Region, index: int, used: Iterable[int]) -> list[int]:
    """The columns of an input that are used, as it counts them."""
    return [column - region.starts[index] for column in used if column in region.columns_of(index)]


def _joined(pieces: Sequence[_Piece], conditions: Sequence[ex.AnyExpression]) -> rel.AnyRelation:
    """Pieces of a region in one kernel call; its columns are theirs."""
    relation = pieces[0].relation
    for piece in pieces[1:]:
        relation = rel.LogicalCross(children=(relation, piece.relation))
    if not conditions:
        return relation
    positions = {
        column: position for position, column in enumerate(column for piece in pieces for column in piece.columns)
    }
    return rel.LogicalFilter(
        children=(relation,),
        expressions=tuple(
            rebased(one, lambda column: replace(column, index=positions[column.index])) for one in conditions
        ),
    )


def _combined(
    region: Region,
    pieces: Iterable[_Piece],
    conditions: Sequence[ex.AnyExpression],
    place: Place,
    rows: float,
    placed: Sequence[Placed],
) -> Placed:
    """A region in one kernel call."""
    pieces = list(pieces)
    relation = _joined(pieces, conditions)
    columns = [column for piece in pieces for column in piece.columns]
    if region.outputs != columns:
        types = column_types(relation)
        made = (columns.index(column) for column in region.outputs)
        relation = rel.LogicalProject(
            children=(relation,), expressions=tuple(column_of(index, types[index]) for index in made)
        )
    outputs = {column: position for position, column in reversed(list(enumerate(region.outputs)))}
    return Placed(relation, moved(place, outputs), rows, *_known(region, placed, region.outputs))
