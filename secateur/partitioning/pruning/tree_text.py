"""The text form of a partition tree, for EXPLAIN: ``(p17 | $1)``.

``p17`` is a constant partition, ``$1`` the partition of the first parameter, and ``$1[]`` the partitions of the
elements of the first parameter, a list. Parameters are counted from 1, as in SQL. For a partitioning key of several
columns a key is a tuple, ``($1, *)``; ``*`` marks a column that is not bound, and the name of another column one that
equals it: ``({$1, $2}, a)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, assert_never

from secateur.partitioning.pruning import comparison_target as targets
from secateur.partitioning.pruning.comparison import Comparison, compare
from secateur.partitioning.pruning.condition import Box, Choice, Constraint, ParameterComparison
from secateur.partitioning.pruning.domain import Domain, Span
from secateur.partitioning.pruning.nodes import All, AllOf, AnyOf, Everywhere, Keys, Node, Nothing, Partitions
from secateur.partitioning.pruning.operand import Constant, Evaluated, Operand, Parameter, ParameterList
from secateur.partitioning.pruning.select_partitions import select_partitions
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.tables.identifier import text_literal

_SHOWN_MAX: Final = 16


def node_text(node: Node, scheme: PartitionScheme) -> str:
    """Return the text of a tree of a table with this scheme.

    Groups are in parentheses; ``all``, ``none`` and ``any`` stand without.
    """
    match node:
        case All():
            return "all"
        case Nothing():
            return "none"
        case Everywhere():
            return "any"
        case AllOf(parts):
            return f"({' & '.join(node_text(part, scheme) for part in parts)})"
        case Partitions() | Keys() | AnyOf():
            return f"({' | '.join(_alternatives(node, scheme))})"
        case _:
            assert_never(node)


def _alternatives(node: Node, scheme: PartitionScheme) -> list[str]:
    match node:
        case Partitions(ids):
            return _shortened([f"p{partition}" for partition in ids])
        case Keys(box) if len(scheme.columns) == 1:
            return _shortened(_constraint_alternatives(box[scheme.columns[0]], scheme))
        case Keys(box):
            return [_tuple_text(box, scheme)]
        case AnyOf(parts):
            return [text for part in parts for text in _alternatives(part, scheme)]
        case _:
            return [node_text(node, scheme)]


def _tuple_text(box: Box, scheme: PartitionScheme) -> str:
    texts = []
    equals = {column: members[0] for members in box.equal for column in members[1:]}
    for column in scheme.columns:
        first = equals.get(column)
        known = () if first is None else box[first].choices
        alternatives = [_choice_text(choice) for choice in box[column].choices if choice not in known]
        if first is not None:
            alternatives.append(first)
        texts.append(_conjunction_text(alternatives) if alternatives else "*")
    return f"({', '.join(texts)})"


def _constraint_alternatives(constraint: Constraint, scheme: PartitionScheme) -> list[str]:
    """On a key of one column the constants of an IN list are shown as the partitions that they are in."""
    match constraint.choices:
        case (Choice(domain, tests),) if domain.is_finite and all(
            test.comparison is Comparison.IN and test.comparison_target == targets.BARE for test in tests
        ):
            column = scheme.columns[0]
            constants = [operand.value for test in tests for operand in test.operands if isinstance(operand, Constant)]
            known = compare(Comparison.IN, constants, scheme.type_of(column))
            if known is None:
                return [_choice_text(constraint.choices[0])]
            ids = select_partitions(scheme, {column: domain.unite(known)}, len(domain.points) + len(constants)).ids
            opened = [
                _operand_text(operand)
                for test in tests
                for operand in test.operands
                if not isinstance(operand, Constant)
            ]
            return [f"p{partition}" for partition in ids] + opened
        case choices:
            return [_conjunction_text([_choice_text(choice) for choice in choices])]


def _conjunction_text(texts: Sequence[str]) -> str:
    """The texts of choices that all hold; a lower and an upper bound are an interval."""
    ends = [[text for text in texts if text.startswith(sign) and " or " not in text] for sign in (">= ", "<= ")]
    if [len(found) for found in ends] != [1, 1]:
        return " & ".join(texts)
    ((lower,), (upper,)) = ends
    interval = f"[{lower.removeprefix('>= ')}, {upper.removeprefix('<= ')}]"
    return " & ".join(interval if text == lower else text for text in texts if text != upper)


def _choice_text(choice: Choice) -> str:
    texts = [] if choice.domain.is_nothing else [domain_text(choice.domain)]
    texts.extend(_test_text(test) for test in choice.tests)
    return " or ".join(texts)


def _test_text(test: ParameterComparison) -> str:
    match test.comparison_target:
        case targets.BareColumn() | targets.ShortText() | targets.RowField():
            return _bare_text(test.comparison, [_operand_text(operand) for operand in test.compared])
        case comparison_target:
            operands = ", ".join(_shortened([_operand_text(operand) for operand in test.operands]))
            word = (
                {Comparison.IN: "=", Comparison.NOT_IN: "<>"}.get(test.comparison, test.comparison.value)
                if len(test.operands) == 1
                else test.comparison.value
            )
            return f"{_comparison_target_text(comparison_target)} {word} {operands}"


def _bare_text(comparison: Comparison, operands: Sequence[str]) -> str:
    match comparison:
        case Comparison.IN:
            return operands[0] if len(operands) == 1 else f"{{{', '.join(_shortened(operands))}}}"
        case Comparison.NOT_IN | Comparison.DISTINCT:
            return f"not {operands[0]}" if len(operands) == 1 else f"not {{{', '.join(_shortened(operands))}}}"
        case Comparison.BETWEEN:
            return f"[{operands[0]}, {operands[1]}]"
        case Comparison.NOT_BETWEEN:
            return f"not [{operands[0]}, {operands[1]}]"
        case Comparison.STARTS_WITH:
            return f"{operands[0]}..."
        case Comparison.NOT_STARTS_WITH:
            return f"not {operands[0]}..."
        case (
            Comparison.LESS
            | Comparison.LESS_EQUAL
            | Comparison.GREATER
            | Comparison.GREATER_EQUAL
            | Comparison.LIKE
            | Comparison.NOT_LIKE
            | Comparison.ILIKE
            | Comparison.NOT_ILIKE
            | Comparison.GLOB
            | Comparison.NOT_GLOB
            | Comparison.SIMILAR_TO
            | Comparison.NOT_SIMILAR_TO
            | Comparison.MATCHES
            | Comparison.NOT_MATCHES
        ):
            return f"{comparison.value} {operands[0]}"
        case _:
            assert_never(comparison)


def _comparison_target_text(
    comparison_target: targets.WidenedColumn | targets.LinearColumn | targets.AbsoluteColumn | targets.TruncatedColumn,
) -> str:
    """The expression of the key that is compared."""
    match comparison_target:
        case targets.WidenedColumn(wide):
            return f"CAST(key AS {wide})"
        case targets.LinearColumn(offset, factor):
            return _linear_text("key", offset, factor)
        case targets.AbsoluteColumn(_, offset, factor):
            return _linear_text("abs(key)", offset, factor)
        case targets.TruncatedColumn(_, as_date=True):
            return "CAST(key AS DATE)"
        case targets.TruncatedColumn(unit):
            return f"date_trunc({unit}, key)"
        case _:
            assert_never(comparison_target)


def _linear_text(term: str, offset: int, factor: int) -> str:
    if factor == -1:
        return f"{offset} - {term}"
    scaled = term if factor == 1 else f"{term} * {factor}"
    return f"{scaled} {'-' if offset < 0 else '+'} {abs(offset)}" if offset else scaled


def _operand_text(operand: Operand | ParameterList) -> str:
    match operand:
        case Parameter(index):
            return f"${index + 1}"
        case ParameterList(index):
            return f"${index + 1}[]"
        case Constant(value):
            return value_text(value)
        case Evaluated():
            return operand.shown
        case _:
            assert_never(operand)


def domain_text(domain: Domain) -> str:
    """A domain as a set of values and intervals, such as ``{1, 2} or [5, 9)``."""
    if domain.is_nothing:
        return "{}"
    if domain.is_everything:
        return "*"
    texts = []
    if domain.points:
        values = [value_text(value) for value in sorted(domain.points)]
        texts.append(values[0] if len(values) == 1 else f"{{{', '.join(_shortened(values))}}}")
    texts.extend(_span_text(span) for span in domain.spans)
    return " or ".join(texts)


def _span_text(span: Span) -> str:
    lower = "(-inf" if span.lower is None else f"{'[' if span.lower_closed else '('}{value_text(span.lower)}"
    upper = "inf)" if span.upper is None else f"{value_text(span.upper)}{']' if span.upper_closed else ')'}"
    return f"{lower}, {upper}"


def value_text(value: Any) -> str:
    """A value as a literal of the dialect, without its type."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return str(value)
    return text_literal(str(value))


def _shortened(texts: Sequence[str]) -> list[str]:
    """At most 16 texts, and the number of texts left out."""
    if len(texts) <= _SHOWN_MAX:
        return list(texts)
    return [*texts[: _SHOWN_MAX - 1], f"{len(texts) - _SHOWN_MAX + 1} more"]
