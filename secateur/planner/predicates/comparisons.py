"""Comparisons of one key column with operands, as boxes: the leaves of a predicate.

A leaf is read for the truth values that are asked for. ``partitioning.pruning.comparison`` finds where it is TRUE; it
is FALSE where its negation is TRUE; it is NULL where the column or an operand is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from secateur.partitioning.pruning.comparison import OPERATORS, PATTERNS, Comparison
from secateur.partitioning.pruning.comparison_target import RowField, ShortText, allowed
from secateur.partitioning.pruning.condition import Box, Choice, Constraint, ParameterComparison
from secateur.partitioning.pruning.discrete import close_spans
from secateur.partitioning.pruning.domain import Domain, points
from secateur.partitioning.pruning.operand import Constant, Operand, ParameterList
from secateur.partitioning.pruning.text_sets import PATTERN_TEXTS_MAX
from secateur.partitioning.pruning.tree_text import value_text
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.planner.binding.evaluation import calls_only_bounded
from secateur.planner.predicates.bounds import NOWHERE, UNBOUNDED, Boxes, intersect, unite
from secateur.planner.predicates.carried_values import carried_into
from secateur.planner.predicates.column_equalities import equated
from secateur.planner.predicates.constants import operand_of
from secateur.planner.predicates.key_expression import KeyExpression, key_expression
from secateur.planner.predicates.row_values import FieldBoxes, FieldOperands, fields_of, row_boxes
from secateur.planner.predicates.text_lengths import LengthBound
from secateur.planner.predicates.truth import Truth
from secateur.planner.predicates.unused import shown, why_unused
from secateur.planner.text.dialect import to_sql

_COMPARISONS: Final[dict[type[exp.Expr], Comparison]] = {
    exp.EQ: Comparison.IN,
    exp.NEQ: Comparison.NOT_IN,
    exp.LT: Comparison.LESS,
    exp.LTE: Comparison.LESS_EQUAL,
    exp.GT: Comparison.GREATER,
    exp.GTE: Comparison.GREATER_EQUAL,
    exp.NullSafeEQ: Comparison.DISTINCT,
    exp.NullSafeNEQ: Comparison.DISTINCT,
}
_CALENDAR: Final = frozenset({TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ})
_OPEN_ROWS_MAX: Final = 64
"""Past so many parameters in one field of a list of rows the fields are taken apart: each row would have to be judged
by all of them.
"""


@dataclass(slots=True)
class ComparisonReader:
    """Reads comparisons about the key columns of one scan.

    Attributes:
        types: The type of each column that matters, by name.
        column_of: The name of the scan's column that a column node means, or None when it is another table's.
        further: The types of other columns, which count as the last fields of row values.
        nullable: The columns that may be NULL where the predicate is evaluated.
        notes: Why something about a key column could not be used, in the user's terms; grows as predicates are read.
        pairs: The columns of the scan that were seen compared for equality; grows as well.
        longest: The number of characters that texts have at most where the predicates are read, of columns for which
            that is known.
        values: The values of columns where the predicates are read, as far as they are known.
        nulls: The columns for which boxes tell apart whether they are NULL, in a column of their own.
    """

    types: Mapping[str, SqlType]
    column_of: Callable[[exp.Column], str | None]
    further: Mapping[str, SqlType]
    nullable: frozenset[str]
    notes: list[str] = field(default_factory=list)
    pairs: dict[tuple[str, str], None] = field(default_factory=dict)
    longest: Mapping[str, LengthBound] = field(default_factory=dict)
    nulls: frozenset[str] = frozenset()
    values: Mapping[str, exp.Expr] = field(default_factory=dict)

    def comparison(self, node: exp.Expr, wanted: Truth) -> Boxes:
        """``x = y`` and its relatives, of values or rows, ``IS [NOT] DISTINCT FROM``."""
        comparison = _COMPARISONS[type(node)]
        if isinstance(node, exp.NullSafeEQ):
            wanted = wanted.negated
        left, right = node.this.unnest(), node.expression.unnest()
        fields, others = fields_of(left), fields_of(right)
        if fields is not None and others is not None:
            return (
                UNBOUNDED
                if comparison is Comparison.DISTINCT
                else self._row(comparison, fields, [others], node, wanted)
            )
        if left == right and (column := self._key(left)) is not None:
            return self._itself(column, comparison, wanted)
        if (pair := equated(node, self.column_of, wanted)) is not None:
            self.pairs[pair] = None
        found, operand = self._expression(left), right
        if found is None or (
            self._expression(right) is not None and self._is_known(left) and not self._is_known(right)
        ):
            found, operand = self._expression(right), left
            comparison = OPERATORS[comparison].mirrored or comparison
        return self._unused(node) if found is None else self._tested(found, comparison, [operand], node, wanted)

    def in_list(self, node: exp.In, wanted: Truth) -> Boxes:
        """``x IN (...)`` with the values written out, of values or rows."""
        fields = fields_of(node.this)
        if fields is not None:
            rows = [fields_of(row) for row in node.expressions if not isinstance(row.unnest(), exp.Null)]
            known = [row for row in rows if row is not None]
            if len(known) < len(rows) or (len(rows) < len(node.expressions) and wanted is not Truth.TRUE):
                return self._unused(node)
            return self._row(Comparison.IN, fields, known, node, wanted)
        found = self._expression(node.this)
        return (
            self._unused(node) if found is None else self._tested(found, Comparison.IN, node.expressions, node, wanted)
        )

    def between(self, node: exp.Between, wanted: Truth) -> Boxes:
        """``x BETWEEN low AND high``, of values or rows."""
        low, high = node.args["low"], node.args["high"]
        fields, lows, highs = fields_of(node.this), fields_of(low), fields_of(high)
        if fields is not None and lows is not None and highs is not None:
            parts = ((Comparison.GREATER_EQUAL, lows, highs), (Comparison.LESS_EQUAL, highs, lows))
            if wanted is Truth.TRUE:
                return intersect(
                    *(self._row(comparison, fields, [row, beside], node, wanted) for comparison, row, beside in parts)
                )
            if wanted is Truth.FALSE:
                return unite(
                    self._row(comparison, fields, [row, beside], node, wanted) for comparison, row, beside in parts
                )
            return UNBOUNDED
        found = self._expression(node.this)
        return (
            self._unused(node) if found is None else self._tested(found, Comparison.BETWEEN, [low, high], node, wanted)
        )

    def pattern(
        self, comparison: Comparison, text: exp.Expr, operands: Sequence[exp.Expr], node: exp.Expr, wanted: Truth
    ) -> Boxes:
        """``x [NOT] LIKE pattern [ESCAPE character]``, regular expressions and the other patterns."""
        if node.args.get("negate"):
            wanted = wanted.negated
        column = self._key(text)
        if column is None:
            return self._unused(node)
        bound = self.longest.get(column)
        if bound is None:
            return self._tested(KeyExpression(column), comparison, operands, node, wanted)
        beside = () if bound.relative_to is None else (bound.relative_to,)
        target = ShortText(bound.length_max, relative=bool(beside))
        return self._tested(KeyExpression(column, target), comparison, [*operands, *beside], node, wanted)

    def starts_with(self, comparison_target: exp.Expr, prefix: exp.Expr, node: exp.Expr, wanted: Truth) -> Boxes:
        """``starts_with(x, prefix)`` and ``x ^@ prefix``."""
        column = self._key(comparison_target)
        return (
            self._unused(node)
            if column is None
            else self._tested(KeyExpression(column), Comparison.STARTS_WITH, [prefix], node, wanted)
        )

    def membership(self, node: exp.Expr, needle: exp.Expr, index: int, wanted: Truth) -> Boxes:
        """``x = ANY($1)`` and its relatives.

        Those that are not TRUE differ in when they are FALSE or NULL: a column equal to no element may be either.
        """
        found = self._expression(needle)
        if found is None:
            return self._unused(node)
        column, target = found.column, found.comparison_target
        boxes = []
        if Truth.TRUE in wanted:
            boxes.append(_tested_box(column, ParameterComparison(Comparison.IN, (ParameterList(index),), target)))
        if Truth.FALSE in wanted:
            self._note(f"NOT over {shown(node)} excludes values of {column}: name the values to keep, with = or IN")
            boxes.append(_tested_box(column, ParameterComparison(Comparison.DISTINCT, (ParameterList(index),), target)))
        return UNBOUNDED if Truth.NULL in wanted else unite(boxes)

    def element(self, node: exp.Expr, needle: exp.Expr, elements: Sequence[exp.Expr], wanted: Truth) -> Boxes:
        """``x = ANY([1, 2])`` and its relatives, which differ as those of :meth:`membership` do.

        The list has a type before it is compared: its texts stay texts, so all values must have the column's own type.
        A value that is no element may be FALSE or NULL, if NULL is an element.
        """
        column = self._key(needle)
        values = [element for element in elements if not isinstance(element.unnest(), exp.Null)]
        if column is not None and not values and wanted is Truth.TRUE:
            return NOWHERE
        if column is None or not values or (len(values) < len(elements) and Truth.NULL in wanted):
            return self._unused(node)
        return self._tested(KeyExpression(column, RowField(len(values))), Comparison.IN, values, node, wanted)

    def boolean(self, node: exp.Column, wanted: Truth) -> Boxes:
        """A column as a predicate."""
        column = self._key(node)
        if (
            column is None
            or self.types[column].kind is not TypeKind.BOOLEAN
            or (Truth.NULL in wanted and column in self.nullable - self.nulls)
        ):
            return UNBOUNDED
        values = points(value for value, truth in ((True, Truth.TRUE), (False, Truth.FALSE)) if truth in wanted)
        known = intersect(_domain_box(column, values, self.types[column]), self._null(column, wanted=False))
        return unite((known, self._null(column))) if Truth.NULL in wanted else known

    def is_null(self, node: exp.Expr) -> Boxes:
        """Return where an expression that is not a predicate is NULL."""
        found = self._expression(node)
        if found is None or found.column in self.nullable - self.nulls:
            return self._unused(node.parent or node)
        return self._null(found.column)

    def is_not_null(self, node: exp.Expr) -> Boxes:
        """Return where an expression that is not a predicate is not NULL."""
        found = self._expression(node)
        if found is None:
            return UNBOUNDED
        if found.column not in self.nulls:
            self._note(f"{shown(node)} IS NOT NULL is TRUE for every row: compare {found.column} with values")
        return self._null(found.column, wanted=False)

    def _null(self, column: str, *, wanted: bool = True) -> Boxes:
        """Return where a column is NULL, or is not."""
        if column in self.nulls:
            return (Box.of({f"\0{column}": Constraint((Choice(points([wanted])),))}),)
        return NOWHERE if wanted else UNBOUNDED

    def _tested(
        self, found: KeyExpression, comparison: Comparison, nodes: Sequence[exp.Expr], whole: exp.Expr, wanted: Truth
    ) -> Boxes:
        operands = self._operands(found.column, nodes, whole)
        if operands is None:
            return UNBOUNDED
        constants = all(isinstance(operand, Constant) and operand.value is not None for operand in operands)
        # A list that has NULL may have a row without a value as an element.
        told_apart = found.column in self.nulls and not isinstance(found.comparison_target, RowField)
        nullable = found.column in self.nullable and not (told_apart and constants)
        if comparison is Comparison.DISTINCT:
            # Never NULL. Where it is FALSE both are NULL, or they are equal.
            if (Truth.TRUE in wanted and nullable) or (Truth.FALSE in wanted and nullable and not constants):
                return self._unused(whole)
        elif Truth.NULL in wanted and (nullable or not constants):
            return UNBOUNDED
        negated = OPERATORS[comparison].negated
        asked = [form for form, truth in ((comparison, Truth.TRUE), (negated, Truth.FALSE)) if truth in wanted]
        known = unite(self._passing(found, form, operands, whole) for form in asked)
        if not told_apart:
            return known
        of_null = Truth.TRUE if comparison is Comparison.DISTINCT else Truth.NULL
        known = intersect(known, self._null(found.column, wanted=False))
        return unite((known, self._null(found.column))) if of_null in wanted else known

    def _passing(
        self, found: KeyExpression, comparison: Comparison, operands: Sequence[Operand], whole: exp.Expr
    ) -> Boxes:
        """Return where one comparison is TRUE."""
        if OPERATORS[comparison].excludes:
            single = isinstance(whole, (exp.EQ, exp.NEQ))
            self._note(
                f"{shown(whole) if single else comparison.value} excludes values of {found.column}: name "
                "the values to keep, with = or IN"
            )
        if not all(isinstance(operand, Constant) for operand in operands):
            return _tested_box(found.column, ParameterComparison(comparison, tuple(operands), found.comparison_target))
        values = [operand.value for operand in operands if isinstance(operand, Constant)]
        domain = allowed(found.comparison_target, comparison, values, self.types[found.column])
        if domain is None and (comparison in PATTERNS or OPERATORS[comparison].negated in PATTERNS):
            return self._unused(whole)
        if domain is None:
            self._note(self._inexact(found.column, operands, whole))
            return UNBOUNDED
        if domain.is_everything and (comparison in PATTERNS or comparison is Comparison.STARTS_WITH):
            self._note(
                f"the pattern of {shown(whole)} begins with a wildcard: begin it with the first characters of"
                f" {found.column}"
            )
        elif comparison in PATTERNS and not domain.is_finite:
            self._note(f"{shown(whole)} may match more than {PATTERN_TEXTS_MAX:,} texts")
        return _domain_box(found.column, domain, self.types[found.column])

    def _row(
        self,
        comparison: Comparison,
        fields: Sequence[exp.Expr],
        rows: Sequence[Sequence[exp.Expr]],
        whole: exp.Expr,
        wanted: Truth,
    ) -> Boxes:
        """A comparison of a row with the first of ``rows``, or, for IN, with any of them.

        The fields of all rows share their types.
        """
        if any(len(row) != len(fields) for row in rows):
            return UNBOUNDED
        given = [self._field_operands(own, [row[index] for row in rows], whole) for index, own in enumerate(fields)]
        if any(found is not None and len(found.opened) > _OPEN_ROWS_MAX for found in given):
            return (
                intersect(*(self._any_row(found) for found in given if found is not None))
                if wanted is Truth.TRUE
                else UNBOUNDED
            )

        def row_of(position: int) -> FieldBoxes:
            return lambda index, form: self._field(given[index], position, form, whole)

        compared = range(len(rows)) if isinstance(whole, exp.In) else range(1)
        boxes = []
        if Truth.TRUE in wanted:
            boxes.append(unite(row_boxes(comparison, len(fields), row_of(position)) for position in compared))
        if Truth.FALSE in wanted:
            negated = OPERATORS[comparison].negated
            boxes.append(intersect(*(row_boxes(negated, len(fields), row_of(position)) for position in compared)))
        return unite(boxes)

    def _field_operands(self, own: exp.Expr, others: Sequence[exp.Expr], whole: exp.Expr) -> FieldOperands | None:
        """Return the operands of one field, in each row; None when they are not known."""
        column, mirrored = self._known(own), False
        if column is None and len(others) == 1:
            column, mirrored, others = self._known(others[0]), True, [own]
        if column is None:
            return None
        if all(_is_endless_past(other) for other in others) and self._type_of(column).kind in _CALENDAR:
            return FieldOperands(column, mirrored, (), (), is_least=True)
        operands = (
            self._operands(column, others, whole)
            if column in self.types
            else [operand for node in others if (operand := operand_of(node)) is not None]
        )
        if operands is None or len(operands) < len(others):
            return None
        constants = [operand for operand in operands if isinstance(operand, Constant) and operand.value is not None]
        values = [constant.value for constant in constants]
        column_type = self._type_of(column)
        if allowed(RowField(len(values)), Comparison.IN, values, column_type) is None:
            if column in self.types:
                self._note(self._inexact(column, constants, whole))
            return None
        return FieldOperands(
            column,
            mirrored,
            tuple(operands),
            tuple(dict.fromkeys(operand for operand in operands if not isinstance(operand, Constant))),
        )

    def _type_of(self, column: str) -> SqlType:
        return self.types.get(column) or self.further[column]

    def _field(self, found: FieldOperands | None, position: int, comparison: Comparison, whole: exp.Expr) -> Boxes:
        """One field of a row against that of the row at ``position``."""
        if found is None:
            return UNBOUNDED
        if found.mirrored:
            comparison = OPERATORS[comparison].mirrored or comparison
        if found.is_least:
            return NOWHERE if comparison is Comparison.LESS else UNBOUNDED
        operand = found.operands[position]
        known = isinstance(operand, Constant) and operand.value is not None
        if found.column in self.nullable and not (known and OPERATORS[comparison].is_false_of_null):
            return self._unused(whole) if found.column in self.types else UNBOUNDED
        if operand == Constant(None):
            return NOWHERE if comparison is Comparison.IN else UNBOUNDED
        if found.column not in self.types:
            return (
                NOWHERE if known and not found.opened and self._never(found.column, comparison, operand) else UNBOUNDED
            )
        beside = [other for other in found.opened if other != operand]
        return self._passing(KeyExpression(found.column, RowField(1)), comparison, [operand, *beside], whole)

    def _never(self, column: str, comparison: Comparison, operand: Operand) -> bool:
        """Whether no value of a field passes: none is less than the least value of its type."""
        assert isinstance(operand, Constant)
        column_type = self.further[column]
        found = allowed(RowField(1), comparison, [operand.value], column_type)
        return found is not None and close_spans(found, column_type).is_nothing

    def _any_row(self, found: FieldOperands) -> Boxes:
        """One field of a row against that of any row."""
        if found.column in self.nullable or found.column not in self.types:
            return UNBOUNDED
        return _tested_box(
            found.column, ParameterComparison(Comparison.IN, found.operands, RowField(len(found.operands)))
        )

    def _itself(self, column: str, comparison: Comparison, wanted: Truth) -> Boxes:
        """``a = a`` and its relatives: TRUE or FALSE for all values, and NULL for none."""
        if column in self.nullable and (Truth.NULL in wanted or comparison is Comparison.DISTINCT):
            return UNBOUNDED
        truth = Truth.TRUE if OPERATORS[comparison].holds_of_itself else Truth.FALSE
        return UNBOUNDED if truth in wanted else NOWHERE

    def _operands(self, column: str, nodes: Sequence[exp.Expr], whole: exp.Expr) -> list[Operand] | None:
        operands: list[Operand] = []
        # A column that equals the column is bound by what is said of either.
        equal = isinstance(whole, exp.EQ) and isinstance(nodes[0].unnest(), exp.Column)
        for node in nodes if equal else (carried_into(node, self.values, self.column_of) for node in nodes):
            operand = operand_of(node)
            if operand is None:
                if node.find(exp.Column, exp.Query) is None and not calls_only_bounded(to_sql(node)):
                    self._note(
                        f"{column} is compared with {shown(node)}, whose value is not known while "
                        "planning: compute it first and pass it as a parameter"
                    )
                else:
                    self._note(
                        f"{column} is compared with {shown(node)}, which is neither a constant nor a "
                        "parameter: pass its value as a parameter"
                    )
                return None
            if operand == Constant(None) and len(nodes) > 1 and not isinstance(node.unnest(), exp.Null):
                # A NULL with a type takes part in the choice of the common type of the comparison.
                self._note(f"{shown(whole)} compares with a typed NULL: write NULL without a type")
                return None
            operands.append(operand)
        return operands

    def _is_known(self, node: exp.Expr) -> bool:
        """Whether an expression of columns has a known value."""
        return bool(self.values) and carried_into(node, self.values, self.column_of) is not node

    def _inexact(self, column: str, operands: Sequence[Operand], whole: exp.Expr) -> str:
        values = ", ".join(value_text(operand.value) for operand in operands[:3] if isinstance(operand, Constant))
        return (
            f"{column} is a {self.types[column]}, and {shown(whole)} would cast it: write "
            f"{values or 'the value'} as a {self.types[column]}"
        )

    def _key(self, node: exp.Expr) -> str | None:
        """The name of the key column that a node is, bare."""
        node = node.unnest()
        column = self.column_of(node) if isinstance(node, exp.Column) else None
        return column if column in self.types else None

    def _known(self, node: exp.Expr) -> str | None:
        """The name of the column whose type is known that a node is, bare."""
        node = node.unnest()
        column = self.column_of(node) if isinstance(node, exp.Column) else None
        return column if column in self.types or column in self.further else None

    def _expression(self, node: exp.Expr) -> KeyExpression | None:
        return key_expression(node, self._typed)

    def _typed(self, node: exp.Column) -> tuple[str, SqlType] | None:
        column = self._key(node)
        return None if column is None else (column, self.types[column])

    def _unused(self, node: exp.Expr) -> Boxes:
        self.note_unused(node)
        return UNBOUNDED

    def note_unused(self, node: exp.Expr) -> None:
        """Say why a predicate that mentions a key column does not prune."""
        for part in node.find_all(exp.Column):
            column = self._key(part)
            if column is not None:
                self._note(why_unused(column, part, node, self.types[column]))
                return

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _tested_box(column: str, test: ParameterComparison) -> Boxes:
    return (Box.of({column: Constraint((Choice(tests=(test,)),))}),)


def _domain_box(column: str, domain: Domain, column_type: SqlType) -> Boxes:
    if domain.is_everything:
        return UNBOUNDED
    return (
        NOWHERE if close_spans(domain, column_type).is_nothing else (Box.of({column: Constraint((Choice(domain),))}),)
    )


def _is_endless_past(node: exp.Expr) -> bool:
    """Whether an expression is ``-infinity``, as a text or cast to a type of dates: there is no earlier one."""
    node = node.unnest()
    if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
        node = node.this.unnest()
    return isinstance(node, exp.Literal) and node.is_string and node.name == "-infinity"
