"""Values that a conjunction gives to columns, carried into expressions: ``g = 3 AND a = g + 1`` is ``a = 3 + 1``.

A column has the value of the other side only if the comparison converts that side, and not the column: the texts that
equal the number 3 are many. So constants count that are exact in the column's type, and parameters where the values of
all types compare with the column exactly, or those that are known to be integers do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sqlglot import exp

from secateur.partitioning.pruning.comparison import Comparison, compare
from secateur.partitioning.pruning.operand import Constant, Parameter
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.planner.predicates.constants import operand_of
from secateur.planner.text.trees import copied

ColumnOf = Callable[[exp.Column], str | None]
"""The name of the scan's column that a column node means, or None when it is another table's."""

_WRITTEN_AS_TEXT: Final = frozenset({TypeKind.VARCHAR, TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.BOOLEAN})
_EXACT_FOR_ALL: Final = frozenset(
    {
        *(TypeKind.TINYINT, TypeKind.SMALLINT, TypeKind.INTEGER, TypeKind.DATE),
        *(TypeKind.UTINYINT, TypeKind.USMALLINT, TypeKind.UINTEGER),
    }
)
"""Types that every type beside them holds exactly; two BIGINT values may be one DOUBLE."""


def values_given(
    conjuncts: Sequence[exp.Expr],
    column_of: ColumnOf,
    types: Mapping[str, SqlType],
    integers: frozenset[int] = frozenset(),
) -> dict[str, exp.Expr]:
    """The value of each column that a conjunction equates with a constant or a parameter, in the column's type.

    Args:
        conjuncts: Its parts.
        column_of: Finds columns.
        types: The types of the columns, by name.
        integers: The indexes of the parameters that are integers in every execution.
    """
    found: dict[str, exp.Expr] = {}
    if len(conjuncts) < 2:
        return found
    for conjunct in conjuncts:
        node = conjunct.unnest()
        if not isinstance(node, exp.EQ):
            continue
        for own, other in ((node.this.unnest(), node.expression), (node.expression.unnest(), node.this)):
            name = column_of(own) if isinstance(own, exp.Column) else None
            if name is None or name not in types or name in found or other.find(exp.Column, exp.Query) is not None:
                continue
            value = _value(other.unnest(), types[name], integers)
            if value is not None:
                found[name] = value
    return found


def carried_into(node: exp.Expr, values: Mapping[str, exp.Expr], column_of: ColumnOf) -> exp.Expr:
    """An expression with the values of its columns in their places; as it is if not all of them have one."""
    if not values:
        return node
    names = [column_of(column) for column in node.find_all(exp.Column)]
    known = [values[name] for name in names if name is not None and name in values]
    if not known or len(known) < len(names):
        return node
    if isinstance(node.unnest(), exp.Column):
        return copied(known[0])
    made = copied(node)
    for column, value in zip(list(made.find_all(exp.Column)), known, strict=True):
        column.replace(copied(value))
    return made


def _value(node: exp.Expr, column_type: SqlType, integers: frozenset[int]) -> exp.Expr | None:
    if not (column_type.is_integer or column_type.kind in _WRITTEN_AS_TEXT):
        return None
    match operand_of(node):
        case Constant(value) if value is not None:
            domain = compare(Comparison.IN, [value], column_type)
            if domain is None or not domain.is_finite or len(domain.points) != 1:
                return None
            (value,) = domain.points
            written: exp.Expr = exp.Literal.string(str(value))
        case Parameter(index) if column_type.kind in _EXACT_FOR_ALL or (column_type.is_integer and index in integers):
            written = copied(node)
        case _:
            return None
    return exp.Cast(this=written, to=exp.DataType.build(str(column_type), dialect="duckdb"))
