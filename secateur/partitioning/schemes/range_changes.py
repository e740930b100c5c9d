"""The ranges that ALTER TABLE adds or drops, or interval partitioning makes on demand: functions from scheme to scheme.

The changes of one statement are applied one after the other, and none takes effect unless the last one succeeds. A
dropped range's ordinal and block of ids stay reserved and an added range gets the next ordinal, so no other partition
ever moves.

Source: Apache Kudu, ALTER TABLE ADD / DROP RANGE PARTITION. KUDU-1750 dropped a range of which only one bound matched;
    here a range is dropped only if everything given about it matches.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, assert_never

from msgspec.structs import replace

from secateur.errors import LimitExceededError, ProgrammingError
from secateur.partitioning.schemes.components import (
    Bound,
    RangeComponent,
    RangePartition,
    RetiredRange,
    by_lower_bound,
    earlier,
    later,
)
from secateur.partitioning.schemes.layout import bucket_product, gaps_between
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.schemes.scheme_rules import PARTITIONS_MAX, RangeSpec, SchemeRules
from secateur.partitioning.types.column_type import SqlType

_SHOWN_MAX: Final = 10
_CELLS_MAX: Final = 10_000
"""The most ranges that one write may make: more look like wrong values in the column, such as seconds where
milliseconds are meant.
"""


@dataclass(frozen=True, slots=True)
class AddRange:
    """``ADD <range>``: the range gets the next ordinal."""

    spec: RangeSpec


@dataclass(frozen=True, slots=True)
class DropNamed:
    """``DROP PARTITION name``."""

    name: str


@dataclass(frozen=True, slots=True)
class DropRange:
    """``DROP <range>``: both bounds must match exactly, and the name and the hash components where they are given."""

    spec: RangeSpec


RangeChange: TypeAlias = AddRange | DropNamed | DropRange


def alter_ranges(
    scheme: PartitionScheme,
    changes: Sequence[RangeChange],
    *,
    types: Mapping[str, SqlType],
    primary_key: Sequence[str],
    table: str,
) -> PartitionScheme:
    """Add and drop ranges in the order given: all of them, or none and an error.

    ``types`` has every column of the table, by its name as declared.

    Returns:
        The scheme afterwards. Cost: linear in the ranges.

    Raises:
        SchemeError: The table has no range component, an added range overlaps a live one or repeats its name, or a
            dropped one does not exist.
    """
    rules = SchemeRules(table, types, primary_key)
    if scheme.range is None:
        raise rules.error("it has no range component to add to or drop from")
    component = scheme.range
    for change in changes:
        match change:
            case AddRange(spec):
                component = _added(component, spec, rules)
            case DropNamed(name):
                component = _without(component, _named(component, name, rules), scheme)
            case DropRange(spec):
                component = _without(component, _exactly(component, spec, scheme, rules), scheme)
            case _:
                assert_never(change)
    return rules.finish(PartitionScheme(scheme.hashes, component, function=scheme.function, group=scheme.group))


def _added(component: RangeComponent, spec: RangeSpec, rules: SchemeRules) -> RangeComponent:
    added = replace(rules.range(spec, component.columns), ordinal=component.ordinals_used)
    if not spec.is_catch_all:
        changed = replace(component, ranges=tuple(sorted((*component.ranges, added), key=by_lower_bound)))
    elif component.every is not None and component.every.start is None:
        raise rules.error("with EVERY each row has a range, so a DEFAULT PARTITION would stay empty")
    elif component.catch_all is None:
        changed = replace(component, catch_all=added)
    else:
        raise rules.error("it has a DEFAULT PARTITION already")
    rules.disjoint(changed)
    return changed


def _without(component: RangeComponent, gone: RangePartition, scheme: PartitionScheme) -> RangeComponent:
    retired = RetiredRange(gone.ordinal, bucket_product(scheme.hashes if gone.hashes is None else gone.hashes))
    return replace(
        component,
        ranges=tuple(r for r in component.ranges if r.ordinal != gone.ordinal),
        retired=tuple(sorted((*component.retired, retired), key=lambda r: r.ordinal)),
        catch_all=(
            None if component.catch_all is None or component.catch_all.ordinal == gone.ordinal else component.catch_all
        ),
    )


def _named(component: RangeComponent, name: str, rules: SchemeRules) -> RangePartition:
    for partition in component.partitions:
        if partition.name is not None and partition.name.casefold() == name.casefold():
            return partition
    raise rules.error(f"no range named {name}; {_described(component)}")


def _exactly(component: RangeComponent, spec: RangeSpec, scheme: PartitionScheme, rules: SchemeRules) -> RangePartition:
    wanted = rules.range(spec, component.columns)
    candidates = (
        [component.catch_all]
        if spec.is_catch_all
        else [r for r in component.ranges if (r.lower, r.upper) == (wanted.lower, wanted.upper)]
    )
    found = candidates[0] if candidates else None
    if found is None:
        what = "DEFAULT PARTITION" if spec.is_catch_all else f"range with exactly the bounds {wanted}"
        raise rules.error(f"no {what}; {_described(component)}")
    if wanted.name is not None and wanted.name.casefold() != (found.name or "").casefold():
        raise rules.error(
            f"the range {found} is named {found.name or 'nothing'}, not {wanted.name}; nothing was dropped"
        )
    if wanted.hashes is not None and wanted.hashes != (scheme.hashes if found.hashes is None else found.hashes):
        raise rules.error(f"the range {found} has other hash components than those given; leave them out to drop it")
    return found


def _described(component: RangeComponent) -> str:
    texts = [f"{r.name}: {r}" if r.name else str(r) for r in component.ranges[:_SHOWN_MAX]]
    if len(component.ranges) > _SHOWN_MAX:
        texts.append(f"{len(component.ranges) - _SHOWN_MAX} more")
    if component.catch_all is not None:
        texts.append(f"DEFAULT PARTITION {component.catch_all.name or ''}".rstrip())
    return f"it has {', '.join(texts) or 'none'}"


def with_cells(scheme: PartitionScheme, cells: Collection[int], *, table: str) -> PartitionScheme:
    """Return the scheme with ranges for the parts of some cells that no range holds. No other partition's id changes.

    The scheme has a range component with EVERY, whose cells these are (see
    :meth:`~secateur.partitioning.schemes.components.IntervalPartitioning.cells_of`).

    Returns:
        The same object when every cell is covered already, so the call is idempotent. Cost: linear in the ranges.

    Raises:
        ProgrammingError: The table makes no ranges on demand.
        LimitExceededError: Too many cells at once, or more partitions than a table may have.
    """
    component = scheme.range
    if component is None or component.every is None:
        raise ProgrammingError(f"table {table} makes no ranges on demand: it was created without EVERY", table=table)
    if len(cells) > _CELLS_MAX:
        raise LimitExceededError(
            f"table {table}: the rows need {len(cells):,} new ranges at once, at most {_CELLS_MAX:,} are made; if the"
            " values are right, load in several steps, or choose a wider EVERY",
            limit="ranges",
        )
    (column,) = component.columns
    type_ = scheme.type_of(column)
    every = component.every
    gaps = gaps_between(component.ranges)
    ends = [upper for _, upper in gaps if upper is not None]
    found: list[tuple[Bound, Bound]] = []
    for cell in sorted(cells):
        first, behind = every.bounds(cell, type_)
        lower, upper = _key(first), _key(behind)
        if (lower is None and upper is None) or (every.start is not None and cell < 0):
            continue
        # From the first gap that ends behind the beginning of the cell to the last that begins before its end.
        for gap_lower, gap_upper in gaps[0 if lower is None else bisect_right(ends, lower) :]:
            if upper is not None and gap_lower is not None and gap_lower >= upper:
                break
            found.append((later(lower, gap_lower), earlier(upper, gap_upper)))
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


def _key(value: Any | None) -> Bound:
    return None if value is None else (value,)
