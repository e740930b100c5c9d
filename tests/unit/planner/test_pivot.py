"""PIVOT and UNPIVOT as statements: the query that is planned for them. tests/sql/pivot.test compares their rows."""

from __future__ import annotations

import pytest

from secateur.planner.binding import read_pivot, read_unpivot
from secateur.planner.text import TokenCursor, read_parameters, tokenize


def query(sql: str) -> str:
    tokens, parameters = read_parameters(sql, tokenize(sql))
    return (read_unpivot if sql.upper().startswith("UN") else read_pivot)(
        TokenCursor(sql, tokens), parameters, None
    ).text


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("PIVOT t ON a IN (1, 2)", "SELECT * FROM t PIVOT (count(*) FOR a IN (1, 2))"),
        (
            "PIVOT (FROM t) ON t.a IN (?), b IN ('x') USING sum(v) GROUP BY k",
            "SELECT * FROM (FROM t) PIVOT (sum(v) FOR t.a IN ($1) b IN ('x') GROUP BY k)",
        ),
        (
            "pivot t on a in (1) using max(v) as m order by k limit 3",
            "SELECT * FROM t PIVOT (max(v) as m FOR a in (1)) order by k limit 3",
        ),
        ("UNPIVOT t ON a, b", "SELECT * FROM t UNPIVOT (value FOR name IN (a, b))"),
        ("UNPIVOT t ON a INTO NAME n VALUE v LIMIT 1", "SELECT * FROM t UNPIVOT (v FOR n IN (a)) LIMIT 1"),
        ("UNPIVOT t ON (a, b) AS x INTO NAME n VALUE v, w", "SELECT * FROM t UNPIVOT ((v, w) FOR n IN ((a, b) AS x))"),
    ],
)
def test_a_statement_is_a_query(sql: str, expected: str) -> None:
    assert query(sql) == expected
