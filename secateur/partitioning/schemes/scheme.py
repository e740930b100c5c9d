"""The partition scheme of a table and its partition function.

A scheme is a frozen description that travels; :mod:`~secateur.partitioning.schemes.scheme_rules` validates and builds
one from DDL. Its resolved forms, the :class:`~secateur.partitioning.schemes.layout.Layout` of ids and the
:class:`~secateur.partitioning.schemes.router.Router`, are made on first use and never leave the process.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from threading import Lock, RLock
from typing import Any, Final, TypeAlias
from weakref import WeakValueDictionary

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec.structs import replace

from secateur.cached_properties import cached_property
from secateur.errors import NotSupportedError, TopologyChangedError, UnknownColumnError
from secateur.forks import free_in_forks
from secateur.partitioning.schemes.components import (
    HashComponent,
    RangeColumns,
    RangeComponent,
    RangePartition,
    no_garbage_collection,
)
from secateur.partitioning.schemes.layout import Layout
from secateur.partitioning.schemes.partial_ranges import KeyInterval, PartialRanges, RangePage, pages_of
from secateur.partitioning.schemes.router import Router
from secateur.partitioning.types.cast import cast_column
from secateur.partitioning.types.column_type import SqlType

FUNCTION: Final = "xxhash64/1"
RANGES_INLINE_MAX: Final = 64
"""Up to so many ranges a scheme travels with every statement: a kilobyte or two, which cost less than asking for
them.
"""

_BATCH_ROWS_MIN: Final = 1024


class PartitionScheme(msgspec.Struct, frozen=True, array_like=True, dict=True, weakref=True):
    """The mapping of rows to partitions.

    The partitions are the cross product of the hash components and the ranges. A scheme without components has one
    partition, 0.

    Attributes:
        hashes: The hash components, most significant first; those of the table, which a range may replace.
        range: The range component, if there is one.
        types: The type of each column of the partitioning key.
        function: Name and version of the partition function; see :attr:`is_known_function`.
        group: The affinity group, when it is not the one that the structure names: a table whose ranges were changed
            keeps its owners, and they may differ from those of another table that has come to the same ranges by
            another way.
        reference: A name for this scheme that is unique for ever, for large ones that should not travel with every
            statement; see :func:`find_scheme`.
        partial: The known ranges, where not all are known; None where all are. The range component has none then.
    """

    hashes: tuple[HashComponent, ...] = ()
    range: RangeComponent | None = None
    types: tuple[tuple[str, SqlType], ...] = ()
    function: str = FUNCTION
    group: str | None = None
    reference: str | None = None
    partial: PartialRanges | None = None

    def __post_init__(self) -> None:
        if self.reference is None:
            return
        if self.partial is None:
            _by_reference.setdefault(self.reference, self)
        else:
            with _making_books:  # of two books of one scheme, one would not learn
                self.__dict__["_book"] = _books.setdefault(self.reference, RangeBook(self))

    @property
    def is_known_function(self) -> bool:
        """Whether this version can compute the partition function; if not, nothing may be pruned."""
        return self.function == FUNCTION

    @property
    def columns(self) -> tuple[str, ...]:
        """The partitioning key in order of first mention.

        The order is: hash components, the range component, then the ranges' own hash components.
        """
        return self._layout.columns

    @property
    def partition_count(self) -> int:
        """The size of the id space: ids are in ``[0, partition_count)``.

        Ids of dropped ranges are counted: they stay reserved, so that no id ever changes.
        """
        return self._layout.outline.partition_count

    @property
    def live_partition_count(self) -> int:
        """The number of partitions that can hold rows."""
        return self._layout.live_partition_count

    def live_partitions(self) -> npt.NDArray[np.int32]:
        """The ids that can hold rows, ascending; read-only."""
        return self._layout.live_partitions

    def live_ids(self) -> tuple[int, ...]:
        """:meth:`live_partitions` as Python numbers."""
        return self._layout.live_ids

    def type_of(self, column: str) -> SqlType:
        """The type of a partitioning column, by its exact name."""
        return dict(self.types)[column]

    def ranges(self) -> tuple[RangePartition, ...]:
        """The intervals that hold rows, sorted and disjoint; one unbounded interval if there is no range component.

        These are the live ranges. A catch-all occurs once for every gap that it fills, each time with its one ordinal;
        the unbounded interval has the ordinal 0. Of a scheme that is partly known, the keys whose ranges are not known
        are in pseudo ranges with negative ordinals.
        """
        return self._layout.segments

    @property
    def makes_ranges(self) -> bool:
        """Whether the scheme has interval partitioning (EVERY), which makes ranges when rows for them arrive."""
        return self.range is not None and self.range.every is not None

    def is_live(self, partition: int) -> bool:
        """Whether a partition can hold rows: its range has not been dropped."""
        live = self.live_partitions()
        position = int(live.searchsorted(partition))
        return position < len(live) and int(live[position]) == partition

    def is_catch_all(self, partition: int) -> bool:
        """Whether a partition takes the rows that no range holds.

        The keys of such a partition change with the ranges beside it; those of all other partitions never change.
        """
        rest = None if self.range is None else self.range.catch_all
        return rest is not None and partition in self.block(rest.ordinal)

    @property
    def has_gaps(self) -> bool:
        """Whether some rows have no partition; ALTER TABLE can add a range for them."""
        return self._layout.outline.has_gaps

    def hashes_of(self, ordinal: int) -> tuple[HashComponent, ...]:
        """The hash components of a live range: its own or the table's. KeyError when no live range has that ordinal."""
        return self._layout.hashes_of(ordinal)

    def hash_lists(self) -> tuple[tuple[HashComponent, ...], ...]:
        """The distinct lists of hash components of the live ranges: the table's, and those of single ranges."""
        return self._layout.outline.hash_lists

    def block(self, ordinal: int) -> builtins.range:
        """The ids of a live range. KeyError when no live range has that ordinal."""
        return self._layout.block(ordinal)

    def range_position(self, key: tuple[Any, ...]) -> int:
        """The position in :meth:`ranges` of the range that holds a key of canonical values, or -1.

        Cost: under 1 microsecond.
        """
        return self._router.locate(key)

    def partition_of(self, values: Mapping[str, Any]) -> int:
        """The partition of one row.

        Args:
            values: Values by column name; columns that do not partition are ignored. Names and values in canonical form
                (see :func:`~secateur.partitioning.types.coerce.coerce`) take the fast path; others are matched without
                regard to case and converted where that is exact.

        Raises:
            ParameterError: A partitioning column is missing.
            DataError: A value of another class than its column's that does not convert. The domain is not checked: an
                int that is too large for an INTEGER column is routed like any other, and no row is there.
            NoRangeError: No range holds the row.
            NullKeyError: A range column is NULL. NULL in a hash column leaves the hash unchanged.
            NotSupportedError: The partition function is not known to this build.

        Cost: under 1 microsecond for one BIGINT or VARCHAR column.
        """
        return self._router.partition_of(values)

    def partition_function(self, names: Sequence[str]) -> Callable[[Sequence[Any]], int]:
        """:meth:`partition_of` with everything but the values resolved, for look-ups by key.

        Args:
            names: Columns in canonical form, among them those that partition.

        Returns:
            The partition of the values of these columns, in this order; it raises as :meth:`partition_of`. Cost: half
            of it where one hashed column partitions.
        """
        return self._router.function_of(names)

    def partitions_of(
        self, table: pa.Table | pa.RecordBatch, *, unmatched_allowed: bool = False
    ) -> npt.NDArray[np.int32]:
        """The partition of each row.

        Args:
            table: Has at least the partitioning columns, by name; other columns are ignored. Columns that are not in
                their Arrow form are converted first.
            unmatched_allowed: Whether rows that belong to no partition, because no range holds them or a range column
                is NULL, get -1 instead of an error.

        Returns:
            int32 of shape (rows,).
            Cost: about 20 ns per row for one integer column, 40 ns for one short string column.

        Raises:
            UnknownColumnError: A partitioning column is missing.
            DataError: A value that its column cannot hold.
            NoRangeError: No range holds some row; names the first.
            NullKeyError: NULL in a range column.
            NotSupportedError: The partition function is not known to this build.
        """
        router = self._router
        ids = np.zeros(table.num_rows, dtype=np.int32)
        if not self.columns:
            return ids
        types = dict(self.types)
        key = pa.Table.from_arrays(
            [cast_column(_column(table, name), types[name], name=name) for name in self.columns],
            names=list(self.columns),
        )
        if any(column.num_chunks > 1 + key.num_rows // _BATCH_ROWS_MIN for column in key.columns):
            key = key.combine_chunks()
        start = 0
        for batch in key.to_batches():
            ids[start : start + batch.num_rows] = router.partitions_of(batch, unmatched_allowed=unmatched_allowed)
            start += batch.num_rows
        return ids

    def missing_cells(self, table: pa.Table | pa.RecordBatch) -> frozenset[int]:
        """Return the cells of interval partitioning that have rows in ``table`` but no range; empty without EVERY.

        A writer asks the cluster for these ranges before it writes the rows. Raises as :meth:`partitions_of`, except
        for rows without a range. Cost: about 50 ns per row with EVERY, else nothing.
        """
        if self.range is None or not self.makes_ranges:
            return frozenset()
        (name,) = self.range.columns
        column = cast_column(_column(table, name), self.type_of(name), name=name)
        return frozenset().union(*(self._router.missing_cells(chunk) for chunk in column.chunks))

    def affinity_group(self) -> str:
        """The name by which the topology knows the owners.

        Tables that share it are co-located: partition i of all holds the same keys, in the same place.
        """
        return self._structure if self.group is None else self.group

    def in_group(self, group: str) -> PartitionScheme:
        """Return the same scheme in the affinity group of that name; its resolved forms are kept."""
        return self._keeping(replace(self, group=group))

    def referred(self, reference: str | None) -> PartitionScheme:
        """Return the same scheme with another reference; its resolved forms are kept."""
        return self._keeping(replace(self, reference=reference))

    def outline(self) -> PartitionScheme:
        """Return the scheme without its ranges, from which a client begins to learn those that it needs."""
        return self._outline

    def pages(self, wanted: Iterable[KeyInterval]) -> list[RangePage]:
        """The pages with the ranges of some keys (:func:`~secateur.partitioning.schemes.partial_ranges.pages_of`)."""
        layout = self._layout
        return pages_of(layout.segments, layout.bases, layout.outline.hash_lists, wanted)

    def newest(self) -> PartitionScheme:
        """The same scheme with everything that this process knows of its ranges by now."""
        return self if self.partial is None else self._book.scheme

    @no_garbage_collection()
    def resolve(self) -> None:
        """Make the resolved forms now rather than on first use, in a thread that has time.

        Cost: some microseconds per range.
        """
        self._layout  # noqa: B018 - it is made here
        if self.is_known_function:
            self._router  # noqa: B018 - it is made here

    def structure(self) -> str:
        """A name that two schemes share exactly when partition i of both holds the same keys.

        Column names do not count, nor names of ranges; types, structure, seeds, bucket counts, bounds and ordinals do.
        Computed once, in time linear in the ranges.
        """
        return self._structure

    def _keeping(self, other: PartitionScheme) -> PartitionScheme:
        other.__dict__.update(self.__dict__)
        return other

    @property
    def _book(self) -> RangeBook:
        book: RangeBook = self.__dict__["_book"]
        return book

    @cached_property
    def _outline(self) -> PartitionScheme:
        assert self.range is not None
        return PartitionScheme(
            self.hashes,
            replace(self.range, ranges=(), retired=()),
            self.types,
            self.function,
            self.affinity_group(),
            self.reference,
            self._layout.outline,
        )

    @cached_property
    def in_columns(self) -> _InColumns:
        """The scheme taken apart, as it travels when it has many ranges; its group may be that of an earlier copy.

        These are the scheme without its ranges and its reference, the distinct lists of hash components that ranges
        have of their own, the ranges, and the name of each if any has one.
        """
        component = self.range
        ranges = () if component is None else component.ranges
        own = tuple(dict.fromkeys(r.hashes for r in ranges if r.hashes is not None))
        return (
            replace(self, range=component and replace(component, ranges=()), reference=None),
            own,
            RangeColumns.of(ranges, own),
            tuple(r.name for r in ranges) if any(r.name is not None for r in ranges) else None,
        )

    @cached_property
    def _structure(self) -> str:
        number = {name: f"c{position}" for position, name in enumerate(self.columns)}
        if not number:
            return "single"
        types = dict(self.types)
        shape = [
            f"{self.function} ({', '.join(str(types[name]) for name in self.columns)})",
            *(_hash_text(h, number) for h in self.hashes),
        ]
        if self.range is not None:
            bounds = [
                (r.ordinal, str(r), None if r.hashes is None else [_hash_text(h, number) for h in r.hashes])
                for r in self.range.ranges
            ]
            retired = [(r.ordinal, r.partitions) for r in self.range.retired]
            rest = self.range.catch_all
            others = (
                None
                if rest is None
                else (
                    rest.ordinal,
                    None if rest.hashes is None else [_hash_text(h, number) for h in rest.hashes],
                    self.range.every,
                )
            )
            # Thousands of ranges would make a long name: their text is hashed, to a length at which equal means equal.
            digest = blake2b(repr((bounds, retired, others)).encode(), digest_size=16).hexdigest()
            shape.append(f"RANGE ({', '.join(number[name] for name in self.range.columns)}) {digest}")
        return " ".join(shape)

    @cached_property
    def _layout(self) -> Layout:
        if self.partial is not None and self.range is not None:
            return Layout.of_known(self.hashes, self.range, self.partial)
        return Layout.of(self.hashes, self.range)

    @cached_property
    def _router(self) -> Router:
        if not self.is_known_function:
            raise NotSupportedError(
                f"partition function {self.function!r} is unknown here, {FUNCTION!r} is known; update this side to"
                " route and prune"
            )
        return Router(self._layout, self.range, self.types, self.reference)


_InColumns: TypeAlias = tuple[
    PartitionScheme, tuple[tuple[HashComponent, ...], ...], RangeColumns, tuple[str | None, ...] | None
]


class RangeBook:
    """The ranges of one large scheme that this process knows; it grows. Thread-safe.

    Attributes:
        scheme: The scheme with the ranges known now; replaced as a whole.
    """

    def __init__(self, scheme: PartitionScheme) -> None:
        self.scheme = scheme
        self._lock = free_in_forks(Lock())

    def learn(self, pages: Iterable[RangePage]) -> bool:
        """Take over pages of ranges; returns whether they had anything that was not known."""
        with self._lock:
            before = self.scheme.partial
            assert before is not None
            after = before.with_pages(pages)
            if after.unknown == before.unknown:
                return False
            self.scheme = replace(self.scheme, partial=after)
            return True


_making_books: Final = free_in_forks(RLock())
_books: Final[WeakValueDictionary[str, RangeBook]] = WeakValueDictionary()
"""The books of this process by reference; each stays here as long as some table, plan or tree uses its scheme."""

_by_reference: Final[WeakValueDictionary[str, PartitionScheme]] = WeakValueDictionary()
"""The schemes of this process that have a reference; each stays here as long as some table, plan or tree uses it."""


def learn_ranges(reference: str, pages: Iterable[RangePage]) -> bool:
    """Add pages to what this process knows of the ranges of a scheme; returns whether they had anything new."""
    book = _books.get(reference)
    return book is not None and book.learn(pages)


def scheme_of_reference(reference: str) -> PartitionScheme | None:
    """The whole scheme that this process has under a reference, if there is one."""
    return _by_reference.get(reference)


def find_scheme(scheme: PartitionScheme | str, *, table: str) -> PartitionScheme:
    """Return the scheme that travels whole or by its reference.

    Large schemes are sent once, with their table; statements refer to them by name. The scheme of a table with 100,000
    ranges has megabytes. Statements must not carry it, and receivers of statements must not resolve it again. The
    cluster therefore gives such a scheme a *reference* that is never reused. Members and clients that have the table
    have the scheme under its reference, and partition trees and plans carry the reference. Of two schemes with one
    reference the first is used on. A client has the outline of the scheme at first, and then also those ranges that
    its statements have needed. So the plan of a look-up by key has 1.4 KB, over 100 ranges as over 100,000.

    Raises:
        TopologyChangedError: A reference that no scheme of this process has: the table is not known here, or not at
            this version. ``details`` has ``table``.
    """
    if isinstance(scheme, PartitionScheme):
        if scheme.reference is None:
            return scheme
        if scheme.partial is None:
            return _by_reference.setdefault(scheme.reference, scheme)
        return _by_reference.get(scheme.reference) or scheme.newest()
    known = _by_reference.get(scheme)
    if known is None:
        book = _books.get(scheme)
        if book is not None:
            return book.scheme
        raise TopologyChangedError(
            f"the ranges of table {table} are not known here, or have changed: fetch the table again", table=table
        )
    return known


def _column(table: pa.Table | pa.RecordBatch, name: str) -> pa.ChunkedArray | pa.Array:
    names = table.schema.names
    if name in names:
        return table.column(name)
    folded = [n for n in names if n.casefold() == name.casefold()]
    if len(folded) != 1:
        raise UnknownColumnError(
            f"the partition depends on column {name}, which the data lack; they have {', '.join(names)}", column=name
        )
    return table.column(folded[0])


def _hash_text(component: HashComponent, number: Mapping[str, str]) -> str:
    return (
        f"HASH ({', '.join(number[name] for name in component.columns)}) {component.partitions} SEED {component.seed}"
    )
