"""Detects scans that a statement bounds to a few keys: reading them costs less than another round trip."""

from __future__ import annotations

from math import inf, prod
from typing import assert_never

from secateur.partitioning.pruning.condition import Box
from secateur.partitioning.pruning.nodes import All, AllOf, AnyOf, Everywhere, Keys, Node, Nothing, Partitions, boxes_of
from secateur.partitioning.pruning.operand import ParameterList, parameters_of
from secateur.partitioning.pruning.tree import PartitionTree
from secateur.planner.cost_model import CostModel


def is_few(tree: PartitionTree, first: int, model: CostModel) -> bool:
    """Whether a tree yields few partitions without the values of steps, which are the parameters from ``first`` on."""
    return _is_few(tree.root, tree.scheme.columns, first, model.few_keys_max)


def has_list(tree: PartitionTree) -> bool:
    """Whether a tree depends on a list parameter, which usually has few keys."""
    tests = (test for box in boxes_of(tree.root) for _, constraint in box.constraints for test in constraint.tests)
    return any(isinstance(operand, ParameterList) for test in tests for operand in test.operands)


def _is_few(node: Node, columns: tuple[str, ...], first: int, most: int) -> bool:
    match node:
        case All():
            return False
        case Nothing() | Everywhere():
            return True
        case Partitions(ids):
            return len(ids) <= most
        case Keys(box):
            return prod(_keys(box, column, first) for column in columns) <= most
        case AnyOf(parts):
            return len(parts) <= most and all(_is_few(part, columns, first, most) for part in parts)
        case AllOf(parts):
            return any(_is_few(part, columns, first, most) for part in parts)
        case _:
            assert_never(node)


def _keys(box: Box, column: str, first: int) -> float:
    """Count the values of a column that a box names without those of steps; infinite for a range, or for none."""
    counts = [inf]
    for choice in box[column].choices:
        operands = [operand for test in choice.tests for operand in test.operands]
        named = all(
            not isinstance(operand, ParameterList) and all(index < first for index in parameters_of(operand))
            for operand in operands
        )
        if named and choice.domain.is_finite and all(test.names_values for test in choice.tests):
            counts.append(len(choice.domain.points) + len(operands))
    return min(counts)
