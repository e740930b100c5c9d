"""What the parts of a conjunction tell each other about columns: values, equal columns, and the lengths of texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from secateur.partitioning.pruning.comparison import OPERATORS, Comparison
from secateur.partitioning.pruning.comparison_bound import representable
from secateur.partitioning.pruning.comparison_target import BareColumn, WidenedColumn
from secateur.partitioning.pruning.condition import Box, Choice, Constraint, equal_classes
from secateur.partitioning.pruning.domain import EVERYTHING, Domain
from secateur.partitioning.pruning.operand import Constant, Evaluated, Operand, Parameter
from secateur.partitioning.types.column_type import WORD_INTEGERS, SqlType, TypeKind
from secateur.planner.prune.bounds import Boxes, unite
from secateur.planner.prune.operands import operand_of
from secateur.planner.prune.scan_columns import KeyExpression, ScanColumns, key_expression
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.comparisons import COMPARISONS, LENGTHS, are_texts
from secateur.planner.tree.rewriting import cast_of, cast_to, input_columns, rebased, within

_IDENTICAL_WHERE_EQUAL: Final = frozenset({TypeKind.VARCHAR, TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.BOOLEAN})
_EXACT_FOR_ALL: Final = WORD_INTEGERS - {TypeKind.BIGINT, TypeKind.UBIGINT} | {TypeKind.DATE}
"""Types that every type beside them holds exactly; two BIGINT values may be one DOUBLE."""


def values_given(
    conjuncts: Sequence[ex.AnyExpression], columns: ScanColumns, integers: frozenset[int] = frozenset()
) -> dict[str, ex.AnyExpression]:
    """The value of each column that a conjunction equates with a constant or a parameter, in the column's type.

    They are carried into expressions: ``g = 3 AND a = g + 1`` is ``a = 3 + 1``. A column has the value of the other
    side only if the comparison converts neither of them, or both are integers. So constants count, and parameters where
    the values of all types compare with the column exactly, or those that are known to be integers do: ``integers`` has
    the indexes of the parameters that are, in every execution.
    """
    found: dict[str, ex.AnyExpression] = {}
    if len(conjuncts) < 2:
        return found
    for conjunct in conjuncts:
        if not isinstance(conjunct, ex.Call) or conjunct.type != "COMPARE_EQUAL":
            continue
        for own, other in (conjunct.children, conjunct.children[::-1]):
            known = key_expression(own, columns)
            if known is not None and known.column not in found and _is_one_value(known):
                (column,) = input_columns(own)
                value = _value(cast_to(other, column.return_type), other, known.column_type, integers)
                if value is not None:
                    found[known.column] = value
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

    def value(column: ex.InputColumn) -> ex.AnyExpression:
        held = values[columns.names[column.index]]
        return held if held.return_type == column.return_type else cast_to(held, column.return_type)

    return rebased(node, value)


def _is_one_value(found: KeyExpression) -> bool:
    """Whether an expression of a column equals a value for one value of the column at most."""
    match found.comparison_target:
        case BareColumn():
            return True
        case WidenedColumn(SqlType(kind=TypeKind.DOUBLE)):
            return found.column_type.kind in _EXACT_FOR_ALL
        case _:
            return False


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


@dataclass(frozen=True, slots=True)
class ColumnEqualities:
    """Classes of equal columns, each with the column's type.

    ``a = b AND b = 5`` implies ``a = 5`` as well: every bound on one column of a class holds for all of them. Only
    columns that compare without a conversion are in one class: those of one type, and integers of any width.
    Comparisons with parameters pass only between columns of one type, since a parameter is compared in the type of its
    column.
    """

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


@dataclass(frozen=True, slots=True)
class LengthBound:
    """The largest number of characters of a text: ``length_max``, added to a number known late, if there is one.

    ``length(k) < 9`` beside a pattern leaves fewer texts that match it.

    Attributes:
        length_max: The constant.
        relative_to: An operand that depends on parameters.
    """

    length_max: int
    relative_to: Operand | None = None


def longest_texts(conjuncts: Iterable[ex.AnyExpression], columns: ScanColumns) -> dict[str, LengthBound]:
    """The columns whose number of characters a conjunction bounds, and the bounds: the least of constants if any."""
    found: dict[str, LengthBound] = {}
    for conjunct in conjuncts:
        if not isinstance(conjunct, ex.Call) or conjunct.type not in COMPARISONS:
            continue
        comparison = COMPARISONS[conjunct.type]
        left, right = conjunct.children
        for length, bound, asked in (
            (left, right, comparison),
            (right, left, OPERATORS[comparison].mirrored or comparison),
        ):
            column = _measured(length, columns)
            if column is None or asked not in (Comparison.LESS, Comparison.LESS_EQUAL, Comparison.IN):
                continue
            offset = -1 if asked is Comparison.LESS else 0
            known = found.get(column)
            match operand_of(bound):
                case Constant(value) if type(value) is int:
                    if known is None or known.relative_to is not None or value + offset < known.length_max:
                        found[column] = LengthBound(value + offset)
                case (Parameter() | Evaluated()) as operand if known is None:
                    found[column] = LengthBound(offset, operand)
                case _:
                    pass
    return found


def _measured(node: ex.AnyExpression, columns: ScanColumns) -> str | None:
    match node:
        case ex.Call(children=(text,)) if node.name in LENGTHS and are_texts(node):
            return columns.name_of(text)
        case _:
            return None
