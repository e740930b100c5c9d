from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from secateur.planner.binding import sample_value, types_of


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(2**31 - 1, "int32", id="the largest INTEGER"),
        pytest.param(2**31, "int64", id="one more"),
        pytest.param(-(2**63) - 1, "int128", id="below BIGINT"),
        pytest.param(True, "bool", id="no integer"),
        pytest.param(Decimal("-1.50"), "decimal 3 -2", id="digits and scale"),
        pytest.param(Decimal("NaN"), "Decimal", id="no number"),
        pytest.param([1, "a", 2], "list int str", id="a list of both"),
        pytest.param(None, "NoneType", id="NULL"),
    ],
)
def test_types_of(value: Any, expected: str) -> None:
    assert types_of([value], 1) == (expected,)


def test_without_values() -> None:
    assert types_of(None, 2) == ("unbound", "unbound")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(["a", "b", "c"], ["a"], id="texts have one type"),
        pytest.param([date(2024, 1, 1)] * 3, [date(2024, 1, 1)], id="and dates"),
        pytest.param([5, -(2**40), 3], [-(2**40), 5], id="the widest integers decide"),
        pytest.param([1, "a", 2.5], [1, "a", 2.5], id="several types stay"),
        pytest.param([1, 2], [1, 2], id="short"),
        pytest.param("abc", "abc", id="no list"),
    ],
)
def test_specimen(value: Any, expected: Any) -> None:
    assert sample_value(value) == expected
