"""Unions of boxes: the bounds that a predicate sets on the key columns of one scan, in disjunctive normal form.

``()`` is *never TRUE*, ``(Box(),)`` is *no statement*. Branches of an OR that differ in one column are merged into one
box, so an IN list written as ORs stays one box. Every operation is bounded, and beyond its bound it only ever keeps
more partitions: an OR of more than :data:`UNION_MAX` boxes becomes *no statement*, and an AND is multiplied out up to
:data:`BOXES_MAX` boxes, and :data:`PRODUCTS_MAX` pairs of boxes in all; the remaining factors stay separate, and each
holds all rows that pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from secateur.engine.sql.key_search import KeySearch
from secateur.partitioning.pruning.comparison import OPERATORS, Comparison
from secateur.partitioning.pruning.condition import Box, Choice, Constraint
from secateur.partitioning.pruning.domain import Domain, within
from secateur.partitioning.pruning.tree import PartitionTree
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.rewriting import cast_of, cast_to
from secateur.planner.tree.types import StructInfo

Boxes: TypeAlias = tuple[Box, ...]

NOWHERE: Final[Boxes] = ()
UNBOUNDED: Final[Boxes] = (Box(),)
BOXES_MAX: Final = 1024
"""More alternatives than this do not come out of an AND: each costs some microseconds here, and as many at each
binding.
"""
PRODUCTS_MAX: Final = 16 * BOXES_MAX
"""After so many pairs of boxes an AND is multiplied out no further."""
UNION_MAX: Final = 16_384
"""The maximum number of alternatives of an OR; one with more sets no bounds."""
FieldBoxes: TypeAlias = Callable[[int, Comparison], Boxes]
"""Maps the index of a field and a comparison to boxes outside of which the field does not pass it."""


def multiply(conjuncts: Sequence[Boxes]) -> tuple[Boxes, ...]:
    """Return the conjunction as few factors: one, unless it grows too large. Unbounded conjuncts are left out."""
    said = [boxes for boxes in conjuncts if boxes != UNBOUNDED]
    single = _conjoined([boxes[0] for boxes in said if len(boxes) == 1])
    factors: list[Boxes] = [] if single is None else [(single,)]
    products = 0
    for boxes in (boxes for boxes in said if len(boxes) != 1):
        for position, factor in enumerate(factors):
            pairs = len(factor) * len(boxes)
            if pairs <= BOXES_MAX and products + pairs <= PRODUCTS_MAX:
                products += pairs
                factors[position] = _melted(
                    box for a in factor for b in boxes if not (box := a.intersect(b)).is_nothing
                )
                break
        else:
            factors.append(boxes)
    never = NOWHERE in factors or (single is not None and single.is_nothing)
    return (NOWHERE,) if never else tuple(factors)


def intersect(*conjuncts: Boxes) -> Boxes:
    """The conjunction as one union of boxes; where that would grow too large, the narrowest of its factors."""
    return min(multiply(conjuncts), key=len, default=UNBOUNDED)


def _conjoined(boxes: Sequence[Box]) -> Box | None:
    """Return the conjunction of some boxes, combined in halves.

    One by one, a thousand excluded values would be copied a thousand times.
    """
    found = list(boxes)
    while len(found) > 1:
        found = [left.intersect(right) for left, right in zip(found[::2], found[1::2], strict=False)] + (
            found[-1:] if len(found) % 2 else []
        )
    return found[0] if found else None


def unite(alternatives: Iterable[Boxes]) -> Boxes:
    """The disjunction."""
    melted = _melted(box for boxes in alternatives for box in boxes)
    return UNBOUNDED if len(melted) > UNION_MAX or Box() in melted else melted


def _melted(boxes: Iterable[Box]) -> Boxes:
    """The same union with fewer boxes: those that differ in one column become one."""
    found = list(dict.fromkeys(boxes))
    columns = dict.fromkeys(column for box in found for column, _ in box.constraints)
    for column in columns:
        if len(found) < 2:
            break
        groups: dict[Box, list[Box]] = {}
        for box in found:
            rest = Box(tuple(pair for pair in box.constraints if pair[0] != column), box.equal)
            groups.setdefault(rest, []).append(box)
        found = [merged for rest, group in groups.items() for merged in _merge(rest, column, group)]
    return tuple(found)


def _merge(rest: Box, column: str, group: Sequence[Box]) -> list[Box]:
    """Boxes that agree in ``rest`` and have only ``column`` besides: those with one choice become one choice."""
    if len(group) == 1:
        return list(group)
    constraints = [box[column] for box in group]
    if any(not constraint.choices for constraint in constraints):
        return [Box.of(dict(rest.constraints), rest.equal)]
    choices = [constraint.choices[0] for constraint in constraints if len(constraint.choices) == 1]
    several = [box for box in group if len(box[column].choices) > 1]
    if not choices:
        return several
    # All at once: one by one the points would be copied once for each of ten thousand branches.
    values = frozenset().union(*(choice.domain.points for choice in choices))
    domain = Domain(values).unite(within(span for choice in choices for span in choice.domain.spans))
    if domain.is_everything:
        return [Box.of(dict(rest.constraints), rest.equal)]
    merged = Choice(domain, tuple(dict.fromkeys(test for choice in choices for test in choice.tests)))
    return [*several, Box.of({**dict(rest.constraints), column: Constraint((merged,))}, rest.equal)]


@dataclass(frozen=True, slots=True)
class ScanBounds:
    """The key bounds of one scan.

    Attributes:
        factors: A conjunction of unions of boxes over the partitioning columns; usually one union.
        tree: The partitions that follow.
        keys: The search in the sorted partitions that follows.
        reason: The prune reason, or None.
        residual: Which of the conjuncts of the scan the user wrote about it and the search does not answer completely:
            they are tested on the rows that it finds.
    """

    factors: tuple[Boxes, ...]
    tree: PartitionTree
    keys: KeySearch
    reason: str | None
    residual: tuple[int, ...] = ()


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

    Rows compare field by field: ``(a, b) >= (x, y)`` is ``a > x OR (a = x AND b >= y)``. In the dialect a comparison of
    rows is never NULL: inside a row NULL equals NULL and is greater than every value.

    Source: Apache Kudu, "Scan Optimization & Partition Pruning", lexicographic bounds.

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
