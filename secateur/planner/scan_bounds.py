"""What the predicates say about the keys of one scan, and the partition tree that follows."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from sqlglot import exp

from secateur.engine.plan import KeyOperand
from secateur.partitioning.comparison import Comparison, compare
from secateur.partitioning.condition import Box, Choice, Constant, Constraint, Parameter
from secateur.partitioning.nodes import All, Everywhere, Keys, Node, Nothing, Partitions, intersect, unite
from secateur.partitioning.reach import Overflow, combination_limit, reach
from secateur.partitioning.scheme import PartitionScheme
from secateur.partitioning.table import TableDef
from secateur.partitioning.tree import PartitionTree
from secateur.partitioning.types import SqlType
from secateur.planner import bounds
from secateur.planner.bounds import UNBOUNDED, Boxes
from secateur.planner.constants import operand_of
from secateur.planner.dialect import to_sql
from secateur.planner.predicate import PredicateReader
from secateur.planner.query import Scan
from secateur.planner.scope import Scope

__all__ = ["ScanBounds", "bound_scan", "overflow_reason"]


@dataclass(frozen=True, slots=True)
class ScanBounds:
    """What is known about the keys of one scan.

    Attributes:
        factors: A conjunction of unions of boxes over the partitioning columns; usually one union.
        tree: The partitions that follow.
        key_prefix: Leading primary-key columns bound by equality.
        reason: Why nothing is pruned, or None.
        key_decides: Whether the conjuncts are these equalities, one for each column of the prefix, and nothing else.
    """

    factors: tuple[Boxes, ...]
    tree: PartitionTree
    key_prefix: tuple[KeyOperand, ...]
    reason: str | None
    key_decides: bool = False


def bound_scan(scan: Scan, scope: Scope, confirmed: Container[str]) -> ScanBounds:
    """The bounds of a scan.

    Args:
        scan: The scan.
        scope: The conjuncts for it.
        confirmed: The texts of conjuncts that may be used.
    """
    table = scan.table
    reader = PredicateReader(dict(table.scheme.types), scope.column_of)
    usable: list[exp.Expr] = []
    read: list[Boxes] = []
    for conjunct in scope.conjuncts:
        boxes = reader.read(conjunct)
        if to_sql(conjunct) in confirmed:
            usable.append(conjunct)
            if boxes != UNBOUNDED:
                read.append(boxes)
        elif boxes != UNBOUNDED:
            reader.notes.append(f"{to_sql(conjunct)} is not read in the same way by DuckDB")
    prefix = _key_prefix(table, scope, usable)
    decides = bool(prefix) and _equal_columns(table, scope, scope.conjuncts) == sorted(table.primary_key[: len(prefix)]) and len(usable) == len(scope.conjuncts)
    total = table.scheme.live_partition_count
    limit = combination_limit(table.scheme)
    if table.replicated:
        return ScanBounds((), PartitionTree(table.name, table.scheme, Everywhere(), total, limit), prefix, None, decides)
    factors = _multiplied(read)
    overflows: list[Overflow] = []
    root = intersect(unite(_box_node(box, table.scheme, total, limit, overflows) for box in boxes) for boxes in factors)
    reason = _reason(table, scope, factors, reader.notes, overflows) if isinstance(root, All) else None
    return ScanBounds(factors, PartitionTree(table.name, table.scheme, root, total, limit), prefix, reason, decides)


def overflow_reason(overflow: Overflow) -> str:
    """An overflow in words."""
    columns = ", ".join(overflow.component.columns)
    if overflow.combinations is None:
        return f"the range of ({columns}) has more values than the limit of {overflow.limit:,}, or values that cannot be counted"
    return f"{overflow.combinations:,} combinations of ({columns}) exceed the limit of {overflow.limit:,}"


def _multiplied(conjuncts: Sequence[Boxes]) -> tuple[Boxes, ...]:
    """The conjunction as few factors: a factor that would grow too large stays apart, and is intersected as a set of partitions."""
    factors: list[Boxes] = []
    for boxes in conjuncts:
        for position, factor in enumerate(factors):
            if bounds.intersect_is_bounded(factor, boxes):
                factors[position] = bounds.intersect(factor, boxes)
                break
        else:
            factors.append(boxes)
    return tuple(factors)


def _box_node(box: Box, scheme: PartitionScheme, total: int, limit: int, overflows: list[Overflow]) -> Node:
    types = dict(scheme.types)
    useful = _useful_columns(box, scheme, types)
    if not useful:
        return All()
    box = box.restrict(tuple(useful))
    if not box.is_constant:
        return Keys(box)
    reached = reach(scheme, box.resolve((), types), limit)
    overflows.extend(reached.overflows)
    if reached.overflows and len(reached.ids) == total:
        return All()
    return Partitions(tuple(reached.ids)) if reached.ids else Nothing()


def _useful_columns(box: Box, scheme: PartitionScheme, types: dict[str, SqlType]) -> set[str]:
    """The columns of the box that can prune: all of a hash component, or a prefix of the range columns."""
    useful: set[str] = set()
    own = [hashes for partition in scheme.ranges() if (hashes := partition.hashes) is not None]
    for hashes in dict.fromkeys((scheme.hashes, *own)):
        for component in hashes:
            if all(_may_be_finite(box[column], types[column]) for column in component.columns):
                useful.update(component.columns)
    if scheme.range is not None:
        for column in scheme.range.columns:
            if not box[column].choices:
                break
            useful.add(column)
    return useful


def _may_be_finite(constraint: Constraint, column_type: SqlType) -> bool:
    """Whether a constraint can leave finitely many values, once its parameters are known."""
    return any(_choice_may_be_finite(choice) for choice in constraint.choices) or (bool(constraint.choices) and not _is_dense(column_type))


def _choice_may_be_finite(choice: Choice) -> bool:
    return choice.domain.is_finite and all(test.comparison is Comparison.IN for test in choice.tests)


def _is_dense(column_type: SqlType) -> bool:
    """Whether between two values of the type there may be endlessly many."""
    return column_type.kind.value in ("VARCHAR", "BLOB")


def _key_prefix(table: TableDef, scope: Scope, conjuncts: Sequence[exp.Expr]) -> tuple[KeyOperand, ...]:
    found: dict[str, KeyOperand] = {}
    for conjunct in conjuncts:
        equality = _equality(conjunct, scope, frozenset(table.primary_key))
        if equality is not None:
            name, operand = equality
            column_type = table.column(name).type
            if isinstance(operand, Parameter) or _is_one_value(operand, column_type):
                found.setdefault(name, KeyOperand(operand, column_type))
    prefix = []
    for name in table.primary_key:
        if name not in found:
            break
        prefix.append(found[name])
    return tuple(prefix)


def _equal_columns(table: TableDef, scope: Scope, conjuncts: Sequence[exp.Expr]) -> list[str] | None:
    """The primary-key columns that the conjuncts equate, sorted, one entry for each conjunct; None when a conjunct says something else."""
    equalities = [_equality(conjunct, scope, frozenset(table.primary_key)) for conjunct in conjuncts]
    return None if None in equalities else sorted(equality[0] for equality in equalities if equality is not None)


def _equality(conjunct: exp.Expr, scope: Scope, names: frozenset[str]) -> tuple[str, Constant | Parameter] | None:
    """``column = operand`` with one of the columns."""
    if not isinstance(conjunct, exp.EQ):
        return None
    left, right = conjunct.this.unnest(), conjunct.expression.unnest()
    for side, other in ((left, right), (right, left)):
        column = scope.column_of(side) if isinstance(side, exp.Column) else None
        if column in names and column is not None:
            operand = operand_of(other)
            return None if operand is None else (column, operand)
    return None


def _is_one_value(operand: Constant, column_type: SqlType) -> bool:
    domain = compare(Comparison.IN, [operand.value], column_type)
    return domain is not None and len(domain.points) == 1


def _reason(table: TableDef, scope: Scope, factors: Sequence[Boxes], notes: Sequence[str], overflows: Sequence[Overflow]) -> str:
    """Why a scan reads every partition, in words a user can act on."""
    if scope.refusal is not None:
        return scope.refusal
    key = table.scheme.columns
    if not key:
        return "the table has one partition"
    if overflows:
        return "; ".join(dict.fromkeys(overflow_reason(overflow) for overflow in overflows))
    listed = key[0] if len(key) == 1 else f"({', '.join(key)})"
    bound = dict.fromkeys(column for boxes in factors for box in boxes for column, _ in box.constraints)
    texts = list(notes)
    missing = [column for column in key if column not in bound]
    if bound and missing:
        texts.insert(0, f"partition key is {listed} but only {', '.join(bound)} {'is' if len(bound) == 1 else 'are'} bound")
    elif bound and not texts:
        texts.append(f"the predicates on {', '.join(bound)} name a range, and {listed} is hashed: compare with = or IN")
    if not texts:
        texts.append(f"no predicate on the partition key {listed}" + ("" if scope.conjuncts else ": the statement has no WHERE clause for it"))
    return "; ".join(texts)
