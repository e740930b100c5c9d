"""Values that a conjunction gives to columns, carried into expressions: ``g = 3 AND a = g + 1`` is ``a = 3 + 1``.

A column has the value of the other side only if the comparison converts neither of them, or both are integers. So
constants count, and parameters where the values of all types compare with the column exactly, or those that are known
to be integers do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from secateur.partitioning.pruning.operand import Constant, Evaluated, Parameter
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.planner.prune.column_types import is_exact, sql_type
from secateur.planner.prune.operands import operand_of
from secateur.planner.prune.scan_columns import ScanColumns
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.rewriting import cast_of, cast_to, rebased, within

_IDENTICAL_WHERE_EQUAL: Final = frozenset({TypeKind.VARCHAR, TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.BOOLEAN})
_EXACT_FOR_ALL: Final = frozenset(
    {
        *(TypeKind.TINYINT, TypeKind.SMALLINT, TypeKind.INTEGER, TypeKind.DATE),
        *(TypeKind.UTINYINT, TypeKind.USMALLINT, TypeKind.UINTEGER),
    }
)
"""Types that every type beside them holds exactly; two BIGINT values may be one DOUBLE."""


def values_given(
    conjuncts: Sequence[ex.AnyExpression], columns: ScanColumns, integers: frozenset[int] = frozenset()
) -> dict[str, ex.AnyExpression]:
    """The value of each column that a conjunction equates with a constant or a parameter, in the column's type.

    Args:
        conjuncts: Its parts.
        columns: The columns.
        integers: The indexes of the parameters that are integers in every execution.
    """
    found: dict[str, ex.AnyExpression] = {}
    if len(conjuncts) < 2:
        return found
    for conjunct in conjuncts:
        if not isinstance(conjunct, ex.Call) or conjunct.type != "COMPARE_EQUAL":
            continue
        for own, other in (conjunct.children, conjunct.children[::-1]):
            column = _column(own)
            name = None if column is None else columns.name_of(column)
            if column is not None and name is not None and name not in found:
                value = _value(cast_to(other, column.return_type), other, columns.types[name], integers)
                if value is not None:
                    found[name] = value
    return found


def carried_into(
    node: ex.AnyExpression, values: Mapping[str, ex.AnyExpression], columns: ScanColumns
) -> ex.AnyExpression:
    """An expression with the values of its columns in their places; as it is if not all of them have one."""
    if not values:
        return node
    inputs = [part for part in within(node) if isinstance(part, ex.InputColumn)]
    if not inputs or not all(columns.name_of(column) in values for column in inputs):
        return node
    return rebased(node, lambda column: values[columns.names[column.index]])


def _column(node: ex.AnyExpression) -> ex.InputColumn | None:
    """The column that an expression is, or of which it is a number that is equal to no number beside it."""
    found = cast_of(node)
    inner = node if found is None else found[0]
    if not isinstance(inner, ex.InputColumn):
        return None
    source, target = sql_type(inner.return_type), sql_type(node.return_type)
    if source is None or target is None:
        return None
    is_number = source.is_integer and (target.is_integer or target.kind is TypeKind.DECIMAL)
    if source == target or (is_number and is_exact(source, target)):
        return inner
    return inner if source.kind in _EXACT_FOR_ALL - {TypeKind.DATE} and target.kind is TypeKind.DOUBLE else None


def _value(
    value: ex.AnyExpression, compared: ex.AnyExpression, column_type: SqlType, integers: frozenset[int]
) -> ex.AnyExpression | None:
    """A compared value in the type of the column, where equal values are the same."""
    if not (column_type.is_integer or column_type.kind in _IDENTICAL_WHERE_EQUAL):
        return None
    match operand_of(compared):
        case Constant(value=held) if held is not None:
            return value  # no column equals what its type does not hold
        case Parameter(index) if column_type.kind in _EXACT_FOR_ALL or (column_type.is_integer and index in integers):
            return value
        case Evaluated() if compared.return_type == value.return_type and cast_of(compared) is not None:
            return value  # the text says its type
        case _:
            return None
