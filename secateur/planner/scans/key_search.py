"""Primary-key search: the key ranges of one scan, for the search in its sorted partitions.

Predicates are read as for pruning, into boxes, but over all primary-key columns. This needs a separate reading: columns
after the partitioning key would make more boxes of one predicate, and the partition tree must not become coarser
because of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace
from sqlglot import exp

from secateur.engine.sql.key_search import DirectSearch, KeyEnd, KeyOperand, KeySearch
from secateur.partitioning.pruning.comparison import Comparison
from secateur.partitioning.pruning.comparison_target import BareColumn
from secateur.partitioning.pruning.condition import Box, Choice, Constraint, ParameterComparison
from secateur.partitioning.pruning.domain import Domain
from secateur.partitioning.pruning.key_bounds import KeyBounds
from secateur.partitioning.pruning.operand import Constant, Operand, ParameterList
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.column_type import SqlType
from secateur.planner.predicates.bounds import Boxes
from secateur.planner.predicates.predicate import PredicateReader
from secateur.planner.scans.scan_predicates import ScanPredicates

_CHOICES_MAX: Final = 64
"""Values of an IN list that are searched for one by one, without being put in order first."""


@dataclass(frozen=True, slots=True)
class KeyReader:
    """Reads the predicates of one scan over its primary-key columns.

    Attributes:
        further: The primary-key columns that do not partition.
    """

    scope: ScanPredicates
    further: frozenset[str]
    _reader: PredicateReader

    @classmethod
    def of(cls, table: TableDef, scope: ScanPredicates) -> KeyReader:
        types = {name: table.column(name).type for name in table.primary_key}
        reader = PredicateReader(types, scope.column_of, never_null=table.never_null)
        return cls(scope, frozenset(types) - frozenset(table.scheme.columns), reader)

    def read(self, conjunct: exp.Expr, boxes: Boxes) -> Boxes:
        """Return the boxes of a conjunct.

        ``boxes`` are those over the partitioning columns, which are the same if it names no further column.
        """
        if self.further and any(
            self.scope.column_of(column) in self.further for column in conjunct.find_all(exp.Column)
        ):
            return self._reader.read(conjunct)
        return boxes

    def close(self, boxes: Boxes, conjuncts: Sequence[exp.Expr]) -> Boxes:
        """Return a conjunction's bounds on the primary key, when ``boxes`` hold all rows that pass it."""
        return self._reader.close(boxes, conjuncts)


def key_search(table: TableDef, scope: ScanPredicates, factors: Sequence[Boxes], *, whole: bool) -> KeySearch:
    """The search that follows from a conjunction of unions of boxes over the primary-key columns.

    Args:
        table: The table.
        scope: All conjuncts of the scan.
        factors: The bounds of those that may be used.
        whole: Whether all may be used, and each sets bounds.
    """
    types = [(name, table.column(name).type) for name in table.primary_key]
    bounds = KeyBounds.of(types, factors)
    if bounds is None or len(factors) != 1 or len(factors[0]) != 1:
        return KeySearch(bounds)
    direct = direct_search(types, factors[0][0])
    if direct is not None and whole and all(is_key_comparison(conjunct, scope, table) for conjunct in scope.conjuncts):
        direct = replace(direct, decides=True)
    return KeySearch(bounds, direct)


def direct_search(types: Sequence[tuple[str, SqlType]], box: Box) -> DirectSearch | None:
    """A box that is equalities on leading columns and at most one span or list behind them; None for anything else."""
    prefix: list[KeyOperand] = []
    leading = types[: len(box.constraints)]
    if {name for name, _ in leading} != {name for name, _ in box.constraints}:
        return None
    for name, column_type in leading:
        operand = _only_operand(box[name])
        if operand is None:
            if len(prefix) + 1 < len(box.constraints):
                return None
            choices = _choices(box[name], column_type)
            if choices:
                return DirectSearch(tuple(prefix), choices=choices)
            ends = _ends(box[name], column_type)
            return None if ends is None else DirectSearch(tuple(prefix), *ends)
        prefix.append(KeyOperand(operand, column_type))
    return DirectSearch(tuple(prefix))


def _only_operand(constraint: Constraint) -> Operand | None:
    """Return the operand that a column must equal, if the constraint consists of that alone."""
    match constraint:
        case Constraint((Choice(domain, ()),)) if domain.is_finite and len(domain.points) == 1:
            (value,) = domain.points
            return Constant(value)
        case Constraint((Choice(domain, (ParameterComparison(Comparison.IN, (operand,), BareColumn()),)),)) if (
            domain.is_nothing and not isinstance(operand, ParameterList)
        ):
            return operand
        case _:
            return None


def _choices(constraint: Constraint, column_type: SqlType) -> tuple[KeyOperand, ...]:
    """The values that a column may have, if the constraint is a short list of them alone; else nothing."""
    match constraint:
        case Constraint((Choice(domain, tests),)) if domain.is_finite and len(domain.points) <= _CHOICES_MAX:
            # In order: equal plans have equal bytes in all processes.
            operands: list[Operand] = [Constant(value) for value in sorted(domain.points)]
        case _:
            return ()
    for test in tests:
        if test.comparison is not Comparison.IN or not isinstance(test.comparison_target, BareColumn):
            return ()
        for operand in test.operands:
            if isinstance(operand, ParameterList):
                return ()
            operands.append(operand)
    return tuple(KeyOperand(operand, column_type) for operand in operands) if len(operands) <= _CHOICES_MAX else ()


def _ends(constraint: Constraint, column_type: SqlType) -> tuple[KeyEnd | None, KeyEnd | None] | None:
    """Return the two ends of the one span that a constraint leaves.

    None when it leaves several, or an end is the tighter of two.
    """
    lower: list[KeyEnd] = []
    upper: list[KeyEnd] = []
    for choice in constraint.choices:
        match choice:
            case Choice(Domain(values, (span,)), ()) if not values:
                if span.lower is not None:
                    lower.append(KeyEnd(KeyOperand(Constant(span.lower), column_type), span.lower_closed))
                if span.upper is not None:
                    upper.append(KeyEnd(KeyOperand(Constant(span.upper), column_type), span.upper_closed))
            case Choice(domain, (ParameterComparison(comparison, operands, BareColumn()),)) if domain.is_nothing:
                ends = [
                    KeyOperand(operand, column_type) for operand in operands if not isinstance(operand, ParameterList)
                ]
                match comparison, ends:
                    case ((Comparison.GREATER | Comparison.GREATER_EQUAL), [low]):
                        lower.append(KeyEnd(low, comparison is Comparison.GREATER_EQUAL))
                    case ((Comparison.LESS | Comparison.LESS_EQUAL), [high]):
                        upper.append(KeyEnd(high, comparison is Comparison.LESS_EQUAL))
                    case Comparison.BETWEEN, [low, high]:
                        lower.append(KeyEnd(low, closed=True))
                        upper.append(KeyEnd(high, closed=True))
                    case _:
                        return None
            case _:
                return None
    if len(lower) > 1 or len(upper) > 1:
        return None
    return lower[0] if lower else None, upper[0] if upper else None


def is_key_comparison(conjunct: exp.Expr, scope: ScanPredicates, table: TableDef) -> bool:
    """Whether a conjunct compares a primary-key column with operands, so that its boxes represent it completely."""
    match conjunct:
        case exp.EQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            sides = [conjunct.this, conjunct.expression]
        case exp.Between() if not conjunct.args.get("symmetric"):
            sides = [conjunct.this]
        case exp.In(expressions=[_, *_]) if not (conjunct.args.get("query") or conjunct.args.get("unnest")):
            sides = [conjunct.this]
        case _:
            return False
    bare = [side for side in (side.unnest() for side in sides) if isinstance(side, exp.Column)]
    return (
        len(bare) == 1
        and scope.column_of(bare[0]) in table.primary_key
        and sum(1 for _ in conjunct.find_all(exp.Column)) == 1
    )
