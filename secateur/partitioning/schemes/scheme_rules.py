"""The rules that every partition scheme must keep, checked whenever one is made, from DDL too, or changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import pairwise
from typing import Any, Final

from msgspec.structs import replace

from secateur.errors import DataError, SchemeError
from secateur.partitioning.schemes.components import (
    ROW_ID,
    HashComponent,
    IntervalPartitioning,
    IntervalUnit,
    RangeComponent,
    RangePartition,
    by_lower_bound,
    no_garbage_collection,
)
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.types.coerce import coerce
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.partitioning.types.encoding import successor


@dataclass(frozen=True, slots=True)
class RangeSpec:
    """One range as written, its values not yet converted.

    Attributes:
        lower: The first key inside, or None where unbounded.
        upper: The first key after the range, or None where unbounded.
        name: The name given, or None.
        hashes: Its own hash components, ``()`` for NO HASH, None for the table's.
        is_point: Whether it was written ``VALUE = lower``; ``upper`` is then computed.
        is_catch_all: Whether it was written ``DEFAULT PARTITION``: it has no bounds and takes the rows that no other
            range holds.
    """

    lower: tuple[Any, ...] | None = None
    upper: tuple[Any, ...] | None = None
    name: str | None = None
    hashes: tuple[HashComponent, ...] | None = None
    is_point: bool = False
    is_catch_all: bool = False


def split_at(splits: Sequence[tuple[Any, ...]]) -> tuple[RangeSpec, ...]:
    """``SPLIT AT (...)``: n splits make n + 1 ranges that cover everything.

    The splits must ascend, which is checked when the scheme is built.
    """
    bounds: list[tuple[Any, ...] | None] = [None, *splits, None]
    return tuple(RangeSpec(lower, upper) for lower, upper in pairwise(bounds))


def single_value(
    value: tuple[Any, ...], name: str | None = None, hashes: tuple[HashComponent, ...] | None = None
) -> RangeSpec:
    """``PARTITION name VALUE = value``."""
    return RangeSpec(value, None, name, hashes, is_point=True)


def catch_all(name: str | None = None, hashes: tuple[HashComponent, ...] | None = None) -> RangeSpec:
    """``DEFAULT PARTITION name``."""
    return RangeSpec(name=name, hashes=hashes, is_catch_all=True)


PARTITIONS_MAX: Final = 1_000_000
"""The most partition ids a table may use up, dropped ranges included."""

_SEED_MAX: Final = 2**63 - 1
_GRID_MAX: Final = 2**62
_DAY_MICROSECONDS: Final = 86_400_000_000
_INSTANTS: Final = {
    IntervalUnit.MONTH: (IntervalUnit.MONTH, 1),
    IntervalUnit.DAY: (IntervalUnit.MICROSECOND, _DAY_MICROSECONDS),
    IntervalUnit.MICROSECOND: (IntervalUnit.MICROSECOND, 1),
}
_GRID_UNITS: Final = {
    TypeKind.DATE: {IntervalUnit.MONTH: (IntervalUnit.MONTH, 1), IntervalUnit.DAY: (IntervalUnit.DAY, 1)},
    TypeKind.TIMESTAMP: _INSTANTS,
    TypeKind.TIMESTAMPTZ: _INSTANTS,
}
"""The unit in which a grid is counted, and how many of it make one written unit, by column type and written unit."""


class SchemeRules:
    """The rules, each with the table's name at hand for its message."""

    def __init__(self, table: str, types: Mapping[str, SqlType], primary_key: Sequence[str]) -> None:
        self._table = table
        self._types = types
        self._declared = {name.casefold(): name for name in types}
        self._key = {name.casefold() for name in primary_key}
        self._key_text = ", ".join(name for name in primary_key if name != ROW_ID)
        self._last_bound: tuple[tuple[Any, ...], tuple[Any, ...]] = (), ()

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
            raise self.error(
                f"the range {resolved} is empty: its lower bound, which is inside, must be less than its upper bound,"
                " which is not"
            )
        return resolved

    def every(self, every: IntervalPartitioning, columns: tuple[str, ...]) -> IntervalPartitioning:
        """Resolve the grid of ranges made on demand: in the unit of the column's type, with a canonical start."""
        if len(columns) > 1:
            raise self.error(f"EVERY makes ranges of one column; the range component has {', '.join(columns)}")
        (column,) = columns
        type_ = self._types[column]
        units = _GRID_UNITS.get(type_.kind, {IntervalUnit.NUMBER: (IntervalUnit.NUMBER, 1)} if type_.is_integer else {})
        if every.unit not in units:
            raise self.error(f"EVERY does not fit column {column} of type {type_}: {_grid_remedy(type_)}")
        unit, factor = units[every.unit]
        if not 1 <= every.count * factor <= _GRID_MAX:
            raise self.error(
                f"EVERY {every.count} {every.unit.value}s: a range has to have a width of 1 to {_GRID_MAX // factor}"
            )
        bound = None if every.start is None else self._bound((every.start,), columns)
        start = None if bound is None else bound[0]
        if unit is IntervalUnit.MONTH and start is not None and start != _first_of_month(start):
            raise self.error(f"EVERY counts months: STARTING has to be the beginning of a month, not {start}")
        return IntervalPartitioning(every.count * factor, unit, start)

    def disjoint(self, component: RangeComponent) -> None:
        """Check that the ranges, sorted by lower bound, have no key in common, nor a name."""
        for earlier, later in pairwise(component.ranges):
            if earlier.upper is None or later.lower is None or later.lower < earlier.upper:
                raise self.error(f"the ranges {earlier} and {later} overlap; a row belongs to one range at most")
        seen: set[str] = set()
        for name in (r.name.casefold() for r in component.partitions if r.name is not None):
            if name in seen:
                raise self.error(f"two ranges are named {name}")
            seen.add(name)

    def finish(self, scheme: PartitionScheme) -> PartitionScheme:
        """Add the types and check the size."""
        if scheme.partition_count > PARTITIONS_MAX:
            raise self.error(
                f"its scheme makes {scheme.partition_count} partitions, dropped ranges included; the most is"
                f" {PARTITIONS_MAX}"
            )
        return replace(scheme, types=tuple((name, self._types[name]) for name in scheme.columns))

    def _column(self, name: str, where: str) -> str:
        declared = self._declared.get(name.casefold())
        if declared is None:
            listed = ", ".join(name for name in self._types if name != ROW_ID)
            raise self.error(f"{where} names column {name}, which the table lacks; it has {listed}")
        if name.casefold() not in self._key and ROW_ID in self._key:
            raise self.error(
                f"{where} names column {declared}, which is not among the partitioning columns that the table was"
                f" created with ({self._key_text or 'none'}): use those"
            )
        if name.casefold() not in self._key:
            raise self.error(
                f"{where} names column {declared}, which is not in the primary key ({self._key_text}); add it there or"
                " partition by others"
            )
        type_ = self._types[declared]
        if not type_.can_partition:
            raise self.error(
                f"{where} names column {declared} of type {type_}, which cannot partition: {_remedy(type_)}"
            )
        return declared

    def _distinct(self, names: Sequence[str], where: str) -> None:
        for position, name in enumerate(names):
            if name in names[:position]:
                raise self.error(f"{where} name column {name} twice; each column may be hashed once")

    def _bound(self, values: tuple[Any, ...] | None, columns: tuple[str, ...]) -> tuple[Any, ...] | None:
        if values is None:
            return None
        if values is not self._last_bound[0]:  # of neighbouring ranges, one bound is checked once
            self._last_bound = values, self._checked_bound(values, columns)
        return self._last_bound[1]

    def _checked_bound(self, values: tuple[Any, ...], columns: tuple[str, ...]) -> tuple[Any, ...]:
        if len(values) != len(columns):
            raise self.error(
                f"the bound {values!r} has {len(values)} values; the range component has the columns"
                f" {', '.join(columns)}"
            )
        if None in values:
            raise self.error(f"the bound {values!r} has a NULL; leave a bound out to make the range unbounded")
        try:
            return tuple(
                coerce(value, self._types[name], column=name) for value, name in zip(values, columns, strict=True)
            )
        except DataError as error:
            raise self.error(f"a bound of the range component: {error}") from error


def _first_of_month(value: date) -> date:
    midnight = {"hour": 0, "minute": 0, "second": 0, "microsecond": 0} if isinstance(value, datetime) else {}
    return value.replace(day=1, **midnight)


def _grid_remedy(type_: SqlType) -> str:
    if type_.is_integer:
        return "write a number, as in EVERY 1000"
    match type_.kind:
        case TypeKind.DATE:
            return "write days or months, as in EVERY INTERVAL 1 DAY"
        case TypeKind.TIMESTAMP | TypeKind.TIMESTAMPTZ:
            return "write an interval, as in EVERY INTERVAL 1 HOUR"
        case _:
            return "ranges are made of integers, dates and timestamps"


def _remedy(type_: SqlType) -> str:
    match type_.kind:
        case TypeKind.FLOAT | TypeKind.DOUBLE:
            return "equal numbers can have different bits; use DECIMAL or an integer"
        case TypeKind.HUGEINT:
            return "use BIGINT, or DECIMAL(38,0)"
        case TypeKind.TIMESTAMP_S | TypeKind.TIMESTAMP_MS | TypeKind.TIMESTAMP_NS:
            return "instants are hashed as microseconds; use TIMESTAMP"
        case _:
            return "use an integer, string, boolean, date, timestamp, decimal, uuid or binary column"


@no_garbage_collection()
def build_scheme(
    *,
    hashes: Sequence[HashComponent] = (),
    range_columns: Sequence[str] = (),
    ranges: Sequence[RangeSpec] = (),
    every: IntervalPartitioning | None = None,
    types: Mapping[str, SqlType],
    primary_key: Sequence[str],
    table: str,
) -> PartitionScheme:
    """Validate and build the scheme of a new table.

    The rest of the system only sees validated schemes.

    Ordinals of ranges are their positions once sorted, and the catch-all comes last. Names are matched without regard
    to case with those of ``types``, which has every column of the table.

    Returns:
        The scheme, its column names spelled as declared and its bounds canonical.

    Raises:
        SchemeError: The message names the component or column, what is wrong with it, and what to do.
    """
    check = SchemeRules(table, types, primary_key)
    own = check.hashes(hashes)
    component = None
    if range_columns:
        columns = check.columns(range_columns, "the range component")
        bounded = sorted((check.range(spec, columns) for spec in ranges if not spec.is_catch_all), key=by_lower_bound)
        others = [check.range(spec, columns) for spec in ranges if spec.is_catch_all]
        grid = None if every is None else check.every(every, columns)
        if not ranges and grid is None:
            raise check.error("the range component has no ranges; give at least one, or SPLIT AT (...)")
        if others and grid is not None and grid.start is None:
            raise check.error(
                "with EVERY each row has a range, so a DEFAULT PARTITION would stay empty; write STARTING"
                " to leave it the values before"
            )
        if len(others) > 1:
            raise check.error("it has two DEFAULT PARTITIONs; write one, which takes the rows that no range covers")
        component = RangeComponent(
            columns,
            tuple(replace(r, ordinal=ordinal) for ordinal, r in enumerate(bounded)),
            catch_all=replace(others[0], ordinal=len(bounded)) if others else None,
            every=grid,
        )
        check.disjoint(component)
    elif ranges:
        raise check.error("ranges without range columns")
    return check.finish(PartitionScheme(own, component))
