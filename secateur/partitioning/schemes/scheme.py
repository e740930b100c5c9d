"""The partition scheme of a table and its partition function.

A scheme is a frozen description that travels; :mod:`~secateur.partitioning.schemes.build` validates and builds one from
DDL. Its resolved forms, the :class:`~secateur.partitioning.schemes.layout.Layout` of ids and the
:class:`~secateur.partitioning.schemes.router.Router`, are made on first use and never leave the process.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from secateur.errors import NotSupportedError, UnknownColumnError
from secateur.partitioning.schemes.components import HashComponent, RangeComponent, RangePartition, RetiredRange
from secateur.partitioning.schemes.interval import IntervalPartitioning, IntervalUnit
from secateur.partitioning.schemes.layout import Layout
from secateur.partitioning.schemes.router import Router
from secateur.partitioning.types.cast import cast_column
from secateur.partitioning.types.column_type import SqlType, parse_type

__all__ = ["FUNCTION", "HashComponent", "PartitionScheme", "RangeComponent", "RangePartition", "RetiredRange"]

FUNCTION: Final = "xxhash64/1"

_BATCH_ROWS_MIN: Final = 1024


@dataclass(frozen=True, slots=True, weakref_slot=True)
class PartitionScheme:
    """How rows map to partitions.

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
            statement; see :mod:`~secateur.partitioning.schemes.scheme_registry`.
    """

    hashes: tuple[HashComponent, ...] = ()
    range: RangeComponent | None = None
    types: tuple[tuple[str, SqlType], ...] = ()
    function: str = FUNCTION
    group: str | None = None
    reference: str | None = None
    _layout: Layout | None = field(default=None, init=False, repr=False, compare=False)
    _router: Router | None = field(default=None, init=False, repr=False, compare=False)
    _structure: str | None = field(default=None, init=False, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        # The resolved forms hold closures and are cheap to make again.
        return PartitionScheme.from_wire, (self.to_wire(),)

    @property
    def is_known_function(self) -> bool:
        """Whether this version can compute the partition function; if not, nothing may be pruned."""
        return self.function == FUNCTION

    @property
    def columns(self) -> tuple[str, ...]:
        """The partitioning key in order of first mention.

        The order is: hash components, the range component, then the ranges' own hash components.
        """
        return self._ids().columns

    @property
    def partition_count(self) -> int:
        """The size of the id space: ids are in ``[0, partition_count)``.

        Ids of dropped ranges are counted: they stay reserved, so that no id ever changes.
        """
        return self._ids().partition_count

    @property
    def live_partition_count(self) -> int:
        """How many partitions can hold rows."""
        return self._ids().live_partition_count

    def live_partitions(self) -> npt.NDArray[np.int32]:
        """The ids that can hold rows, ascending; read-only."""
        return self._ids().live_partitions

    def live_ids(self) -> tuple[int, ...]:
        """:meth:`live_partitions` as Python numbers."""
        return self._ids().live_ids

    def type_of(self, column: str) -> SqlType:
        """The type of a partitioning column, by its exact name."""
        return dict(self.types)[column]

    def ranges(self) -> tuple[RangePartition, ...]:
        """The intervals that hold rows, sorted and disjoint; one unbounded interval if there is no range component.

        These are the live ranges. A catch-all occurs once for every gap that it fills, each time with its one ordinal;
        the unbounded interval has the ordinal 0.
        """
        return self._ids().segments

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
        return self._ids().has_gaps

    def hashes_of(self, ordinal: int) -> tuple[HashComponent, ...]:
        """The hash components of a live range: its own or the table's. KeyError when no live range has that ordinal."""
        return self._ids().hashes_of(ordinal)

    def hash_lists(self) -> tuple[tuple[HashComponent, ...], ...]:
        """The distinct lists of hash components of the live ranges: the table's, and those of single ranges."""
        return self._ids().hash_lists

    def block(self, ordinal: int) -> builtins.range:
        """The ids of a live range. KeyError when no live range has that ordinal."""
        return self._ids().block(ordinal)

    def compose(self, ordinal: int, buckets: Sequence[int]) -> int:
        """The partition of a live range with the given bucket of each of its hash components: base plus mixed radix."""
        return self._ids().compose(ordinal, buckets)

    def range_position(self, key: tuple[Any, ...]) -> int:
        """The position in :meth:`ranges` of the range that holds a key of canonical values, or -1.

        Cost: under 1 microsecond.
        """
        return self._compiled().locate(key)

    def bucket_of(self, component: int, values: Sequence[Any], *, ordinal: int | None = None) -> int:
        """The bucket of one hash component.

        Args:
            component: Index into the table's hash components, or into those of the range ``ordinal``.
            values: Canonical values of the component's columns, in its order.
            ordinal: The live range whose components are meant; None for the table's.
        """
        return self.bucket_function(component, ordinal=ordinal)(values)

    def bucket_function(self, component: int, *, ordinal: int | None = None) -> Callable[[Sequence[Any]], int]:
        """:meth:`bucket_of` with everything but the values resolved, for loops over many of them."""
        hashes = self.hashes if ordinal is None else self.hashes_of(ordinal)
        return self._compiled().bucketers(hashes)[component].bucket

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
        router = self._router
        return (self._compiled() if router is None else router).partition_of(values)

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
        router = self._compiled()
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
        return frozenset().union(*(self._compiled().missing_cells(chunk) for chunk in column.chunks))

    def affinity_group(self) -> str:
        """The name by which the topology knows the owners.

        Tables that share it are co-located: partition i of all holds the same keys, in the same place.
        """
        return (self._structure or self.structure()) if self.group is None else self.group

    def in_group(self, group: str) -> PartitionScheme:
        """Return the same scheme in the affinity group of that name; its resolved forms are kept."""
        return self._keeping(replace(self, group=group))

    def referred(self, reference: str | None) -> PartitionScheme:
        """Return the same scheme with another reference; its resolved forms are kept."""
        return self._keeping(replace(self, reference=reference))

    def resolve(self) -> None:
        """Make the resolved forms now rather than on first use, in a thread that has time.

        Cost: some microseconds per range.
        """
        self._ids()
        if self.is_known_function:
            self._compiled()

    def structure(self) -> str:
        """A name that two schemes share exactly when partition i of both holds the same keys.

        Column names do not count, nor names of ranges; types, structure, seeds, bucket counts, bounds and ordinals do.
        Computed once, in time linear in the ranges.
        """
        if self._structure is None:
            object.__setattr__(self, "_structure", self._describe_structure())
        assert self._structure is not None
        return self._structure

    def to_wire(self) -> dict[str, Any]:
        """Plain data for msgpack (bounds may be dates, datetimes, Decimals and UUIDs, which the wire has types for)."""
        return {
            "function": self.function,
            "group": self.group,
            "reference": self.reference,
            "types": [[name, str(type_)] for name, type_ in self.types],
            "hashes": [_hash_to_wire(h) for h in self.hashes],
            "range": None if self.range is None else _range_to_wire(self.range),
        }

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> PartitionScheme:
        """Read :meth:`to_wire`.

        A partition function of another name is kept: the reader may hold the table, but neither route nor prune.
        """
        component = data["range"]
        return cls(
            hashes=tuple(_hash_from_wire(h) for h in data["hashes"]),
            range=None if component is None else _range_from_wire(component),
            types=tuple((name, parse_type(text)) for name, text in data["types"]),
            function=data["function"],
            group=data["group"],
            reference=data["reference"],
        )

    def _keeping(self, other: PartitionScheme) -> PartitionScheme:
        for name in ("_layout", "_router", "_structure"):
            object.__setattr__(other, name, getattr(self, name))
        return other

    def _describe_structure(self) -> str:
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

    def _ids(self) -> Layout:
        if self._layout is None:
            object.__setattr__(self, "_layout", Layout(self.hashes, self.range))
        assert self._layout is not None
        return self._layout

    def _compiled(self) -> Router:
        if self._router is None:
            if not self.is_known_function:
                raise NotSupportedError(
                    f"partition function {self.function!r} is unknown here, {FUNCTION!r} is known; update this side to"
                    " route and prune"
                )
            object.__setattr__(self, "_router", Router(self._ids(), self.range, self.types))
        assert self._router is not None
        return self._router


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


def _hash_to_wire(component: HashComponent) -> list[Any]:
    return [list(component.columns), component.partitions, component.seed]


def _hash_from_wire(data: Sequence[Any]) -> HashComponent:
    columns, partitions, seed = data
    return HashComponent(tuple(columns), partitions, seed)


def _range_to_wire(component: RangeComponent) -> dict[str, Any]:
    return {
        "columns": list(component.columns),
        "ranges": _partitions_to_wire(component.ranges, len(component.columns)),
        "retired": [[r.ordinal, r.partitions] for r in component.retired],
        "catch_all": (
            None if component.catch_all is None else _partitions_to_wire((component.catch_all,), len(component.columns))
        ),
        "every": (
            None
            if component.every is None
            else [component.every.count, component.every.unit.value, component.every.start]
        ),
    }


def _partitions_to_wire(partitions: Sequence[RangePartition], columns: int) -> dict[str, Any]:
    """Encode ranges column by column, and properties that few ranges have by position.

    Thousands of small lists would take ten times as long to write and read.
    """
    return {
        "ordinals": [r.ordinal for r in partitions],
        "lowers": [[None if r.lower is None else r.lower[column] for r in partitions] for column in range(columns)],
        "uppers": [[None if r.upper is None else r.upper[column] for r in partitions] for column in range(columns)],
        "names": [[position, r.name] for position, r in enumerate(partitions) if r.name is not None],
        "hashes": [
            [position, [_hash_to_wire(h) for h in r.hashes]]
            for position, r in enumerate(partitions)
            if r.hashes is not None
        ],
    }


def _range_from_wire(data: Mapping[str, Any]) -> RangeComponent:
    catch_all, every = data["catch_all"], data["every"]
    return RangeComponent(
        columns=tuple(data["columns"]),
        ranges=_partitions_from_wire(data["ranges"]),
        retired=tuple(RetiredRange(ordinal, partitions) for ordinal, partitions in data["retired"]),
        catch_all=None if catch_all is None else _partitions_from_wire(catch_all)[0],
        every=None if every is None else IntervalPartitioning(every[0], IntervalUnit(every[1]), every[2]),
    )


def _partitions_from_wire(data: Mapping[str, Any]) -> tuple[RangePartition, ...]:
    names: dict[int, str] = dict(data["names"])
    hashes = {position: tuple(_hash_from_wire(h) for h in own) for position, own in data["hashes"]}
    bounds = zip(data["ordinals"], zip(*data["lowers"], strict=True), zip(*data["uppers"], strict=True), strict=True)
    return tuple(
        RangePartition(
            ordinal,
            None if lower[0] is None else lower,
            None if upper[0] is None else upper,
            names.get(position),
            hashes.get(position),
        )
        for position, (ordinal, lower, upper) in enumerate(bounds)
    )
