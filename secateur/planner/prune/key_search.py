"""Key search: the key ranges of one scan, for the search in its sorted partitions, by primary key or by index.

Predicates are read as for pruning, into boxes, but over all primary-key columns. This needs a separate reading: columns
after the partitioning key would make more boxes of one predicate, and the partition tree must not become coarser
because of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from secateur.engine.sql.key_search import DirectSearch, IndexSearch, KeyEnd, KeyOperand, KeySearch
from secateur.partitioning.pruning.comparison import Comparison
from secateur.partitioning.pruning.comparison_target import BARE, BareColumn
from secateur.partitioning.pruning.condition import Box, Choice, Constraint, ParameterComparison
from secateur.partitioning.pruning.domain import Domain
from secateur.partitioning.pruning.key_range import KeyBounds
from secateur.partitioning.pruning.operand import Constant, Operand, ParameterList
from secateur.partitioning.tables.table import IndexDef, TableDef
from secateur.partitioning.types.column_type import SqlType
from secateur.planner.prune.bounds import Boxes, multiply
from secateur.planner.prune.operands import is_free_of_rows
from secateur.planner.prune.predicate import PredicateReader
from secateur.planner.prune.scan_columns import ScanColumns, key_expression
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.comparisons import STRICT

_ORDERS: Final = STRICT - {"COMPARE_NOTEQUAL"}
_CHOICES_MAX: Final = 64
"""Values of an IN list that are searched for one by one, without being put in order first."""


def read_keys(
    table: TableDef,
    reader: PredicateReader,
    conjuncts: Sequence[ex.AnyExpression],
    read: list[Boxes],
) -> tuple[PredicateReader, list[Boxes]]:
    """The boxes of each conjunct over the primary-key columns, and the reader that closes them.

    Both are those of the partitioning columns if the conjuncts name no further column of the key.
    """
    types = {name: table.column(name).type for name in table.primary_key}
    if (types.keys() - reader.types.keys()).isdisjoint(reader.columns.named_in(conjuncts)):
        return reader, read
    further = PredicateReader(types, reader.columns, reader.integers)
    return further, further.read_conjuncts(conjuncts)


def key_search(table: TableDef, factors: Sequence[Boxes], *, is_complete: bool) -> tuple[KeySearch, bool]:
    """The search that follows from a conjunction of unions of boxes over the primary-key columns.

    Args:
        table: The table.
        factors: The bounds of the conjuncts that may be used.
        is_complete: Whether these are all conditions of the statement, and each only compares a column of the key.

    Returns:
        The search, and whether the rows that it finds pass all comparisons of a column of the key.
    """
    types = [(name, table.column(name).type) for name in table.primary_key]
    bounds = KeyBounds.of(types, factors)
    if bounds is None or len(factors) != 1 or len(factors[0]) != 1:
        return KeySearch(bounds), False
    box = factors[0][0]
    direct = direct_search(types, box)
    if direct is None:
        return KeySearch(bounds), False
    # Of ``a = $1 AND a = $2``, it searches by one.
    is_exact = all(len(box[name].choices) == 1 for name, _ in types[: len(direct.prefix)])
    # Of a list of keys, only few rows are found without the filter.
    return KeySearch(bounds, replace(direct, decides=is_complete and is_exact)), is_exact and not direct.choices


def is_key_comparison(conjunct: ex.AnyExpression, table: TableDef, columns: ScanColumns) -> bool:
    """Whether a conjunct compares a primary-key column with operands, so that its boxes represent it completely."""
    match conjunct:
        case ex.Call(type=compared, children=sides) if compared in _ORDERS:
            pass
        case ex.BoundOperation(type="COMPARE_IN", children=sides):
            pass
        case _:
            return False
    keys = [side for side in sides if not is_free_of_rows(side)]
    if len(keys) != 1 or (isinstance(conjunct, ex.BoundOperation) and keys[0] is not sides[0]):
        return False
    found = key_expression(keys[0], columns)
    return found is not None and found.column in table.primary_key and found.comparison_target == BARE


def direct_search(types: Sequence[tuple[str, SqlType]], box: Box) -> DirectSearch | None:
    """A box that is equalities on leading columns and at most one span or list behind them; None for anything else."""
    prefix: list[KeyOperand] = []
    leading = types[: len(box.constraints)]
    if {name for name, _ in leading} != {name for name, _ in box.constraints}:
        return None
    for name, column_type in leading:
        operand = _equal_operand(box[name])
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


def _equal_operand(constraint: Constraint) -> Operand | None:
    """An operand that a column must equal; None if the constraint names none."""
    for choice in constraint.choices:
        match choice:
            case Choice(domain, ()) if domain.is_finite and len(domain.points) == 1:
                (value,) = domain.points
                return Constant(value)
            case Choice(domain, (ParameterComparison(Comparison.IN, (operand,), BareColumn()),)) if (
                domain.is_nothing and not isinstance(operand, ParameterList)
            ):
                return operand
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


def index_search(table: TableDef, columns: ScanColumns, conjuncts: Sequence[ex.AnyExpression]) -> IndexSearch | None:
    """Return the search in the index with the most columns bound by equality.

    An index is searched where predicates do not bound the primary key. They are read as for the key, into boxes over
    the index's columns, some of which may hold NULL. Members leave rows with a NULL in a searched column out of the
    index, so a column that may hold NULL is searched only where every row of the answer must have a value there. A
    search finds a superset of the rows: WHERE is applied to them as to any others.

    None when the predicates bound the first column of no index.
    """
    if not table.indexes or not conjuncts:
        return None
    found = [search for index in table.indexes if (search := _search(table, index, columns, conjuncts)) is not None]
    return max(found, key=lambda one: len(one.search.direct.prefix) if one.search.direct else 0) if found else None


def _search(
    table: TableDef, index: IndexDef, columns: ScanColumns, conjuncts: Sequence[ex.AnyExpression]
) -> IndexSearch | None:
    known = {name: table.column(name).type for name in index.columns}
    reader = PredicateReader.about(known, columns)
    read = multiply([reader.read(conjunct) for conjunct in conjuncts])
    searched = _searched(table, index, read)
    types = [(name, known[name]) for name in searched]
    factors = multiply([tuple(box.restrict(searched) for box in boxes) for boxes in read])
    bounds = KeyBounds.of(types, factors)
    if bounds is None:
        return None
    direct = direct_search(types, factors[0][0]) if len(factors) == 1 and len(factors[0]) == 1 else None
    return IndexSearch(index.name, searched, KeySearch(bounds, direct))


def _searched(table: TableDef, index: IndexDef, factors: Sequence[Boxes]) -> tuple[str, ...]:
    """Return the columns of an index that are searched: those before one that may be NULL in the answer."""
    first, *others = index.columns
    columns = [first]
    for name in others:
        # A box that bounds a column requires that it is not NULL.
        if table.column(name).nullable and not any(all(box[name].choices for box in boxes) for boxes in factors):
            break
        columns.append(name)
    return tuple(columns)
