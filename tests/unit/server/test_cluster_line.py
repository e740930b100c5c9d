"""The numbers of the cluster line, from two readings of secateur.latencies."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.server.dashboard import Interval, interval_between


def row(
    member: str, execution: str, buckets: dict[float, int], touched: int, pruned: int, unpruned: int
) -> dict[str, Any]:
    return {
        "member": member,
        "execution": execution,
        "statements": sum(buckets.values()),
        "bucket_ms": list(buckets),
        "bucket_statements": list(buckets.values()),
        "members_touched": touched,
        "pruned": pruned,
        "unpruned": unpruned,
    }


BEFORE = [row("m1", "local", {0.1: 10, 2.0: 1}, 11, 10, 0), row("m2", "distributed", {8.0: 5}, 15, 0, 5)]


@pytest.mark.parametrize(
    ("after", "own_ms", "expected"),
    [
        pytest.param(BEFORE, [], Interval(2.0, 0, 0, 0, 0, 0, {}), id="nothing has ended"),
        pytest.param(
            [row("m1", "local", {0.1: 14, 2.0: 1}, 15, 13, 1), row("m2", "distributed", {8.0: 6}, 18, 0, 6)],
            [],
            Interval(2.0, 5, 5, 7, 3, 2, {0.1: 4, 8.0: 1}),
            id="what has grown",
        ),
        pytest.param(
            [*BEFORE, row("m1", "change", {0.5: 3}, 3, 0, 0), row("m1", "failed", {0.1: 2}, 2, 0, 0)],
            [],
            Interval(2.0, 5, 0, 0, 0, 0, {0.1: 2, 0.5: 3}),
            id="changes and failures are statements, and no queries",
        ),
        pytest.param(
            [*BEFORE, row("m3", "local", {0.1: 1000}, 1000, 1000, 0)],
            [],
            Interval(2.0, 0, 0, 0, 0, 0, {}),
            id="a member that was not there before",
        ),
        pytest.param(
            [row("m1", "local", {0.2: 3}, 3, 3, 0)],
            [],
            Interval(2.0, 3, 3, 3, 3, 0, {0.2: 3}),
            id="a member that began anew, and one that is gone",
        ),
        pytest.param(
            [row("m1", "local", {0.1: 14, 2.0: 2}, 16, 14, 0)],
            [2.2],
            Interval(2.0, 4, 4, 4, 4, 0, {0.1: 4}),
            id="without the dashboard's own query",
        ),
        pytest.param([BEFORE[0]], [1.0, 2.0], Interval(2.0, 0, 0, 0, 0, 0, {}), id="own queries that are not counted"),
    ],
)
def test_an_interval_is_what_has_ended_in_it(
    after: list[dict[str, Any]], own_ms: list[float], expected: Interval
) -> None:
    assert interval_between(BEFORE, after, 2.0, own_ms) == expected
