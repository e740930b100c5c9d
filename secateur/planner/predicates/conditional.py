"""Conditional expressions as branches: CASE, IF, COALESCE, NULLIF.

``f(CASE WHEN p THEN x ELSE y END)`` is f(x) where p is TRUE, and f(y) where p is FALSE or NULL.

A branch that is not understood keeps every row that reaches it, so it is evaluated, and raises, as without pruning. A
condition that could raise is not read at all: it is evaluated for rows of every partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from sqlglot import exp

from secateur.partitioning.pruning.comparison_target import is_own
from secateur.partitioning.pruning.operand import Constant, Operand
from secateur.partitioning.types.column_type import SqlType
from secateur.planner.predicates.constants import operand_of
from secateur.planner.text.trees import children_of, copied

BRANCHES_MAX: Final = 256
"""The maximum number of branches that are read in the predicates of a scan."""
_COALESCE: Final = frozenset({"coalesce", "ifnull"})
_NAMES: Final = _COALESCE | {"nullif"}
_COMPARISONS: Final = (
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
    exp.In,
    exp.Between,
    exp.Like,
)
_NEVER_RAISES: Final = (
    *_COMPARISONS,
    exp.Column,
    exp.Literal,
    exp.Neg,
    exp.Boolean,
    exp.Null,
    exp.Placeholder,
    exp.Parameter,
    exp.Paren,
    exp.Tuple,
    exp.Connector,
    exp.Not,
    exp.Is,
    exp.Case,
    exp.If,
)


@dataclass(frozen=True, slots=True)
class Branch:
    """A value, which the expression has where the condition is TRUE and none before it is; None for the last branch."""

    condition: exp.Expr | None
    value: exp.Expr


@dataclass(frozen=True, slots=True)
class Conditional:
    """A predicate that is a conditional expression, or compares one.

    Attributes:
        whole: The predicate.
        slot: The argument of it that is the expression; None if the predicate is the expression itself.
        branches: The branches of the expression, in order; there is at least one, and the last has no condition.
    """

    whole: exp.Expr
    slot: str | None
    branches: tuple[Branch, ...]

    def about(self, value: exp.Expr) -> exp.Expr:
        """The predicate with a value in the place of the expression."""
        if self.slot is None:
            return value
        others = {key: _copied(part) for key, part in self.whole.args.items() if key != self.slot}
        return self.whole.__class__(**others, **{self.slot: copied(value)})

    def compares_alike(self, type_of: Callable[[exp.Column], SqlType | None]) -> bool:
        """Whether each value compares by itself as it does in the type that the expression has."""
        if not isinstance(self.whole, _COMPARISONS):
            return True
        values = [branch.value.unnest() for branch in self.branches]
        if all(isinstance(value, (exp.Predicate, exp.Connector, exp.Not, exp.Boolean, exp.Null)) for value in values):
            return True
        types = {type_of(value) for value in values if isinstance(value, exp.Column)}
        operands = [operand_of(value) for value in values if not isinstance(value, exp.Column)]
        if None in operands or None in types or len(types) > 1:
            return False
        others = (part for key, part in self.whole.args.items() if key != self.slot)
        beside = _known(map(operand_of, chain.from_iterable(map(_listed, others))))
        constants = _known(operands)
        for only in types:
            return only is not None and all(
                is_own(value, only) for value in (constants if only.is_integer else [*constants, *beside])
            )
        return len({type(value) for value in (*constants, *beside)}) <= 1


def conditional_in(node: exp.Expr) -> Conditional | None:
    """The conditional expression that a predicate is or compares; None when there is none to be read.

    One without columns is an operand, whose value is known when its parameters are.
    """
    slot: str | None = None
    found: exp.Expr = node
    if not _is_conditional(node):
        sides = {"this": node.this} if isinstance(node, (*_COMPARISONS, exp.Is)) else {}
        if isinstance(node, exp.Binary) and isinstance(node, _COMPARISONS):
            sides["expression"] = node.expression
        for key, side in sides.items():
            if isinstance(side, exp.Expr) and _is_conditional(side.unnest()):
                slot, found = key, side.unnest()
                break
        else:
            return None
    if found.find(exp.Column) is None:
        return None
    branches = tuple(_branches(found))
    conditions = (branch.condition for branch in branches if branch.condition is not None)
    if not all(map(_never_raises, conditions)) or len(branches) > BRANCHES_MAX:
        return None
    return Conditional(node, slot, branches)


def _is_conditional(node: exp.Expr) -> bool:
    return isinstance(node, (exp.Case, exp.If)) or (
        isinstance(node, exp.Anonymous) and str(node.this).lower() in _NAMES and len(node.expressions) >= 2
    )


def _branches(node: exp.Expr) -> Iterator[Branch]:
    match node:
        case exp.Case():
            for case in node.args["ifs"]:
                compared = node.args.get("this")
                yield Branch(case.this if compared is None else _equal(compared, case.this), case.args["true"])
            yield Branch(None, node.args.get("default") or exp.Null())
        case exp.If():
            yield Branch(node.this, node.args["true"])
            yield Branch(None, node.args.get("false") or exp.Null())
        case exp.Anonymous(expressions=[value, excluded]) if str(node.this).lower() == "nullif":
            yield Branch(_equal(value, excluded), exp.Null())
            yield Branch(None, value)
        case _:
            *earlier, last = node.expressions
            for value in earlier:
                yield Branch(exp.Not(this=exp.Is(this=copied(value), expression=exp.Null())), value)
            yield Branch(None, last)


def _equal(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.EQ(this=copied(left), expression=copied(right))


def _never_raises(condition: exp.Expr) -> bool:
    pending = [condition]
    while pending:
        item = pending.pop()
        if isinstance(item, exp.Cast) and isinstance(operand_of(item), Constant):
            continue
        if not isinstance(item, _NEVER_RAISES) and not _is_conditional(item):
            return False
        if not isinstance(item, (exp.Column, exp.Parameter, exp.Placeholder)):
            pending.extend(children_of(item))
    return True


def _known(operands: Iterable[Operand | None]) -> list[Any]:
    """The constants among some operands, without NULL."""
    return [operand.value for operand in operands if isinstance(operand, Constant) and operand.value is not None]


def _listed(part: Any) -> list[exp.Expr]:
    return [item for item in (part if isinstance(part, list) else [part]) if isinstance(item, exp.Expr)]


def _copied(part: Any) -> Any:
    match part:
        case exp.Expr():
            return copied(part)
        case list():
            return [_copied(item) for item in part]
        case _:
            return part
