"""When the number of values that a step found counts as far from its estimate."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from secateur.cluster.member import EstimateMisses
from secateur.protocol import QueryPart, QueryStep, SubqueryUse

PLAN: Any = SimpleNamespace(scans=(SimpleNamespace(table_id=3), SimpleNamespace(table_id=5)))
VALUES_MAX = 1_000


@pytest.mark.parametrize(
    ("estimate", "found", "is_miss"),
    [
        pytest.param(100, 100, False, id="as expected"),
        pytest.param(100, 350, False, id="more, within the factor"),
        pytest.param(100, 500, True, id="far more"),
        pytest.param(500, 100, True, id="far fewer"),
        pytest.param(1, 30, False, id="few either way"),
        pytest.param(0, 0, False, id="none, as expected"),
        pytest.param(900, VALUES_MAX + 1, True, id="more than the plan can use"),
        pytest.param(None, VALUES_MAX + 1, False, id="nothing expected"),
    ],
)
def test_a_number_far_from_the_estimate_is_a_miss(estimate: int | None, found: int, is_miss: bool) -> None:
    misses = EstimateMisses(4.0)
    misses.compare(QueryStep(QueryPart("p"), SubqueryUse.KEYS, VALUES_MAX, estimate), PLAN, found)
    assert misses.by_table() == ({3: 1, 5: 1} if is_miss else {})


def test_misses_add_up() -> None:
    misses, step = EstimateMisses(4.0), QueryStep(QueryPart("p"), SubqueryUse.KEYS, VALUES_MAX, 100)
    for _ in range(3):
        misses.compare(step, PLAN, 0)
    assert misses.by_table() == {3: 3, 5: 3}
