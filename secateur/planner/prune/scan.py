"""From the conjuncts on one scan to its partitions and the search in them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from secateur.partitioning.pruning.nodes import All, Everywhere, Nothing, intersect, unite
from secateur.partitioning.pruning.select_partitions import (
    COMBINATIONS_PER_PARTITION,
    UnprunedComponent,
    combination_limit,
)
from secateur.partitioning.pruning.tree import PartitionTree
from secateur.partitioning.tables.table import TableDef
from secateur.planner.prune.bounds import NOWHERE, UNBOUNDED, Boxes, multiply
from secateur.planner.prune.index_search import index_search
from secateur.planner.prune.key_search import is_key_comparison, key_search, read_keys
from secateur.planner.prune.partition_nodes import at_binding, box_node
from secateur.planner.prune.predicate import PredicateReader
from secateur.planner.prune.reasons import why_not_pruned
from secateur.planner.prune.scan_bounds import ScanBounds
from secateur.planner.prune.scan_columns import ScanColumns
from secateur.planner.tree import expressions as ex


def bound_scan(
    table: TableDef,
    names: Sequence[str],
    conjuncts: Sequence[ex.AnyExpression],
    *,
    local: frozenset[int],
    notes: Sequence[str] = (),
    is_whole: bool = True,
    others: Sequence[str] = (),
    combinations_per_partition: int = COMBINATIONS_PER_PARTITION,
    integers: frozenset[int] = frozenset(),
) -> ScanBounds:
    """The bounds of a scan.

    Args:
        table: The table.
        names: The name of the column that each input column is; those behind them are other tables' columns.
        conjuncts: What certainly holds for the rows of the scan that the statement needs.
        local: The indexes of those that the user wrote about this scan alone.
        notes: Why other predicates about the key do not reach the scan, in the user's terms.
        others: The names of other tables' columns in the conjuncts, for messages.
        is_whole: Whether these are all predicates of the statement on the scan.
        combinations_per_partition: As in :class:`~secateur.planner.plan_settings.PlanSettings`.
        integers: The indexes of the parameters that are integers in every execution.
    """
    scheme, columns = table.scheme, ScanColumns.of(table, names, others)
    reader = PredicateReader(dict(scheme.types), columns, integers)
    read = reader.read_conjuncts(conjuncts)
    keys_reader, keys_read = read_keys(table, reader, conjuncts, read)
    factors = _with_other_columns(table, columns, conjuncts, integers) or tuple(
        reader.close(boxes, conjuncts) for boxes in multiply(read)
    )
    key_factors = tuple(keys_reader.close(boxes, conjuncts) for boxes in multiply(keys_read))
    decisive = [
        boxes != UNBOUNDED and is_key_comparison(each, table, columns)
        for each, boxes in zip(conjuncts, keys_read, strict=True)
    ]
    keys = key_search(table, key_factors, is_complete=is_whole and all(decisive))
    if keys.bounds is None:
        keys = replace(keys, index=index_search(table, columns, conjuncts))
    # Of a list of keys, only few rows are found without the filter.
    is_searched = keys.direct is not None and not keys.direct.choices
    residual = tuple(
        index for index in range(len(conjuncts)) if index in local and not (is_searched and decisive[index])
    )
    total, limit = scheme.live_partition_count, combination_limit(scheme, combinations_per_partition)
    if table.replicated:
        return ScanBounds((), PartitionTree(table.name, scheme, Everywhere(), total, limit), keys, None, residual)
    overflows: list[UnprunedComponent] = []
    nodes = [[box_node(box, scheme, total, limit, overflows) for box in boxes] for boxes in factors]
    root = Nothing() if NOWHERE in key_factors else intersect(map(unite, nodes))
    reason = None
    if isinstance(root, All):
        reason = why_not_pruned(table, factors, [*notes, *reader.notes], overflows)
    if not isinstance(root, Nothing):
        root = intersect(map(unite, at_binding(factors, nodes, dict(scheme.types))))
    return ScanBounds(factors, PartitionTree(table.name, scheme, root, total, limit), keys, reason, residual)


def _with_other_columns(
    table: TableDef, columns: ScanColumns, conjuncts: Sequence[ex.AnyExpression], integers: frozenset[int]
) -> tuple[Boxes] | None:
    """The bounds on the partitioning key, where predicates on other columns may contradict each other.

    ``v = 1 AND v = 2`` is never TRUE, and ``(a = 1 AND v IS NULL OR a = 2 AND v = 3) AND v > 1`` is ``a = 2``. None if
    no other column is named twice, or the predicates have too many alternatives.
    """
    named = columns.named_in(conjuncts)
    others = {
        name: columns.types[name] for name, count in named.items() if count > 1 and name not in table.scheme.columns
    }
    if not others:
        return None
    reader = PredicateReader(dict(table.scheme.types), columns, integers)
    found = multiply(reader.read_with(conjuncts, others))
    return (reader.close(found[0], conjuncts),) if len(found) == 1 else None
