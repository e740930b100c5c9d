"""Conditions of a region, tested as early as they can be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from secateur.planner.distribute.regions import Region
from secateur.planner.tree import expressions as ex
from secateur.planner.tree import relations as rel
from secateur.planner.tree.columns import column_types
from secateur.planner.tree.joins import Join
from secateur.planner.tree.rewriting import all_of, conjuncts, inputs_of, rebased, shifted
from secateur.planner.tree.stability import unstable_call


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
    found = common_conditions(region.conditions)
    for condition, branches in _alternatives(region.conditions):
        for index in region.inputs_of(condition):
            own = [[one for one in branch if region.inputs_of(one) == {index}] for branch in branches]
            if all(own):
                either = ex.Conjunction(type="CONJUNCTION_OR", children=tuple(all_of(branch) for branch in own))
                found.append(either)
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
