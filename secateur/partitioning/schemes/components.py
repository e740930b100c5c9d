"""The parts of a partition scheme: hash components, range partitions, the range component and intervals.

These are descriptions; nothing in them is resolved.

Source: Apache Kudu's partition schemas ("Scan Optimization & Partition Pruning"), with hash components that a range may
replace by its own.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from enum import Enum
from typing import Annotated, Any, Final, TypeAlias, assert_never

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.partitioning.types.counting import counting_of
from secateur.partitioning.types.encoding import order_array, order_key_of

ROW_ID: Final = "_secateur_row_id"
"""The hidden column of a table without a primary key, see :mod:`~secateur.partitioning.tables.row_ids`."""


class HashComponent(msgspec.Struct, frozen=True, array_like=True):
    """``HASH (columns) PARTITIONS partitions SEED seed``.

    Attributes:
        columns: The columns hashed, in the order written: the order matters to the hash.
        partitions: The number of buckets, at least 1.
        seed: 0, or a BIGINT that is hashed in front of the columns.
    """

    columns: tuple[str, ...]
    partitions: Annotated[int, msgspec.Meta(ge=1)]
    seed: int = 0

    @property
    def is_random(self) -> bool:
        """Whether it is ``RANDOM PARTITIONS n``: rows are spread by their hidden ids."""
        return self.columns == (ROW_ID,)


class RangePartition(msgspec.Struct, frozen=True, array_like=True):
    """One interval of the range columns, compared lexicographically.

    Attributes:
        ordinal: Its number among all ranges that the table has ever had; never reused, so no partition id changes.
        lower: The first key inside, canonical Python values (see :mod:`~secateur.partitioning.types.coerce`), or None
            where unbounded.
        upper: The first key after the range, or None where unbounded.
        name: The name to drop it by, if it was given one.
        hashes: Its own hash components; ``()`` for ``NO HASH``; None for those of the table.
    """

    ordinal: int
    lower: tuple[Any, ...] | None
    upper: tuple[Any, ...] | None
    name: str | None = None
    hashes: tuple[HashComponent, ...] | None = None

    def __str__(self) -> str:
        """The bounds as DDL writes them, such as ``(1) <= VALUES < (9)``."""
        lower = "" if self.lower is None else f"{_literal(self.lower)} <= "
        upper = "" if self.upper is None else f" < {_literal(self.upper)}"
        return f"{lower}VALUES{upper}"


Bound: TypeAlias = tuple[Any, ...] | None
"""An end of an interval of keys; None where it has none."""


def by_lower_bound(partition: RangePartition) -> tuple[int, tuple[Any, ...]]:
    """Sort key: unbounded below comes first."""
    return (0, ()) if partition.lower is None else (1, partition.lower)


def later(left: Bound, right: Bound) -> Bound:
    """The greater one of two lower bounds."""
    return left if right is None or (left is not None and left >= right) else right


def earlier(left: Bound, right: Bound) -> Bound:
    """The smaller one of two upper bounds."""
    return left if right is None or (left is not None and left <= right) else right


class RetiredRange(msgspec.Struct, frozen=True, array_like=True):
    """A dropped range: its ordinal and its block of partition ids stay reserved and are never used again."""

    ordinal: int
    partitions: int


class RangeComponent(msgspec.Struct, frozen=True, array_like=True):
    """``RANGE (columns) ...``.

    Attributes:
        columns: The range columns, most significant first.
        ranges: The live ranges, sorted by lower bound, disjoint, possibly with gaps.
        retired: The dropped ranges, by ordinal.
        catch_all: The partition of the rows that no range holds, unbounded on both sides; None when such rows are
            refused. With EVERY, it covers only the keys below the start.
        every: The interval partitioning that makes ranges when rows for them arrive; None when only ALTER TABLE
            makes them.
    """

    columns: tuple[str, ...]
    ranges: tuple[RangePartition, ...]
    retired: tuple[RetiredRange, ...] = ()
    catch_all: RangePartition | None = None
    every: IntervalPartitioning | None = None

    @property
    def partitions(self) -> tuple[RangePartition, ...]:
        """The live ranges, and the catch-all behind them."""
        return self.ranges if self.catch_all is None else (*self.ranges, self.catch_all)

    @property
    def ordinals_used(self) -> int:
        """The number of ordinals given out, which is the next ordinal."""
        return len(self.ranges) + len(self.retired) + (self.catch_all is not None)


def _literal(values: tuple[Any, ...]) -> str:
    return (
        f"({', '.join(repr(value) if isinstance(value, (int, str, bytes)) else repr(str(value)) for value in values)})"
    )


_MONTHS: Final = range(12, 12 * (date.max.year + 1))
"""The months that Python has, counted from the year 0."""
_EPOCH_MONTH: Final = 12 * 1970


class IntervalUnit(Enum):
    """The unit in which the width of the cells is given."""

    NUMBER = "number"
    MONTH = "month"
    DAY = "day"
    MICROSECOND = "microsecond"


class IntervalPartitioning(msgspec.Struct, frozen=True, array_like=True):
    """The grid, for a column whose type fits the unit.

    Interval partitioning, ``RANGE (day) EVERY INTERVAL 1 DAY``: ranges are made when the first row for them arrives.

    EVERY divides the range column into *cells* of equal width, numbered from the start. A cell becomes a range when a
    writer has a row in it that no range holds; parts of the cell that other ranges already hold stay with them. Because
    cells are numbers, several writers can ask for the same one, and for many at once.

    The cells begin at STARTING, and no range is made below it. Without STARTING a cell begins at 0, or at the beginning
    of 1970, and cells extend from there in both directions.

    Attributes:
        count: The width of a cell in units, 1 to 2^62.
        unit: NUMBER for integers; DAY or MONTH for DATE; MICROSECOND or MONTH for timestamps.
        start: The first value of the grid, canonical; None for a grid without beginning.
    """

    count: int
    unit: IntervalUnit
    start: Any | None = None

    def cells_of(self, values: pa.Array, type_: SqlType) -> frozenset[int]:
        """The cells in which values lie; those below the start of the grid are in none.

        Args:
            values: Values of the column's own Arrow type, without nulls.
            type_: The type of the column.

        Returns:
            Distinct numbers. Cost: some 20 ns per value.
        """
        if self.unit is IntervalUnit.MONTH:
            numbers = (
                12 * pc.year(values).to_numpy(zero_copy_only=False).astype(np.int64)
                + pc.month(values).to_numpy(zero_copy_only=False)
                - 1
            )
            first = _EPOCH_MONTH if self.start is None else _month(self.start)
            kept = numbers if self.start is None else numbers[numbers >= first]
            return _distinct((kept - first) // self.count)
        ordered = order_array(values, type_)
        wide = ordered.astype(np.uint64 if ordered.dtype == np.uint64 else np.int64, copy=False)
        if self.start is None:
            return _distinct(wide // wide.dtype.type(self.count))
        start = order_key_of(type_)(self.start)
        kept = wide[wide >= wide.dtype.type(start)].astype(np.uint64)
        # The difference of two 64-bit integers needs 65 bits, but not when it is known to be positive: then it wraps to
        # the right one.
        return _distinct((kept - np.uint64(start % 2**64)) // np.uint64(self.count))

    def bounds(self, cell: int, type_: SqlType) -> tuple[Any, Any]:
        """The first value of a cell and the first behind it; None where there is no such value."""
        return self._line(cell, type_), self._line(cell + 1, type_)

    def _line(self, number: int, type_: SqlType) -> Any | None:
        match self.unit:
            case IntervalUnit.MONTH:
                month = (_EPOCH_MONTH if self.start is None else _month(self.start)) + number * self.count
                return _first_of(month, type_) if month in _MONTHS else None
            case IntervalUnit.NUMBER | IntervalUnit.DAY | IntervalUnit.MICROSECOND:
                origin = 0 if self.start is None else order_key_of(type_)(self.start)
                return _value(origin + number * self.count, type_)
            case _:
                assert_never(self.unit)


def _distinct(numbers: npt.NDArray[Any]) -> frozenset[int]:
    return frozenset(np.unique(numbers).tolist())


def _month(value: date) -> int:
    return 12 * value.year + value.month - 1


def _first_of(month: int, type_: SqlType) -> Any:
    first = datetime(month // 12, month % 12 + 1, 1)
    return first.date() if type_.kind is TypeKind.DATE else _zoned(first, type_)


def _zoned(value: datetime, type_: SqlType) -> datetime:
    return value.replace(tzinfo=UTC) if type_.kind is TypeKind.TIMESTAMPTZ else value


def _value(number: int, type_: SqlType) -> Any | None:
    """The value whose index is a number, or None."""
    counting = counting_of(type_)
    assert counting is not None
    return counting.value(number) if counting.smallest <= number <= counting.largest else None


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Run a block, or as a decorator a function, without collections; meant for some tenths of a second.

    Each collection looks at the objects made so far, finds nothing to free, and holds up all threads. Making 30,000
    partitions takes seven times as long with collections as without.

    Blocks of several threads may overlap: the first to end turns the collector on again.
    """
    if not gc.isenabled():  # also by a block of another thread, behind whose end nobody would turn it on again
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


_INDEX: Final = np.dtype("<i4")
_Key: TypeAlias = tuple[Any, ...]


class RangeColumns(msgspec.Struct, frozen=True, array_like=True):
    """Ranges that ascend and are disjoint, in columns.

    Ranges as they travel: in columns, because a hundred thousand small objects would take seconds to write and read.

    Attributes:
        bounds: The bounds of the ranges, each once, ascending: a list for each range column.
        lowers: For each range the index of its lower bound, -1 for none; int32, little-endian, as all that follow.
        uppers: Likewise the upper bounds.
        ordinals: For each range its ordinal.
        hash_lists: For each range the index of its own hash components in a list that is sent beside, -1 for those of
            the table.
    """

    bounds: list[list[Any]]
    lowers: bytes
    uppers: bytes
    ordinals: bytes
    hash_lists: bytes

    @classmethod
    @no_garbage_collection()
    def of(cls, ranges: Sequence[RangePartition], hash_lists: Sequence[tuple[HashComponent, ...]]) -> RangeColumns:
        """The columns of some ranges; their names are left out. Cost: about a microsecond per range."""
        index: dict[_Key, int] = {}
        for partition in ranges:  # sorted and disjoint, so their bounds ascend in this order
            for bound in (partition.lower, partition.upper):
                if bound is not None and bound not in index:
                    index[bound] = len(index)
        number = {hashes: position for position, hashes in enumerate(hash_lists)}
        return cls(
            [list(column) for column in zip(*index, strict=True)],
            packed([-1 if r.lower is None else index[r.lower] for r in ranges]),
            packed([-1 if r.upper is None else index[r.upper] for r in ranges]),
            packed([r.ordinal for r in ranges]),
            packed([-1 if r.hashes is None else number[r.hashes] for r in ranges]),
        )

    @no_garbage_collection()
    def ranges(
        self, hash_lists: Sequence[tuple[HashComponent, ...]], names: Sequence[str | None] | None = None
    ) -> list[RangePartition]:
        """The ranges, with names if they are given. Cost: under a microsecond per range."""
        bounds: list[_Key | None] = [*zip(*self.bounds, strict=True), None]
        own: list[tuple[HashComponent, ...] | None] = [*hash_lists, None]
        ordinals = unpacked(self.ordinals)
        return [
            RangePartition(ordinal, bounds[lower], bounds[upper], name, own[hashes])
            for lower, upper, ordinal, hashes, name in zip(
                unpacked(self.lowers),
                unpacked(self.uppers),
                ordinals,
                unpacked(self.hash_lists),
                [None] * len(ordinals) if names is None else names,
                strict=True,
            )
        ]


def packed(numbers: Iterable[int]) -> bytes:
    """Numbers as int32, little-endian."""
    return np.fromiter(numbers, _INDEX).tobytes()


def unpacked(data: bytes) -> list[int]:
    """The numbers of :func:`packed`."""
    numbers: npt.NDArray[np.int32] = np.frombuffer(data, _INDEX)
    found: list[int] = numbers.tolist()
    return found
