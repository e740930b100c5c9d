"""Regions: inner joins, cross products and filters as a set of inputs, and conditions on all of them.

A condition is tested as early as it can be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from secateur.planner.tree import expressions as ex
from secateur.planner.tree import relations as rel
from secateur.planner.tree.columns import column_types
from secateur.planner.tree.rewriting import (
    Join,
    all_of,
    any_of,
    conditions_of,
    conjuncts,
    inputs_of,
    is_inner,
    over_columns,
    rebased,
    shifted,
)
from secateur.planner.tree.stability import unstable_call


@dataclass(slots=True)
class Region:
    """Inputs that are joined in any order.

    Attributes:
        inputs: The relations.
        starts: The column with which each begins among the columns of all.
        conditions: What holds of the joined rows, over the columns of all.
        outputs: The columns of the region, among those of all.
    """

    inputs: list[rel.AnyRelation] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    conditions: list[ex.AnyExpression] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    width: int = 0

    @classmethod
    def of(cls, relation: rel.AnyRelation) -> Region:
        """The region at the top of a tree."""
        region = cls()
        region.outputs = region._add(relation)
        return region

    def input_of(self, column: int) -> int:
        """The input that has a column."""
        return max(index for index, start in enumerate(self.starts) if start <= column)

    def inputs_of(self, condition: ex.AnyExpression) -> frozenset[int]:
        """The inputs that a condition reads."""
        return frozenset(self.input_of(column) for column in inputs_of([condition]))

    def columns_of(self, index: int) -> range:
        """The columns of an input."""
        end = self.starts[index + 1] if index + 1 < len(self.starts) else self.width
        return range(self.starts[index], end)

    def _add(self, relation: rel.AnyRelation) -> list[int]:
        """Add a relation; returns where its columns are."""
        match relation:
            case rel.LogicalFilter():
                columns = self._add(relation.children[0])
                self.conditions += [over_columns(one, columns) for one in conjuncts(relation.expressions)]
                return columns
            case rel.LogicalProject() if all(isinstance(one, ex.InputColumn) for one in relation.expressions):
                columns = self._add(relation.children[0])
                return [columns[one.index] for one in relation.expressions if isinstance(one, ex.InputColumn)]
            case rel.LogicalCross():
                return [*self._add(relation.children[0]), *self._add(relation.children[1])]
            case rel.LogicalJoin() | rel.LogicalConditionJoin() if is_inner(relation):
                columns = [*self._add(relation.children[0]), *self._add(relation.children[1])]
                self.conditions += [over_columns(one, columns) for one in conjuncts(conditions_of(relation))]
                return columns
            case _:
                width = len(column_types(relation))
                start, self.width = self.width, self.width + width
                self.inputs.append(relation)
                self.starts.append(start)
                return list(range(start, start + width))


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
    if len(region.inputs) == 1 and isinstance(region.inputs[0], Join):
        stable = [one for one in others if unstable_call([one]) is None]
        kept = [one for one in others if one not in stable]
        found = pushed(stable, region.inputs[0])
        if isinstance(found, rel.LogicalFilter):
            return [found.children[0]], [*found.expressions, *kept]
        return [found], kept
    return [pushed(own[index], one) if index in own else one for index, one in enumerate(region.inputs)], others


def pushed(conditions: Sequence[ex.AnyExpression], relation: rel.AnyRelation) -> rel.AnyRelation:
    """A relation whose rows pass conditions, which are tested as early as they can be."""
    match relation:
        case rel.LogicalFilter():
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
            here = [one for one in conditions if all(column < width for column in inputs_of([one]))]
            if here:
                left = pushed(here, relation.children[0])
                relation = replace(relation, children=(left, relation.children[1]))
                conditions = [one for one in conditions if one not in here]
    return rel.LogicalFilter(children=(relation,), expressions=tuple(conditions)) if conditions else relation


def _implied(region: Region) -> list[ex.AnyExpression]:
    """What follows from the ORs among the conditions of a region.

    ``(a = 1 AND x) OR (a = 1 AND y)`` says ``a = 1``; and of the conditions of all branches on one input, their OR.
    """
    found = common_conditions(region.conditions)
    for condition, branches in _alternatives(region.conditions):
        for index in region.inputs_of(condition):
            own = [[one for one in branch if region.inputs_of(one) == {index}] for branch in branches]
            if all(own):
                found.append(any_of([all_of(branch) for branch in own]))
    return [one for one in found if unstable_call([one]) is None]


def common_conditions(conditions: Iterable[ex.AnyExpression]) -> list[ex.AnyExpression]:
    """The conditions that all branches of an OR have."""
    return [
        one
        for _, branches in _alternatives(conditions)
        for one in branches[0]
        if all(one in branch for branch in branches[1:])
    ]


def _alternatives(
    conditions: Iterable[ex.AnyExpression],
) -> Iterator[tuple[ex.Conjunction, list[list[ex.AnyExpression]]]]:
    """Each OR, with the conditions of each of its branches."""
    for condition in conditions:
        if isinstance(condition, ex.Conjunction) and condition.type == "CONJUNCTION_OR":
            yield condition, [[_plain(one) for one in conjuncts([branch])] for branch in condition.children]


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
