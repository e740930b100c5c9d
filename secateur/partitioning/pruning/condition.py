"""Conditions on the partitioning columns, with parameters that are not bound yet.

The planner reads a predicate into a union of boxes (:class:`Box`), each box a conjunction of one constraint per
column. A constraint is an intersection of choices, a choice is a domain of constants united with comparisons whose
operands are not known yet. Resolving a box with parameters gives one
:class:`~secateur.partitioning.pruning.domain.Domain` per column.

Everything here is plain frozen data with a msgpack form, so that a thin client can do at binding what the planner did
at planning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, TypeVar, assert_never

import msgspec

from secateur.partitioning.pruning.comparison import PATTERNS, Comparison
from secateur.partitioning.pruning.comparison_target import (
    BARE,
    AbsoluteColumn,
    BareColumn,
    ComparisonTarget,
    LinearColumn,
    RowField,
    ShortText,
    TruncatedColumn,
    WidenedColumn,
    allowed,
)
from secateur.partitioning.pruning.domain import EVERYTHING, NOTHING, Domain, close_spans
from secateur.partitioning.pruning.expression import UNKNOWN
from secateur.partitioning.pruning.operand import (
    Operand,
    ParameterList,
    resolve_list,
    resolve_operand,
)
from secateur.partitioning.types.column_type import SqlType, TypeKind

_C = TypeVar("_C", bound=str | tuple[str, ...])
_LENGTH: Final = SqlType(TypeKind.BIGINT)


class ParameterComparison(msgspec.Struct, frozen=True, array_like=True):
    """``target <comparison> operands`` with at least one parameter among the operands.

    A :class:`ParameterList` stands alone, in an IN or NOT IN.

    The target is the column, bare or in an expression that is turned round when the operands are known.
    """

    __test__ = False  # not a test class, whatever pytest makes of the name

    comparison: Comparison
    operands: tuple[Operand | ParameterList, ...]
    comparison_target: ComparisonTarget = BARE

    @property
    def names_values(self) -> bool:
        """Whether each operand lets one value of the column pass at most."""
        if self.comparison is not Comparison.IN:
            return False
        match self.comparison_target:
            case BareColumn() | WidenedColumn() | LinearColumn() | ShortText() | RowField():
                return True
            case AbsoluteColumn() | TruncatedColumn():
                return False  # a number and its negative; all instants of a unit truncate to one value
            case _:
                assert_never(self.comparison_target)

    @property
    def may_name_values(self) -> bool:
        """Whether there are operands that let a few values of the column pass, such as a pattern without wildcards."""
        return (
            self.names_values
            or self.comparison in PATTERNS
            or (self.comparison is Comparison.IN and isinstance(self.comparison_target, AbsoluteColumn))
        )

    @property
    def compared(self) -> tuple[Operand | ParameterList, ...]:
        """The operands that the column is compared with, without those that only judge types or bound the length."""
        match self.comparison_target:
            case RowField(compared):
                return self.operands[:compared]
            case ShortText(relative=True):
                return self.operands[:-1]
            case _:
                return self.operands

    def values(self, params: Sequence[Any], column_type: SqlType) -> Sequence[Any]:
        """The values that the column is compared with; :data:`UNKNOWN` among them where one is not known."""
        match self.operands:
            case (ParameterList() as elements,):
                return resolve_list(elements, params, column_type)
            case operands:
                types = [column_type] * len(operands)
                if isinstance(self.comparison_target, ShortText) and self.comparison_target.relative:
                    types[-1] = _LENGTH
                return [
                    UNKNOWN if isinstance(operand, ParameterList) else resolve_operand(operand, params, type_)
                    for operand, type_ in zip(operands, types, strict=True)
                ]

    def resolve(self, params: Sequence[Any], column_type: SqlType) -> Domain:
        domain = allowed(self.comparison_target, self.comparison, self.values(params, column_type), column_type)
        return EVERYTHING if domain is None else domain


class Choice(msgspec.Struct, frozen=True, array_like=True):
    """A union: the values of ``domain``, and those that pass any of ``tests``."""

    domain: Domain = NOTHING
    tests: tuple[ParameterComparison, ...] = ()

    def resolve(self, params: Sequence[Any], column_type: SqlType) -> Domain:
        domain = self.domain
        for test in self.tests:
            domain = domain.unite(test.resolve(params, column_type))
        return domain

    @property
    def names_one_value(self) -> bool:
        """Whether one value passes at most, for all parameters of the right types."""
        operands = [operand for test in self.tests for operand in test.compared]
        return (
            self.domain.is_finite
            and len(self.domain.points) + len(operands) <= 1
            and all(test.names_values for test in self.tests)
            and not any(isinstance(operand, ParameterList) for operand in operands)
        )

    def unite(self, other: Choice) -> Choice:
        return Choice(self.domain.unite(other.domain), tuple(dict.fromkeys(self.tests + other.tests)))


class Constraint(msgspec.Struct, frozen=True, array_like=True):
    """The requirement of a conjunction on one column: an intersection of choices. No choices mean no requirement."""

    choices: tuple[Choice, ...] = ()

    @property
    def tests(self) -> Iterator[ParameterComparison]:
        """The parameter comparisons of all choices."""
        return (test for choice in self.choices for test in choice.tests)

    @property
    def is_constant(self) -> bool:
        return not any(choice.tests for choice in self.choices)

    @property
    def is_nothing(self) -> bool:
        """Whether no value can pass, for any parameters."""
        return any(not choice.tests and choice.domain.is_nothing for choice in self.choices)

    def intersect(self, other: Constraint) -> Constraint:
        """The conjunction; choices of constants are folded into one."""
        constant = EVERYTHING
        open_choices: list[Choice] = []
        for choice in dict.fromkeys(self.choices + other.choices):
            if choice.tests:
                open_choices.append(choice)
            else:
                constant = constant.intersect(choice.domain)
        if constant.is_nothing:
            return Constraint((Choice(),))
        return Constraint(tuple(open_choices) if constant.is_everything else (Choice(constant), *open_choices))

    def resolve(self, params: Sequence[Any], column_type: SqlType) -> Domain:
        domain = EVERYTHING
        for choice in self.choices:
            domain = domain.intersect(choice.resolve(params, column_type))
        return domain


UNCONSTRAINED = Constraint()


class Box(msgspec.Struct, frozen=True, array_like=True):
    """A conjunction: one constraint per column, as sorted (column, constraint) pairs.

    Columns without a constraint are left out.

    Attributes:
        constraints: The pairs.
        equal: Classes of columns that have equal values, each sorted and with a constraint on some column.
    """

    constraints: tuple[tuple[str, Constraint], ...] = ()
    equal: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(cls, constraints: Mapping[str, Constraint], equal: Iterable[Sequence[str]] = ()) -> Box:
        held = {column: constraint for column, constraint in constraints.items() if constraint.choices}
        return cls(
            tuple(sorted(held.items(), key=itemgetter(0))),
            tuple(members for members in equal_classes(equal) if not held.keys().isdisjoint(members)),
        )

    def __getitem__(self, column: str) -> Constraint:
        for name, constraint in self.constraints:
            if name == column:
                return constraint
        return UNCONSTRAINED

    @property
    def is_nothing(self) -> bool:
        return any(constraint.is_nothing for _, constraint in self.constraints)

    @property
    def is_constant(self) -> bool:
        return all(constraint.is_constant for _, constraint in self.constraints)

    def is_impossible(self, types: Mapping[str, SqlType]) -> bool:
        """Whether the constants leave no value of some column of these: no integer is between 1 and 2."""
        return any(
            close_spans(constraint.resolve((), types[column]), types[column]).is_nothing
            for column, constraint in self.constraints
            if constraint.is_constant and column in types
        )

    def intersect(self, other: Box) -> Box:
        merged = dict(self.constraints)
        for column, constraint in other.constraints:
            merged[column] = merged[column].intersect(constraint) if column in merged else constraint
        return Box.of(merged, (*self.equal, *other.equal))

    def restrict(self, columns: Sequence[str]) -> Box:
        """Forget every column but these."""
        return Box.of(
            {column: constraint for column, constraint in self.constraints if column in columns},
            ([member for member in members if member in columns] for members in self.equal),
        )

    def resolve(self, params: Sequence[Any], types: Mapping[str, SqlType]) -> dict[str, Domain]:
        """The domain of each constrained column once the parameters are known.

        Equal columns are not told apart from others: :func:`~secateur.partitioning.pruning.select_partitions` does.
        """
        return {column: constraint.resolve(params, types[column]) for column, constraint in self.constraints}


def equal_classes(groups: Iterable[Sequence[_C]]) -> tuple[tuple[_C, ...], ...]:
    """Groups of equal columns as disjoint classes of two columns or more, each sorted."""
    classes: list[set[_C]] = []
    for group in groups:
        joined = set(group).union(*(known for known in classes if not known.isdisjoint(group)))
        classes = [*(known for known in classes if known.isdisjoint(joined)), joined]
    return tuple(sorted(tuple(sorted(members)) for members in classes if len(members) > 1))
