"""The entries of Arrow maps: slices, what NULLs have underneath, and keys that SQL does not have."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from secateur.errors import DataError
from secateur.partitioning.types import check_held, has_invalid_keys, map_entries, parse_type

INTEGERS = pa.map_(pa.int32(), pa.string())
SOME = pa.array([[(1, "a")], None, [], [(3, None), (4, "b")], [(1, "c")]], INTEGERS)
UNDER_NULL = pa.MapArray.from_arrays(
    pa.array([0, 1, 3, 4], pa.int32()),
    pa.array([7, 1, 1, 8], pa.int32()),
    pa.array(list("abcd")),
    mask=pa.array([False, True, False]),
)


@pytest.mark.parametrize("start", range(6))
@pytest.mark.parametrize("count", range(6))
def test_the_entries_of_a_slice_are_those_of_its_rows(start: int, count: int) -> None:
    part = SOME.slice(start, count)
    offsets, keys, items = map_entries(part)
    again = pa.MapArray.from_arrays(offsets, keys, items, mask=part.is_null() if part.null_count else None)
    assert again.to_pylist() == part.to_pylist()
    assert len(keys) == sum(len(row or []) for row in part.to_pylist())


def test_what_a_null_has_underneath_is_left_out() -> None:
    offsets, keys, items = map_entries(UNDER_NULL)
    assert (offsets.to_pylist(), keys.to_pylist(), items.to_pylist()) == ([0, 1, 1, 2], [7, 8], ["a", "d"])
    assert not has_invalid_keys(UNDER_NULL)
    assert map_entries(UNDER_NULL.slice(2))[1].to_pylist() == [8]


@pytest.mark.parametrize(
    ("key", "keys", "is_invalid"),
    [
        ("INTEGER", [[1, 2], [1, 2]], False),
        ("INTEGER", [[1], [2, 3, 2]], True),
        ("VARCHAR", [["a", "A"], ["", "a"]], False),
        ("VARCHAR", [["a"], ["é", "é"]], True),
        ("DOUBLE", [[0.0, -0.0]], True),
        ("DOUBLE", [[math.nan, math.nan]], True),
        ("DOUBLE", [[0.0, 1.0], [0.0]], False),
        ("INTEGER[]", [[[1], [1, 1]], [[1]]], False),
        ("INTEGER[]", [[[1], [1]]], True),
        ("STRUCT(a INTEGER)", [[{"a": 1}, {"a": None}]], False),
        ("STRUCT(a INTEGER)", [[{"a": None}, {"a": None}]], True),
    ],
)
def test_a_key_is_there_once(key: str, keys: list[list[object]], is_invalid: bool) -> None:
    arrow = pa.map_(parse_type(key).arrow, pa.int8())
    array = pa.array([[(one, 0) for one in row] for row in keys], arrow)
    assert has_invalid_keys(array) is is_invalid
    wrapped = pa.StructArray.from_arrays([array], names=["m"])
    if is_invalid:
        with pytest.raises(DataError, match="column 'c' has a MAP with a NULL key, or with one key twice"):
            check_held(pa.chunked_array([wrapped]), "c")
    else:
        check_held(pa.chunked_array([wrapped, wrapped.slice(1)]), "c")


def test_keys_of_uuids_are_compared() -> None:
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16, b"b" * 16, b"a" * 16], pa.binary(16)))
    for end, is_invalid in ((2, False), (3, True)):
        offsets = pa.array([0, end], pa.int32())
        array = pa.MapArray.from_arrays(offsets, uuids.slice(0, end), pa.nulls(end, pa.int8()))
        assert has_invalid_keys(array) is is_invalid
