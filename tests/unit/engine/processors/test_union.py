"""Rows of several inputs as they come."""

from __future__ import annotations

import pyarrow as pa
import pytest

from secateur.errors import DagError, DataError
from secateur.processors import union
from secateur.testing import verify_processor

A = pa.table({"x": [1, 2], "y": ["a", None]})
B = pa.table({"y": ["c"], "x": [3]})


def test_columns_are_matched_by_name() -> None:
    schema = A.schema
    verify_processor(union(schema), [A, B], pa.table({"x": [1, 2, 3], "y": ["a", None, "c"]}))
    verify_processor(
        union(), [A, B], pa.table({"x": [1, 2, 3], "y": ["a", None, "c"]}), priorities=[0, 1], ordered=True
    )
    verify_processor(union(schema), [A.slice(0, 0), B.slice(0, 0)], A.slice(0, 0))


def test_types_are_cast_to_the_schema() -> None:
    narrow = pa.table({"x": pa.array([1], pa.int8()), "y": pa.array(["d"]).dictionary_encode()})
    verify_processor(union(A.schema), [A, narrow], pa.concat_tables([A, pa.table({"x": [1], "y": ["d"]})]))


@pytest.mark.parametrize(
    ("schema", "other", "error", "message"),
    [
        pytest.param(None, pa.table({"x": [1]}), DagError, "input 1 has the columns x, wanted are x, y", id="missing"),
        pytest.param(
            None,
            pa.table({"x": [1.5], "y": ["a"]}),
            DagError,
            "column 'x' of input 1 is double, but int64 came first",
            id="type",
        ),
        pytest.param(
            A.schema,
            pa.table({"x": [1.5], "y": ["a"]}),
            DataError,
            "column x, row 1: 1.5 (double) does not fit BIGINT",
            id="cast",
        ),
    ],
)
def test_what_does_not_fit_is_named(
    schema: pa.Schema | None, other: pa.Table, error: type[Exception], message: str
) -> None:
    with pytest.raises(AssertionError) as caught:
        verify_processor(union(schema), [A, other], priorities=[0, 1])
    assert isinstance(caught.value.__cause__, error)
    assert message in str(caught.value.__cause__)
