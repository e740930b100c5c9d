"""Plans are kept by text and by the classes of parameters, and by their types where a plan depends on those."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from secateur.protocol import KeptPlans


@pytest.fixture
def kept() -> KeptPlans[str, str]:
    return KeptPlans(100)


def test_the_least_recently_used_text_goes_first() -> None:
    kept: KeptPlans[str, str] = KeptPlans(2)
    kept.put("a", [], "plan a", ())
    kept.put("b", [], "plan b", ())
    assert kept.get("a", []) == "plan a"
    kept.put("c", [], "plan c", ())
    assert kept.get("b", []) is None
    assert kept.get("a", []) == "plan a"
    assert len(kept) == 2


def test_a_plan_that_needs_no_type_is_for_all_values_of_its_classes(kept: KeptPlans[str, str]) -> None:
    kept.put("k = ?", [1], "plan", ())
    assert kept.get("k = ?", [2**40]) == "plan"
    assert kept.get("k = ?", [Decimal(1)]) is None
    assert kept.get("k = ?", [True]) is None
    assert len(kept) == 1


def test_a_plan_that_needs_a_type_is_for_values_of_that(kept: KeptPlans[str, str]) -> None:
    kept.put("k = ? AND v * ?", [1, Decimal("1.5")], "one digit", (1,))
    assert kept.get("k = ? AND v * ?", [2**40, Decimal("1.5")]) == "one digit"
    assert kept.get("k = ? AND v * ?", [1, Decimal("1.55")]) is None
    kept.put("k = ? AND v * ?", [1, Decimal("1.55")], "two digits", (1,))
    assert kept.get("k = ? AND v * ?", [1, Decimal("2.5")]) == "one digit"
    assert kept.get("k = ? AND v * ?", [1, Decimal("2.55")]) == "two digits"
    assert len(kept) == 2


def test_parameters_by_name(kept: KeptPlans[str, str]) -> None:
    kept.put("$a, $B", {"b": 1, "A": 1}, "plan", (1,), ("a", "B"))
    assert kept.get("$a, $B", {"A": 2**40, "b": 2}) == "plan"
    assert kept.get("$a, $B", {"A": 1, "b": 2**40}) is None


def test_what_follows_the_parameters_has_one_type_in_all_executions(kept: KeptPlans[str, str]) -> None:
    kept.put("now()", [1], "plan", (0, 1))
    assert kept.get("now()", [2]) == "plan"


def test_one_text_does_not_take_all_places(kept: KeptPlans[str, str]) -> None:
    kept.put("k = ?", [1], "plan", ())
    for scale in range(1000):
        kept.put("v * ?", [Decimal((0, (1,) * (scale % 38 + 1), -(scale // 38)))], "plan", (0,))
    assert kept.get("k = ?", [1]) == "plan"
    assert len(kept) <= 50


def test_a_text_whose_plan_needs_other_types_is_kept_anew(kept: KeptPlans[str, str]) -> None:
    kept.put("a", [1, 1], "before", (0,))
    kept.put("a", [1, 1], "after", (1,))
    assert kept.get("a", [2**40, 1]) == "after"
    assert kept.get("a", [1, 2**40]) is None
    assert len(kept) == 1


def test_what_is_dropped(kept: KeptPlans[str, str]) -> None:
    params: Any
    for params in ([1], [2**40]):
        kept.put("a", params, "estimated", (0,))
    kept.put("b", [1], "sure", ())
    kept.put("c", [1], "estimated", ())
    kept.keep(lambda plan: plan == "sure")
    assert [kept.get(text, [1]) for text in "abc"] == [None, "sure", None]
    assert len(kept) == 1
    kept.forget("b", [7])
    kept.forget("b", [7])
    assert kept.get("b", [1]) is None
    kept.put("b", [1], "sure", ())
    kept.clear()
    assert len(kept) == 0
    assert kept.get("b", [1]) is None
