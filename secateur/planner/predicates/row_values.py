"""Row values: ``(a, b) <op> (x, y)`` as boxes over the fields.

Rows compare field by field: ``(a, b) >= (x, y)`` is ``a > x OR (a = x AND b >= y)``. In the dialect a comparison of
rows is never NULL: inside a row NULL equals NULL and is greater than every value.

Source: Apache Kudu, "Scan Optimization & Partition Pruning", lexicographic bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from secateur.partitioning.pruning.comparison import OPERATORS, Comparison
from secateur.partitioning.pruning.operand import Operand
from secateur.planner.predicates.bounds import Boxes, intersect, unite

FieldBoxes: TypeAlias = Callable[[int, Comparison], Boxes]
"""Maps the index of a field and a comparison to boxes outside of which the field does not pass it."""


@dataclass(frozen=True, slots=True)
class FieldOperands:
    """The operands of one field of a row.

    Attributes:
        column: The key column that the field is.
        mirrored: Whether the column stands on the right.
        operands: The field of each row on the other side.
        opened: Those of them that are not known yet, without repetitions. Their types count for all rows.
        is_least: Whether the field is in each row a value below which the column has none, for which Python has no
            object; there are no operands then.
    """

    column: str
    mirrored: bool
    operands: tuple[Operand, ...]
    opened: tuple[Operand, ...]
    is_least: bool = False


def fields_of(node: exp.Expr) -> list[exp.Expr] | None:
    """The fields of a row value, ``(a, b)`` or ``row(a, b)``; None when a node is none."""
    node = node.unnest()
    if isinstance(node, exp.Tuple) or (isinstance(node, exp.Anonymous) and str(node.this).lower() == "row"):
        return list(node.expressions)
    return None


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
