from __future__ import annotations

import pytest

from secateur.planner.text import splice, spliced

TEXT = "SELECT a FROM t WHERE b = ?"
SPLICES = ((14, 15, 's0 AS "t"'), (26, 27, "$1"), (22, 22, "x."))


def test_spans_are_replaced() -> None:
    assert splice(TEXT, 0, len(TEXT), SPLICES).sql == 'SELECT a FROM s0 AS "t" WHERE x.b = $1'
    assert spliced(TEXT, 9, 21, SPLICES) == 'FROM s0 AS "t" WHERE'


@pytest.mark.parametrize(
    ("of", "origin"),
    [
        pytest.param("SELECT", (0, 6), id="in front of all"),
        pytest.param('s0 AS "t"', (14, 1), id="what was put in"),
        pytest.param("AS", (14, 1), id="a part of what was put in"),
        pytest.param("WHERE", (16, 5), id="behind"),
        pytest.param("b = $1", (22, 5), id="from the user's own to what was put in"),
        pytest.param("x.b", (22, 1), id="from what was put between to the user's own"),
    ],
)
def test_every_span_has_an_origin(of: str, origin: tuple[int, int]) -> None:
    made = splice(TEXT, 0, len(TEXT), SPLICES)
    assert made.origin(made.sql.index(of), len(of)) == origin


def test_the_end_of_a_text_has_an_origin() -> None:
    made = splice("SELECT", 0, 6, ())
    assert made.origin(6) == (6, 1)
    assert splice("", 0, 0, ()).origin(0) == (0, 1)
