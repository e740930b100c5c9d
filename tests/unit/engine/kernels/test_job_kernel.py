"""Kernels of one job: their own limit, and nothing left behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from secateur.engine.kernels import Fragment, run
from secateur.engine.runtime import JobKernel
from secateur.errors import DataError, LimitExceededError

NUMBERS = pa.array(np.arange(600_000) * 7919 % 600_000)
ROWS = pa.table({"k": pc.utf8_lpad(NUMBERS.cast(pa.string()), 60, "0")})
SORT = Fragment("SELECT k FROM rows ORDER BY k", ("rows",), (("k", "VARCHAR"),))
ONE = Fragment("SELECT 1 AS one", (), (("one", "INTEGER"),))
LIMIT_BYTES = 60_000_000


@pytest.fixture
def kernel(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[JobKernel]:
    kernel = JobKernel(LIMIT_BYTES, tmp_path / "spill" if request.param else None)
    yield kernel
    kernel.close()


@pytest.mark.parametrize("kernel", [False], indirect=True, ids=["nowhere to spill"])
def test_the_limit_is_an_error_that_names_it_and_the_kernel_lives(kernel: JobKernel) -> None:
    with pytest.raises(LimitExceededError, match=r"own limit is 60,000,000 bytes, JobConfig\.kernel_bytes_max"):
        kernel.run(SORT, {"rows": ROWS})
    assert kernel.run(ONE, {}).to_pylist() == [{"one": 1}]
    assert run(SORT, {"rows": ROWS}).num_rows == 600_000  # the process has another limit


@pytest.mark.parametrize("kernel", [True], indirect=True, ids=["spills"])
def test_what_passes_the_limit_spills_and_goes_with_the_kernel(kernel: JobKernel, tmp_path: Path) -> None:
    assert kernel.run(SORT, {"rows": ROWS})["k"].to_pylist() == sorted(ROWS["k"].to_pylist())
    assert len(list((tmp_path / "spill").iterdir())) == 1
    kernel.close()
    kernel.close()
    assert list((tmp_path / "spill").iterdir()) == []


@pytest.mark.parametrize("kernel", [False], indirect=True, ids=["nowhere to spill"])
def test_other_errors_are_the_statements(kernel: JobKernel) -> None:
    with pytest.raises(DataError) as caught:
        kernel.run(Fragment("SELECT CAST('x' AS INTEGER) AS x", (), (("x", "INTEGER"),)), {})
    assert "kernel_bytes_max" not in caught.value.message
