"""Columns of one scan that a conjunction equates: ``a = b AND b = 5`` implies ``a = 5`` as well.

Every bound on one column of a class holds for all of them. Only columns that compare without a conversion are in one
class: those of one type, and integers of any width. Comparisons with parameters pass only between columns of one type,
since a parameter is compared in the type of its column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from secateur.partitioning.pruning.comparison_bound import representable
from secateur.partitioning.pruning.condition import Box, Choice, Constraint, equal_classes
from secateur.partitioning.pruning.domain import EVERYTHING, Domain
from secateur.partitioning.types.column_type import SqlType
from secateur.planner.prune.bounds import Boxes, unite


@dataclass(frozen=True, slots=True)
class ColumnEqualities:
    """Classes of equal columns, each with the column's type."""

    classes: tuple[tuple[tuple[str, SqlType], ...], ...] = ()

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]], types: Mapping[str, SqlType]) -> ColumnEqualities:
        """Make classes of some pairs of equal columns; pairs that compare with a conversion are left out."""
        classes = equal_classes(pair for pair in pairs if _comparable(types[pair[0]], types[pair[1]]))
        return cls(tuple(tuple((name, types[name]) for name in members) for members in classes))

    def linked_with(self, columns: Iterable[str]) -> frozenset[str]:
        """All columns of the classes that have one of these."""
        wanted = set(columns)
        return frozenset(
            name for members in self.classes if any(name in wanted for name, _ in members) for name, _ in members
        )

    def applied(self, boxes: Boxes) -> Boxes:
        """Return the boxes with each column's bounds also applied to its equal columns."""
        return unite((_spread(box, self.classes),) for box in boxes) if self.classes else boxes


def _comparable(left: SqlType, right: SqlType) -> bool:
    return left == right or (left.is_integer and right.is_integer)


def _spread(box: Box, classes: Sequence[Sequence[tuple[str, SqlType]]]) -> Box:
    constraints = dict(box.constraints)
    for members in classes:
        said = [(choice, type_) for name, type_ in members for choice in box[name].choices]
        domain = EVERYTHING
        for choice, _ in said:
            if not choice.tests:
                domain = domain.intersect(choice.domain)
        held = Domain(
            frozenset(value for value in domain.points if all(representable(value, type_) for _, type_ in members)),
            domain.spans,
        )
        for name, type_ in members:
            tested = [choice for choice, own_type in said if choice.tests and own_type == type_]
            found = Constraint(tuple(tested)) if domain.is_everything else Constraint((Choice(held), *tested))
            constraints[name] = box[name].intersect(found)
    return Box.of(constraints, (*box.equal, *([name for name, _ in members] for members in classes)))
