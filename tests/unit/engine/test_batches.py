"""Batches of a good size, and what they weigh."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from secateur.engine.exchange import batches_of, bytes_of, remember_bytes

LARGE = pa.record_batch({"x": np.arange(100_000)})
SMALL = pa.record_batch({"x": np.arange(100), "y": np.arange(100)})


@pytest.mark.parametrize(
    ("batch", "weight"),
    [
        pytest.param(SMALL, 1_600, id="small"),
        pytest.param(SMALL.slice(10, 1), 1_600, id="a slice weighs what it keeps alive"),
        pytest.param(LARGE, 800_000, id="large"),
        pytest.param(LARGE.slice(10, 1_000), 8_000, id="a slice of a large one weighs its rows"),
        pytest.param(pa.record_batch({"x": pa.array([1, None] * 50_000)}), 800_000, id="NULL weighs what a value does"),
        pytest.param(
            pa.record_batch({"x": ["ab"] * 100_000}), 600_000, id="texts weigh their bytes and where they begin"
        ),
    ],
)
def test_weights(batch: pa.RecordBatch, weight: int) -> None:
    assert bytes_of(batch) == weight


def test_the_weight_of_the_last_large_batch_is_remembered_while_it_lives() -> None:
    batch = LARGE.slice(10, 10_000)
    remember_bytes(batch, 123_456)
    assert bytes_of(batch) == 123_456
    assert bytes_of(LARGE.slice(10, 10_000)) == 80_000
    del batch
    assert bytes_of(LARGE.slice(10, 10_000)) == 80_000


@pytest.mark.parametrize(
    ("chunks", "rows"),
    [
        pytest.param([10], [4, 4, 2], id="large chunks are sliced"),
        pytest.param([1, 1, 1, 1, 1], [4, 1], id="small ones are put together"),
        pytest.param([], [0], id="a table without rows has a schema"),
    ],
)
def test_batches_of_a_table(chunks: list[int], rows: list[int]) -> None:
    table = pa.table({"x": pa.chunked_array([pa.array(range(count)) for count in chunks], pa.int64())})
    batches = list(batches_of(table, rows_max=4))
    assert [batch.num_rows for batch in batches] == rows
    assert pa.Table.from_batches(batches).to_pylist() == table.to_pylist()
