"""Partition selection: from domains of the partitioning columns to the partitions that can hold such rows.

Every hash component prunes independently when all its columns are finite sets; the range component prunes on any prefix
of its columns. The partitions are the cross product of the buckets that remain, over every range that remains.

Source: Apache Kudu, "Scan Optimization & Partition Pruning" (hash bucket pruning, range pruning); the product of an IN
list is hashed column by column and stops when every bucket is hit, against the memory blow-up of KUDU-3455.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod
from typing import Any, Final

from xxhash import xxh64_intdigest

from secateur.partitioning.pruning.domain import EVERYTHING, Domain, Span, close_spans, enumerate_points, within
from secateur.partitioning.pruning.domain import points as points_of
from secateur.partitioning.schemes.components import HashComponent, RangePartition, earlier, later
from secateur.partitioning.schemes.hashing import first_seed, pmod
from secateur.partitioning.schemes.partial_ranges import KeyInterval, unknown_ranges, wanted_in
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.types.column_type import TypeKind
from secateur.partitioning.types.encoding import scalar_encoder

COMBINATIONS_PER_PARTITION: Final = 8
"""Default cap: hashing more keys than this times the partitions almost surely reaches them all, and only costs time."""

_RANGE_KEYS_MAX: Final = 4096
_SHARED_KEYS_MAX: Final = 1024
_RANGES_TOLD_APART_MAX: Final = 256


@dataclass(frozen=True, slots=True)
class UnprunedComponent:
    """A hash component that was not pruned because its columns have too many combinations of values."""

    component: HashComponent
    combinations: int | None
    limit: int


@dataclass(frozen=True, slots=True)
class PartitionSelection:
    """The partitions that can hold a row of the domains: sorted ids, and the components that could not prune."""

    ids: Sequence[int]
    overflows: tuple[UnprunedComponent, ...] = ()


def combination_limit(scheme: PartitionScheme, per_partition: int = COMBINATIONS_PER_PARTITION) -> int:
    """The number of combinations of values that are hashed before a component counts as not bounded."""
    return per_partition * max(scheme.partition_count, 1)


def select_partitions(
    scheme: PartitionScheme, domains: Mapping[str, Domain], limit: int, equal: Sequence[Sequence[str]] = ()
) -> PartitionSelection:
    """The partitions that rows of the given domains can be in.

    Args:
        scheme: The partition scheme of the table.
        domains: By column; a column that is missing may have any value.
        limit: How many combinations of values to hash per component at most.
        equal: Classes of columns that have equal values in each row. They count if they have few values.

    Returns:
        A superset of the partitions that hold such rows, exact when nothing overflowed and every range of values could
        be counted or compared.
        Cost: linear in the combinations hashed plus the ranges that remain plus the ids returned; ranges that do not
            remain cost a binary search.

    Raises:
        UnknownRangesError: The ranges of some keys of the domains are not known here.
    """
    if equal:
        domains = _equated(domains, equal)
    if any(
        domain.is_nothing or (domain.spans and close_spans(domain, scheme.type_of(column)).is_nothing)
        for column, domain in domains.items()
    ):
        return PartitionSelection(())
    if scheme.partial is not None:
        _check_known(scheme, domains)
    keys = _keys_of_equal(scheme, domains, equal) if equal else _shared_keys(scheme, domains)
    if keys is None:
        return _cross_product(scheme, domains, limit)
    found: set[int] = set()
    overflows: list[UnprunedComponent] = []
    for key in keys:
        reached = _cross_product(scheme, {**domains, **key}, limit)
        found.update(reached.ids)
        overflows.extend(reached.overflows)
    return PartitionSelection(tuple(sorted(found)), tuple(dict.fromkeys(overflows)))


def _equated(domains: Mapping[str, Domain], equal: Sequence[Sequence[str]]) -> dict[str, Domain]:
    """The domains, where each column of a class has the values that all of them may have."""
    found = dict(domains)
    for members in equal:
        common = reduce(Domain.intersect, (domains.get(column, EVERYTHING) for column in members))
        found.update(dict.fromkeys(members, common))
    return found


def _keys_of_equal(
    scheme: PartitionScheme, domains: Mapping[str, Domain], equal: Sequence[Sequence[str]]
) -> list[dict[str, Domain]] | None:
    """Return every combination of values of the classes of equal columns, and of the columns of :func:`_shared_keys`.

    Without the latter if there are too many combinations, and None if there still are.
    """
    classes = [(tuple(members), _values_of_class(scheme, domains, members)) for members in equal]
    known = [(members, values) for members, values in classes if values is not None]
    combinations = prod(len(values) for _, values in known)
    if not known or combinations > _SHARED_KEYS_MAX:
        return _shared_keys(scheme, domains)
    keys = [
        {column: points_of([value]) for (members, _), value in zip(known, key, strict=True) for column in members}
        for key in product(*(values for _, values in known))
    ]
    found: list[dict[str, Domain]] = []
    for key in keys:
        shared = _shared_keys(scheme, {**domains, **key})
        found.extend({**key, **other} for other in shared or ({},))
        if len(found) > _SHARED_KEYS_MAX:
            return keys
    return found


def _values_of_class(
    scheme: PartitionScheme, domains: Mapping[str, Domain], members: Sequence[str]
) -> frozenset[Any] | None:
    """The values of some equal columns, which all their types have; None if there are too many."""
    found = [
        enumerate_points(domains.get(column, EVERYTHING), scheme.type_of(column), _SHARED_KEYS_MAX)
        for column in members
    ]
    known = [values for values in found if values is not None]
    return frozenset.intersection(*known) if len(known) == len(found) else None


def _shared_keys(scheme: PartitionScheme, domains: Mapping[str, Domain]) -> list[dict[str, Domain]] | None:
    """Return every combination of values of the columns that both a range and a hash component depend on.

    None if there are no such columns, or too many combinations.

    The range limits the values that such a column can have in the hash. The two components are not independent, and
    their plain cross product would contain partitions that hold no key.
    """
    if scheme.range is None:
        return None
    hashed = {column for components in scheme.hash_lists() for component in components for column in component.columns}
    shared = [
        column
        for column in scheme.range.columns
        if column in hashed and column in domains and not domains[column].is_everything
    ]
    values = [enumerate_points(domains[column], scheme.type_of(column), _SHARED_KEYS_MAX) for column in shared]
    combinations = prod(len(points) for points in values if points is not None)
    if None in values or not 1 < combinations <= _SHARED_KEYS_MAX:
        return None
    return [
        dict(zip(shared, (points_of([value]) for value in key), strict=True))
        for key in product(*(points for points in values if points is not None))
    ]


def _cross_product(scheme: PartitionScheme, domains: Mapping[str, Domain], limit: int) -> PartitionSelection:
    """:func:`select_partitions`; each range is divided into boxes of keys, in which the components are independent."""
    ranges = scheme.ranges() if scheme.range is None else _ranges_reached(scheme, domains)
    ranged = () if scheme.range is None or len(ranges) > _RANGES_TOLD_APART_MAX else scheme.range.columns
    buckets: dict[HashComponent, frozenset[int] | None] = {}
    overflows: list[UnprunedComponent] = []
    ids: list[int] = []
    for partition in ranges:
        block = scheme.block(partition.ordinal)
        hashes = scheme.hashes if partition.hashes is None else partition.hashes
        # A column of both a range and a hash component has only the range's values here. All ranges together hash about
        # as many keys as one component may.
        told_apart = (
            {}
            if not ranged or scheme.is_catch_all(block.start)
            else {
                component: limit // len(ranges)
                for component in hashes
                if not set(ranged).isdisjoint(component.columns)
                and not domains.keys().isdisjoint((*component.columns, *ranged))
            }
        )
        kept: set[int] = set()
        for keys in _boxes(partition, scheme, domains) if told_apart else (domains,):
            found: list[frozenset[int] | None] = []
            for component in hashes:
                reached = None
                if component in told_apart:
                    reached = _buckets_reached(scheme, component, keys, told_apart[component], [])
                if reached is None and component not in buckets:
                    buckets[component] = _buckets_reached(scheme, component, domains, limit, overflows)
                found.append(buckets[component] if reached is None else reached)
            if all(reached is None for reached in found):
                kept.update(block)
                break
            local: Sequence[int] = (0,)
            for component, reached in zip(hashes, found, strict=True):
                local = [
                    base * component.partitions + bucket
                    for base in local
                    for bucket in (range(component.partitions) if reached is None else reached)
                ]
            kept.update(block.start + position for position in local)
        ids.extend(kept)
    return PartitionSelection(tuple(sorted(ids)), tuple(overflows))


def _boxes(
    partition: RangePartition, scheme: PartitionScheme, domains: Mapping[str, Domain]
) -> Iterator[Mapping[str, Domain]]:
    """The keys of the domains that lie in a range, as boxes that together hold exactly these."""
    assert scheme.range is not None
    for limits in _key_boxes(partition.lower, partition.upper):
        inside = dict(domains)
        for column, values in zip(scheme.range.columns, limits, strict=False):
            inside[column] = close_spans(
                domains.get(column, EVERYTHING).intersect(within([values])), scheme.type_of(column)
            )
        if not any(inside[column].is_nothing for column, _ in zip(scheme.range.columns, limits, strict=False)):
            yield inside


def _key_boxes(lower: tuple[Any, ...] | None, upper: tuple[Any, ...] | None) -> Iterator[list[Span]]:
    """The keys of ``[lower, upper)``, which are in lexicographic order, as boxes: the spans of the first columns.

    ``[(1, 5), (3, 2))`` is ``a = 1 AND b >= 5``, ``a > 1 AND a < 3`` and ``a = 3 AND b < 2``.
    """
    if lower is None and upper is None:
        yield []
        return
    width = len(lower or upper or ())
    prefix: list[Span] = []
    while lower is not None and upper is not None and len(prefix) < width - 1:
        value = lower[len(prefix)]
        if value != upper[len(prefix)]:
            break
        prefix.append(Span(value, value))
    first = len(prefix)
    is_last = first == width - 1
    yield [
        *prefix,
        Span(
            None if lower is None else lower[first],
            None if upper is None else upper[first],
            lower_closed=is_last,
            upper_closed=False,
        ),
    ]
    for position in range(first + 1, width):
        if lower is not None:
            equal = [Span(value, value) for value in lower[:position]]
            yield [*equal, Span(lower[position], None, lower_closed=position == width - 1)]
        if upper is not None:
            equal = [Span(value, value) for value in upper[:position]]
            yield [*equal, Span(None, upper[position], upper_closed=False)]


def _buckets_reached(
    scheme: PartitionScheme,
    component: HashComponent,
    domains: Mapping[str, Domain],
    limit: int,
    overflows: list[UnprunedComponent],
) -> frozenset[int] | None:
    """The buckets of one component, or None for all of them."""
    types = [scheme.type_of(column) for column in component.columns]
    bound = [domains.get(column, EVERYTHING) for column in component.columns]
    if all(domain.is_everything for domain in bound) or any(
        domain.is_everything and type_.kind is not TypeKind.BOOLEAN for domain, type_ in zip(bound, types, strict=True)
    ):
        return None
    values = [enumerate_points(domain, type_, limit) for domain, type_ in zip(bound, types, strict=True)]
    if any(points is None for points in values):
        finite = [len(domain.points) for domain in bound if domain.is_finite]
        overflows.append(
            UnprunedComponent(component, prod(finite) if len(finite) == len(component.columns) else None, limit)
        )
        return None
    combinations = prod(len(points) for points in values if points is not None)
    if combinations > limit:
        overflows.append(UnprunedComponent(component, combinations, limit))
        return None
    states = {first_seed(component.seed)}
    last = len(values) - 1
    for position, (points, type_) in enumerate(zip(values, types, strict=True)):
        encode = scalar_encoder(type_)
        encoded = [encode(value) for value in points or ()]
        if position < last:
            states = {xxh64_intdigest(data, state) for state in states for data in encoded}
            continue
        found: set[int] = set()
        for state in states:
            found.update(pmod(xxh64_intdigest(data, state), component.partitions) for data in encoded)
            if len(found) == component.partitions:
                return None
        return frozenset(found)
    return None


def _ranges_reached(scheme: PartitionScheme, domains: Mapping[str, Domain]) -> Sequence[RangePartition]:
    """The live ranges that some key of the domains falls into."""
    assert scheme.range is not None
    ranges = scheme.ranges()
    columns = [close_spans(domains.get(column, EVERYTHING), scheme.type_of(column)) for column in scheme.range.columns]
    if any(domain.is_nothing for domain in columns):
        return ()
    if (
        all(domain.is_finite for domain in columns)
        and prod(len(domain.points) for domain in columns) <= _RANGE_KEYS_MAX
    ):
        positions = {scheme.range_position(key) for key in product(*(domain.points for domain in columns))} - {-1}
        return _distinct([ranges[position] for position in sorted(positions)])
    types = [scheme.type_of(column) for column in scheme.range.columns]
    kept: set[int] = set()
    for span in columns[0].parts:
        first = (
            points_of([span.lower]) if span.lower is not None and span.lower == span.upper else Domain(spans=(span,))
        )
        for position in _candidates(ranges, span):
            if position not in kept and _meets(
                [first, *columns[1:]], types, ranges[position].lower, ranges[position].upper
            ):
                kept.add(position)
    return _distinct([ranges[position] for position in sorted(kept)])


def _check_known(scheme: PartitionScheme, domains: Mapping[str, Domain]) -> None:
    assert scheme.range is not None
    unknown = [partition for partition in _ranges_reached(scheme, domains) if partition.ordinal < 0]
    if not unknown:
        return
    first, *others = (
        close_spans(domains.get(column, EVERYTHING), scheme.type_of(column)) for column in scheme.range.columns
    )
    wanted = []
    if first.is_finite and all(domain.is_finite for domain in others):
        values = [domain.points for domain in (first, *others)]
        if prod(map(len, values)) <= _RANGE_KEYS_MAX:
            ranges = scheme.ranges()
            wanted = [
                KeyInterval(key, key)
                for key in product(*values)
                if (position := scheme.range_position(key)) >= 0 and ranges[position].ordinal < 0
            ]
    for span in () if wanted else first.parts:
        start, stop = wanted_in(unknown, _first_keys(span))
        for partition in unknown[start:stop]:
            wanted.append(_within(_first_keys(span), partition))
    raise unknown_ranges(scheme.reference, wanted)


def _first_keys(span: Span) -> KeyInterval:
    """The keys of the range columns that begin with a value of a span."""
    return KeyInterval(None if span.lower is None else (span.lower,), None if span.upper is None else (span.upper,))


def _within(keys: KeyInterval, partition: RangePartition) -> KeyInterval:
    """The keys that lie in a range; perhaps the first key behind it as well."""
    return KeyInterval(later(keys.lower, partition.lower), earlier(keys.upper, partition.upper))


def _distinct(ranges: Sequence[RangePartition]) -> Sequence[RangePartition]:
    """Each ordinal once: a catch-all fills many gaps with the same partitions."""
    return tuple({partition.ordinal: partition for partition in ranges}.values())


def _candidates(ranges: Sequence[RangePartition], span: Span) -> range:
    """The positions of the ranges whose first column overlaps the span.

    Ranges are sorted and disjoint, so both ends are found by bisection.
    """
    start, stop = 0, len(ranges)
    if span.lower is not None:
        start = bisect_left(ranges, True, key=lambda r: r.upper is None or r.upper[0] >= span.lower)
    if span.upper is not None:
        stop = bisect_left(ranges, True, key=lambda r: r.lower is not None and r.lower[0] > span.upper)
    return range(start, stop)


def _meets(
    columns: Sequence[Domain],
    types: Sequence[Any],
    lower: tuple[Any, ...] | None,
    upper: tuple[Any, ...] | None,
    position: int = 0,
) -> bool:
    """Whether a key of the domains lies in ``[lower, upper)`` lexicographically; None marks a side without a bound.

    The columns are compared from left to right: a value strictly between the bounds leaves the columns after it free; a
    value equal to a bound keeps that bound in force. A key that equals ``upper`` in every column is outside, while one
    that equals only a prefix of it may be inside (KUDU-2173).
    """
    if lower is None and upper is None:
        return True
    if position == len(columns):
        return upper is None
    domain = columns[position]
    low = None if lower is None else lower[position]
    high = None if upper is None else upper[position]
    if lower is not None and upper is not None and low == high:
        return low in domain and _meets(columns, types, lower, upper, position + 1)
    between = Domain(spans=(Span(low, high, lower_closed=False, upper_closed=False),))
    if not close_spans(domain.intersect(between), types[position]).is_nothing:
        return True
    if lower is not None and low in domain and _meets(columns, types, lower, None, position + 1):
        return True
    return upper is not None and high in domain and _meets(columns, types, None, upper, position + 1)
