"""What the predicates say about the primary key of one scan, for the search in its sorted partitions.

The predicates are read as for pruning, into boxes, but over all primary-key columns. That is a reading of its own: columns behind the partitioning key would
make more boxes of one predicate, and the tree of partitions must not be less exact for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from secateur.engine.key_search import KeyOperand, KeySearch
from secateur.partitioning.comparison import Comparison
from secateur.partitioning.condition import Choice, Constant, Constraint, Operand, Parameter, Test
from secateur.partitioning.key_bounds import KeyBounds
from secateur.partitioning.subject import Bare
from secateur.partitioning.table import TableDef
from secateur.planner.bounds import Boxes
from secateur.planner.constants import operand_of
from secateur.planner.predicate import PredicateReader
from secateur.planner.scope import Scope

__all__ = ["KeyReader", "key_search"]


@dataclass(frozen=True, slots=True)
class KeyReader:
    """Reads the predicates of one scan over its primary-key columns.

    Attributes:
        further: The primary-key columns that do not partition.
    """

    scope: Scope
    further: frozenset[str]
    _reader: PredicateReader

    @classmethod
    def of(cls, table: TableDef, scope: Scope) -> KeyReader:
        types = {name: table.column(name).type for name in table.primary_key}
        return cls(scope, frozenset(types) - frozenset(table.scheme.columns), PredicateReader(types, scope.column_of, null_extended=False))

    def read(self, conjunct: exp.Expr, boxes: Boxes) -> Boxes:
        """The boxes of a conjunct; ``boxes`` are those over the partitioning columns, which are the same when it mentions no further column."""
        if self.further and any(self.scope.column_of(column) in self.further for column in conjunct.find_all(exp.Column)):
            return self._reader.read(conjunct)
        return boxes


def key_search(table: TableDef, scope: Scope, factors: Sequence[Boxes], *, whole: bool) -> KeySearch:
    """The search that follows from a conjunction of unions of boxes over the primary-key columns.

    Args:
        table: The table.
        scope: All conjuncts of the scan.
        factors: What those of them say that may be used.
        whole: Whether all may be used.
    """
    prefix = _prefix(table, factors[0]) if len(factors) == 1 else None
    if prefix is not None:
        return KeySearch(prefix, decides=whole and _equal_columns(table, scope) == sorted(table.primary_key[: len(prefix)]))
    types = [(name, table.column(name).type) for name in table.primary_key]
    return KeySearch(bounds=KeyBounds.of(types, factors))


def _prefix(table: TableDef, boxes: Boxes) -> tuple[KeyOperand, ...] | None:
    """The equalities on leading columns that a union of boxes is; None when it is anything else."""
    if len(boxes) != 1:
        return None
    prefix = []
    for name in table.primary_key[: len(boxes[0].constraints)]:
        operand = _only_operand(boxes[0][name])
        if operand is None:
            return None
        prefix.append(KeyOperand(operand, table.column(name).type))
    return tuple(prefix)


def _only_operand(constraint: Constraint) -> Operand | None:
    """What a column must equal, when that is all that is said about it."""
    match constraint:
        case Constraint((Choice(domain, ()),)) if domain.is_finite and len(domain.points) == 1:
            (value,) = domain.points
            return Constant(value)
        case Constraint((Choice(domain, (Test(Comparison.IN, (Parameter() as parameter,), Bare()),)),)) if domain.is_nothing:
            return parameter
        case _:
            return None


def _equal_columns(table: TableDef, scope: Scope) -> list[str] | None:
    """The primary-key columns that the conjuncts equate, sorted, one entry for each conjunct; None when a conjunct says something else."""
    names = frozenset(table.primary_key)
    columns = [_equal_column(conjunct, scope, names) for conjunct in scope.conjuncts]
    return None if None in columns else sorted(column for column in columns if column is not None)


def _equal_column(conjunct: exp.Expr, scope: Scope, names: frozenset[str]) -> str | None:
    """The column of a conjunct ``column = operand``."""
    if not isinstance(conjunct, exp.EQ):
        return None
    left, right = conjunct.this.unnest(), conjunct.expression.unnest()
    for side, other in ((left, right), (right, left)):
        column = scope.column_of(side) if isinstance(side, exp.Column) else None
        if column in names:
            return None if operand_of(other) is None else column
    return None
