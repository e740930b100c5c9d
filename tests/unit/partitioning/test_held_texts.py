from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from secateur.errors import DataError
from secateur.partitioning.types import check_texts


def texts(*values: bytes) -> pa.Array:
    """An Arrow array of texts that nobody has looked at."""
    return pa.array(values, pa.binary()).view(pa.string())


LATIN_1 = "größe".encode("latin-1")
BAD = texts(b"ok", LATIN_1, b"fine")


@pytest.mark.parametrize(
    ("column", "row"),
    [
        pytest.param(BAD, 1, id="text"),
        pytest.param(BAD.slice(1), 0, id="slice"),
        pytest.param(pa.chunked_array([texts(b"a", b"b"), BAD]), 3, id="chunks"),
        pytest.param(pa.array([b"ok", LATIN_1], pa.large_binary()).view(pa.large_string()), 1, id="large"),
        pytest.param(
            pa.Array.from_buffers(pa.string_view(), 2, pa.array([b"ok", LATIN_1], pa.binary_view()).buffers()),
            1,
            id="view",
        ),
        pytest.param(pa.DictionaryArray.from_arrays(pa.array([0, 2, 1], pa.int8()), BAD), 2, id="dictionary"),
        pytest.param(pa.ListArray.from_arrays(pa.array([0, 1, 1, 3], pa.int32()), BAD), 2, id="list"),
        pytest.param(pa.StructArray.from_arrays([BAD], ["a"]), 1, id="struct"),
        pytest.param(pa.MapArray.from_arrays([0, 1, 3], BAD, pa.array([1, 2, 3])), 1, id="keys"),
        pytest.param(pa.MapArray.from_arrays([0, 1, 3], pa.array([1, 2, 3]), BAD), 1, id="values"),
    ],
)
def test_a_text_that_is_no_utf_8_is_named_with_its_row(column: Any, row: int) -> None:
    with pytest.raises(DataError) as raised:
        check_texts(pa.table({"k": range(len(column)), "v": column}), first_row=100)
    shown = "b'gr\\xf6\\xdfe'"
    assert raised.value.message == (
        f"column v, row {100 + row}: {shown} is no UTF-8: decode it by its own encoding, or use a BLOB"
    )
    assert raised.value.details == {"column": "v", "row": 100 + row}


@pytest.mark.parametrize(
    "column",
    [
        pytest.param(texts("größe".encode()), id="text"),
        pytest.param(pa.array([b"\xff"]), id="bytes"),
        pytest.param(BAD.slice(2), id="outside of the slice"),
        pytest.param(pa.ListArray.from_arrays(pa.array([0, 1, 3], pa.int32()), BAD).slice(0, 1), id="part of a list"),
        pytest.param(pa.array([1]), id="numbers"),
        pytest.param(pa.array([2**31 - 1], pa.int32()).cast(pa.date32()), id="infinity"),
    ],
)
def test_other_columns_pass(column: pa.Array) -> None:
    check_texts(pa.table({"v": column}))


def test_an_array_that_contradicts_itself_is_not_read() -> None:
    offsets = pa.py_buffer(np.array([0, 2**30, 2**30, 4], np.int32).tobytes())
    check_texts(pa.table({"v": pa.StringArray.from_buffers(3, offsets, pa.py_buffer(b"abcd"))}))
