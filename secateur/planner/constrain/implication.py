"""What follows from conditions that all hold for one row, for some of its columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Final

from secateur.planner.constrain.condition import NEVER, Condition, distinct, plain, said
from secateur.planner.constrain.equivalence import Equivalence
from secateur.planner.constrain.inequality import implied_bounds
from secateur.planner.constrain.null_rejection import Truths, is_never_true, rejected
from secateur.planner.prune.row_values import fields_of
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.comparisons import compared
from secateur.planner.tree.rewriting import conjuncts, exchanged

_BRANCHES_MAX: Final = 32
_MIRRORED: Final = {
    "COMPARE_EQUAL": "COMPARE_EQUAL",
    "COMPARE_LESSTHAN": "COMPARE_GREATERTHAN",
    "COMPARE_LESSTHANOREQUALTO": "COMPARE_GREATERTHANOREQUALTO",
    "COMPARE_GREATERTHAN": "COMPARE_LESSTHAN",
    "COMPARE_GREATERTHANOREQUALTO": "COMPARE_LESSTHANOREQUALTO",
}


class Implication:
    """Conditions that all hold for the rows that matter, and what follows from them.

    Args:
        conditions: The conditions.
        known: What some columns may be.
    """

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

        Args:
            side: The columns.
            known: What need not be said of them, as it is known.
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
        {key: one for one in conjuncts([branch]) if (key := _compared(one)) is not None} for branch in whole.children
    ]
    for key, one in first.items():
        if all(key in other for other in others):
            yield Condition(one, is_moved=True)


def _compared(node: ex.AnyExpression) -> bytes | None:
    """Equal for comparisons of the same two columns that say the same; None for anything else."""
    match node:
        case ex.Call(type=type_, children=(left, right)) if type_ in _MIRRORED:
            if Condition(node).columns and len(Condition(node).columns) == 2:
                sides = sorted([(said(left), type_), (said(right), _MIRRORED[type_])])
                return repr(sides).encode()
            return None
        case _:
            return None
