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
from secateur.planner.tree.rewriting import all_of, any_of, bare_column, cast_of, cast_to, inputs_of, rebased
from secateur.planner.tree.types import DecimalInfo, LogicalType, is_exact, sql_type

_PLACES: Final = re.compile(rb',"query_location(?:_length)?":[0-9]+')
_WIDTHS: Final = tuple(map(LogicalType, ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")))
_SAME_OF_ANY_WIDTH: Final = frozenset({"FLOAT", "DOUBLE", "DECIMAL", "VARCHAR", "BOOLEAN"})
"""Types to which a cast of an integer has the same value, whatever the type of the integer."""
_OF_ANY_TYPE: Final = frozenset({"OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"})
_DIGITS_MAX: Final = 38
_ARITHMETIC: Final = frozenset({"+", "-", "*", "%", "abs"})


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
        """The same about other columns, or expressions of the same types; those that are not named stay.

        An integer that is cast to a wider one is compared as it is.
        """
        moved = self.is_moved if is_moved is None else is_moved
        if self.columns.isdisjoint(columns) and moved == self.is_moved:
            return self
        equal = {index: bare for index, one in columns.items() if (bare := bare_column(one)) is not None}
        expression = with_equal_columns(self.expression, equal)
        if not self.columns <= equal.keys():
            others = {index: one for index, one in columns.items() if index not in equal}
            expression = rebased(expression, lambda column: others.get(column.index, column)) if others else expression
        unless = self.unless_null
        if unless is not None and unless in columns:
            unless = equal[unless].index if unless in equal else -1
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
    """A condition with equal columns in the places of some.

    A column of another width is compared as it is, with the other side in the wider type, as DuckDB would have bound
    the comparison of that column.
    """

    def exchanged(one: ex.AnyExpression) -> ex.AnyExpression:
        match one:
            case ex.InputColumn():
                return columns.get(one.index, one)
            case ex.Call() | ex.BoundOperation() | ex.Conjunction():
                children = tuple(map(exchanged, one.children))
                if all(new is old for new, old in zip(children, one.children, strict=True)):
                    return one
                return _over(one, children)
            case _:
                return rebased(one, lambda column: _as(columns.get(column.index, column), column.return_type))

    return exchanged(node)


def in_one_type(left: ex.InputColumn, right: ex.InputColumn) -> tuple[ex.AnyExpression, ex.AnyExpression]:
    """Two columns that compare alike, in the wider type."""
    wide = _widest([left.return_type, right.return_type])
    return (left, right) if wide is None else (_as(left, wide), _as(right, wide))


def _over(
    node: ex.Call | ex.BoundOperation | ex.Conjunction, children: tuple[ex.AnyExpression, ...]
) -> ex.AnyExpression:
    """An expression over other arguments, some of which may be wider integers than those before."""
    types = tuple(child.return_type for child in node.children)
    if (
        isinstance(node, ex.Conjunction)
        or node.type in _OF_ANY_TYPE
        or tuple(child.return_type for child in children) == types
    ):
        return structs.replace(node, children=children)
    if cast_of(node) is not None and node.return_type.is_integer and children[0].return_type.is_integer:
        wide = _widest([node.return_type, children[0].return_type])
        return structs.replace(node, children=children) if wide is None else _as(children[0], wide)
    if (
        cast_of(node) is not None
        and node.return_type.id in _SAME_OF_ANY_WIDTH
        and all(type_.is_integer for type_ in (*types, *(child.return_type for child in children)))
    ):
        return structs.replace(
            node, children=children, return_type=_with_room(node.return_type, children[0].return_type)
        )
    wide = _widest([child.return_type for child in children])
    if wide is not None and node.type.startswith("COMPARE_"):
        return structs.replace(node, children=tuple(_as(child, wide) for child in children))
    if wide is not None and node.return_type in types and _is_of_any_width(node):
        made = tuple(_as(child, wide) for child in children)
        if isinstance(node, ex.BoundOperation):
            return structs.replace(node, children=made, return_type=wide)
        return structs.replace(node, children=made, return_type=wide, arguments=(wide,) * len(node.arguments))
    return structs.replace(
        node, children=tuple(_as(child, type_) for child, type_ in zip(children, types, strict=True))
    )


def _is_of_any_width(node: ex.Call | ex.BoundOperation) -> bool:
    """Whether an expression of integers has the same value, whatever their type is, or overflows."""
    if isinstance(node, ex.BoundOperation):
        return node.type == "OPERATOR_COALESCE"
    return node.name in _ARITHMETIC


def _as(node: ex.AnyExpression, type_: LogicalType) -> ex.AnyExpression:
    return node if node.return_type == type_ else cast_to(node, type_)


def _with_room(target: LogicalType, source: LogicalType) -> LogicalType:
    """A type to which integers are cast, as a DECIMAL with room for all of them."""
    info, integer = target.type_info, sql_type(source)
    if not isinstance(info, DecimalInfo) or integer is None:
        return target
    digits = max(len(str(abs(end))) for end in integer.integer_range)
    width = max(info.width, digits + info.scale)
    return target if width > _DIGITS_MAX else LogicalType("DECIMAL", DecimalInfo(width=width, scale=info.scale))


def _widest_decimal(types: Sequence[LogicalType]) -> LogicalType | None:
    found = [type_.type_info for type_ in types if isinstance(type_.type_info, DecimalInfo)]
    if len(found) != len(types):
        return None
    scale = max(info.scale for info in found)
    width = max(info.width - info.scale for info in found) + scale
    return LogicalType("DECIMAL", DecimalInfo(width=width, scale=scale)) if width <= _DIGITS_MAX else None


def _widest(types: Sequence[LogicalType]) -> LogicalType | None:
    """The narrowest type that has the values of some types, all integers or all DECIMAL; None where there is none."""
    if all(type_ == types[0] for type_ in types):
        return types[0]
    found = [sql_type(type_) for type_ in types if type_.is_integer]
    if len(found) != len(types):
        return _widest_decimal(types)
    for wide in _WIDTHS:
        target = sql_type(wide)
        if target is not None and all(one is not None and is_exact(one, target) for one in found):
            return wide
    return None
