"""Runs: sorted where the rows are, merged at one."""

from __future__ import annotations

import pyarrow as pa
import pytest

from secateur.engine.processors import RUN
from secateur.errors import DagError, LimitExceededError
from secateur.processors import merge_runs, sort_runs
from secateur.testing import verify_processor

A = pa.table({"k": [1, 4, 5, 9], "s": ["a", "b", "c", "d"]})
B = pa.table({"k": [2, 4, None], "s": ["e", "f", "g"]})
NONE = A.slice(0, 0)


def run_of(rows: pa.Table | None, run: int, runs: int) -> pa.Table:
    """A run as it travels: its rows, then one that ends it."""
    mark = (runs << 32) | run
    if rows is None:
        return pa.table({RUN: [~mark]})
    end = pa.Table.from_pylist([{RUN: ~mark}], schema=rows.schema.append(pa.field(RUN, pa.int64())))
    return pa.concat_tables([rows.append_column(RUN, pa.array([mark] * rows.num_rows, pa.int64())), end])


@pytest.mark.parametrize("rows", [A, NONE], ids=["rows", "no rows"])
def test_a_run_is_in_order_and_ends(rows: pa.Table) -> None:
    verify_processor(
        sort_runs("k"), [pa.concat_tables([rows.slice(2), rows.slice(0, 2)])], run_of(rows, 0, 1), ordered=True
    )


def test_a_run_of_which_nothing_came_ends_too() -> None:
    verify_processor(sort_runs("k"), [[]], run_of(None, 0, 1), ordered=True)


def interleaved(*runs: pa.Table) -> list[pa.RecordBatch]:
    """Batches of one or two rows of each run in turn."""
    batches = [run.to_batches(max_chunksize=2) for run in runs]
    return [run[turn] for turn in range(max(map(len, batches))) for run in batches if turn < len(run)]


MERGED = pa.table({"k": [1, 2, 4, 4, 5, 9, None], "s": ["a", "e", "b", "f", "c", "d", "g"]})


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        pytest.param(interleaved(run_of(A, 0, 2), run_of(B, 1, 2)), MERGED, id="two runs"),
        pytest.param([*run_of(B, 1, 2).to_batches(), *run_of(A, 0, 2).to_batches()], MERGED, id="one after the other"),
        pytest.param(
            interleaved(run_of(A, 0, 3), run_of(NONE, 2, 3), run_of(B, 1, 3)), MERGED, id="a run without rows"
        ),
        pytest.param(interleaved(run_of(A, 0, 3), run_of(B, 1, 3)), MERGED, id="a run that never spoke"),
        pytest.param(run_of(A, 0, 1).to_batches(), A, id="one run"),
        pytest.param(run_of(NONE, 0, 1).to_batches(), NONE, id="one run without rows"),
    ],
)
def test_runs_become_one_order(batches: list[pa.RecordBatch], expected: pa.Table) -> None:
    verify_processor(merge_runs("k"), [batches], expected, ordered=True)


@pytest.mark.parametrize(
    ("batches", "bytes_max", "error", "message"),
    [
        pytest.param(A.to_batches(), 1 << 20, DagError, "do not come from sort_runs", id="unmarked"),
        pytest.param(
            interleaved(run_of(A.take([3, 0]), 0, 2), run_of(B, 1, 2)),
            1 << 20,
            DagError,
            "input 0 of the merge is not in order of k",
            id="order",
        ),
        pytest.param(
            run_of(A, 0, 2).to_batches(), 10, LimitExceededError, "its bound is 10; raise bytes_max", id="memory"
        ),
    ],
)
def test_what_goes_wrong_is_named(
    batches: list[pa.RecordBatch], bytes_max: int, error: type[Exception], message: str
) -> None:
    with pytest.raises(AssertionError) as caught:
        verify_processor(merge_runs("k", bytes_max=bytes_max), [batches])
    assert isinstance(caught.value.__cause__, error)
    assert message in str(caught.value.__cause__)


def test_a_column_of_that_name_is_refused() -> None:
    with pytest.raises(AssertionError) as caught:
        verify_processor(sort_runs(RUN), [pa.table({RUN: [1]})])
    assert isinstance(caught.value.__cause__, DagError)
