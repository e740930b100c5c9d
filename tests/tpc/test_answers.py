from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from benchmarks.tpc.answers import difference, sort_columns

BY_A = "SELECT a, b FROM t ORDER BY a"


@pytest.mark.parametrize(
    ("got", "expected", "said"),
    [
        pytest.param([(1, "x"), (1, "y")], [(1, "y"), (1, "x")], None, id="ties in any order"),
        pytest.param(
            [(2, "x"), (1, "y")],
            [(1, "y"), (2, "x")],
            "row 1 in order is (2, 'x'), expected (1, 'y')",
            id="sorted otherwise",
        ),
        pytest.param([(1, "x")], [], "1 rows, 0 expected", id="a row too many"),
        pytest.param(
            [(1, "x"), (1, "x")], [(1, "x"), (1, "y")], "row (1, 'x'), expected (1, 'y')", id="duplicates count"
        ),
        pytest.param([(1, None)], [(1, "")], "row (1, None), expected (1, '')", id="null is no value"),
        pytest.param([(1, 0.1 + 0.2)], [(1, 0.3)], None, id="doubles by tolerance"),
        pytest.param([(1, 0.3001)], [(1, 0.3)], "row (1, 0.3001), expected (1, 0.3)", id="doubles beyond it"),
        pytest.param([(1, float("nan"))], [(1, float("nan"))], None, id="nan is nan"),
        pytest.param(
            [(1, Decimal("1.50"))], [(1, 1.5)], "row (1, Decimal('1.50')), expected (1, 1.5)", id="types count"
        ),
    ],
)
def test_difference(got: list[Any], expected: list[Any], said: str | None) -> None:
    assert difference(BY_A, ["a", "b"], got, expected) == said


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        pytest.param("SELECT a, b FROM t", [], id="no order"),
        pytest.param("SELECT a, b FROM t ORDER BY 2, A DESC", [1, 0], id="positions and names"),
        pytest.param("SELECT a, b FROM t ORDER BY b, a + 1, a", [1], id="up to an expression"),
        pytest.param("SELECT a, b FROM t ORDER BY c, a", [], id="not shown"),
        pytest.param("SELECT a FROM t UNION SELECT b FROM t ORDER BY a", [0], id="of a set operation"),
    ],
)
def test_sort_columns(sql: str, columns: list[int]) -> None:
    assert sort_columns(sql, ["a", "b"]) == columns


def test_dates_are_compared_as_dates() -> None:
    assert difference(BY_A, ["a", "b"], [(date(2024, 1, 1), "x")], [(date(2024, 1, 1), "x")]) is None
