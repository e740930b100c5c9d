"""The column values for which ``column <op> values`` is TRUE, compared exactly as the dialect compares.

The answer is the domain of the column where the comparison is certainly exact, and None (*no statement made*)
everywhere else. Pruning with None keeps everything and is never wrong.
:mod:`~secateur.partitioning.pruning.comparison_bound` decides which values compare exactly with which columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from typing import Any, Final

from secateur.partitioning.pruning.comparison_bound import ComparisonBound, comparison_bounds_of, representable
from secateur.partitioning.pruning.domain import NOTHING, Domain, Span, points, within
from secateur.partitioning.pruning.regular_expressions import texts_matched, texts_similar
from secateur.partitioning.pruning.text_sets import (
    PatternDomain,
    starting_with,
    texts_globbed,
    texts_like,
    texts_like_in_any_case,
)
from secateur.partitioning.types.column_type import SqlType, TypeKind


class Comparison(Enum):
    """The comparisons of one column with values. The value is the SQL operator."""

    IN = "IN"
    NOT_IN = "NOT IN"
    DISTINCT = "IS DISTINCT FROM"
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    BETWEEN = "BETWEEN"
    NOT_BETWEEN = "NOT BETWEEN"
    LIKE = "LIKE"
    NOT_LIKE = "NOT LIKE"
    ILIKE = "ILIKE"
    NOT_ILIKE = "NOT ILIKE"
    GLOB = "GLOB"
    NOT_GLOB = "NOT GLOB"
    SIMILAR_TO = "SIMILAR TO"
    NOT_SIMILAR_TO = "NOT SIMILAR TO"
    MATCHES = "~"
    NOT_MATCHES = "!~"
    STARTS_WITH = "^@"
    NOT_STARTS_WITH = "NOT ^@"


class Basis(Enum):
    """What a comparison asks of two values."""

    EQUALITY = "equality"
    ORDER = "order"
    RANGE = "range"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Operator:
    """What pruning knows of a comparison, beside the values that pass it.

    Attributes:
        basis: What it asks of values. All but TEXT hold after a shift of both sides, of numbers or dates.
        negated: The comparison that is TRUE exactly where it is FALSE. DISTINCT is never NULL: where it is FALSE, a
            column that is not NULL passes IN.
        mirrored: The comparison that means the same when its sides are exchanged; None: itself.
        strict: Of an order, the one that leaves out equality, by which the fields of row values before the last decide.
        excludes: Whether it names the values that do not pass, so almost all values pass.
        holds_of_itself: Whether a value passes it with itself.
        is_false_of_null: Whether a NULL column does not pass it inside a row value, where NULL is the greatest value.
        texts: The texts that match, if it is a comparison with a pattern.
    """

    basis: Basis
    negated: Comparison
    mirrored: Comparison | None = None
    strict: Comparison | None = None
    _: KW_ONLY
    excludes: bool = False
    holds_of_itself: bool = False
    is_false_of_null: bool = False
    texts: Callable[..., PatternDomain | None] | None = None


OPERATORS: Final[Mapping[Comparison, Operator]] = {
    Comparison.IN: Operator(Basis.EQUALITY, Comparison.NOT_IN, holds_of_itself=True, is_false_of_null=True),
    Comparison.NOT_IN: Operator(Basis.EQUALITY, Comparison.IN, excludes=True),
    Comparison.DISTINCT: Operator(Basis.EQUALITY, Comparison.IN, excludes=True),
    Comparison.LESS: Operator(
        Basis.ORDER, Comparison.GREATER_EQUAL, Comparison.GREATER, Comparison.LESS, is_false_of_null=True
    ),
    Comparison.LESS_EQUAL: Operator(
        Basis.ORDER,
        Comparison.GREATER,
        Comparison.GREATER_EQUAL,
        Comparison.LESS,
        holds_of_itself=True,
        is_false_of_null=True,
    ),
    Comparison.GREATER: Operator(Basis.ORDER, Comparison.LESS_EQUAL, Comparison.LESS, Comparison.GREATER),
    Comparison.GREATER_EQUAL: Operator(
        Basis.ORDER, Comparison.LESS, Comparison.LESS_EQUAL, Comparison.GREATER, holds_of_itself=True
    ),
    Comparison.BETWEEN: Operator(Basis.RANGE, Comparison.NOT_BETWEEN),
    Comparison.NOT_BETWEEN: Operator(Basis.RANGE, Comparison.BETWEEN, excludes=True),
    Comparison.LIKE: Operator(Basis.TEXT, Comparison.NOT_LIKE, texts=texts_like),
    Comparison.NOT_LIKE: Operator(Basis.TEXT, Comparison.LIKE, excludes=True),
    Comparison.ILIKE: Operator(Basis.TEXT, Comparison.NOT_ILIKE, texts=texts_like_in_any_case),
    Comparison.NOT_ILIKE: Operator(Basis.TEXT, Comparison.ILIKE, excludes=True),
    Comparison.GLOB: Operator(Basis.TEXT, Comparison.NOT_GLOB, texts=texts_globbed),
    Comparison.NOT_GLOB: Operator(Basis.TEXT, Comparison.GLOB, excludes=True),
    Comparison.SIMILAR_TO: Operator(Basis.TEXT, Comparison.NOT_SIMILAR_TO, texts=texts_similar),
    Comparison.NOT_SIMILAR_TO: Operator(Basis.TEXT, Comparison.SIMILAR_TO, excludes=True),
    Comparison.MATCHES: Operator(Basis.TEXT, Comparison.NOT_MATCHES, texts=texts_matched),
    Comparison.NOT_MATCHES: Operator(Basis.TEXT, Comparison.MATCHES, excludes=True),
    Comparison.STARTS_WITH: Operator(Basis.TEXT, Comparison.NOT_STARTS_WITH),
    Comparison.NOT_STARTS_WITH: Operator(Basis.TEXT, Comparison.STARTS_WITH, excludes=True),
}
PATTERNS: Final = {comparison: known.texts for comparison, known in OPERATORS.items() if known.texts is not None}
"""The comparisons of a text with a pattern, and which texts match it."""


def compare(
    comparison: Comparison, values: Sequence[Any], column_type: SqlType, *, length_max: int | None = None
) -> Domain | None:
    """The non-NULL column values for which ``column <comparison> values`` is TRUE.

    Args:
        comparison: The operator; equality is IN with one value.
        values: The other operands as Python objects; None is SQL's NULL, of no type. BETWEEN has two, IN any number,
            LIKE and ILIKE a pattern and, where it has one, the escape character, the others one.
        column_type: The type of the column.
        length_max: Texts with more characters do not count for a pattern; None if all do.

    Returns:
        The domain, or None when the comparison is not certainly exact in the column's type, such as a string column
        with a number.

    Raises:
        Nothing: any Python object is a valid value here; what is not understood answers None.
    """
    if OPERATORS[comparison].basis is Basis.TEXT:
        return _matching(comparison, values, column_type, length_max)
    known = [value for value in values if value is not None]
    bounds = comparison_bounds_of(known, column_type) if known else []
    if bounds is None:
        return None
    match comparison:
        case Comparison.IN:
            return _among(bounds, column_type)
        case Comparison.DISTINCT:
            return _among(bounds, column_type).complement()
        case Comparison.NOT_BETWEEN:
            # x < low OR x > high, where a bound that is NULL says nothing.
            low = [_below(bounds[0], closed=False)] if values[0] is not None else []
            high = [_above(bounds[-1], closed=False)] if values[1] is not None else []
            return within([*low, *high])
        case _ if len(known) < len(values):
            return NOTHING
        case Comparison.NOT_IN:
            return _among(bounds, column_type).complement()
        case Comparison.BETWEEN:
            return within([_above(bounds[0], closed=True).intersect(_below(bounds[1], closed=True))])
        case Comparison.LESS | Comparison.LESS_EQUAL:
            return within([_below(bounds[0], closed=comparison is Comparison.LESS_EQUAL)])
        case Comparison.GREATER | Comparison.GREATER_EQUAL:
            return within([_above(bounds[0], closed=comparison is Comparison.GREATER_EQUAL)])
        case _:
            raise AssertionError(f"{comparison} asks about texts")


def _among(bounds: Sequence[ComparisonBound], column_type: SqlType) -> Domain:
    return points(bound.value for bound in bounds if bound.exact and representable(bound.value, column_type))


def _below(bound: ComparisonBound, *, closed: bool) -> Span:
    # x < 1.5 is x <= 1: when the value lies between two column values, the lower of them belongs to the span whatever
    # the operator. Nothing is below '', so x <= '' is that one text.
    lower = bound.value if bound.value in ("", b"") else None
    return Span(lower, bound.value, upper_closed=closed or not bound.exact)


def _above(bound: ComparisonBound, *, closed: bool) -> Span:
    return Span(lower=bound.value, lower_closed=closed and bound.exact)


def _matching(
    comparison: Comparison, operands: Sequence[Any], column_type: SqlType, length_max: int | None
) -> Domain | None:
    """The texts that match a pattern, or all others, if each text that the pattern is read to certainly matches."""
    if column_type.kind is not TypeKind.VARCHAR:
        return None
    if any(operand is None for operand in operands):
        return NOTHING
    if not all(isinstance(operand, str) for operand in operands):
        return None
    match comparison:
        case Comparison.STARTS_WITH:
            return starting_with(*operands)
        case Comparison.NOT_STARTS_WITH:
            begun = starting_with(*operands)
            return None if begun is None else begun.complement()
        case _ if comparison in PATTERNS:
            found = PATTERNS[comparison](*operands, length_max=length_max)
            return None if found is None else found.superset
        case _:
            unwanted = PATTERNS[OPERATORS[comparison].negated](*operands)
            return None if unwanted is None or not unwanted.exact else unwanted.superset.complement()
