"""The columns of one scan, as a bound plan names them, and the invertible expressions of one of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from secateur.partitioning.pruning.comparison_target import (
    BARE,
    AbsoluteColumn,
    BareColumn,
    ComparisonTarget,
    LinearColumn,
    TruncatedColumn,
    WidenedColumn,
)
from secateur.partitioning.pruning.operand import Constant
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.calendar import DAYS_OR_LONGER, UNITS
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.planner.prune.operands import operand_of
from secateur.planner.prune.shown import shown
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.rewriting import cast_of, within
from secateur.planner.tree.types import is_exact, sql_type


@dataclass(frozen=True, slots=True)
class ScanColumns:
    """The columns of a scan.

    Attributes:
        names: The name of each input column; one with an index behind these is another table's.
        others: The names of those behind, for messages.
        types: The types of the table's columns.
        never_null: The names of those that do not hold NULL.
    """

    names: Sequence[str]
    types: Mapping[str, SqlType]
    never_null: frozenset[str]
    others: Sequence[str] = ()

    @classmethod
    def of(cls, table: TableDef, names: Sequence[str], others: Sequence[str] = ()) -> ScanColumns:
        """The columns of a scan of a table, which reads those of these names."""
        return cls(names, {column.name: column.type for column in table.columns}, table.never_null, others)

    def shown(self, node: ex.AnyExpression) -> str:
        """The text of an expression over the columns, for a message."""
        return shown(node, [*self.names, *self.others])

    def name_of(self, node: ex.AnyExpression) -> str | None:
        """The name of the column that an expression is; None for anything else.

        A column that is in another type than in the table, such as under a collation, is none that is known, unless it
        equals an integer of that type.
        """
        name = self.spelled(node)
        if name is None:
            return None
        own, given = self.types[name], sql_type(node.return_type)
        are_integers = own.is_integer and given is not None and given.is_integer
        return name if own == given or are_integers else None

    def spelled(self, node: ex.AnyExpression) -> str | None:
        """The name of the column that an expression is in whatever type; None for anything else."""
        if not isinstance(node, ex.InputColumn) or node.index >= len(self.names):
            return None
        name = self.names[node.index]
        return name if name in self.types else None

    def named_in(self, nodes: Iterable[ex.AnyExpression]) -> Counter[str]:
        """The names of the columns in expressions, and how often each stands there."""
        return Counter(name for node in nodes for part in within(node) if (name := self.name_of(part)) is not None)


@dataclass(frozen=True, slots=True)
class KeyExpression:
    """An expression of one column, and nothing else that depends on a row. It is NULL only where the column is.

    Attributes:
        column: The name of the column.
        column_type: Its type.
        comparison_target: What the expression makes of it. A cast that keeps values apart and in order makes nothing:
            the other side of the comparison has a value of the type of the cast.
    """

    column: str
    column_type: SqlType
    comparison_target: ComparisonTarget = BARE

    def become(self, comparison_target: ComparisonTarget) -> KeyExpression:
        """Another expression of the column."""
        return KeyExpression(self.column, self.column_type, comparison_target)


def key_expression(node: ex.AnyExpression, columns: ScanColumns) -> KeyExpression | None:
    """Return the invertible expression of one of some columns that a side of a comparison is, or None."""
    match node:
        case ex.InputColumn():
            name = columns.name_of(node)
            return None if name is None else KeyExpression(name, columns.types[name])
        case ex.Call(children=(inner,)) if cast_of(node) is not None:
            return _cast(node, inner, columns)
        case ex.Call(name="-", children=(inner,)):
            return _linear(node, inner, 0, -1, columns)
        case ex.Call(name="abs", children=(inner,)):
            return _absolute(inner, columns)
        case ex.Call(name="*" | "+" | "-", children=(left, right)):
            number, inner = _integer(right), left
            if number is None:
                number, inner = _integer(left), right
            if number is None:
                return None
            offset, factor = {
                "*": (0, number),
                "+": (number, 1),
                "-": (-number, 1) if inner is left else (number, -1),
            }[node.name]
            return _linear(node, inner, offset, factor, columns)
        case ex.Call(
            name="date_trunc" | "datetrunc", children=(ex.BoundConstant(value=unit), ex.InputColumn() as column)
        ):
            found = key_expression(column, columns)
            return None if found is None else _truncated(found, str(unit.value).lower())
        case _:
            return None


def _cast(node: ex.AnyExpression, inner: ex.AnyExpression, columns: ScanColumns) -> KeyExpression | None:
    found = key_expression(inner, columns)
    source, target = sql_type(inner.return_type), sql_type(node.return_type)
    if found is None or source is None or target is None:
        return None
    if found.comparison_target != BARE:
        # As a DOUBLE an integer may equal its neighbours, which only the bare column's target knows.
        is_number = (
            source.is_integer and is_exact(source, target) and not isinstance(found.comparison_target, WidenedColumn)
        )
        return found if is_number else None
    _, is_tried = cast_of(node) or (inner, True)
    if source.is_integer and found.column_type.is_integer and source != found.column_type:
        if target.is_integer and not is_tried:
            return found  # as in arithmetic, no row that passes has a value that overflows
        if not is_exact(source, target):
            source = found.column_type  # which the value is one of
    if is_exact(source, target):
        # A day may be past the last instant, which TRY_CAST makes a NULL.
        return None if is_tried and source != target and not source.is_integer else found
    if found.column_type != source:
        return None
    if source.is_integer and target.kind in (TypeKind.VARCHAR, TypeKind.DOUBLE):
        return found.become(WidenedColumn(target))
    if source.kind is TypeKind.TIMESTAMP and target.kind is TypeKind.DATE:
        return found.become(TruncatedColumn("day", as_date=True))
    return None


def _linear(
    node: ex.AnyExpression, inner: ex.AnyExpression, offset: int, factor: int, columns: ScanColumns
) -> KeyExpression | None:
    """``offset + factor * inner``.

    A value that overflows in it is an error of the statement, so no row that passes has one.
    """
    found = key_expression(inner, columns)
    source, result = sql_type(inner.return_type), sql_type(node.return_type)
    if found is None or source is None or result is None or factor == 0:
        return None
    is_number = found.column_type.is_integer and source.is_integer and result.is_integer
    if not is_number and not (found.column_type.kind is source.kind is result.kind is TypeKind.DATE and factor == 1):
        return None
    match found.comparison_target:
        case BareColumn():
            return found.become(LinearColumn(offset, factor))
        case AbsoluteColumn(wide, before, times):
            return found.become(AbsoluteColumn(wide, offset + factor * before, factor * times))
        case LinearColumn(before, times):
            return found.become(LinearColumn(offset + factor * before, factor * times))
        case _:
            return None


def _absolute(inner: ex.AnyExpression, columns: ScanColumns) -> KeyExpression | None:
    found = key_expression(inner, columns)
    wide = sql_type(inner.return_type)
    if found is None or wide is None or not (found.column_type.is_integer and wide.is_integer):
        return None
    low, _ = found.column_type.integer_range
    if low == 0 or not is_exact(found.column_type, wide):
        wide = found.column_type
    elif wide.kind is TypeKind.HUGEINT and found.column_type.kind is not TypeKind.BIGINT:
        wide = SqlType(TypeKind.BIGINT)  # which has their absolute values as well, and is compared with values
    return found.become(AbsoluteColumn(wide)) if found.comparison_target == BARE else None


def _truncated(found: KeyExpression, unit: str) -> KeyExpression | None:
    kind = found.column_type.kind
    possible = kind is TypeKind.TIMESTAMP or (kind is TypeKind.DATE and unit in DAYS_OR_LONGER)
    return found.become(TruncatedColumn(unit)) if possible and unit in UNITS else None


def _integer(node: ex.AnyExpression) -> int | None:
    operand = operand_of(node)
    return operand.value if isinstance(operand, Constant) and type(operand.value) is int else None
