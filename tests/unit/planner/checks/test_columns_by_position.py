"""Where DuckDB sees a statement look at columns that it does not name."""

from __future__ import annotations

import pytest

from secateur.planner.checks import read_by_position
from secateur.planner.text import read_statement


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        pytest.param("SELECT a, count(*) FROM t GROUP BY ALL ORDER BY ALL", "", id="names alone"),
        pytest.param("SELECT * FROM t, u", "t u", id="star"),
        pytest.param("SELECT x.* REPLACE (1 AS a) FROM t x JOIN u ON TRUE", "t", id="star of one table"),
        pytest.param("SELECT x FROM (t JOIN u ON t.a = u.b) AS v(x, y)", "t u", id="alias of a join in parentheses"),
        pytest.param("SELECT x FROM ((FROM t)) AS v(x, y)", "t", id="alias of a query in parentheses"),
        pytest.param("SELECT x FROM t AS v(x, y)", "t", id="alias with columns"),
        pytest.param("SELECT a FROM t NATURAL JOIN u", "t u", id="natural"),
        pytest.param("SELECT t.a FROM t POSITIONAL JOIN u", "t u", id="positional"),
        pytest.param("SELECT #1 FROM t", "t", id="by number"),
        pytest.param("SELECT COLUMNS('a.*') FROM t", "t", id="by pattern"),
        pytest.param("SELECT x FROM t x", "t", id="a row as a value"),
        pytest.param("SELECT (SELECT max(x) FROM u) FROM t x", "t", id="a row of an outer table as a value"),
        pytest.param("SELECT x.a FROM t x JOIN u ON x = (1, 2)", "t", id="a row as a value in ON"),
        pytest.param("SELECT ARRAY(SELECT a FROM t ORDER BY ALL)", "t", id="ORDER BY ALL in an array"),
        pytest.param("WITH c AS (SELECT t FROM u) SELECT a FROM t, c", "", id="a column of a common table expression"),
        pytest.param("SELECT a FROM t WHERE EXISTS (SELECT * FROM u WHERE b = a)", "", id="rows that are only counted"),
        pytest.param(
            "SELECT a FROM t WHERE EXISTS (SELECT * EXCLUDE (c) FROM u WHERE b = a)",
            "",
            id="without some of their columns too",
        ),
        pytest.param(
            "SELECT a FROM t WHERE EXISTS (SELECT DISTINCT * FROM u LIMIT 2)", "u", id="unless they are told apart"
        ),
        pytest.param("SELECT a FROM t WHERE (a, b) IN (SELECT * FROM u)", "u", id="in a subquery"),
        pytest.param("WITH c AS (FROM t) SELECT a FROM c", "t", id="in a common table expression"),
        pytest.param("SELECT a FROM t UNION ALL SELECT * FROM u", "u", id="in a set operation"),
    ],
)
def test_read_by_position(sql: str, tables: str) -> None:
    reading = read_statement(sql)
    assert reading is not None
    assert sorted(read_by_position(reading.tree)) == tables.split()
