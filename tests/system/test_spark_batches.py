"""The batches in which rows are handed to Spark: no longer than it wants them, and not copied without need."""

from __future__ import annotations

import pyarrow as pa
import pytest

from secateur.connectors.spark.read_plan import spark_schema
from secateur.connectors.spark.result_rows import BATCH_ROWS, spark_batches
from secateur.protocol import ResultColumn

COLUMNS = (ResultColumn("n", "BIGINT"), ResultColumn("text", "VARCHAR"))


def table(*lengths: int) -> pa.Table:
    """Rows in chunks of these lengths."""
    numbers = iter(range(sum(lengths)))
    chunks = [[next(numbers) for _ in range(length)] for length in lengths]
    return pa.table(
        {
            "n": pa.chunked_array(chunks, pa.int64()),
            "text": pa.chunked_array([[str(number) for number in chunk] for chunk in chunks], pa.string()),
        }
    )


@pytest.mark.parametrize(
    ("lengths", "batches"),
    [
        pytest.param([], [], id="none"),
        pytest.param([3], [3], id="few"),
        pytest.param([1000] * 10, [10_000], id="short-chunks-become-one"),
        pytest.param([30_000, 20_000], [30_000, 20_000], id="long-chunks-stay"),
        pytest.param([BATCH_ROWS + 5, 20_000], [BATCH_ROWS, 5, 20_000], id="too-long-a-chunk-is-cut"),
        pytest.param([100] * 1000, [BATCH_ROWS, 100_000 - BATCH_ROWS], id="many-short-chunks"),
    ],
)
def test_batches(lengths: list[int], batches: list[int]) -> None:
    rows = table(*lengths)
    found = list(spark_batches(rows, COLUMNS, spark_schema(COLUMNS)))
    assert [batch.num_rows for batch in found] == batches
    assert pa.Table.from_batches(found, rows.schema) == rows


def test_long_chunks_are_not_copied() -> None:
    rows = table(30_000, 20_000)
    found = list(spark_batches(rows, COLUMNS, spark_schema(COLUMNS)))
    for batch, chunk in zip(found, rows.column("n").chunks, strict=True):
        assert batch.column(0).buffers()[1].address == chunk.buffers()[1].address
