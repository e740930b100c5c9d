"""Grouping by integers of a small range: each group has its place in an array, so nothing is hashed. A third of the time of a hash aggregation, or less.

Source: perfect hash aggregation as in DuckDB (``PerfectAggregateHashTable``); here the counting is ``numpy.bincount``, which releases the GIL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from secateur.engine.kernels.arrow_fragment import AggregateFunction
from secateur.engine.kernels.exact_values import compute_type
from secateur.engine.processors.arrow_grouping import State
from secateur.partitioning.types import SqlType, TypeKind, parse_type

__all__ = ["grouped_densely"]

_PLACES_MAX: Final = 1 << 21
_PLACES_PER_ROW_MAX: Final = 4
_EXACT_IN_DOUBLE_MAX: Final = 2**53
#: Arrays of so many words stay in the second-level cache, and the allocator gives the same memory again for the next block.
_BLOCK_ROWS: Final = 1 << 17
_FUNCTIONS: Final = frozenset({AggregateFunction.COUNT_ROWS, AggregateFunction.COUNT, AggregateFunction.SUM})
_KEY_TYPES: Final = frozenset({pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()})
_SUMMED_KINDS: Final = frozenset(
    {
        TypeKind.TINYINT,
        TypeKind.SMALLINT,
        TypeKind.INTEGER,
        TypeKind.BIGINT,
        TypeKind.UTINYINT,
        TypeKind.USMALLINT,
        TypeKind.UINTEGER,
        TypeKind.FLOAT,
        TypeKind.DOUBLE,
    }
)

Ints = npt.NDArray[np.int64]


class _Span(NamedTuple):
    """The values of a key: from ``low`` on, ``size`` places, of which the last is that of NULL."""

    low: int
    size: int


def grouped_densely(keys: Sequence[Any], arguments: Mapping[str, tuple[Any, SqlType]], states: Sequence[State], row_count: int) -> list[Any] | None:
    """As :func:`~secateur.engine.processors.arrow_grouping.grouped_by_arrow`, for counts and sums by integers that lie close together.

    Sums of integers are taken as doubles where all of them are exact. Cost for one key and two states: 3.5 ns a row with a thousand groups, 5 ns with 100,000.
    """
    if not keys or any(key.type not in _KEY_TYPES for key in keys):
        return None
    if any(state.function not in _FUNCTIONS or (state.function is AggregateFunction.SUM and not _adds_up(arguments, state, row_count)) for state in states):
        return None
    spans = [_span(key) for key in keys]
    place_count = prod(span.size for span in spans)
    if place_count > min(_PLACES_MAX, _PLACES_PER_ROW_MAX * row_count):
        return None
    counts = np.zeros(place_count, dtype=np.int64)
    firsts = np.full(place_count, -1, dtype=np.int64)
    columns = [_Column(state, arguments, place_count) for state in states]
    block_rows = max(_BLOCK_ROWS, place_count)
    for start in range(0, row_count, block_rows):
        places = _places([key.slice(start, block_rows) for key in keys], spans, min(block_rows, row_count - start))
        found = np.bincount(places, minlength=place_count)
        counts += found
        # Places are few and rows many: most blocks have no group that is new.
        if np.any((firsts < 0) & (found > 0)):
            unseen = np.flatnonzero(firsts[places] < 0)[::-1]  # backwards: of several rows that are written to one place, the first is written last
            firsts[places[unseen]] = start + unseen
        for column in columns:
            column.add(places, start)
    groups = np.flatnonzero(counts)
    groups = groups[np.argsort(firsts[groups])]
    return [*_keys_of(groups, keys, spans), *(column.result(counts, groups) for column in columns)]


def _adds_up(arguments: Mapping[str, tuple[Any, SqlType]], state: State, row_count: int) -> bool:
    """Whether all sums of the values are exact in a DOUBLE, or DOUBLEs anyway."""
    assert state.argument is not None
    values, kind = arguments[state.argument]
    if kind.kind not in _SUMMED_KINDS:
        return False
    if kind.is_float:
        return True
    low, high = _extremes(values)
    return max(-low, high) * row_count <= _EXACT_IN_DOUBLE_MAX


def _span(key: Any) -> _Span:
    low, high = _extremes(key)
    return _Span(low, high - low + 2)


def _extremes(values: Any) -> tuple[int, int]:
    """The smallest and largest value; 0 and 0 where there is none."""
    found = pc.min_max(values).as_py()
    return (0, 0) if found["min"] is None else (found["min"], found["max"])


def _places(keys: Sequence[Any], spans: Sequence[_Span], row_count: int) -> Ints:
    """The place of each row's group."""
    places = _offsets(keys[0], spans[0], row_count)
    for key, span in zip(keys[1:], spans[1:], strict=True):
        places *= span.size
        places += _offsets(key, span, row_count)
    return places


def _offsets(key: Any, span: _Span, row_count: int) -> Ints:
    offsets = np.empty(row_count, dtype=np.int64)
    start = 0
    for chunk in _chunks(key):
        part = offsets[start : start + len(chunk)]
        np.subtract(chunk.fill_null(span.low) if chunk.null_count else chunk, span.low, out=part, dtype=np.int64)
        if chunk.null_count:
            part[_is_null(chunk)] = span.size - 1
        start += len(chunk)
    return offsets


def _keys_of(groups: Ints, keys: Sequence[Any], spans: Sequence[_Span]) -> list[Any]:
    """The values of the key that the groups stand for."""
    columns: list[Any] = []
    rest = groups
    for key, span in zip(reversed(keys), reversed(spans), strict=True):
        rest, offsets = np.divmod(rest, span.size)
        nulls = offsets == span.size - 1
        columns.append(pa.array(np.where(nulls, 0, offsets + span.low), mask=nulls).cast(key.type))
    return columns[::-1]


class _Column:
    """A state of each place while rows come."""

    def __init__(self, state: State, arguments: Mapping[str, tuple[Any, SqlType]], place_count: int) -> None:
        self._values: Any = None
        self._kind = SqlType(TypeKind.BIGINT)
        if state.argument is not None:
            self._values, self._kind = arguments[state.argument]
        self._type = compute_type(parse_type(state.type_text))
        has_nulls = self._values is not None and self._values.null_count > 0
        self._missing = np.zeros(place_count, dtype=np.int64) if has_nulls else None
        self._sums = np.zeros(place_count) if state.function is AggregateFunction.SUM else None

    def add(self, places: Ints, start: int) -> None:
        """Take in the rows from ``start`` on, whose places these are."""
        if self._values is None or (self._missing is None and self._sums is None):
            return
        chunks = _chunks(self._values.slice(start, len(places)))
        position = 0
        doubles = np.empty(len(places))
        for chunk in chunks:
            part = slice(position, position + len(chunk))
            if self._missing is not None and chunk.null_count:
                self._missing += np.bincount(places[part][_is_null(chunk)], minlength=len(self._missing))
            if self._sums is not None:
                doubles[part] = chunk.fill_null(0) if chunk.null_count else chunk
            position += len(chunk)
        if self._sums is not None:
            self._sums += np.bincount(places, weights=doubles, minlength=len(self._sums))

    def result(self, counts: Ints, groups: Ints) -> pa.Array:
        """The states of the groups, of which ``counts`` says how many rows each place has."""
        present = counts[groups] if self._missing is None else counts[groups] - self._missing[groups]
        if self._sums is None:
            return pa.array(present)
        sums = self._sums[groups]
        found = pa.array(sums if self._kind.is_float else sums.astype(np.int64), mask=present == 0)
        return found if found.type.equals(self._type) else found.cast(self._type)


def _is_null(chunk: Any) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = chunk.is_null().to_numpy(zero_copy_only=False)
    return found


def _chunks(values: Any) -> list[pa.Array]:
    return values.chunks if isinstance(values, pa.ChunkedArray) else [values]
