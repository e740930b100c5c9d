"""Key columns: copied, renamed, computed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from secateur.errors import DagError
from secateur.processors import key_by
from secateur.testing import verify_processor

ROWS = pa.table({"a": [1, 2], "b": pa.array(["x", None]).dictionary_encode(), "c": [0.5, 1.5]})
B = ROWS["b"]


@pytest.mark.parametrize(
    ("keys", "keep", "expected"),
    [
        pytest.param({"k": "b"}, True, {"k": B, "a": [1, 2], "b": B, "c": [0.5, 1.5]}, id="copied"),
        pytest.param({"k": "b"}, False, {"k": B, "a": [1, 2], "c": [0.5, 1.5]}, id="renamed"),
        pytest.param({"b": "b"}, True, {"b": B, "a": [1, 2], "c": [0.5, 1.5]}, id="moved to the front"),
        pytest.param({"a": "c", "c": "a"}, False, {"a": [0.5, 1.5], "c": [1, 2], "b": B}, id="exchanged"),
        pytest.param(
            {"k": lambda batch: pc.add(batch["a"], 1), "a": "c"},
            True,
            {"k": [2, 3], "a": [0.5, 1.5], "b": B, "c": [0.5, 1.5]},
            id="computed",
        ),
    ],
)
def test_keys_come_first(keys: dict[str, Any], keep: bool, expected: dict[str, Any]) -> None:
    verify_processor(key_by(keys, keep=keep), [ROWS], pa.table(expected), ordered=True)


def test_no_key_is_refused() -> None:
    with pytest.raises(DagError, match="given no key"):
        key_by({})


@pytest.mark.parametrize(
    ("source", "message"),
    [
        pytest.param("z", "there is no column 'z' in the input, which has 'a', 'b', 'c'", id="unknown"),
        pytest.param(lambda batch: pa.array([1, 2, 3]), "returned 3 values for 2 rows", id="length"),
        pytest.param(lambda batch: [1, 2], "returned a list for 2 rows", id="list"),
    ],
)
def test_keys_that_cannot_be_are_named(source: Any, message: str) -> None:
    with pytest.raises(AssertionError) as caught:
        verify_processor(key_by({"k": source}), [ROWS])
    assert isinstance(caught.value.__cause__, DagError)
    assert message in str(caught.value.__cause__)


def test_a_column_that_comes_twice_is_refused() -> None:
    twice = pa.Table.from_arrays([ROWS["a"], ROWS["a"]], names=["a", "a"])
    with pytest.raises(AssertionError, match="2 columns 'a'"):
        verify_processor(key_by({"k": "a"}), [twice])
