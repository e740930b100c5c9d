"""Conditions over numbered columns, and over equal columns in their places.

Each column that a relation makes has a number of its own in the whole plan, so that a condition means the same wherever
it stands. A column that is not one of the scan's is a free variable there: the condition then holds for some value of
it, the same one in all conditions on a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from msgspec import structs
from msgspec.json import encode

from secateur.planner.tree import expressions as ex
from secateur.planner.tree.rewriting import all_of, any_of, bare_column, cast_to, inputs_of, rebased

_PLACES: Final = re.compile(rb',"query_location(?:_length)?":[0-9]+')


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition.

    Attributes:
        expression: What holds.
        is_moved: Whether it is no longer the user's own condition on the rows: it follows from others, or is about
            groups.
        unless_null: A column where NULL of which it need not hold; None where it always holds.
        blocked: Why it does not hold here, in the user's terms, with ``{predicate}`` for its text; None where it holds.
            A blocked condition is kept so that EXPLAIN can say why a scan is not pruned.
        columns: The columns that it reads.
        key: Equal for conditions that say the same, wherever they stand in the text.
    """

    expression: ex.AnyExpression
    is_moved: bool = False
    unless_null: int | None = None
    blocked: str | None = None
    columns: frozenset[int] = field(init=False)
    key: bytes = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", inputs_of([self.expression]))
        object.__setattr__(self, "key", said(self.expression))

    def over(self, columns: Mapping[int, ex.AnyExpression], *, is_moved: bool | None = None) -> Condition:
        """The same about other columns, or expressions of the same types; those that are not named stay."""
        moved = self.is_moved if is_moved is None else is_moved
        if self.columns.isdisjoint(columns) and moved == self.is_moved:
            return self
        expression = rebased(self.expression, lambda column: in_type_of(column, columns.get(column.index, column)))
        unless = self.unless_null
        if unless is not None and unless in columns:
            bare = bare_column(columns[unless])
            unless = -1 if bare is None else bare.index
        return replace(self, expression=expression, is_moved=moved, unless_null=unless)

    def block(self, reason: str) -> Condition:
        """The same as a note; the first reason is the one nearest to the condition, and stays."""
        return self if self.blocked is not None else replace(self, blocked=reason)


def said(node: ex.AnyExpression) -> bytes:
    """Equal for expressions that are the same, wherever they stand in the text."""
    return _PLACES.sub(b"", encode(node))


NEVER: Final = Condition(
    ex.BoundConstant(type="VALUE_CONSTANT", value=ex.BoundValue(type=ex.BOOLEAN, value=False)), is_moved=True
)
"""What no row satisfies."""


def distinct(conditions: Iterable[Condition]) -> list[Condition]:
    """Without repetitions, in order; of two that say the same, the one that is the user's own."""
    found: dict[tuple[bytes, bool, int | None], Condition] = {}
    for one in conditions:
        key = (one.key, one.blocked is not None, one.unless_null)
        if key not in found or (found[key].is_moved and not one.is_moved):
            found[key] = one
    return list(found.values())


def either(alternatives: Sequence[Sequence[Condition]]) -> Condition | None:
    """The OR of conditions of which each alternative has some; None where an alternative has none."""
    if not alternatives or not all(alternatives):
        return None
    branches = [all_of([one.expression for one in branch]) for branch in alternatives]
    return Condition(any_of(branches), is_moved=any(one.is_moved for branch in alternatives for one in branch))


def of_all(references: Sequence[Sequence[Condition]]) -> list[Condition]:
    """What holds for rows that matter to one of some readers: what all say, and the OR of what else each says."""
    if len(references) == 1:
        return list(references[0])
    common = set.intersection(*({one.key for one in reference} for reference in references))
    shared = [one for one in references[0] if one.key in common]
    other = either([[one for one in reference if one.key not in common] for reference in references])
    return shared if other is None else [*shared, other]


def plain(conditions: Iterable[Condition]) -> Iterator[Condition]:
    """Those that hold."""
    return (one for one in conditions if one.blocked is None)


def with_equal_columns(node: ex.AnyExpression, columns: Mapping[int, ex.InputColumn]) -> ex.AnyExpression:
    """A condition with equal columns in the places of some, each in the type of the one that stood there.

    An integer of another width has a value of that type wherever the two are equal. A condition with one is read, and
    never evaluated.
    """
    return rebased(node, lambda column: in_type_of(column, columns.get(column.index, column)))


def in_type_of(column: ex.InputColumn, equal: ex.AnyExpression) -> ex.AnyExpression:
    """What equals a column, in the type of that one."""
    if equal.return_type == column.return_type:
        return equal
    bare = bare_column(equal)
    if bare is None:
        return cast_to(equal, column.return_type)
    return structs.replace(bare, return_type=column.return_type)
