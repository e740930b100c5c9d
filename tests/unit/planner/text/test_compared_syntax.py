from __future__ import annotations

import pytest

from secateur.planner.text import compared_trees


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("SELECT a::text", "SELECT CAST(a AS text)", True),
        ("SELECT   a  -- x", "SELECT a", True),
        ("SELECT a = 1 IS NULL", "SELECT a = (1 IS NULL)", False),
        ("SELECT 'A'", "SELECT 'a'", False),
        ("SELECT a::DECIMAL(10,2)", "SELECT a::DECIMAL(10,3)", False),
    ],
)
def test_readings_differ_where_meanings_do(one: str, other: str, *, same: bool) -> None:
    first, second = compared_trees([one, other])
    assert first is not None
    assert (first == second) is same


def test_what_is_no_query_has_no_reading() -> None:
    assert compared_trees(["DROP TABLE t", "SELEC"]) == [None, None]
