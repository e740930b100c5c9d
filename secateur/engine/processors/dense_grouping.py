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

_SLOTS_MAX: Final = 1 << 21
_SLOTS_PER_ROW_MAX: Final = 4
_EXACT_IN_DOUBLE_MAX: Final = 2**53
_BLOCK_ROWS: Final = 1 << 16
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
    if place_count > min(_SLOTS_MAX, _SLOTS_PER_ROW_MAX * row_count):
        return None
    places = _places(keys, spans, row_count)
    counts = np.bincount(places, minlength=place_count)
    groups = np.flatnonzero(counts)
    groups = groups[np.argsort(_first_rows(places, place_count, len(groups))[groups])]
    columns = _keys_of(groups, keys, spans)
    return columns + [_state(state, arguments, places, place_count, counts, groups) for state in states]


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
    places = np.empty(row_count, dtype=np.int64)
    offsets = places if len(keys) == 1 else np.empty(row_count, dtype=np.int64)
    for index, (key, span) in enumerate(zip(keys, spans, strict=True)):
        start = 0
        for chunk in _chunks(key):
            part = offsets[start : start + len(chunk)]
            np.subtract(pc.fill_null(chunk, span.low) if chunk.null_count else chunk, span.low, out=part, dtype=np.int64)
            if chunk.null_count:
                part[chunk.is_null().to_numpy(zero_copy_only=False)] = span.size - 1
            start += len(chunk)
        if index:
            places *= span.size
            places += offsets
        elif len(keys) > 1:
            places[:] = offsets
    return places


def _first_rows(places: Ints, place_count: int, group_count: int) -> Ints:
    """The first row of each place; -1 where there is none. Ends as soon as all groups have been seen."""
    firsts = np.full(place_count, -1, dtype=np.int64)
    for start in range(0, len(places), _BLOCK_ROWS):
        block = places[start : start + _BLOCK_ROWS]
        unseen = np.flatnonzero(firsts[block] < 0)[::-1]  # backwards: of several rows that are written to one place, the first is the last written
        firsts[block[unseen]] = start + unseen
        group_count -= int(np.count_nonzero(firsts[block[unseen]] == start + unseen))
        if not group_count:
            break
    return firsts


def _keys_of(groups: Ints, keys: Sequence[Any], spans: Sequence[_Span]) -> list[Any]:
    """The values of the key that the groups stand for."""
    columns: list[Any] = []
    rest = groups
    for key, span in zip(reversed(keys), reversed(spans), strict=True):
        rest, offsets = np.divmod(rest, span.size)
        nulls = offsets == span.size - 1
        columns.append(pa.array(np.where(nulls, 0, offsets + span.low), mask=nulls).cast(key.type))
    return columns[::-1]


def _state(state: State, arguments: Mapping[str, tuple[Any, SqlType]], places: Ints, place_count: int, counts: Ints, groups: Ints) -> pa.Array:
    wanted = compute_type(parse_type(state.type_text))
    if state.argument is None:
        return pa.array(counts[groups])
    values, kind = arguments[state.argument]
    present = counts[groups]
    if values.null_count:
        missing = np.concatenate([chunk.is_null().to_numpy(zero_copy_only=False) for chunk in _chunks(values)])
        present = present - np.bincount(places[missing], minlength=place_count)[groups]
    if state.function is AggregateFunction.COUNT:
        return pa.array(present)
    sums = np.bincount(places, weights=_doubles(values), minlength=place_count)[groups]
    found = pa.array(sums if kind.is_float else sums.astype(np.int64), mask=present == 0)
    return found if found.type.equals(wanted) else found.cast(wanted)


def _doubles(values: Any) -> npt.NDArray[np.float64]:
    """The values, 0 where they are NULL."""
    doubles = np.empty(len(values), dtype=np.float64)
    start = 0
    for chunk in _chunks(values):
        doubles[start : start + len(chunk)] = pc.fill_null(chunk, 0) if chunk.null_count else chunk
        start += len(chunk)
    return doubles


def _chunks(values: Any) -> list[pa.Array]:
    return values.chunks if isinstance(values, pa.ChunkedArray) else [values]
