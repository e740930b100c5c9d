"""Unions of boxes: what a predicate says about the key columns of one scan, in disjunctive normal form.

``()`` is *never TRUE*, ``(Box(),)`` is *no statement*. Branches of an OR that differ in one column melt into one box, so that an IN list written as ORs stays
one box. Every operation is
bounded: past :data:`BOXES_MAX` boxes an AND keeps its narrower side and an OR gives up, both of which only ever keep more partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from secateur.partitioning.condition import Box, Choice, Constraint
from secateur.partitioning.domain import Domain, within

__all__ = ["BOXES_MAX", "NOWHERE", "UNBOUNDED", "Boxes", "intersect", "intersect_is_bounded", "unite"]

Boxes: TypeAlias = tuple[Box, ...]

NOWHERE: Final[Boxes] = ()
UNBOUNDED: Final[Boxes] = (Box(),)
BOXES_MAX: Final = 4096
"""More alternatives than this are not told apart."""


def intersect_is_bounded(left: Boxes, right: Boxes) -> bool:
    """Whether the conjunction can be multiplied out."""
    return len(left) * len(right) <= BOXES_MAX


def intersect(*conjuncts: Boxes) -> Boxes:
    """The conjunction."""
    found = UNBOUNDED
    for boxes in conjuncts:
        if found == UNBOUNDED or boxes == UNBOUNDED:
            found = boxes if found == UNBOUNDED else found
        elif intersect_is_bounded(found, boxes):
            found = _melted(box for a in found for b in boxes if not (box := a.intersect(b)).is_nothing)
        elif len(boxes) < len(found):
            found = boxes
    return found


def unite(alternatives: Iterable[Boxes]) -> Boxes:
    """The disjunction."""
    melted = _melted(box for boxes in alternatives for box in boxes)
    return UNBOUNDED if len(melted) > BOXES_MAX or Box() in melted else melted


def _melted(boxes: Iterable[Box]) -> Boxes:
    """The same union with fewer boxes: those that differ in one column become one."""
    found = list(dict.fromkeys(boxes))
    columns = dict.fromkeys(column for box in found for column, _ in box.constraints)
    for column in columns:
        if len(found) < 2:
            break
        groups: dict[tuple[tuple[str, Constraint], ...], list[Box]] = {}
        for box in found:
            groups.setdefault(tuple(pair for pair in box.constraints if pair[0] != column), []).append(box)
        found = [merged for rest, group in groups.items() for merged in _merge(rest, column, group)]
    return tuple(found)


def _merge(rest: tuple[tuple[str, Constraint], ...], column: str, group: Sequence[Box]) -> list[Box]:
    """Boxes that agree in ``rest`` and have only ``column`` besides: those with one choice become one choice."""
    if len(group) == 1:
        return list(group)
    constraints = [box[column] for box in group]
    if any(not constraint.choices for constraint in constraints):
        return [Box(rest)]
    choices = [constraint.choices[0] for constraint in constraints if len(constraint.choices) == 1]
    several = [box for box in group if len(box[column].choices) > 1]
    if not choices:
        return several
    # All at once: one by one the points would be copied once for each of ten thousand branches.
    values = frozenset().union(*(choice.domain.points for choice in choices))
    domain = Domain(values).unite(within(span for choice in choices for span in choice.domain.spans))
    if domain.is_everything:
        return [Box(rest)]
    merged = Choice(domain, tuple(dict.fromkeys(test for choice in choices for test in choice.tests)))
    return [*several, Box.of({**dict(rest), column: Constraint((merged,))})]
