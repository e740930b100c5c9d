"""Estimates of what stages send each other."""

from __future__ import annotations

import pytest

from secateur.planner import CostModel
from secateur.planner.placement import Estimate, StageDraft
from secateur.planner.placement.sent_bytes import sent_bytes

ESTIMATES = {
    "s0": Estimate(8e6, 8e6, 1e6, 1.0, {"day": 10, "id": 1_000_000}),
    "s1": Estimate(8e2, 8e3, 1e2, 0.1, {"kind": 4}),
}
MANY_PARTS = " UNION ALL ".join(["SELECT id FROM s0"] * 300)


def draft(sql: str, *relations: str, at_coordinator: bool = False, is_pipelineable: bool = False) -> StageDraft:
    return StageDraft("stage", sql, relations, (("id", "BIGINT"),), at_coordinator, is_pipelineable)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        pytest.param("SELECT id FROM s0", 1e6, id="all rows of a scan"),
        pytest.param(
            "SELECT id FROM s0 JOIN s1 ON s0.kind = s1.id", 1e5, id="of a join the share that a predicate leaves"
        ),
        pytest.param("SELECT id FROM (s0 JOIN s1 ON s0.kind = s1.id)", 1e5, id="in parentheses"),
        pytest.param("SELECT max(id) FROM s0 GROUP BY s0.day", 10, id="as many groups as values"),
        pytest.param(
            "SELECT day % 7, max(id) FROM s0 AS a GROUP BY a.day % 7", 10, id="an expression has no more values"
        ),
        pytest.param("SELECT a.day AS k0, max(id) FROM s0 AS a GROUP BY 1", 10, id="a key by its position"),
        pytest.param("SELECT max(id) FROM s0 GROUP BY s0.day, s0.id", 1e6, id="no more groups than rows"),
        pytest.param("SELECT max(id) FROM s0 GROUP BY ROLLUP (s0.day)", 1e6, id="grouping sets"),
        pytest.param("SELECT max(id) FROM s0", 1, id="one group"),
        pytest.param("SELECT id FROM (SELECT id FROM s0 LIMIT 7)", 7, id="a limit"),
        pytest.param("SELECT id FROM s0 WHERE id IN (SELECT id FROM s1)", 5e5, id="a predicate with a subquery"),
        pytest.param("SELECT id FROM s0 UNION ALL SELECT id FROM s1", 1e6 + 1e2, id="a set operation"),
    ],
)
def test_rows_of_a_stage(sql: str, rows: float) -> None:
    assert sent_bytes([draft(sql, "s0", "s1")], ESTIMATES, CostModel()) == pytest.approx(8 * rows)


def test_long_chains_of_set_operations_are_estimated() -> None:
    assert sent_bytes([draft(MANY_PARTS, "s0")], ESTIMATES, CostModel()) == pytest.approx(8 * 300 * 1e6)


def test_what_the_coordinator_makes_is_not_sent_but_known_to_later_stages() -> None:
    drafts = [draft("SELECT id FROM s0 LIMIT 5", "s0", at_coordinator=True), draft("SELECT id FROM x0", "x0")]
    assert sent_bytes(drafts, ESTIMATES, CostModel()) == pytest.approx(8 * 5)


def test_rows_that_a_predicate_has_left_reduce_what_they_are_joined_with_later() -> None:
    drafts = [
        draft("SELECT id FROM s1", "s1", is_pipelineable=True),
        draft("SELECT s0.id FROM s0 JOIN x0 ON s0.kind = x0.id", "s0", "x0"),
    ]
    assert sent_bytes(drafts, ESTIMATES, CostModel()) == pytest.approx(8 * (1e2 + 1e5))
