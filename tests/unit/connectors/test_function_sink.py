"""Functions and the log as sinks."""

from __future__ import annotations

import logging
from typing import Any

import pyarrow as pa
import pytest

from secateur.connectors import function_sink, logger_sink
from secateur.errors import DagError, JobFailedError

BATCHES = [pa.record_batch({"x": [1, 2, 3]}), pa.record_batch({"x": pa.array([], pa.int64())})]


@pytest.mark.parametrize("cooperative", [True, False])
def test_a_function_gets_each_batch_that_has_rows(write: Any, cooperative: bool) -> None:
    seen: list[list[int]] = []
    write(BATCHES, function_sink(lambda batch: seen.append(batch["x"].to_pylist()), cooperative=cooperative), members=1)
    assert seen == [[1, 2, 3]]


def test_what_the_function_raises_fails_the_job(write: Any) -> None:
    def broken(batch: pa.RecordBatch) -> None:
        raise RuntimeError("mail server is down")

    with pytest.raises(
        JobFailedError,
        match=r"vertex 'sink' on member m1 failed in process\(ordinal 0, 3 rows\): RuntimeError: mail server is down",
    ):
        write(BATCHES, function_sink(broken))


def test_no_function_is_refused() -> None:
    with pytest.raises(DagError, match="was given a int"):
        function_sink(7)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({}, ["sink on m1: {'x': 1}", "sink on m1: {'x': 2}", "sink on m1: {'x': 3}"], id="all"),
        pytest.param({"rows_max": 1}, ["sink on m1: {'x': 1}", "sink on m1: and 2 more rows"], id="the-first"),
        pytest.param({"level": logging.DEBUG}, [], id="level-is-off"),
    ],
)
def test_the_log(write: Any, caplog: pytest.LogCaptureFixture, options: dict[str, Any], expected: list[str]) -> None:
    with caplog.at_level(logging.INFO, logger="secateur.job"):
        write(BATCHES, logger_sink(**options), members=1)
    assert [record.getMessage() for record in caplog.records if record.name == "secateur.job"] == expected
