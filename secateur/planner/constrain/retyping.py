"""Equal columns in the places of others, where both are integers of different widths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from secateur.planner.prune.column_types import is_exact, sql_type
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.rewriting import cast_of, cast_to, rebased
from secateur.planner.tree.types import DecimalInfo, LogicalType

_WIDTHS: Final = tuple(map(LogicalType, ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")))
_SAME_OF_ANY_WIDTH: Final = frozenset({"FLOAT", "DOUBLE", "DECIMAL", "VARCHAR", "BOOLEAN"})
"""Types to which a cast of an integer has the same value, whatever the type of the integer."""
_OF_ANY_TYPE: Final = frozenset({"OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"})
_DIGITS_MAX: Final = 38
_ARITHMETIC: Final = frozenset({"+", "-", "*", "%", "abs"})


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
        return replace(node, children=children)
    if cast_of(node) is not None and node.return_type.is_integer and children[0].return_type.is_integer:
        wide = _widest([node.return_type, children[0].return_type])
        return replace(node, children=children) if wide is None else _as(children[0], wide)
    if cast_of(node) is not None and node.return_type.id in _SAME_OF_ANY_WIDTH and _are_integers(children, types):
        return replace(node, children=children, return_type=_with_room(node.return_type, children[0].return_type))
    wide = _widest([child.return_type for child in children])
    if wide is not None and node.type.startswith("COMPARE_"):
        return replace(node, children=tuple(_as(child, wide) for child in children))
    if wide is not None and node.return_type in types and _is_of_any_width(node):
        made = tuple(_as(child, wide) for child in children)
        if isinstance(node, ex.BoundOperation):
            return replace(node, children=made, return_type=wide)
        return replace(node, children=made, return_type=wide, arguments=(wide,) * len(node.arguments))
    return replace(node, children=tuple(_as(child, type_) for child, type_ in zip(children, types, strict=True)))


def _is_of_any_width(node: ex.Call | ex.BoundOperation) -> bool:
    """Whether an expression of integers has the same value, whatever their type is, or overflows."""
    if isinstance(node, ex.BoundOperation):
        return node.type == "OPERATOR_COALESCE"
    return node.name in _ARITHMETIC


def _are_integers(children: Sequence[ex.AnyExpression], types: Sequence[LogicalType]) -> bool:
    return all(child.return_type.is_integer for child in children) and all(type_.is_integer for type_ in types)


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
