"""When the number of values or rows that a statement found counts as far from its estimate."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from secateur.cluster.member import EstimateMisses
from secateur.engine.kernels import Fragment
from secateur.engine.sql import QueryStage
from secateur.protocol import OutputMetrics, QueryPart, QueryStep, SubqueryUse, VertexMetrics

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
    misses.forget_dropped(lambda table_id: table_id == 5)
    assert misses.by_table() == {5: 3}


def scan_of(found_by_member: list[list[int]]) -> list[VertexMetrics]:
    """The metrics of a stage that offered so many rows on each of its edges."""
    return [
        VertexMetrics(
            "scan a",
            f"m{number}",
            processors=1,
            batches_in=0,
            rows_in=0,
            batches_out=len(edges),
            rows_out=sum(edges),
            bytes_out=0,
            busy_s=0.0,
            outputs=tuple(OutputMetrics(f"edge {edge}", 1, rows, 0) for edge, rows in enumerate(edges)),
        )
        for number, edges in enumerate(found_by_member)
    ]


@pytest.mark.parametrize(
    ("estimate", "found", "is_miss"),
    [
        pytest.param(100, [[50], [50]], False, id="as expected"),
        pytest.param(100, [[200], [300]], True, id="far more on all members together"),
        pytest.param(100, [[90, 90, 90, 90, 90]], False, id="the same rows for several consumers count once"),
        pytest.param(1_000, [[0], [1]], True, id="far fewer"),
        pytest.param(None, [[5_000]], False, id="nothing expected"),
        pytest.param(1_000, [], False, id="the stage ran nowhere"),
    ],
)
def test_rows_of_a_scan_far_from_the_estimate_are_a_miss(
    estimate: int | None, found: list[list[int]], is_miss: bool
) -> None:
    fragment = Fragment("SELECT a FROM s0", ("s0",), (("a", "BIGINT"),))
    scan = QueryStage("scan a", fragment, scans=(1,), estimate=estimate)
    plan: Any = SimpleNamespace(scans=PLAN.scans, stages=(scan,))
    misses = EstimateMisses(4.0)
    misses.compare_scans(plan, scan_of(found))
    assert misses.by_table() == ({5: 1} if is_miss else {})
