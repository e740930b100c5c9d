"""Merging inputs that are in order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from secateur.errors import DagError, LimitExceededError
from secateur.processors import desc, merge
from secateur.testing import verify_processor

NAN = float("nan")
A = pa.table({"k": [1, 3, 3, 7, None], "s": ["a0", "a1", "a2", "a3", "a4"]})
B = pa.table({"k": [2, 3, 8], "s": ["b0", "b1", "b2"]})
C = pa.table({"k": pa.array([], pa.int64()), "s": pa.array([], pa.string())})


def keys(*tables: pa.Table) -> list[pa.Table]:
    return [table.select(["k"]) for table in tables]


@pytest.mark.parametrize("priorities", [[0, 0, 0], [2, 0, 1]], ids=["in turns", "one after another"])
def test_inputs_in_order_become_one(priorities: list[int]) -> None:
    expected = pa.table({"k": [1, 2, 3, 3, 3, 7, 8, None]})
    verify_processor(merge("k", inputs=3), keys(A, B, C), expected, ordered=True, priorities=priorities)
    both = pa.table({"k": [1, 2, 3, 3, 3, 7, 8, None], "s": ["a0", "b0", "a1", "a2", "b1", "a3", "b2", "a4"]})
    verify_processor(merge("k", inputs=2), [A, B], both)


def test_descending_with_nan_and_dictionaries() -> None:
    one = pa.table({"k": [NAN, 2.0, None], "s": pa.array(["x", "y", "x"]).dictionary_encode()})
    other = pa.table({"k": [3.0, 1.0], "s": pa.array(["y", "z"]).dictionary_encode()})
    expected = pa.table({"k": [NAN, 3.0, 2.0, 1.0, None], "s": pa.array(["x", "y", "y", "z", "x"]).dictionary_encode()})
    verify_processor(merge(desc("k"), inputs=2), [one, other], expected, ordered=True)


def test_no_row_and_no_batch() -> None:
    verify_processor(merge("k", inputs=2), [A.slice(0, 0), C], A.slice(0, 0))
    verify_processor(merge("k", inputs=1), [[]], pa.schema([]).empty_table())


def test_random_inputs() -> None:
    rng = np.random.default_rng(5)
    tables = [pa.table({"k": np.sort(rng.integers(0, 30, count))}) for count in (40, 1, 25)]
    expected = pa.table({"k": np.sort(np.concatenate([table["k"].to_numpy() for table in tables]))})
    verify_processor(merge("k", inputs=3), tables, expected, ordered=True)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda: merge(inputs=2), "name at least one column", id="no key"),
        pytest.param(lambda: merge("k", inputs=0), "called with 0 inputs", id="no input"),
    ],
)
def test_what_cannot_be_is_refused_at_once(make: Callable[[], object], message: str) -> None:
    with pytest.raises(DagError, match=message):
        make()


@pytest.mark.parametrize(
    ("inputs", "bytes_max", "error", "message"),
    [
        pytest.param(
            [A, pa.table({"k": [2, 1], "s": ["x", "y"]})],
            1 << 20,
            DagError,
            "input 1 of the merge is not in order of k",
            id="within a batch",
        ),
        pytest.param(
            [[*A.to_batches(), *A.to_batches()], B],
            1 << 20,
            DagError,
            "input 0 of the merge is not in order of k",
            id="between batches",
        ),
        pytest.param([A, B, C], 1 << 20, DagError, "merge(inputs=2) received a batch on input 2", id="too many inputs"),
        pytest.param([A, B], 20, LimitExceededError, "bound is 20", id="memory"),
    ],
)
def test_what_goes_wrong_is_named(inputs: list[pa.Table], bytes_max: int, error: type[Exception], message: str) -> None:
    with pytest.raises(AssertionError) as caught:
        verify_processor(merge("k", inputs=2, bytes_max=bytes_max), inputs)
    assert isinstance(caught.value.__cause__, error)
    assert message in str(caught.value.__cause__)
