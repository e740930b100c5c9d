"""Adds the ranges that interval partitioning makes on demand, as a pure function from scheme to scheme."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection
from typing import Any, Final

from msgspec.structs import replace

from secateur.errors import LimitExceededError, ProgrammingError
from secateur.partitioning.schemes.components import RangePartition
from secateur.partitioning.schemes.layout import gaps_between
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.schemes.scheme_rules import PARTITIONS_MAX, by_lower_bound

CELLS_MAX: Final = 10_000
"""The most ranges that one write may make: more look like wrong values in the column, such as seconds where
milliseconds are meant.
"""


def with_cells(scheme: PartitionScheme, cells: Collection[int], *, table: str) -> PartitionScheme:
    """Return the scheme with ranges for the parts of some cells that no range holds. No other partition's id changes.

    Args:
        scheme: Has a range component with EVERY.
        cells: Numbers of cells (see :meth:`~secateur.partitioning.schemes.interval.IntervalPartitioning.cells_of`).
        table: Its name, for messages.

    Returns:
        The same object when every cell is covered already, so the call is idempotent. Cost: linear in the ranges.

    Raises:
        ProgrammingError: The table makes no ranges on demand.
        LimitExceededError: Too many cells at once, or more partitions than a table may have.
    """
    component = scheme.range
    if component is None or component.every is None:
        raise ProgrammingError(f"table {table} makes no ranges on demand: it was created without EVERY", table=table)
    if len(cells) > CELLS_MAX:
        raise LimitExceededError(
            f"table {table}: the rows need {len(cells):,} new ranges at once, at most {CELLS_MAX:,} are made; if the"
            " values are right, load in several steps, or choose a wider EVERY",
            limit="ranges",
        )
    (column,) = component.columns
    type_ = scheme.type_of(column)
    every = component.every
    gaps = gaps_between(component.ranges)
    ends = [upper for _, upper in gaps if upper is not None]
    found: list[tuple[_Bound, _Bound]] = []
    for cell in sorted(cells):
        first, behind = every.bounds(cell, type_)
        lower, upper = _key(first), _key(behind)
        if (lower is None and upper is None) or (every.start is not None and cell < 0):
            continue
        # From the first gap that ends behind the beginning of the cell to the last that begins before its end.
        for gap_lower, gap_upper in gaps[0 if lower is None else bisect_right(ends, lower) :]:
            if upper is not None and gap_lower is not None and gap_lower >= upper:
                break
            found.append((_later(lower, gap_lower), _earlier(upper, gap_upper)))
    if not found:
        return scheme
    next_ordinal = component.ordinals_used
    made = [RangePartition(next_ordinal + position, lower, upper) for position, (lower, upper) in enumerate(found)]
    ranges = tuple(sorted((*component.ranges, *made), key=by_lower_bound))
    # The reference names the scheme as it was: under it, every holder of the table would go on with the old ranges.
    changed = replace(scheme, range=replace(component, ranges=ranges), reference=None)
    if changed.partition_count > PARTITIONS_MAX:
        raise LimitExceededError(
            f"table {table} would have {changed.partition_count:,} partitions, dropped ranges included; the most is"
            f" {PARTITIONS_MAX:,}: create it anew with a wider EVERY or fewer buckets",
            limit="partitions",
        )
    return changed


_Bound = tuple[Any, ...] | None


def _key(value: Any | None) -> _Bound:
    return None if value is None else (value,)


def _later(left: _Bound, right: _Bound) -> _Bound:
    return left if right is None or (left is not None and left >= right) else right


def _earlier(left: _Bound, right: _Bound) -> _Bound:
    return left if right is None or (left is not None and left <= right) else right
