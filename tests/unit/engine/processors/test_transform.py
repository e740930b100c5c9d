"""Functions over batches."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from secateur.errors import DagError
from secateur.processors import filter_rows, map_batches
from secateur.testing import verify_processor

ROWS = pa.table({"x": pa.array([1, None, 3])})


@pytest.mark.parametrize("cooperative", [True, False])
def test_map_to_none_one_and_more(cooperative: bool) -> None:
    double = map_batches(lambda batch: batch.set_column(0, "x", pc.multiply(batch["x"], 2)), cooperative=cooperative)
    verify_processor(double, [ROWS], pa.table({"x": pa.array([2, None, 6])}), ordered=True)
    verify_processor(map_batches(lambda batch: [], cooperative=cooperative), [ROWS], ROWS.slice(0, 0))
    twice = map_batches(lambda batch: (batch for _ in range(2)), cooperative=cooperative)
    verify_processor(twice, [ROWS], pa.concat_tables([ROWS, ROWS]))


@pytest.mark.parametrize("cooperative", [True, False])
def test_filter_drops_null(cooperative: bool) -> None:
    verify_processor(
        filter_rows(lambda batch: pc.less(batch["x"], 3), cooperative=cooperative), [ROWS], ROWS.slice(0, 1)
    )


def test_what_is_no_batch_is_refused() -> None:
    with pytest.raises(AssertionError) as caught:
        verify_processor(map_batches(lambda batch: 5), [ROWS])  # type: ignore[arg-type,return-value]
    assert isinstance(caught.value.__cause__, DagError)
    assert "the function returned a int" in str(caught.value.__cause__)
