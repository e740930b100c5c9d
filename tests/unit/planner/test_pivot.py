"""PIVOT and UNPIVOT as statements: the query that is planned for them. tests/sql/pivot.test compares their rows."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.errors import Error, NotSupportedError, SqlSyntaxError, UnknownColumnError
from secateur.planner.pivot import read_pivot, read_unpivot
from secateur.planner.text.dialect import tokenize
from secateur.planner.text.parameters import read_parameters
from secateur.planner.text.token_cursor import TokenCursor


def query(sql: str) -> str:
    tokens, parameters = read_parameters(sql, tokenize(sql))
    return (read_unpivot if sql.upper().startswith("UN") else read_pivot)(TokenCursor(sql, tokens), parameters, None).text


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("PIVOT t ON a IN (1, 2)", "SELECT * FROM t PIVOT (count(*) FOR a IN (1, 2))"),
        ("PIVOT (FROM t) ON t.a IN (?), b IN ('x') USING sum(v) GROUP BY k", "SELECT * FROM (FROM t) PIVOT (sum(v) FOR t.a IN ($1) b IN ('x') GROUP BY k)"),
        ("pivot t on a in (1) using max(v) as m order by k limit 3", "SELECT * FROM t PIVOT (max(v) as m FOR a in (1)) order by k limit 3"),
        ("UNPIVOT t ON a, b", "SELECT * FROM t UNPIVOT (value FOR name IN (a, b))"),
        ("UNPIVOT t ON a INTO NAME n VALUE v LIMIT 1", "SELECT * FROM t UNPIVOT (v FOR n IN (a)) LIMIT 1"),
        ("UNPIVOT t ON (a, b) AS x INTO NAME n VALUE v, w", "SELECT * FROM t UNPIVOT ((v, w) FOR n IN ((a, b) AS x))"),
    ],
)
def test_a_statement_is_a_query(sql: str, expected: str) -> None:
    assert query(sql) == expected


@pytest.mark.parametrize(
    ("sql", "kind", "message", "column"),
    [
        pytest.param("PIVOT orders ON id", NotSupportedError, "without the values of a column is not supported", 17, id="no values"),
        pytest.param("PIVOT orders ON id % 2 IN (0)", NotSupportedError, "without the values of a column is not supported", 17, id="an expression"),
        pytest.param("PIVOT orders", SqlSyntaxError, "expected ON", 13, id="no column"),
        pytest.param("PIVOT orders ON id IN (1) USING", SqlSyntaxError, "expected an aggregate", 32, id="no aggregate"),
        pytest.param("PIVOT orders ON nothing IN (1)", UnknownColumnError, "column 'nothing' does not exist", 17, id="no such column"),
        pytest.param("UNPIVOT orders ON id INTO amount", SqlSyntaxError, "expected NAME", 27, id="no name"),
    ],
)
def test_mistakes(bench: Any, sql: str, kind: type[Error], message: str, column: int) -> None:
    with pytest.raises(kind) as caught:
        bench.prepare(sql)
    assert message in str(caught.value)
    assert caught.value.details["column"] == column
