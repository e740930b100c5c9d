"""From a predicate to boxes: which keys can make it TRUE, or FALSE.

Three-valued logic is kept apart by reading each node for the value that is asked for: NOT p is TRUE where p is FALSE, a conjunction is FALSE where some part
is FALSE, and what is neither is NULL and asked for by nobody. A form that is not understood says nothing (*unbounded*), and leaves a note for the user.

Source: the filter analysis of "SQL Optimization for Partition Pruning" (Hazelcast), on value sets instead of branches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from secateur.partitioning.comparison import Comparison, compare
from secateur.partitioning.condition import Box, Choice, Constant, Constraint, Operand, ParameterList, Test
from secateur.partitioning.domain import points
from secateur.partitioning.tree_text import value_text
from secateur.partitioning.types import SqlType, TypeKind
from secateur.planner.bounds import NOWHERE, UNBOUNDED, Boxes, intersect, unite
from secateur.planner.constants import operand_of
from secateur.planner.dialect import to_sql
from secateur.planner.membership import list_membership

__all__ = ["PredicateReader", "flat"]

_COMPARISONS: Final[dict[type[exp.Expr], Comparison]] = {
    exp.EQ: Comparison.IN,
    exp.LT: Comparison.LESS,
    exp.LTE: Comparison.LESS_EQUAL,
    exp.GT: Comparison.GREATER,
    exp.GTE: Comparison.GREATER_EQUAL,
}
_MIRRORED: Final = {
    Comparison.IN: Comparison.IN,
    Comparison.LESS: Comparison.GREATER,
    Comparison.LESS_EQUAL: Comparison.GREATER_EQUAL,
    Comparison.GREATER: Comparison.LESS,
    Comparison.GREATER_EQUAL: Comparison.LESS_EQUAL,
}
_NEGATED: Final = {
    Comparison.LESS: Comparison.GREATER_EQUAL,
    Comparison.LESS_EQUAL: Comparison.GREATER,
    Comparison.GREATER: Comparison.LESS_EQUAL,
    Comparison.GREATER_EQUAL: Comparison.LESS,
}
_SHOWN_MAX: Final = 60


@dataclass(slots=True)
class PredicateReader:
    """Reads predicates about the key columns of one scan.

    Attributes:
        types: The type of each column that matters, by name: those of the partitioning key.
        column_of: The name of the scan's column that a column node means, or None when it is another table's.
        notes: Why something about a key column could not be used, in the user's terms; grows as predicates are read.
    """

    types: Mapping[str, SqlType]
    column_of: Callable[[exp.Column], str | None]
    notes: list[str] = field(default_factory=list)

    def read(self, node: exp.Expr, *, wanted: bool = True) -> Boxes:
        """The boxes outside of which ``node`` is never ``wanted``."""
        node = node.unnest()
        member = list_membership(node)
        if member is not None:
            return self._membership(node, *member, wanted=wanted)
        match node:
            case exp.And():
                return self._all(flat(node, exp.And), wanted=wanted) if wanted else self._any(flat(node, exp.And), wanted=wanted)
            case exp.Or():
                return self._any(flat(node, exp.Or), wanted=wanted) if wanted else self._all(flat(node, exp.Or), wanted=wanted)
            case exp.Not():
                return self.read(node.this, wanted=not wanted)
            case exp.Boolean():
                return UNBOUNDED if bool(node.this) == wanted else NOWHERE
            case exp.Null():
                return NOWHERE
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                return self._comparison(node, wanted=wanted)
            case exp.In() if "query" not in _given(node) and "unnest" not in _given(node) and "field" not in _given(node):
                return self._in(node, wanted=wanted)
            case exp.Between() if not node.args.get("symmetric"):
                return self._between(node, wanted=wanted)
            case exp.Column():
                return self._boolean(node, wanted=wanted)
            case _:
                self._note_unused(node)
                return UNBOUNDED

    def _all(self, parts: Iterator[exp.Expr], *, wanted: bool) -> Boxes:
        boxes = UNBOUNDED
        for part in parts:
            boxes = intersect(boxes, self.read(part, wanted=wanted))
        return boxes

    def _any(self, parts: Iterator[exp.Expr], *, wanted: bool) -> Boxes:
        alternatives = []
        unbounded = None
        for part in parts:
            boxes = self.read(part, wanted=wanted)
            alternatives.append(boxes)
            if Box() in boxes and unbounded is None:
                unbounded = part
        if unbounded is not None and any(Box() not in boxes and boxes for boxes in alternatives):
            self._note(f"an OR branch says nothing about the key: {_shown(unbounded)}")
        return unite(alternatives)

    def _comparison(self, node: exp.Expr, *, wanted: bool) -> Boxes:
        equality = isinstance(node, (exp.EQ, exp.NEQ))
        comparison = Comparison.IN if equality else _COMPARISONS[type(node)]
        left, right = node.this.unnest(), node.expression.unnest()
        column, operand = self._key(left), right
        if column is None:
            column, operand, comparison = self._key(right), left, _MIRRORED[comparison]
        if column is None:
            self._note_unused(node)
            return UNBOUNDED
        if equality and wanted != isinstance(node, exp.EQ):
            self._note(f"{_shown(node)} excludes values of {column} instead of naming them")
            return UNBOUNDED
        if not equality and not wanted:
            comparison = _NEGATED[comparison]
        return self._leaf(column, comparison, [operand], node)

    def _in(self, node: exp.In, *, wanted: bool) -> Boxes:
        column = self._key(node.this.unnest())
        if column is None:
            self._note_unused(node)
            return UNBOUNDED
        if not wanted:
            self._note(f"NOT IN excludes values of {column} instead of naming them")
            return UNBOUNDED
        return self._leaf(column, Comparison.IN, node.expressions, node)

    def _membership(self, node: exp.Expr, needle: exp.Expr, index: int, *, wanted: bool) -> Boxes:
        column = self._key(needle)
        if column is None:
            self._note_unused(node)
            return UNBOUNDED
        if not wanted:
            self._note(f"NOT over {_shown(node)} excludes values of {column} instead of naming them")
            return UNBOUNDED
        return (Box.of({column: Constraint((Choice(tests=(Test(Comparison.IN, (ParameterList(index),)),)),))}),)

    def _between(self, node: exp.Between, *, wanted: bool) -> Boxes:
        column = self._key(node.this.unnest())
        if column is None:
            self._note_unused(node)
            return UNBOUNDED
        if not wanted:
            self._note(f"NOT BETWEEN excludes values of {column} instead of naming them")
            return UNBOUNDED
        return self._leaf(column, Comparison.BETWEEN, [node.args["low"], node.args["high"]], node)

    def _boolean(self, node: exp.Column, *, wanted: bool) -> Boxes:
        column = self._key(node)
        if column is None or self.types[column].kind is not TypeKind.BOOLEAN:
            return UNBOUNDED
        return (Box.of({column: Constraint((Choice(points([wanted])),))}),)

    def _leaf(self, column: str, comparison: Comparison, nodes: Sequence[exp.Expr], whole: exp.Expr) -> Boxes:
        operands = [operand_of(node) for node in nodes]
        known = [operand for operand in operands if operand is not None]
        if len(known) < len(operands):
            other = next(node for node, operand in zip(nodes, operands, strict=True) if operand is None)
            self._note(f"{column} is compared with {_shown(other)}, which is neither a constant nor a parameter")
            return UNBOUNDED
        if not all(isinstance(operand, Constant) for operand in known):
            return (Box.of({column: Constraint((Choice(tests=(Test(comparison, tuple(known)),)),))}),)
        values = [operand.value for operand in known if isinstance(operand, Constant)]
        domain = compare(comparison, values, self.types[column])
        if domain is None:
            self._note(self._inexact(column, known, whole))
            return UNBOUNDED
        return NOWHERE if domain.is_nothing else (Box.of({column: Constraint((Choice(domain),))}),)

    def _inexact(self, column: str, operands: Sequence[Operand], whole: exp.Expr) -> str:
        shown = ", ".join(value_text(operand.value) for operand in operands[:3] if isinstance(operand, Constant))
        return f"{_shown(whole)} does not compare in the type of {column}, {self.types[column]}: write {shown or 'the value'} as a {self.types[column]}"

    def _key(self, node: exp.Expr) -> str | None:
        """The name of the key column that a node is, bare."""
        if not isinstance(node, exp.Column):
            return None
        column = self.column_of(node)
        return column if column in self.types else None

    def _note_unused(self, node: exp.Expr) -> None:
        """Say why a predicate that mentions a key column does not prune."""
        for part in node.find_all(exp.Column):
            column = self._key(part)
            if column is not None:
                self._note(_why_unused(column, part, node, self.types[column]))
                return

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def flat(node: exp.Expr, kind: type[exp.Expr]) -> Iterator[exp.Expr]:
    """The operands of a chain of AND or OR, in order, through parentheses; without recursion, as chains may be long."""
    pending = [node]
    while pending:
        item = pending.pop().unnest()
        if isinstance(item, kind):
            pending.extend((item.expression, item.this))
        else:
            yield item


def _why_unused(column: str, part: exp.Column, whole: exp.Expr, column_type: SqlType) -> str:
    holder = part.parent
    while isinstance(holder, exp.Paren):
        holder = holder.parent
    match holder:
        case exp.Cast():
            return f"{column} is cast in {_shown(whole)}: compare the bare column with a {column_type}"
        case exp.Func():
            return f"{column} is wrapped in {holder.sql_name().lower() if not isinstance(holder, exp.Anonymous) else holder.name}(): compare the bare column"
        case exp.Is():
            return f"{_shown(whole)} names no value of {column}"
        case exp.In():
            return f"{column} is compared with a subquery or a list that is not constant"
        case exp.Like() | exp.ILike():
            return f"{column} is matched by a pattern: compare it with values"
        case exp.Binary() if isinstance(holder, tuple(_COMPARISONS)):
            return f"{column} is compared with something else than a constant or parameter in {_shown(whole)}"
        case exp.Binary() | exp.Unary():
            return f"{column} is part of an expression in {_shown(whole)}: compare the bare column"
        case _:
            return f"{_shown(whole)} is not a form that bounds {column}"


def _given(node: exp.Expr) -> set[str]:
    return {key for key, value in node.args.items() if value}


def _shown(node: exp.Expr) -> str:
    text = to_sql(node)
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 3]}..."
