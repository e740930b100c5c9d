"""Partition schemes from DDL: everything that can be wrong with one is found here, before a table exists.

A validated scheme is the only kind the rest of the system meets. Changing the ranges of a table is a pure function from scheme to scheme: several changes
of one statement are folded, and nothing has happened until the last one succeeded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, TypeAlias

from secateur.errors import DataError, SchemeError
from secateur.partitioning.coerce import coerce
from secateur.partitioning.components import HashComponent, RangeComponent, RangePartition, RetiredRange
from secateur.partitioning.layout import bucket_product
from secateur.partitioning.ordering import successor
from secateur.partitioning.scheme import PartitionScheme
from secateur.partitioning.types import SqlType, TypeKind

__all__ = ["PARTITIONS_MAX", "AddRange", "DropRange", "RangeChange", "RangeSpec", "alter_ranges", "build_scheme", "single_value", "split_at"]

PARTITIONS_MAX: Final = 1_000_000
"""The most partition ids a table may use up, dropped ranges included."""

_SEED_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class RangeSpec:
    """One range as written, its values not yet converted.

    Attributes:
        lower: The first key inside, or None where unbounded.
        upper: The first key behind, or None where unbounded.
        name: The name given, or None.
        hashes: Its own hash components, ``()`` for NO HASH, None for the table's.
        is_point: Whether it was written ``VALUE = lower``; ``upper`` is then worked out.
    """

    lower: tuple[Any, ...] | None = None
    upper: tuple[Any, ...] | None = None
    name: str | None = None
    hashes: tuple[HashComponent, ...] | None = None
    is_point: bool = False


@dataclass(frozen=True, slots=True)
class AddRange:
    """``ADD PARTITION``: the range gets the next ordinal."""

    spec: RangeSpec


@dataclass(frozen=True, slots=True)
class DropRange:
    """``DROP PARTITION``: by name when ``spec.name`` is given, else by both bounds, which must match exactly."""

    spec: RangeSpec


RangeChange: TypeAlias = AddRange | DropRange


def split_at(splits: Sequence[tuple[Any, ...]]) -> tuple[RangeSpec, ...]:
    """``SPLIT AT (...)``: n splits make n + 1 ranges that cover everything. The splits must ascend, which is checked when the scheme is built."""
    bounds: list[tuple[Any, ...] | None] = [None, *splits, None]
    return tuple(RangeSpec(lower, upper) for lower, upper in pairwise(bounds))


def single_value(value: tuple[Any, ...], name: str | None = None, hashes: tuple[HashComponent, ...] | None = None) -> RangeSpec:
    """``PARTITION name VALUE = value``."""
    return RangeSpec(value, None, name, hashes, is_point=True)


def build_scheme(
    *,
    hashes: Sequence[HashComponent] = (),
    range_columns: Sequence[str] = (),
    ranges: Sequence[RangeSpec] = (),
    types: Mapping[str, SqlType],
    primary_key: Sequence[str],
    table: str,
) -> PartitionScheme:
    """Validate and build the scheme of a new table.

    Args:
        hashes: The table's hash components as written; names are matched without regard to case.
        range_columns: The columns of the range component; empty for none.
        ranges: The ranges in any order; their ordinals are their positions once sorted.
        types: The type of every column of the table, by its name as declared.
        primary_key: The primary key, in order.
        table: The table's name, for messages.

    Returns:
        The scheme, its column names spelled as declared and its bounds canonical.

    Raises:
        SchemeError: The message names the component or column, what is wrong with it, and what to do.
    """
    check = _Checker(table, types, primary_key)
    own = check.hashes(hashes)
    component = None
    if range_columns:
        columns = check.columns(range_columns, "the range component")
        resolved = [check.range(spec, columns) for spec in ranges]
        if not resolved:
            raise check.error("the range component has no ranges; give at least one, or SPLIT AT (...)")
        resolved.sort(key=_start)
        component = RangeComponent(columns, tuple(replace(r, ordinal=ordinal) for ordinal, r in enumerate(resolved)))
        check.disjoint(component.ranges)
    elif ranges:
        raise check.error("ranges without range columns")
    return check.finish(PartitionScheme(own, component))


def alter_ranges(
    scheme: PartitionScheme, changes: Sequence[RangeChange], *, types: Mapping[str, SqlType], primary_key: Sequence[str], table: str
) -> PartitionScheme:
    """Add and drop ranges in the order given: all, or an error and nothing.

    A dropped range's ordinal and ids stay reserved, an added one gets the next ordinal: no other partition's id changes.

    Raises:
        SchemeError: The table has no range component, an added range overlaps a live one or repeats its name, or a dropped one does not exist.
    """
    check = _Checker(table, types, primary_key)
    if scheme.range is None:
        raise check.error("it has no range component to add to or drop from")
    component = scheme.range
    for change in changes:
        match change:
            case AddRange(spec):
                ordinal = len(component.ranges) + len(component.retired)
                added = replace(check.range(spec, component.columns), ordinal=ordinal)
                component = replace(component, ranges=tuple(sorted((*component.ranges, added), key=_start)))
                check.disjoint(component.ranges)
            case DropRange(spec):
                gone = check.find(component, spec)
                retired = RetiredRange(gone.ordinal, bucket_product(scheme.hashes if gone.hashes is None else gone.hashes))
                component = RangeComponent(
                    component.columns,
                    tuple(r for r in component.ranges if r.ordinal != gone.ordinal),
                    tuple(sorted((*component.retired, retired), key=lambda r: r.ordinal)),
                )
    return check.finish(PartitionScheme(scheme.hashes, component, function=scheme.function))


class _Checker:
    """The rules, each with the table's name at hand for its message."""

    def __init__(self, table: str, types: Mapping[str, SqlType], primary_key: Sequence[str]) -> None:
        self._table = table
        self._types = types
        self._declared = {name.casefold(): name for name in types}
        self._key = {name.casefold() for name in primary_key}
        self._key_text = ", ".join(primary_key)

    def error(self, reason: str) -> SchemeError:
        return SchemeError(f"table {self._table}: {reason}", table=self._table)

    def columns(self, names: Sequence[str], where: str) -> tuple[str, ...]:
        """Resolve the columns of one component and check that each may partition."""
        if not names:
            raise self.error(f"{where} names no column")
        resolved = tuple(self._column(name, where) for name in names)
        self._distinct(resolved, where)
        return resolved

    def hashes(self, components: Sequence[HashComponent]) -> tuple[HashComponent, ...]:
        """Resolve a list of hash components."""
        resolved = []
        for number, component in enumerate(components, start=1):
            where = f"hash component {number}"
            if not 1 <= component.partitions <= PARTITIONS_MAX:
                raise self.error(f"{where} has {component.partitions} partitions; use 1 to {PARTITIONS_MAX}")
            if not -_SEED_MAX - 1 <= component.seed <= _SEED_MAX:
                raise self.error(f"{where} has seed {component.seed}; a seed is a BIGINT")
            resolved.append(replace(component, columns=self.columns(component.columns, where)))
        self._distinct([name for component in resolved for name in component.columns], "the hash components together")
        return tuple(resolved)

    def range(self, spec: RangeSpec, columns: tuple[str, ...]) -> RangePartition:
        """Resolve one range, with ordinal 0."""
        lower, upper = self._bound(spec.lower, columns), self._bound(spec.upper, columns)
        if spec.is_point:
            if lower is None:
                raise self.error("a single-value range needs its value")
            upper = successor(lower, [self._types[name] for name in columns])
        resolved = RangePartition(0, lower, upper, spec.name, None if spec.hashes is None else self.hashes(spec.hashes))
        if lower is not None and upper is not None and not lower < upper:
            raise self.error(f"the range {resolved} is empty: its lower bound, which is inside, must be less than its upper bound, which is not")
        return resolved

    def disjoint(self, ranges: Sequence[RangePartition]) -> None:
        """Check ranges sorted by lower bound."""
        for earlier, later in pairwise(ranges):
            if earlier.upper is None or later.lower is None or later.lower < earlier.upper:
                raise self.error(f"the ranges {earlier} and {later} overlap; a row belongs to one range at most")
        seen: set[str] = set()
        for name in (r.name.casefold() for r in ranges if r.name is not None):
            if name in seen:
                raise self.error(f"two ranges are named {name}")
            seen.add(name)

    def find(self, component: RangeComponent, spec: RangeSpec) -> RangePartition:
        """The live range that a DROP names, by name or by both its bounds."""
        if spec.name is not None:
            found = [r for r in component.ranges if r.name is not None and r.name.casefold() == spec.name.casefold()]
            wanted = f"named {spec.name}"
        else:
            exact = self.range(spec, component.columns)
            found = [r for r in component.ranges if (r.lower, r.upper) == (exact.lower, exact.upper)]
            wanted = f"with exactly the bounds {exact}"
        if not found:
            raise self.error(f"no range {wanted}; it has {', '.join(f'{r.name}: {r}' if r.name else str(r) for r in component.ranges) or 'none'}")
        return found[0]

    def finish(self, scheme: PartitionScheme) -> PartitionScheme:
        """Add the types and check the size."""
        if scheme.partition_count > PARTITIONS_MAX:
            raise self.error(f"its scheme makes {scheme.partition_count} partitions, dropped ranges included; the most is {PARTITIONS_MAX}")
        return replace(scheme, types=tuple((name, self._types[name]) for name in scheme.columns))

    def _column(self, name: str, where: str) -> str:
        declared = self._declared.get(name.casefold())
        if declared is None:
            raise self.error(f"{where} names column {name}, which the table lacks; it has {', '.join(self._types)}")
        if name.casefold() not in self._key:
            raise self.error(f"{where} names column {declared}, which is not in the primary key ({self._key_text}); add it there or partition by others")
        type_ = self._types[declared]
        if not type_.can_partition:
            raise self.error(f"{where} names column {declared} of type {type_}, which cannot partition: {_remedy(type_)}")
        return declared

    def _distinct(self, names: Sequence[str], where: str) -> None:
        for position, name in enumerate(names):
            if name in names[:position]:
                raise self.error(f"{where} name column {name} twice; each column may be hashed once")

    def _bound(self, values: tuple[Any, ...] | None, columns: tuple[str, ...]) -> tuple[Any, ...] | None:
        if values is None:
            return None
        if len(values) != len(columns):
            raise self.error(f"the bound {values!r} has {len(values)} values; the range component has the columns {', '.join(columns)}")
        if None in values:
            raise self.error(f"the bound {values!r} has a NULL; leave a bound out to make the range unbounded")
        try:
            return tuple(coerce(value, self._types[name], column=name) for value, name in zip(values, columns, strict=True))
        except DataError as error:
            raise self.error(f"a bound of the range component: {error}") from error


def _start(partition: RangePartition) -> tuple[int, tuple[Any, ...]]:
    """Sort key: unbounded below comes first."""
    return (0, ()) if partition.lower is None else (1, partition.lower)


def _remedy(type_: SqlType) -> str:
    match type_.kind:
        case TypeKind.FLOAT | TypeKind.DOUBLE:
            return "equal numbers can have different bits; use DECIMAL or an integer"
        case TypeKind.HUGEINT:
            return "use BIGINT, or DECIMAL(38,0)"
        case _:
            return "use an integer, string, boolean, date, timestamp, decimal, uuid or binary column"
