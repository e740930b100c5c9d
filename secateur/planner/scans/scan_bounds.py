"""The bounds that predicates set on the keys of one scan, and the partition tree that follows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace
from sqlglot import exp

from secateur.engine.sql.key_search import KeySearch
from secateur.partitioning.pruning.comparison import OPERATORS
from secateur.partitioning.pruning.condition import Box, Choice, Constraint
from secateur.partitioning.pruning.nodes import All, Everywhere, Keys, Node, Nothing, Partitions, intersect, unite
from secateur.partitioning.pruning.select_partitions import (
    COMBINATIONS_PER_PARTITION,
    UnprunedComponent,
    combination_limit,
    select_partitions,
)
from secateur.partitioning.pruning.tree import PartitionTree
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.planner.binding.query import TableReference
from secateur.planner.predicates.bounds import NOWHERE, UNBOUNDED, Boxes, multiply
from secateur.planner.predicates.predicate import PredicateReader
from secateur.planner.scans.index_search import index_search
from secateur.planner.scans.key_search import KeyReader, is_key_comparison, key_search
from secateur.planner.scans.scan_predicates import ScanPredicates

_DENSE: Final = frozenset({TypeKind.VARCHAR, TypeKind.BLOB})
"""Between two values of these there may be endlessly many."""
_RANGES_LOOKED_AT_MAX: Final = 256
_TRIED_MAX: Final = 16
"""Alternatives of a predicate that hardly ever prunes, evaluated at each binding all the same: some microseconds each.
"""
_SMALL: Final = frozenset({TypeKind.BOOLEAN, TypeKind.TINYINT, TypeKind.UTINYINT})


@dataclass(frozen=True, slots=True)
class ScanBounds:
    """The key bounds of one scan.

    Attributes:
        factors: A conjunction of unions of boxes over the partitioning columns; usually one union.
        tree: The partitions that follow.
        keys: The search in the sorted partitions that follows.
        reason: The prune reason, or None.
        residual: Which of the conjuncts of the scan the user wrote about it and the search does not answer completely:
            they are tested on the rows that it finds.
    """

    factors: tuple[Boxes, ...]
    tree: PartitionTree
    keys: KeySearch
    reason: str | None
    residual: tuple[int, ...] = ()


def bound_scan(
    scan: TableReference,
    scope: ScanPredicates,
    combinations_per_partition: int = COMBINATIONS_PER_PARTITION,
    integers: frozenset[int] = frozenset(),
) -> ScanBounds:
    """The bounds of a scan.

    Args:
        scan: The scan.
        scope: The conjuncts for it.
        combinations_per_partition: As in :class:`~secateur.planner.plan_settings.PlanSettings`.
        integers: The indexes of the parameters that are integers in every execution.
    """
    table, scheme = scan.table, scan.table.scheme
    if scan.external is not None:
        anywhere = PartitionTree(
            table.name, scheme, Everywhere(), scheme.live_partition_count, combination_limit(scheme)
        )
        written = set(map(id, scope.local))
        residual = tuple(index for index, conjunct in enumerate(scope.conjuncts) if id(conjunct) in written)
        return ScanBounds((), anywhere, KeySearch(), None, residual)
    columns = {column.name: column.type for column in table.columns}
    reader = PredicateReader(dict(scheme.types), scope.column_of, columns, table.never_null, integers)
    key_reader = KeyReader.of(table, scope)
    read = reader.read_conjuncts(scope.conjuncts)
    read_keys = [key_reader.read(conjunct, boxes) for conjunct, boxes in zip(scope.conjuncts, read, strict=True)]
    factors = _with_other_columns(table, scope, integers) or tuple(
        reader.close(boxes, scope.conjuncts) for boxes in multiply(read)
    )
    key_factors = tuple(key_reader.close(boxes, scope.conjuncts) for boxes in multiply(read_keys))
    keys = key_search(table, scope, key_factors, whole=scope.whole and UNBOUNDED not in read_keys)
    if keys.bounds is None:
        keys = replace(keys, index=index_search(table, scope))
    written = set(map(id, scope.local))
    # Of a list of keys, only few rows are found without the filter.
    is_searched = keys.direct is not None and not keys.direct.choices
    residual = tuple(
        index
        for index, (conjunct, boxes) in enumerate(zip(scope.conjuncts, read_keys, strict=True))
        if id(conjunct) in written
        and not (is_searched and boxes != UNBOUNDED and is_key_comparison(conjunct, scope, table))
    )
    total, limit = scheme.live_partition_count, combination_limit(scheme, combinations_per_partition)
    if table.replicated:
        return ScanBounds((), PartitionTree(table.name, scheme, Everywhere(), total, limit), keys, None, residual)
    overflows: list[UnprunedComponent] = []
    nodes = [[box_node(box, scheme, total, limit, overflows) for box in boxes] for boxes in factors]
    root = Nothing() if NOWHERE in key_factors else intersect(map(unite, nodes))
    reason = None
    if isinstance(root, All):
        reason = _reason(table, scope, factors, [*scope.notes, *reader.notes], overflows)
    if not isinstance(root, Nothing):
        root = intersect(map(unite, _at_binding(factors, nodes, dict(scheme.types))))
    return ScanBounds(factors, PartitionTree(table.name, scheme, root, total, limit), keys, reason, residual)


def _with_other_columns(table: TableDef, scope: ScanPredicates, integers: frozenset[int]) -> tuple[Boxes] | None:
    """The bounds on the partitioning key, where predicates on other columns may contradict each other.

    ``v = 1 AND v = 2`` is never TRUE, and ``(a = 1 AND v IS NULL OR a = 2 AND v = 3) AND v > 1`` is ``a = 2``. None if
    no other column is named twice, or the predicates have too many alternatives.
    """
    columns = {column.name: column.type for column in table.columns}
    named = Counter(scope.column_of(node) for conjunct in scope.conjuncts for node in conjunct.find_all(exp.Column))
    others = {
        name: columns[name]
        for name, count in named.items()
        if count > 1 and name in columns and name not in table.scheme.columns
    }
    if not others:
        return None
    reader = PredicateReader(dict(table.scheme.types), scope.column_of, columns, table.never_null, integers)
    found = multiply(reader.read_with(scope.conjuncts, others))
    return (reader.close(found[0], scope.conjuncts),) if len(found) == 1 else None


def overflow_reason(overflow: UnprunedComponent) -> str:
    """An overflow in words."""
    columns = ", ".join(overflow.component.columns)
    if overflow.combinations is None:
        return (
            f"the range of ({columns}) has more values than the limit of {overflow.limit:,}, or values "
            "that cannot be counted: compare with = or IN, or with a narrower range"
        )
    return (
        f"{overflow.combinations:,} combinations of ({columns}) exceed the limit of {overflow.limit:,}: "
        "ask for fewer keys, or raise it with SET combinations_per_partition"
    )


def box_node(box: Box, scheme: PartitionScheme, total: int, limit: int, overflows: list[UnprunedComponent]) -> Node:
    """Return the partitions of a box; components that could not prune are appended to ``overflows``."""
    types = dict(scheme.types)
    if box.is_impossible(types):
        return Nothing()
    useful = _useful_columns(box, scheme, types)
    if not useful:
        return All()
    # The values of the other columns' parameters may contradict each other.
    useful.update(column for members in box.equal if not useful.isdisjoint(members) for column in members)
    box = box.restrict(tuple(types if _is_open(box, types) else useful))
    if not box.is_constant:
        return Keys(box)
    reached = select_partitions(scheme, box.resolve((), types), limit, box.equal)
    overflows.extend(reached.overflows)
    if reached.overflows and len(reached.ids) == total:
        return All()
    return Partitions(tuple(reached.ids)) if reached.ids else Nothing()


def _at_binding(
    factors: Sequence[Boxes], nodes: Sequence[Sequence[Node]], types: dict[str, SqlType]
) -> Sequence[Sequence[Node]]:
    """The nodes of the boxes, with the keys of those that prune only for rare values of their parameters.

    ``a > $1 AND a < $2`` may leave no value, and ``a BETWEEN $1 AND $2`` one. Predicates of many such alternatives are
    not tried at each binding.
    """
    tried = [
        [
            Keys(box.restrict(tuple(types))) if isinstance(node, All) and _is_open(box, types) else node
            for box, node in zip(boxes, given, strict=True)
        ]
        for boxes, given in zip(factors, nodes, strict=True)
    ]
    changed = sum(
        node is not before for new, old in zip(tried, nodes, strict=True) for node, before in zip(new, old, strict=True)
    )
    return nodes if changed > _TRIED_MAX else tried


def _is_open(box: Box, columns: Iterable[str]) -> bool:
    """Whether parameters decide which values of some columns are left, unless they only exclude some."""
    return any(
        not constraint.is_constant and not all(_excludes(choice) for choice in constraint.choices)
        for constraint in (box[column] for column in columns)
    )


def _useful_columns(box: Box, scheme: PartitionScheme, types: dict[str, SqlType]) -> set[str]:
    """Return the columns of the box that can prune: all of a hash component, or a prefix of the range columns.

    A narrow column of a hash component may be free.

    If there are few ranges, each is tested, and a column after the prefix may exclude one between two keys with the
    same prefix.
    """
    useful: set[str] = set()
    for hashes in scheme.hash_lists():
        for component in hashes:
            bound = [column for column in component.columns if box[column].choices]
            free = [column for column in component.columns if column not in bound]
            if (
                bound
                and all(_may_be_finite(box[column], types[column]) or _is_ranged(column, scheme) for column in bound)
                and all(_is_narrow(column, scheme) for column in free)
            ):
                useful.update(bound)
    if scheme.range is not None:
        few = len(scheme.ranges()) <= _RANGES_LOOKED_AT_MAX
        for column in scheme.range.columns:
            if box[column].choices:
                useful.add(column)
            elif not few:
                break
    return useful


def _is_narrow(column: str, scheme: PartitionScheme) -> bool:
    """Whether a column has few values without any predicate: it is BOOLEAN, or each range has few of its values."""
    ranged = (
        scheme.range is not None and column == scheme.range.columns[0] and len(scheme.ranges()) <= _RANGES_LOOKED_AT_MAX
    )
    return ranged or scheme.type_of(column).kind is TypeKind.BOOLEAN


def _is_ranged(column: str, scheme: PartitionScheme) -> bool:
    """Whether few ranges divide the values of a column, so that some of them may have few values that pass."""
    return scheme.range is not None and column in scheme.range.columns and len(scheme.ranges()) <= _RANGES_LOOKED_AT_MAX


def _may_be_finite(constraint: Constraint, column_type: SqlType) -> bool:
    """Whether a constraint can leave few values, once its parameters are bound.

    A constraint that only excludes values can do so where the type has few.
    """
    if any(
        choice.domain.is_finite and all(test.may_name_values for test in choice.tests) for choice in constraint.choices
    ):
        return True
    if column_type.kind in _DENSE:
        return False
    return (
        bool(constraint.choices)
        if column_type.kind in _SMALL
        else not all(_excludes(choice) for choice in constraint.choices)
    )


def _is_endless(column: str, scheme: PartitionScheme, factors: Sequence[Boxes]) -> bool:
    """Whether a hashed column is bound to texts or bytes of some range, such as those with a prefix."""
    hashed = any(column in component.columns for hashes in scheme.hash_lists() for component in hashes)
    constraints = (box[column] for boxes in factors for box in boxes if box[column].choices)
    column_type = scheme.type_of(column)
    return (
        hashed
        and column_type.kind in _DENSE
        and not any(
            _may_be_finite(constraint, column_type) or _excludes_values(constraint) for constraint in constraints
        )
    )


def _excludes_values(constraint: Constraint) -> bool:
    """Whether a constraint leaves values without an end in both directions, as ``<>`` does."""
    return any(
        _excludes(choice)
        or (choice.domain.spans and choice.domain.spans[0].lower is None and choice.domain.spans[-1].upper is None)
        for choice in constraint.choices
    )


def _excludes(choice: Choice) -> bool:
    return any(OPERATORS[test.comparison].excludes for test in choice.tests)


def _reason(
    table: TableDef,
    scope: ScanPredicates,
    factors: Sequence[Boxes],
    notes: Sequence[str],
    overflows: Sequence[UnprunedComponent],
) -> str:
    """Why a scan reads every partition, in words a user can act on."""
    if scope.refusal is not None:
        return scope.refusal
    key = table.scheme.columns
    if not key:
        return "the table has one partition: create it with PARTITION BY to divide it"
    if overflows and (not notes or any(overflow.combinations is not None for overflow in overflows)):
        return "; ".join(dict.fromkeys(overflow_reason(overflow) for overflow in overflows))
    listed = key[0] if len(key) == 1 else f"({', '.join(key)})"
    bound = dict.fromkeys(column for boxes in factors for box in boxes for column, _ in box.constraints)
    texts = list(notes)
    missing = [column for column in key if column not in bound]
    endless = [column for column in bound if _is_endless(column, table.scheme, factors)]
    if endless:
        texts.insert(
            0,
            f"the predicates on {', '.join(endless)} bound a range, but {listed} is hashed:"
            f" compare {', '.join([*endless, *missing])} with = or IN",
        )
    elif bound and missing:
        texts.insert(
            0,
            f"partition key is {listed} but only {', '.join(bound)} {'is' if len(bound) == 1 else 'are'} bound: compare"
            f" {', '.join(missing)} with values as well",
        )
    elif bound and not texts:
        texts.append(
            f"the predicates on {', '.join(bound)} bound a range, but {listed} is hashed: compare with = or IN"
        )
    if not texts:
        texts.append(
            f"no predicate on the partition key {listed}:"
            f" compare {'it' if len(key) == 1 else 'its columns'} with values"
        )
    return "; ".join(texts)
