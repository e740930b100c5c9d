"""Row values: ``(a, b) <op> (x, y)`` as boxes over the fields.

Rows compare field by field: ``(a, b) >= (x, y)`` is ``a > x OR (a = x AND b >= y)``. In the dialect a comparison of
rows is never NULL: inside a row NULL equals NULL and is greater than every value.

Source: Apache Kudu, "Scan Optimization & Partition Pruning", lexicographic bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from secateur.partitioning.pruning.comparison import OPERATORS, Comparison
from secateur.planner.prune.bounds import Boxes, intersect, unite
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.rewriting import cast_of, cast_to
from secateur.planner.tree.types import StructInfo

FieldBoxes: TypeAlias = Callable[[int, Comparison], Boxes]
"""Maps the index of a field and a comparison to boxes outside of which the field does not pass it."""


def fields_of(node: ex.AnyExpression) -> list[ex.AnyExpression] | None:
    """The fields of a row value, each in the type in which it is compared; None when a node is none."""
    found = cast_of(node)
    row = node if found is None else found[0]
    if not isinstance(row, ex.Call) or row.name != "row" or (found is not None and found[1]):
        return None
    info = node.return_type.type_info
    if not isinstance(info, StructInfo) or len(info.child_types) != len(row.children):
        return None
    return [
        child if child.return_type == field.second else cast_to(child, field.second)
        for child, field in zip(row.children, info.child_types, strict=True)
    ]


def row_boxes(comparison: Comparison, width: int, field: FieldBoxes) -> Boxes:
    """The boxes of rows that pass a comparison with one row.

    Args:
        comparison: IN for equality, NOT_IN for inequality, or one that orders.
        width: How many fields a row has.
        field: The boxes of one field.
    """
    match comparison:
        case Comparison.IN:
            return _equal(width, field)
        case Comparison.NOT_IN:
            return unite(field(index, Comparison.NOT_IN) for index in range(width))
        case _:
            alternatives, strict = [], OPERATORS[comparison].strict
            assert strict is not None
            for index in range(width):
                decisive = comparison if index == width - 1 else strict
                alternatives.append(intersect(_equal(index, field), field(index, decisive)))
            return unite(alternatives)


def _equal(width: int, field: FieldBoxes) -> Boxes:
    """The first ``width`` fields are equal."""
    return intersect(*(field(index, Comparison.IN) for index in range(width)))
