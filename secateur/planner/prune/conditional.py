"""Conditional expressions as branches: CASE, which IF and NULLIF are, and COALESCE.

``f(CASE WHEN p THEN x ELSE y END)`` is f(x) where p is TRUE, and f(y) where p is FALSE or NULL.

A branch that is not understood keeps every row that reaches it, so it is evaluated, and raises, as without pruning. A
condition that could raise is not read at all: it is evaluated for rows of every partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from secateur.partitioning.pruning.operand import Constant, Parameter
from secateur.planner.prune.bounds import fields_of
from secateur.planner.prune.operands import is_free_of_rows, operand_of
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.comparisons import COMPARISONS, PATTERNS
from secateur.planner.tree.rewriting import cast_of, cast_to, parts
from secateur.planner.tree.types import LogicalType, is_exact, sql_type

BRANCHES_MAX: Final = 256
"""The maximum number of branches that are read in the predicates of a scan."""
_LIKE: Final = frozenset({"~~", "!~~", "~~*", "!~~*"})


@dataclass(frozen=True, slots=True)
class Branch:
    """A value, which the expression has where the condition is TRUE and none before it is; None for the last branch."""

    condition: ex.AnyExpression | None
    value: ex.AnyExpression


@dataclass(frozen=True, slots=True)
class Conditional:
    """A predicate that is a conditional expression, or compares one.

    Attributes:
        whole: The predicate.
        slot: The place of the expression among the children of the predicate; None if it is the expression itself.
        branches: The branches of the expression, in order; there is at least one, and the last has no condition.
    """

    whole: ex.AnyExpression
    slot: int | None
    branches: tuple[Branch, ...]

    def about(self, value: ex.AnyExpression) -> ex.AnyExpression:
        """The predicate with a value in the place of the expression."""
        if self.slot is None:
            return value
        assert isinstance(self.whole, (ex.Call, ex.BoundOperation))
        children = self.whole.children
        return replace(self.whole, children=(*children[: self.slot], value, *children[self.slot + 1 :]))


def conditional_in(node: ex.AnyExpression) -> Conditional | None:
    """The conditional expression that a predicate is or compares; None when there is none to be read.

    One without columns is an operand, whose value is known when its parameters are.
    """
    slot: int | None = None
    found, types = _uncast(node)
    if not _is_conditional(found):
        for position, side in enumerate(_sides(node)):
            found, types = _uncast(side)
            if _is_conditional(found):
                slot = position
                break
        else:
            return None
    if is_free_of_rows(found):
        return None
    branches = tuple(Branch(branch.condition, _cast_again(branch.value, types)) for branch in _branches(found))
    conditions = (branch.condition for branch in branches if branch.condition is not None)
    if not all(map(never_raises, conditions)) or len(branches) > BRANCHES_MAX:
        return None
    return Conditional(node, slot, branches)


def _sides(node: ex.AnyExpression) -> tuple[ex.AnyExpression, ...]:
    """The arguments of a predicate in which a conditional expression is read."""
    match node:
        case ex.Call() if node.type in COMPARISONS:
            return node.children
        case ex.Call() if node.name in PATTERNS:
            return node.children[:1]
        case ex.BoundOperation(type="COMPARE_IN" | "COMPARE_NOT_IN" | "OPERATOR_IS_NULL" | "OPERATOR_IS_NOT_NULL"):
            return node.children[:1]
        case _:
            return ()


def _uncast(node: ex.AnyExpression) -> tuple[ex.AnyExpression, list[LogicalType]]:
    """An expression without the casts around it, and their types, the innermost first."""
    types: list[LogicalType] = []
    while isinstance(node, ex.Call) and (found := cast_of(node)) is not None and not found[1]:
        types.append(node.return_type)
        node = found[0]
    return node, types[::-1]


def _cast_again(node: ex.AnyExpression, types: list[LogicalType]) -> ex.AnyExpression:
    for type_ in types:
        node = cast_to(node, type_)
    return node


def _is_conditional(node: ex.AnyExpression) -> bool:
    return isinstance(node, ex.Case) or (isinstance(node, ex.BoundOperation) and node.type == "OPERATOR_COALESCE")


def _branches(node: ex.AnyExpression) -> Iterator[Branch]:
    match node:
        case ex.Case():
            for check in node.case_checks:
                yield Branch(check.when_expr, check.then_expr)
            yield Branch(None, node.else_expr)
        case ex.BoundOperation(children=(*earlier, last)):
            for value in earlier:
                is_given = ex.BoundOperation(type="OPERATOR_IS_NOT_NULL", return_type=ex.BOOLEAN, children=(value,))
                yield Branch(is_given, value)
            yield Branch(None, last)
        case _:
            return


def never_raises(condition: ex.AnyExpression) -> bool:
    """Whether an expression raises no error, whatever row it is computed of."""
    pending = [condition]
    while pending:
        item = pending.pop()
        fields = fields_of(item)
        if fields is not None:
            pending.extend(fields)
        elif not isinstance(operand_of(item), (Constant, Parameter)):
            is_read = isinstance(item, (ex.InputColumn, ex.BoundOperation, ex.Conjunction, ex.Case))
            if not is_read and not (isinstance(item, ex.Call) and _is_safe(item)):
                return False
            pending.extend(parts(item))
    return True


def _is_safe(call: ex.Call) -> bool:
    """Whether a call raises no error of its own."""
    if cast_of(call) is None:
        return call.type in COMPARISONS or call.name in _LIKE
    source, target = sql_type(call.children[0].return_type), sql_type(call.return_type)
    return source is not None and target is not None and is_exact(source, target)
