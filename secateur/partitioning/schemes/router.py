"""A partition scheme compiled for speed: encoders, seeds, block bases and search structures are resolved once.

:class:`~secateur.partitioning.schemes.scheme.PartitionScheme` is the description, this is its resolved form. A thin
client routes every statement through :meth:`Router.partition_of`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from secateur.errors import NoRangeError, NullKeyError, ParameterError, UnknownRangesError
from secateur.partitioning.schemes.components import HashComponent, IntervalUnit, RangeComponent
from secateur.partitioning.schemes.hashing import first_seed, hash_columns, hash_values, pmod, pmod_array, xxh64
from secateur.partitioning.schemes.layout import Layout
from secateur.partitioning.schemes.partial_ranges import EVERY_KEY, KeyInterval, unknown_ranges
from secateur.partitioning.schemes.ranges import NO_RANGE, RangeIndex
from secateur.partitioning.types.arrow_layout import row_numbers
from secateur.partitioning.types.cast import scalar_text
from secateur.partitioning.types.coerce import coerce
from secateur.partitioning.types.column_type import SqlType
from secateur.partitioning.types.encoding import EncodedColumn, encode_array, minimum, scalar_encoder

NO_PARTITION: Final = -1
"""The partition id of a row that belongs to no partition."""

ROWS_LOOKED_UP_MAX: Final = 64
"""Rows whose ranges are fetched by their keys; for more rows all ranges are."""

_NOT_CANONICAL: Final = (TypeError, ValueError, AttributeError, KeyError, OverflowError, ArithmeticError, struct.error)


class _Bucketer:
    """One hash component, compiled."""

    __slots__ = ("columns", "encoders", "partitions", "seed")

    def __init__(self, component: HashComponent, types: Mapping[str, SqlType]) -> None:
        self.columns = component.columns
        self.partitions = component.partitions
        self.seed = first_seed(component.seed)
        self.encoders = tuple(scalar_encoder(types[name]) for name in component.columns)

    def bucket(self, values: Sequence[Any]) -> int:
        return pmod(hash_values(self.encoders, values, self.seed), self.partitions)


class Router:
    """The compiled form of one scheme; holds no reference to any row."""

    def __init__(
        self,
        layout: Layout,
        component: RangeComponent | None,
        types: Sequence[tuple[str, SqlType]],
        reference: str | None,
    ) -> None:
        self._types = dict(types)
        self._reference = reference
        self._ids_end = layout.outline.partition_count  # the pseudo ranges of unknown keys are behind
        self._range_columns = () if component is None else component.columns
        self._every = None if component is None else component.every
        self._range_classes = tuple(type(minimum(self._types[name])) for name in self._range_columns)
        self._index = (
            None
            if component is None
            else RangeIndex(layout.segments, [self._types[name] for name in component.columns])
        )
        # Everything below is indexed by segment, sorted by lower bound. Without a range component there is one
        # that holds everything.
        ordinals = [segment.ordinal for segment in layout.segments]
        self._bases = np.array([layout.bases[ordinal] for ordinal in ordinals], dtype=np.int64)
        hashes = [layout.hashes_of(ordinal) for ordinal in ordinals]
        # Most ranges share the table's hash components: each distinct list is compiled once.
        by_hashes = {h: tuple(_Bucketer(c, self._types) for c in h) for h in dict.fromkeys(hashes)}
        self._bucketers = [by_hashes[h] for h in hashes]
        self._groups = list(by_hashes.values())
        numbers = {h: number for number, h in enumerate(by_hashes)}
        self._group_of = np.array([numbers[h] for h in hashes], dtype=np.int64)
        self._route = self._compile_route()

    def partition_of(self, values: Mapping[str, Any]) -> int:
        try:
            return self._route(values)
        except _NOT_CANONICAL:
            return self._route(self._canonical(values))

    def function_of(self, names: Sequence[str]) -> Callable[[Sequence[Any]], int]:
        """:meth:`partition_of` of the values of some columns, which include those that partition, in their order."""
        whole = self.partition_of

        def partition_of_named(values: Sequence[Any]) -> int:
            return whole(dict(zip(names, values, strict=True)))

        bucketer = self._groups[0][0] if self._index is None and len(self._groups[0]) == 1 else None
        if bucketer is None or len(bucketer.columns) != 1 or bucketer.columns[0] not in names:
            return partition_of_named
        position, (encode,) = names.index(bucketer.columns[0]), bucketer.encoders
        seed, partitions = bucketer.seed, bucketer.partitions

        def partition_of_one(values: Sequence[Any]) -> int:
            value = values[position]
            try:
                return pmod(seed if value is None else xxh64(encode(value), seed), partitions)
            except _NOT_CANONICAL:
                return partition_of_named(values)

        return partition_of_one

    def locate(self, key: tuple[Any, ...]) -> int:
        """The position among the segments of the one that holds a key, or ``NO_RANGE``."""
        return 0 if self._index is None else self._index.locate(key)

    def missing_cells(self, values: pa.Array) -> frozenset[int]:
        """Return the cells of the given values that no range holds; see :meth:`PartitionScheme.missing_cells`."""
        if self._every is None or self._index is None:
            return frozenset()
        present = values.drop_null()
        position = self._index.locate_rows([present])
        self._check_known(position, [present])
        outside = present.take(row_numbers(np.flatnonzero(position == NO_RANGE)))
        return self._every.cells_of(outside, self._types[self._range_columns[0]]) if len(outside) else frozenset()

    def partitions_of(self, batch: pa.RecordBatch, *, unmatched_allowed: bool = False) -> npt.NDArray[np.int32]:
        """Return the partition of each row of a batch; -1 for rows without a partition, if ``unmatched_allowed``.

        The batch's columns must have exactly the Arrow types of the scheme.
        """
        if self._index is None:
            hashes = _RowHashes(batch, self._types)
            return self._combine(self._groups[0], hashes, None, np.zeros(batch.num_rows, dtype=np.int64)).astype(
                np.int32
            )
        if not unmatched_allowed:
            return self._partitions_at(batch, self._locate_rows(batch, self._index))
        at = self._rows_without_null(batch)
        located = batch if at is None else batch.take(row_numbers(at))
        position = self._index.locate_rows([located.column(name) for name in self._range_columns])
        self._check_known(position, [located.column(name) for name in self._range_columns])
        inside = np.flatnonzero(position != NO_RANGE)
        if at is None and len(inside) == batch.num_rows:
            return self._partitions_at(batch, position)
        ids = np.full(batch.num_rows, NO_PARTITION, dtype=np.int32)
        ids[inside if at is None else at[inside]] = self._partitions_at(
            located.take(row_numbers(inside)), position[inside]
        )
        return ids

    def _partitions_at(self, batch: pa.RecordBatch, position: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """The partitions of rows whose segments are known."""
        hashes = _RowHashes(batch, self._types)
        ids = self._bases[position]
        if len(self._groups) == 1:
            return self._combine(self._groups[0], hashes, None, ids).astype(np.int32)
        group_of_row = self._group_of[position]
        for number, bucketers in enumerate(self._groups):
            at = np.flatnonzero(group_of_row == number)
            if len(at):
                ids[at] = self._combine(bucketers, hashes, at, ids[at])
        return ids.astype(np.int32)

    def _compile_route(self) -> Callable[[Mapping[str, Any]], int]:
        """The shortest code that routes one row; the common schemes have one hash component of one column."""
        if self._index is None and len(self._groups[0]) == 1 and len(self._groups[0][0].columns) == 1:
            bucketer = self._groups[0][0]
            (column,), (encoder,) = bucketer.columns, bucketer.encoders

            def route_one(values: Mapping[str, Any]) -> int:
                return pmod(hash_values((encoder,), (values[column],), bucketer.seed), bucketer.partitions)

            return route_one
        if self._index is None:
            components = self._groups[0]

            def route_hashes(values: Mapping[str, Any]) -> int:
                return _mixed_radix(components, values)

            return route_hashes
        return self._route_range

    def _route_range(self, values: Mapping[str, Any]) -> int:
        key = tuple([values[name] for name in self._range_columns])
        if None in key:
            raise self._null_key(self._range_columns[key.index(None)])
        # Without this check a float would get a range of an INTEGER column: comparisons are silent, while encoding
        # raises.
        if tuple(map(type, key)) != self._range_classes:
            raise TypeError
        position = self.locate(key)
        if position == NO_RANGE:
            raise self._no_range([repr(value) for value in key], 1, of=1)
        base = int(self._bases[position])
        if base >= self._ids_end:
            raise self._unknown([KeyInterval(key, key)])
        return base + _mixed_radix(self._bucketers[position], values)

    def _canonical(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The slow path: match names without regard to case, convert values exactly, report those that do not fit."""
        folded = {name.casefold(): value for name, value in values.items()}
        missing = [name for name in self._types if name.casefold() not in folded]
        if missing:
            given = ", ".join(values) or "nothing"
            raise ParameterError(
                f"the partition depends on the columns {', '.join(self._types)}; {', '.join(missing)} missing, given"
                f" were: {given}"
            )
        return {name: coerce(folded[name.casefold()], type_, column=name) for name, type_ in self._types.items()}

    def _combine(
        self,
        bucketers: tuple[_Bucketer, ...],
        hashes: _RowHashes,
        at: npt.NDArray[np.int64] | None,
        bases: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.int64]:
        """Bases plus the mixed radix of the buckets, for all rows or those at the given positions."""
        local = np.zeros(len(bases), dtype=np.int64)
        for bucketer in bucketers:
            states = hashes.of(bucketer)
            local *= bucketer.partitions
            local += pmod_array(states if at is None else states[at], bucketer.partitions)
        return bases + local

    def _locate_rows(self, batch: pa.RecordBatch, index: RangeIndex) -> npt.NDArray[np.int64]:
        columns = [batch.column(name) for name in self._range_columns]
        for name, column in zip(self._range_columns, columns, strict=True):
            if column.null_count:
                raise self._null_key(name)
        position = index.locate_rows(columns)
        self._check_known(position, columns)
        outside = np.flatnonzero(position == NO_RANGE)
        if len(outside):
            first = int(outside[0])
            raise self._no_range([scalar_text(column[first]) for column in columns], len(outside), of=len(position))
        return position

    def _rows_without_null(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64] | None:
        """The rows whose range columns all have a value; None for all rows."""
        columns = [column for name in self._range_columns if (column := batch.column(name)).null_count]
        if not columns:
            return None
        valid = np.logical_and.reduce([column.is_valid().to_numpy(zero_copy_only=False) for column in columns])
        return np.flatnonzero(valid)

    def _check_known(self, position: npt.NDArray[np.int64], columns: Sequence[pa.Array]) -> None:
        """Raise when the ranges of some rows are not known yet, given the segment of each row."""
        if not len(self._bases) or int(self._bases.max()) < self._ids_end:
            return
        at = np.flatnonzero((position != NO_RANGE) & (self._bases[position] >= self._ids_end))
        if not len(at):
            return
        if len(at) > ROWS_LOOKED_UP_MAX:
            raise self._unknown([EVERY_KEY])
        keys = list(zip(*(column.take(row_numbers(at)).to_pylist() for column in columns), strict=True))
        raise self._unknown([KeyInterval(key, key) for key in dict.fromkeys(keys)])

    def _unknown(self, wanted: list[KeyInterval]) -> UnknownRangesError:
        return unknown_ranges(self._reference, wanted)

    def _null_key(self, column: str) -> NullKeyError:
        return NullKeyError(
            f"column {column} partitions its table by range and is NULL; give it a value", column=column
        )

    def _no_range(self, key: Sequence[str], rows: int, *, of: int) -> NoRangeError:
        shown = ", ".join(f"{name}={value}" for name, value in zip(self._range_columns, key, strict=True))
        remedy = "add one with ALTER TABLE ... ADD PARTITION, or leave the row out"
        if self._every is not None:
            start = "" if self._every.start is None else f" of {self._every.start!s} or later"
            years = "" if self._every.unit is IntervalUnit.NUMBER else ", in the years 1 to 9999"
            remedy = (
                f"EVERY makes one when a row{start} is written{years}; for others add one with ALTER TABLE ... ADD"
                " PARTITION"
            )
        count = f"{rows} such row{'s' if rows > 1 else ''}{f' of {of:,}' if of > rows else ''}"
        return NoRangeError(f"no range partition covers {shown} ({count}); {remedy}", value=list(key))


class _RowHashes:
    """The hash states of a batch, each computed once however many components share its columns and seed."""

    __slots__ = ("_batch", "_encoded", "_states", "_types")

    def __init__(self, batch: pa.RecordBatch, types: Mapping[str, SqlType]) -> None:
        self._batch = batch
        self._types = types
        self._encoded: dict[str, EncodedColumn] = {}
        self._states: dict[tuple[tuple[str, ...], int], npt.NDArray[np.uint64]] = {}

    def of(self, bucketer: _Bucketer) -> npt.NDArray[np.uint64]:
        key = (bucketer.columns, bucketer.seed)
        if key not in self._states:
            self._states[key] = hash_columns(
                [self._encode(name) for name in bucketer.columns], bucketer.seed, self._batch.num_rows
            )
        return self._states[key]

    def _encode(self, name: str) -> EncodedColumn:
        if name not in self._encoded:
            self._encoded[name] = encode_array(self._batch.column(name), self._types[name])
        return self._encoded[name]


def _mixed_radix(bucketers: tuple[_Bucketer, ...], values: Mapping[str, Any]) -> int:
    local = 0
    for bucketer in bucketers:
        local = local * bucketer.partitions + bucketer.bucket([values[name] for name in bucketer.columns])
    return local
