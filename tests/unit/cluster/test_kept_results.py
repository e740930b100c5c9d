from __future__ import annotations

import pyarrow as pa
import pytest

from secateur.cluster.member import KeptResults
from secateur.errors import LimitExceededError

ROWS = {"result": pa.table({"n": pa.array(range(10), pa.int64())})}  # 80 bytes


def kept(results: KeptResults) -> str:
    found = ""
    for job in "abc":
        try:
            results.tables(job)
            found += job
        except LimitExceededError:
            pass
    return found


@pytest.mark.parametrize(
    ("count_max", "bytes_max", "expected"),
    [
        pytest.param(9, 999, "abc", id="all fit"),
        pytest.param(2, 999, "bc", id="count"),
        pytest.param(9, 160, "bc", id="bytes"),
        pytest.param(9, 1, "c", id="the newest is kept whatever its size"),
    ],
)
def test_the_newest_results_are_kept(count_max: int, bytes_max: int, expected: str) -> None:
    results = KeptResults(count_max, bytes_max)
    for job in "abc":
        results.keep(job, ROWS)
    assert kept(results) == expected


def test_the_result_of_another_attempt_replaces_the_one_before() -> None:
    """The bytes of both were counted for good, so that ever fewer results were kept."""
    results = KeptResults(9, 240)
    for _ in range(5):
        results.keep("a", ROWS)
    results.keep("b", ROWS)
    results.keep("c", ROWS)
    assert kept(results) == "abc"


def test_a_dropped_result_says_what_to_do() -> None:
    with pytest.raises(
        LimitExceededError,
        match=r"the result of job x was dropped: .* submit the job again, and fetch it sooner, or write it to a sink",
    ):
        KeptResults().tables("x")
