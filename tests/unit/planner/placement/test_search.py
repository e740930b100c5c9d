"""What stays where it is, and what moves: ``orders`` and ``customers`` are co-located by customer_id, ``metrics`` is
not. Scans are s0, s1, ... in the order of the text; the costs are bytes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from secateur.planner import CostModel
from secateur.planner.placement import (
    HashPartitioned,
    PlacementChoice,
    Replicated,
    UnsupportedDistribution,
    find_anchor,
)
from secateur.planner.relations import Relation

SMALL, LARGE, HUGE = 1e3, 1e6, 1e9
BY_KEY = "SELECT o.id FROM orders o JOIN customers c ON o.customer_id = c.customer_id"
BY_NAME = "SELECT o.id FROM orders o JOIN customers c ON o.priority = c.name"
BY_OTHER_KEY = "SELECT o.id FROM orders o JOIN customers c ON o.priority = c.customer_id"
THREE = "SELECT o.id FROM orders o JOIN customers c ON o.customer_id = c.customer_id JOIN metrics m ON m.host = c.name"


def search(relation: Relation, *costs: float) -> PlacementChoice | UnsupportedDistribution:
    return find_anchor(relation, (), lambda scan: costs[int(scan[1:])], CostModel(), orderless=True)


@pytest.mark.parametrize(
    ("sql", "costs", "staying", "moving", "routed"),
    [
        pytest.param("SELECT id FROM orders", (HUGE,), "s0", "", {}, id="one table"),
        pytest.param(BY_KEY, (HUGE, HUGE), "s0 s1", "", {}, id="co-located tables"),
        pytest.param(BY_NAME, (LARGE, SMALL), "s0", "s1", {}, id="the small one is sent to everybody"),
        pytest.param(BY_NAME, (SMALL, LARGE), "s1", "s0", {}, id="whichever that is"),
        pytest.param(
            BY_OTHER_KEY, (HUGE, LARGE), "s0", "s1", {}, id="nothing of the large one says where its rows are"
        ),
        pytest.param(
            BY_OTHER_KEY,
            (LARGE, HUGE),
            "s1",
            "s0",
            {"s0": ("s1", "priority")},
            id="a large one goes to the rows that it is joined with",
        ),
        pytest.param(BY_OTHER_KEY, (SMALL, HUGE), "s1", "s0", {}, id="a small one goes to everybody all the same"),
        pytest.param(
            "SELECT 1 FROM orders o FULL JOIN customers c ON o.priority = c.name",
            (HUGE, HUGE),
            "",
            "s0 s1",
            {"s0": (None, "priority"), "s1": (None, "name")},
            id="where neither can stay, both are dealt anew",
        ),
        pytest.param(
            THREE, (HUGE, LARGE, SMALL), "s0 s1", "s2", {}, id="what is co-located with the largest stays too"
        ),
        pytest.param(
            "SELECT a.code FROM airlines a JOIN orders o ON o.priority = a.code",
            (SMALL, HUGE),
            "s1",
            "",
            {},
            id="replicated tables are everywhere",
        ),
        pytest.param(
            "SELECT id FROM orders WHERE priority IN (SELECT name FROM customers)",
            (LARGE, SMALL),
            "s0",
            "s1",
            {},
            id="a subquery",
        ),
        pytest.param(
            "SELECT o.id FROM orders o LEFT JOIN customers c ON o.priority = c.name",
            (SMALL, LARGE),
            "s0",
            "s1",
            {"s1": None},
            id="the kept side stays",
        ),
    ],
)
def test_what_stays_and_what_moves(
    relation_of: Callable[[str], Relation],
    sql: str,
    costs: tuple[float, ...],
    staying: str,
    moving: str,
    routed: dict[str, tuple[str | None, str] | None],
) -> None:
    found = search(relation_of(sql), *costs)
    assert isinstance(found, PlacementChoice)
    assert (found.staying, found.moving) == (frozenset(staying.split()), frozenset(moving.split()))
    wanted = {scan: route for scan, route in routed.items() if route is not None}
    if None not in routed.values():
        assert {scan: (route.anchor, *route.columns) for scan, route in found.repartitions.items()} == wanted


@pytest.mark.parametrize(
    ("sql", "distribution"),
    [
        pytest.param("SELECT id FROM orders", HashPartitioned, id="pieces"),
        pytest.param("SELECT code FROM airlines", Replicated, id="everywhere"),
        pytest.param(
            "SELECT priority, sum(amount) FROM orders GROUP BY priority", UnsupportedDistribution, id="nowhere"
        ),
        pytest.param("SELECT * FROM orders LIMIT 3", UnsupportedDistribution, id="some rows"),
    ],
)
def test_what_comes_of_one_table(relation_of: Callable[[str], Relation], sql: str, distribution: type[object]) -> None:
    found = search(relation_of(sql), LARGE)
    assert isinstance(found if isinstance(found, UnsupportedDistribution) else found.distribution, distribution)


def test_what_is_evaluated_beside_moves_in_any_case(relation_of: Callable[[str], Relation]) -> None:
    whole = relation_of(BY_KEY)
    beside = relation_of("SELECT id FROM orders")
    found = find_anchor(whole, (beside,), lambda scan: LARGE, CostModel(), orderless=True)
    assert isinstance(found, PlacementChoice)
    assert (found.staying, found.moving, found.is_distributed) == (frozenset({"s1"}), frozenset({"s0"}), True)
