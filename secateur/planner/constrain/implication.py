"""What follows from conditions that all hold for one row, for some of its columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

from secateur.planner.constrain.condition import NEVER, Condition, distinct, plain, said, with_equal_columns
from secateur.planner.constrain.equivalence import Equivalence
from secateur.planner.constrain.null_rejection import Truths, is_never_true, rejected
from secateur.planner.prune.bounds import fields_of
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.comparisons import compared
from secateur.planner.tree.equal_columns import compares_alike
from secateur.planner.tree.rewriting import bare_column, conjuncts, exchanged, inputs_of
from secateur.planner.tree.types import LogicalType

_BRANCHES_MAX: Final = 32
_BOUNDS_MAX: Final = 64
"""With more bounds than this, further ones are not derived: every scan would read all of them."""

_FORMS: Final = {
    (True, True): "COMPARE_GREATERTHAN",
    (True, False): "COMPARE_GREATERTHANOREQUALTO",
    (False, True): "COMPARE_LESSTHAN",
    (False, False): "COMPARE_LESSTHANOREQUALTO",
}
"""By whether it is a lower bound, and whether it is strict."""
_DAYS: Final = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"})
_ORDERS: Final = {type_: form for form, type_ in _FORMS.items()}


class Implication:
    """Conditions that all hold for the rows that matter, and what follows from them."""

    def __init__(self, conditions: Sequence[Condition], known: Mapping[int, Truths]) -> None:
        held = list(plain(conditions))
        unless = {one.unless_null for one in held if one.unless_null is not None}
        if unless:
            certain = [one for one in held if one.unless_null is None]
            never_null = rejected(certain, unless, known)
            held = [
                one if one.unless_null is None else replace(one, unless_null=None)
                for one in held
                if one.unless_null is None or one.unless_null in never_null
            ]
        held += [field for one in held for field in _fields(one)]
        held += [common for one in held for common in _common(one)]
        self.held = [NEVER] if any(is_never_true(one, known) for one in held) else distinct(held)
        self._classes = Equivalence(self.held)
        self.held = [self._with_first_values(one) for one in self.held]

    def _with_first_values(self, condition: Condition) -> Condition:
        """A condition in which the first of equal columns that is not NULL is one of them: USING makes such."""

        def change(node: ex.AnyExpression) -> ex.AnyExpression | None:
            match node:
                case ex.BoundOperation(type="OPERATOR_COALESCE", children=(ex.InputColumn() as first, *others)) if all(
                    isinstance(one, ex.InputColumn) and self._classes.are_equal(first.index, one.index)
                    for one in others
                ):
                    return first
                case _:
                    return None

        if len(condition.columns) < 2:
            return condition
        expression = exchanged(condition.expression, change)
        return condition if expression is condition.expression else replace(condition, expression=expression)

    def about(self, side: Set[int], known: Set[bytes] = frozenset()) -> list[Condition]:
        """What holds for some columns, and for nothing else: the conditions on them, and what follows for them.

        What is ``known`` is not said again.
        """
        found = [one for one in self.held if not one.columns or not one.columns.isdisjoint(side)]
        found += [there for one in self.held if (there := self._classes.carry(one, side)) is not None]
        found += implied_bounds(self.held, side, self._classes)
        found += list(self._classes.within(side, found))
        found += self._classes.implied(side, self.held)
        return [one for one in distinct(found) if one.key not in known]


def _fields(condition: Condition) -> Iterator[Condition]:
    """That the fields of equal rows are equal; two rows are equal also where a field is NULL in both."""
    match condition.expression:
        case ex.Call(type="COMPARE_EQUAL" | "COMPARE_NOT_DISTINCT_FROM", children=(left, right)):
            ours, theirs = fields_of(left), fields_of(right)
            if ours is not None and theirs is not None and len(ours) == len(theirs):
                for one, other in zip(ours, theirs, strict=True):
                    if one.return_type == other.return_type and said(one) != said(other):
                        yield Condition(compared("COMPARE_NOT_DISTINCT_FROM", one, other), is_moved=True)
        case _:
            pass


def _common(condition: Condition) -> Iterator[Condition]:
    """The comparisons of two columns that stand in every branch of an OR.

    Source: query 19 of TPC-H; the distributivity rules of Calcite (``RexUtil.pullFactors``) and DuckDB.
    """
    whole = condition.expression
    if not (isinstance(whole, ex.Conjunction) and whole.type == "CONJUNCTION_OR"):
        return
    if len(whole.children) > _BRANCHES_MAX or len(condition.columns) < 2:
        return
    first, *others = [
        {key: one for one in conjuncts([branch]) if (key := _said_in_order(one))} for branch in whole.children
    ]
    for key, one in first.items():
        if one.type != "COMPARE_BETWEEN" and all(key in other for other in others) and len(inputs_of([one])) == 2:
            yield Condition(one, is_moved=True)


def _said_in_order(node: ex.AnyExpression) -> frozenset[tuple[bytes, bytes, bool]]:
    """Equal for comparisons that say the same, whichever side is written first; empty for anything else."""
    return frozenset((said(greater), said(lesser), is_strict) for greater, lesser, is_strict in _comparisons(node))


@dataclass(frozen=True, slots=True)
class _Order:
    """``greater > lesser``, or ``>=`` where it is not strict."""

    greater: ex.InputColumn
    lesser: ex.InputColumn
    is_strict: bool


@dataclass(frozen=True, slots=True)
class _Bound:
    """A comparison of a column with an expression that has no columns; the column may be cast in it."""

    column: ex.InputColumn
    compared: ex.AnyExpression
    value: ex.AnyExpression
    is_lower: bool
    is_strict: bool

    def condition(self) -> Condition:
        return Condition(compared(_FORMS[self.is_lower, self.is_strict], self.compared, self.value), is_moved=True)

    def of(self, column: ex.InputColumn, *, is_strict: bool) -> _Bound:
        """The bound that a column beyond this one gets from it.

        Both columns are compared with each other as they are, and with the value in one type, so nothing is rounded
        that was not rounded for this one. What was less may have become equal by that: the new bound is strict only if
        this one is, or where the column itself is compared.
        """
        strict = self.is_strict or (is_strict and bare_column(self.compared) is not None)
        made = compared(_FORMS[self.is_lower, strict], self.compared, self.value)
        moved = with_equal_columns(made, {self.column.index: column})
        assert isinstance(moved, ex.Call)
        side, value = moved.children
        return _Bound(column, side, value, self.is_lower, strict)


def implied_bounds(conditions: Sequence[Condition], side: Set[int], classes: Equivalence) -> list[Condition]:
    """The bounds on columns of a side that follow from inequalities with columns from elsewhere.

    ``a > b AND b >= 10`` implies ``a >= 10``.

    Source: transitive inference over inequalities, as in Ullman, "Principles of Database and Knowledge-Base Systems"
        (1989), chapter 14, without equating columns that bound one another.

    Cost: linear in the conditions without inequalities between columns; with them, times the bounds.
    """
    orders = [order for one in conditions for order in _orders(one.expression)]
    if not orders:
        return []
    pending = [bound for one in conditions for bound in _bounds(one.expression)]
    found = {bound.condition().key for bound in pending}
    derived: list[_Bound] = []
    while pending and len(derived) < _BOUNDS_MAX:
        bound = pending.pop()
        equal = {bound.column.index, *(column.index for column in classes.equal_to(bound.column.index))}
        for order in orders:
            known, other = (order.lesser, order.greater) if bound.is_lower else (order.greater, order.lesser)
            if known.index in equal and compares_alike(known, bound.column):
                new = bound.of(other, is_strict=order.is_strict)
                key = new.condition().key
                if key not in found:
                    found.add(key)
                    derived.append(new)
                    pending.append(new)
    return [bound.condition() for bound in derived if bound.column.index in side]


def _comparisons(node: ex.AnyExpression) -> Iterator[tuple[ex.AnyExpression, ex.AnyExpression, bool]]:
    """The comparisons that a condition makes: the greater side, the lesser side, and whether it is strict."""
    match node:
        case ex.Call(type=type_, children=(left, right)) if type_ in _ORDERS:
            is_greater, is_strict = _ORDERS[type_]
            yield (left, right, is_strict) if is_greater else (right, left, is_strict)
        case ex.Call(type="COMPARE_BETWEEN", children=(between, low, high)):
            yield between, low, False
            yield high, between, False
        case ex.Call(type="COMPARE_EQUAL", children=(left, right)):
            yield left, right, False
            yield right, left, False
        case _:
            pass


def _orders(node: ex.AnyExpression) -> Iterator[_Order]:
    if isinstance(node, ex.Call) and node.type == "COMPARE_EQUAL":
        return  # the classes have it
    for greater, lesser, is_strict in _comparisons(node):
        above, below = bare_column(greater), bare_column(lesser)
        if above is not None and below is not None and above.index != below.index and compares_alike(above, below):
            yield _Order(above, below, is_strict)


def _bounds(node: ex.AnyExpression) -> Iterator[_Bound]:
    for greater, lesser, is_strict in _comparisons(node):
        above, below = _column(greater), _column(lesser)
        if above is not None and not inputs_of([lesser]):
            yield _Bound(above, greater, lesser, is_lower=True, is_strict=is_strict)
        if below is not None and not inputs_of([greater]):
            yield _Bound(below, lesser, greater, is_lower=False, is_strict=is_strict)


def _column(node: ex.AnyExpression) -> ex.InputColumn | None:
    """The column that an expression is, or is a cast of that keeps the order of values."""
    while isinstance(node, ex.Call) and node.name == "__cast" and not node.function_data["try_cast"]:
        (inner,) = node.children
        source, target = inner.return_type, node.return_type
        are_numbers = _is_number(source) and _is_number(target)
        if source != target and not are_numbers and not {source.id, target.id} <= _DAYS:
            return None
        node = inner
    return node if isinstance(node, ex.InputColumn) else None


def _is_number(type_: LogicalType) -> bool:
    return type_.is_integer or type_.id in ("DECIMAL", "FLOAT", "DOUBLE")
