"""Comparisons of one key column with operands, as boxes: the leaves of a predicate.

A leaf is read for the truth values that are asked for. ``partitioning.pruning.comparison`` finds where it is TRUE; it
is FALSE where its negation is TRUE; it is NULL where the column or an operand is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from secateur.partitioning.pruning.comparison import OPERATORS, PATTERNS, Comparison
from secateur.partitioning.pruning.comparison_target import BARE, RowField, ShortText, allowed
from secateur.partitioning.pruning.condition import Box, Choice, Constraint, ParameterComparison
from secateur.partitioning.pruning.domain import Domain, close_spans, points
from secateur.partitioning.pruning.operand import Constant, Operand, ParameterList
from secateur.partitioning.pruning.text_sets import PATTERN_TEXTS_MAX
from secateur.partitioning.pruning.tree import value_text
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.planner.prune.bounds import NOWHERE, UNBOUNDED, Boxes, fields_of, intersect, row_boxes, unite
from secateur.planner.prune.carried_values import LengthBound, carried_into
from secateur.planner.prune.operands import calls_only_bounded, elements_of, is_free_of_rows, list_parameter, operand_of
from secateur.planner.prune.reasons import why_unused
from secateur.planner.prune.scan_columns import KeyExpression, ScanColumns, key_expression
from secateur.planner.prune.truth import Truth
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.comparisons import COMPARISONS, are_texts
from secateur.planner.tree.comparisons import PATTERNS as TESTS
from secateur.planner.tree.rewriting import is_null, uncast

_CALENDAR: Final = frozenset({TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ})


@dataclass(slots=True)
class ComparisonReader:
    """Reads comparisons about the key columns of one scan.

    Attributes:
        types: The type of each column that matters, by name.
        columns: The columns of the scan.
        nullable: The columns that may be NULL where the predicate is evaluated.
        notes: Why something about a key column could not be used, in the user's terms; grows as predicates are read.
        pairs: The columns of the scan that were seen compared for equality; grows as well.
        longest: The number of characters that texts have at most where the predicates are read, of columns for which
            that is known.
        values: The values of columns where the predicates are read, as far as they are known.
        nulls: The columns for which boxes tell apart whether they are NULL, in a column of their own.
    """

    types: Mapping[str, SqlType]
    columns: ScanColumns
    nullable: frozenset[str]
    notes: list[str] = field(default_factory=list)
    pairs: dict[tuple[str, str], None] = field(default_factory=dict)
    longest: Mapping[str, LengthBound] = field(default_factory=dict)
    nulls: frozenset[str] = frozenset()
    values: Mapping[str, ex.AnyExpression] = field(default_factory=dict)

    def comparison(self, node: ex.Call, wanted: Truth) -> Boxes:
        """``x = y`` and its relatives, of values or rows, ``IS [NOT] DISTINCT FROM``."""
        comparison = COMPARISONS[node.type]
        if node.type == "COMPARE_NOT_DISTINCT_FROM":
            wanted = wanted.negated
        left, right = node.children
        fields, others = fields_of(left), fields_of(right)
        if fields is not None and others is not None:
            return (
                UNBOUNDED
                if comparison is Comparison.DISTINCT
                else self._row(comparison, fields, [others], node, wanted)
            )
        found, other, operand = self._expression(left), self._expression(right), right
        if found is not None and found == other:
            return self._itself(found.column, comparison, wanted)
        if (pair := self.equated(node, wanted)) is not None:
            self.pairs[pair] = None
        if found is None or (other is not None and self._is_known(left) and not self._is_known(right)):
            found, operand = other, left
            comparison = OPERATORS[comparison].mirrored or comparison
        return self._unused(node) if found is None else self._tested(found, comparison, [operand], node, wanted)

    def equated(self, node: ex.AnyExpression, wanted: Truth) -> tuple[str, str] | None:
        """The two columns of the scan that are equal where a node is ``wanted``; None when it is no such comparison.

        A cast to a type that holds all values of a column is passed over.
        """
        kind = "COMPARE_EQUAL" if wanted is Truth.TRUE else "COMPARE_NOTEQUAL" if wanted is Truth.FALSE else ""
        if not isinstance(node, ex.Call) or node.type != kind:
            return None
        left, right = (key_expression(side, self.columns) for side in node.children)
        if left is None or right is None or not left.comparison_target == right.comparison_target == BARE:
            return None
        return left.column, right.column

    def in_list(self, node: ex.BoundOperation, wanted: Truth) -> Boxes:
        """``x IN (...)`` with the values written out, of values or rows."""
        needle, *listed = node.children
        fields = fields_of(needle)
        if fields is not None:
            rows = [fields_of(row) for row in listed if not is_null(row)]
            known = [row for row in rows if row is not None]
            if len(known) < len(rows) or (len(rows) < len(listed) and wanted is not Truth.TRUE):
                return self._unused(node)
            return self._row(Comparison.IN, fields, known, node, wanted)
        found = self._expression(needle)
        return self._unused(node) if found is None else self._tested(found, Comparison.IN, listed, node, wanted)

    def pattern(self, node: ex.Call, wanted: Truth) -> Boxes:
        """``x [NOT] LIKE pattern [ESCAPE character]``, regular expressions and the other tests of a text."""
        comparison, (text, *operands) = TESTS[node.name], node.children
        if OPERATORS[comparison].excludes:
            comparison, wanted = OPERATORS[comparison].negated, wanted.negated
        column = self._key(text)
        has_options = comparison in (Comparison.SIMILAR_TO, Comparison.MATCHES)
        if (
            column is None
            or not are_texts(node)
            or (has_options and not all(isinstance(option, ex.BoundConstant) for option in operands[1:]))
        ):
            return self._unused(node)
        bound = self.longest.get(column)
        if bound is None or comparison is Comparison.STARTS_WITH:
            return self._tested(KeyExpression(column, self.types[column]), comparison, operands, node, wanted)
        beside = [] if bound.relative_to is None else [bound.relative_to]
        target = ShortText(bound.length_max, relative=bool(beside))
        found = KeyExpression(column, self.types[column], target)
        return self._tested(found, comparison, operands, node, wanted, beside)

    def member(self, node: ex.Call, wanted: Truth) -> Boxes:
        """``contains(list, x)`` and its relatives: NULL only where the list or the value is."""
        list_, needle = node.children
        found, index, elements = self._expression(needle), list_parameter(list_), elements_of(list_)
        if found is None or (index is None and elements is None):
            return self._unused(node)
        if index is not None:
            operands: Sequence[Operand | ParameterList] | None = [ParameterList(index)]
        else:
            operands = self._operands(found.column, elements or (), node)
        if operands is None or (Truth.NULL in wanted and (index is not None or found.column in self.nullable)):
            return UNBOUNDED
        # A NULL in the list is found by nothing, and changes nothing for other values, as in IS DISTINCT FROM.
        asked = [
            form for form, each in ((Comparison.IN, Truth.TRUE), (Comparison.DISTINCT, Truth.FALSE)) if each in wanted
        ]
        known = unite(self._passing(found, form, operands, node) for form in asked)
        return intersect(known, self._null(found.column, wanted=False)) if found.column in self.nulls else known

    def boolean(self, node: ex.InputColumn, wanted: Truth) -> Boxes:
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

    def is_null(self, node: ex.AnyExpression, whole: ex.AnyExpression) -> Boxes:
        """Return where an expression that is not a predicate is NULL."""
        found = self._expression(node)
        if found is None or found.column in self.nullable - self.nulls:
            return self._unused(whole)
        return self._null(found.column)

    def is_not_null(self, node: ex.AnyExpression) -> Boxes:
        """Return where an expression that is not a predicate is not NULL."""
        found = self._expression(node)
        if found is None:
            return UNBOUNDED
        if found.column not in self.nulls:
            self._note(f"{self._shown(node)} IS NOT NULL is TRUE for every row: compare {found.column} with values")
        return self._null(found.column, wanted=False)

    def _null(self, column: str, *, wanted: bool = True) -> Boxes:
        """Return where a column is NULL, or is not."""
        if column in self.nulls:
            return (Box.of({f"\0{column}": Constraint((Choice(points([wanted])),))}),)
        return NOWHERE if wanted else UNBOUNDED

    def _tested(
        self,
        found: KeyExpression,
        comparison: Comparison,
        nodes: Sequence[ex.AnyExpression],
        whole: ex.Call | ex.BoundOperation,
        wanted: Truth,
        beside: Sequence[Operand] = (),
    ) -> Boxes:
        """A comparison with the values of some nodes, and with operands ``beside`` them that the target reads."""
        read = self._operands(found.column, nodes, whole)
        if read is None:
            return UNBOUNDED
        operands = [*read, *beside]
        constants = all(isinstance(operand, Constant) and operand.value is not None for operand in operands)
        told_apart = found.column in self.nulls
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
        self,
        found: KeyExpression,
        comparison: Comparison,
        operands: Sequence[Operand | ParameterList],
        whole: ex.Call | ex.BoundOperation,
    ) -> Boxes:
        """Return where one comparison is TRUE."""
        if OPERATORS[comparison].excludes:
            single = whole.type in ("COMPARE_EQUAL", "COMPARE_NOTEQUAL")
            self._note(
                f"{self._shown(whole) if single else comparison.value} excludes values of {found.column}: name "
                "the values to keep, with = or IN"
            )
        if not all(isinstance(operand, Constant) for operand in operands):
            test = ParameterComparison(comparison, tuple(operands), found.comparison_target)
            return (Box.of({found.column: Constraint((Choice(tests=(test,)),))}),)
        values = [operand.value for operand in operands if isinstance(operand, Constant)]
        domain = allowed(found.comparison_target, comparison, values, found.column_type)
        if domain is None and (comparison in PATTERNS or OPERATORS[comparison].negated in PATTERNS):
            return self._unused(whole)
        if domain is None:
            self._note(self._inexact(found, operands, whole))
            return UNBOUNDED
        if domain.is_everything and (comparison in PATTERNS or comparison is Comparison.STARTS_WITH):
            self._note(
                f"the pattern of {self._shown(whole)} begins with a wildcard: begin it with the first characters of"
                f" {found.column}"
            )
        elif comparison in PATTERNS and not domain.is_finite:
            self._note(f"{self._shown(whole)} may match more than {PATTERN_TEXTS_MAX:,} texts")
        return _domain_box(found.column, domain, found.column_type)

    def _row(
        self,
        comparison: Comparison,
        fields: Sequence[ex.AnyExpression],
        rows: Sequence[Sequence[ex.AnyExpression]],
        whole: ex.Call | ex.BoundOperation,
        wanted: Truth,
    ) -> Boxes:
        """A comparison of a row with any of ``rows``, of which there is one, unless it is IN."""
        if any(len(row) != len(fields) for row in rows):
            return UNBOUNDED

        def compared(form: Comparison, row: Sequence[ex.AnyExpression]) -> Boxes:
            return row_boxes(form, len(fields), lambda index, each: self._field(fields[index], row[index], each, whole))

        boxes = []
        if Truth.TRUE in wanted:
            boxes.append(unite(compared(comparison, row) for row in rows))
        if Truth.FALSE in wanted:
            boxes.append(intersect(*(compared(OPERATORS[comparison].negated, row) for row in rows)))
        return unite(boxes)

    def _field(
        self, own: ex.AnyExpression, other: ex.AnyExpression, comparison: Comparison, whole: ex.Call | ex.BoundOperation
    ) -> Boxes:
        """One field of a row against that of another, where NULL is the greatest value."""
        found = self._known(own)
        if found is None:
            found, other = self._known(other), own
            comparison = OPERATORS[comparison].mirrored or comparison
        if found is None:
            return self._unused(whole)
        if found.column_type.kind in _CALENDAR and _is_endless_past(other):
            return NOWHERE if comparison is Comparison.LESS else UNBOUNDED
        read = self._operands(found.column, [other], whole) if found.column in self.types else [operand_of(other)]
        operand = read[0] if read else None
        is_constant = isinstance(operand, Constant) and operand.value is not None
        is_nullable = found.column in self.nullable
        if operand is None or (is_nullable and not (is_constant and OPERATORS[comparison].is_false_of_null)):
            return UNBOUNDED
        if operand == Constant(None):
            return NOWHERE if comparison is Comparison.IN else UNBOUNDED
        if found.column in self.types:
            return self._passing(found.become(RowField(1)), comparison, [operand], whole)
        # Of another column it counts only that no value passes: none is less than the least one of its type.
        if not isinstance(operand, Constant):
            return UNBOUNDED
        domain = allowed(RowField(1), comparison, [operand.value], found.column_type)
        is_never = domain is not None and close_spans(domain, found.column_type).is_nothing
        return NOWHERE if is_never else UNBOUNDED

    def _itself(self, column: str, comparison: Comparison, wanted: Truth) -> Boxes:
        """``a = a`` and its relatives: TRUE or FALSE for all values, and NULL for none."""
        if column in self.nullable and (Truth.NULL in wanted or comparison is Comparison.DISTINCT):
            return UNBOUNDED
        truth = Truth.TRUE if OPERATORS[comparison].holds_of_itself else Truth.FALSE
        return UNBOUNDED if truth in wanted else NOWHERE

    def _operands(
        self, column: str, nodes: Sequence[ex.AnyExpression], whole: ex.Call | ex.BoundOperation
    ) -> list[Operand] | None:
        operands: list[Operand] = []
        # A column that equals the column is bound by what is said of either.
        equal = whole.type == "COMPARE_EQUAL" and self._known(nodes[0]) is not None
        for node in nodes if equal else (carried_into(node, self.values, self.columns) for node in nodes):
            operand = operand_of(node)
            if operand is None:
                if is_free_of_rows(node) and not calls_only_bounded(node):
                    self._note(
                        f"{column} is compared with {self._shown(node)}, whose value is not known while "
                        "planning: compute it first and pass it as a parameter"
                    )
                else:
                    self._note(
                        f"{column} is compared with {self._shown(node)}, which is neither a constant nor a "
                        "parameter: pass its value as a parameter"
                    )
                return None
            operands.append(operand)
        return operands

    def _is_known(self, node: ex.AnyExpression) -> bool:
        """Whether an expression of columns has a known value."""
        return bool(self.values) and carried_into(node, self.values, self.columns) is not node

    def _inexact(
        self, found: KeyExpression, operands: Sequence[Operand | ParameterList], whole: ex.AnyExpression
    ) -> str:
        values = ", ".join(value_text(operand.value) for operand in operands[:3] if isinstance(operand, Constant))
        return (
            f"{found.column} is a {found.column_type}, and {self._shown(whole)} would cast it: write "
            f"{values or 'the value'} as a {found.column_type}"
        )

    def _key(self, node: ex.AnyExpression) -> str | None:
        """The name of the key column that a node is, bare."""
        column = self.columns.name_of(node)
        return column if column in self.types else None

    def _known(self, node: ex.AnyExpression) -> KeyExpression | None:
        """The column whose type is known that a node is, bare or in a type that holds all its values."""
        found = key_expression(node, self.columns)
        return found if found is not None and found.comparison_target == BARE else None

    def _expression(self, node: ex.AnyExpression) -> KeyExpression | None:
        found = key_expression(node, self.columns)
        return found if found is not None and found.column in self.types else None

    def _unused(self, node: ex.AnyExpression) -> Boxes:
        self.note_unused(node)
        return UNBOUNDED

    def note_unused(self, node: ex.AnyExpression) -> None:
        """Say why a predicate that mentions a key column does not prune."""
        reason = why_unused(node, self.columns, self.types, self._shown(node))
        if reason is not None:
            self._note(reason)

    def _shown(self, node: ex.AnyExpression) -> str:
        return self.columns.shown(node)

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _domain_box(column: str, domain: Domain, column_type: SqlType) -> Boxes:
    if domain.is_everything:
        return UNBOUNDED
    return (
        NOWHERE if close_spans(domain, column_type).is_nothing else (Box.of({column: Constraint((Choice(domain),))}),)
    )


def _is_endless_past(node: ex.AnyExpression) -> bool:
    """Whether an expression is ``-infinity``, cast to a type of dates: there is no earlier one."""
    inner = uncast(node, tried=False)
    return isinstance(inner, ex.BoundConstant) and inner.value.value == "-infinity"
