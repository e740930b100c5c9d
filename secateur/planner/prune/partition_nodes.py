"""The partitions of boxes: which columns of a box can prune, and the nodes of the partition tree that follow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from secateur.partitioning.pruning.comparison import OPERATORS
from secateur.partitioning.pruning.condition import Box, Choice, Constraint
from secateur.partitioning.pruning.nodes import All, Keys, Node, Nothing, Partitions, Satisfiable
from secateur.partitioning.pruning.operand import parameters_of
from secateur.partitioning.pruning.select_partitions import UnprunedComponent, select_partitions
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.planner.prune.bounds import Boxes

DENSE: Final = frozenset({TypeKind.VARCHAR, TypeKind.BLOB})
"""Between two values of these there may be endlessly many."""
_RANGES_LOOKED_AT_MAX: Final = 256
_TRIED_MAX: Final = 16
"""Alternatives of a predicate that hardly ever prunes, evaluated at each binding all the same: some microseconds each.
"""
_SMALL: Final = frozenset({TypeKind.BOOLEAN, TypeKind.TINYINT, TypeKind.UTINYINT})


def box_node(box: Box, scheme: PartitionScheme, total: int, limit: int, overflows: list[UnprunedComponent]) -> Node:
    """Return the partitions of a box; components that could not prune are appended to ``overflows``."""
    types = dict(scheme.types)
    if box.is_impossible(types):
        return Nothing()
    useful = _useful_columns(box, scheme, types)
    if not useful:
        return All()
    # The values of the other columns' parameters may contradict each other.
    useful.update(column for members in box.equal if not useful.isdisjoint(members) for column in members)
    box = box.restrict(tuple(types if _is_open(box, types) else useful))
    if not box.is_constant:
        return Keys(box)
    reached = select_partitions(scheme, box.resolve((), types), limit, box.equal)
    overflows.extend(reached.overflows)
    if reached.overflows and len(reached.ids) == total:
        return All()
    return Partitions(tuple(reached.ids)) if reached.ids else Nothing()


def at_binding(
    factors: Sequence[Boxes], nodes: Sequence[Sequence[Node]], types: dict[str, SqlType]
) -> Sequence[Sequence[Node]]:
    """The nodes of the boxes, with the keys of those that prune only for rare values of their parameters.

    ``a > $1 AND a < $2`` may leave no value, and ``a BETWEEN $1 AND $2`` one. Predicates of many such alternatives are
    not tried at each binding.
    """
    tried = [
        [
            Keys(box.restrict(tuple(types))) if isinstance(node, All) and _is_open(box, types) else node
            for box, node in zip(boxes, given, strict=True)
        ]
        for boxes, given in zip(factors, nodes, strict=True)
    ]
    changed = sum(
        node is not before for new, old in zip(tried, nodes, strict=True) for node, before in zip(new, old, strict=True)
    )
    return nodes if changed > _TRIED_MAX else tried


def contradicted_by(
    claims: frozenset[int], boxes: Boxes, nodes: Sequence[Node], others: Mapping[str, SqlType]
) -> Sequence[Node]:
    """The nodes of the boxes, each none where the values of claims contradict what its box says of other columns.

    ``k = 1 OR s = session('name')`` of a policy and ``s > 'b'`` of a statement are ``k = 1`` for a name before b, as if
    the name stood there. Only claims are tried, some microseconds each: a statement seldom contradicts itself.

    Args:
        claims: The indexes of the parameters that are claims.
        boxes: The alternatives.
        nodes: Their partitions.
        others: The types of the columns that divide no rows.
    """
    if len(boxes) > _TRIED_MAX:
        return nodes
    tried = []
    for box, node in zip(boxes, nodes, strict=True):
        told = tuple(
            (others[column], constraint)
            for column, constraint in box.constraints
            if column in others
            and any(
                index in claims
                for test in constraint.tests
                for operand in test.operands
                for index in parameters_of(operand)
            )
        )
        tried.append(Satisfiable(told, node) if told else node)
    return tried


def _is_open(box: Box, columns: Iterable[str]) -> bool:
    """Whether parameters decide which values of some columns are left, unless they only exclude some."""
    return any(
        not constraint.is_constant and not all(excludes(choice) for choice in constraint.choices)
        for constraint in (box[column] for column in columns)
    )


def _useful_columns(box: Box, scheme: PartitionScheme, types: dict[str, SqlType]) -> set[str]:
    """Return the columns of the box that can prune: all of a hash component, or a prefix of the range columns.

    A narrow column of a hash component may be free.

    If there are few ranges, each is tested, and a column after the prefix may exclude one between two keys with the
    same prefix.
    """
    useful: set[str] = set()
    columns = () if scheme.range is None else scheme.range.columns
    # The columns whose ranges are looked at one by one.
    ranged = columns if len(scheme.ranges()) <= _RANGES_LOOKED_AT_MAX else ()
    for hashes in scheme.hash_lists():
        for component in hashes:
            bound = [column for column in component.columns if box[column].choices]
            free = [column for column in component.columns if column not in bound]
            if (
                bound
                and all(may_be_finite(box[column], types[column]) or column in ranged for column in bound)
                # Those of which few values are tried.
                and all(column in ranged[:1] or types[column].kind is TypeKind.BOOLEAN for column in free)
            ):
                useful.update(bound)
    for column in columns:
        if box[column].choices:
            useful.add(column)
        elif not ranged:
            break
    return useful


def may_be_finite(constraint: Constraint, column_type: SqlType) -> bool:
    """Whether a constraint can leave few values, once its parameters are bound.

    A constraint that only excludes values can do so where the type has few.
    """
    if any(
        choice.domain.is_finite and all(test.may_name_values for test in choice.tests) for choice in constraint.choices
    ):
        return True
    if column_type.kind in DENSE:
        return False
    return (
        bool(constraint.choices)
        if column_type.kind in _SMALL
        else not all(excludes(choice) for choice in constraint.choices)
    )


def excludes(choice: Choice) -> bool:
    """Whether parameters of a choice name values that do not pass, so that almost all do."""
    return any(OPERATORS[test.comparison].excludes for test in choice.tests)
