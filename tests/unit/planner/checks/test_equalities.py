"""The columns of scans that a statement equates."""

from __future__ import annotations

import pytest

from secateur.planner.checks import Equalities
from secateur.planner.text import nodes_in, read_statement

SCANS = {"s0": ("k", "j"), "s1": ("k", "n"), "s2": ("k", "m")}
_V = "(SELECT k FROM s2) v"


@pytest.mark.parametrize(
    ("sql", "equal"),
    [
        pytest.param("SELECT 1 FROM s0, s1 WHERE s0.j = s1.n", "s0.j=s1.n", id="by a condition"),
        pytest.param("SELECT 1 FROM s0 JOIN s1 USING (k)", "s0.k=s1.k", id="by USING"),
        pytest.param(
            "SELECT 1 FROM s0 JOIN s1 USING (k) JOIN s2 ON m = k",
            "s0.k=s1.k",
            id="a name of USING that another table has too",
        ),
        pytest.param(
            "SELECT 1 FROM s0 JOIN s1 USING (k) JOIN s2 b(x) ON m = k",
            "s0.k=s1.k s0.k=s2.m s1.k=s2.m",
            id="by a name of USING",
        ),
        pytest.param(
            f"SELECT 1 FROM s0, LATERAL {_V} JOIN s1 ON v.k = s1.k WHERE s0.j = v.k",
            "s0.j=s1.k",
            id="by a column of a lateral subquery",
        ),
        pytest.param(
            "SELECT 1 FROM s0, (SELECT s2.*, 1 AS z FROM s2) v, s1 WHERE s0.j = v.m AND v.m = s1.n",
            "s0.j=s1.n",
            id="by one of a subquery whose columns are not known",
        ),
        pytest.param(
            "SELECT 1 FROM s0, range(3) r(x), s1 WHERE j = x AND x = n", "s0.j=s1.n", id="by one of a table function"
        ),
        pytest.param(
            "WITH v AS (SELECT k FROM s2) SELECT 1 FROM v JOIN s0 ON v.k = j JOIN s1 ON v.k = n",
            "s0.j=s1.n",
            id="by one of a definition",
        ),
        pytest.param(
            f"SELECT 1 FROM {_V} JOIN s0 USING (k) JOIN s1 b(x) ON x = v.k", "s0.k=s1.k", id="USING with a subquery"
        ),
        pytest.param(
            f"SELECT 1 FROM {_V} NATURAL JOIN s0 JOIN s1 b(x) ON x = v.k",
            "s0.k=s1.k",
            id="a NATURAL join with a subquery",
        ),
        pytest.param(
            "SELECT 1 FROM s0 SEMI JOIN s2 ON s2.m = 1 JOIN s1 ON s0.j = s1.n", "s0.j=s1.n", id="behind a semi-join"
        ),
        pytest.param(
            "SELECT 1 FROM s2 LEFT JOIN s0 ON s0.k = s2.k JOIN s1 ON s0.j = s1.n",
            "s0.j=s1.n",
            id="of rows that an outer join may lack, and the condition then rejects",
        ),
        pytest.param(
            "SELECT 1 FROM s0 ASOF JOIN s2 ON s0.k = s2.k AND s0.j >= s2.m JOIN s1 ON s0.j = s1.n",
            "s0.j=s1.n",
            id="of the left side of an ASOF join",
        ),
        # Each of these is another column, or of another row.
        pytest.param(
            "SELECT 1 FROM s0 ASOF JOIN s2 ON s0.k = s2.k AND s0.j >= s2.m JOIN s1 ON s2.m = s1.n",
            "",
            id="of the right side of an ASOF join, which without a row has another",
        ),
        pytest.param("SELECT 1 FROM s0 POSITIONAL JOIN s2 JOIN s1 ON s0.j = s1.n", "", id="of a POSITIONAL join"),
        pytest.param(
            "SELECT 1 FROM s0, (SELECT k, m FROM s2) v, s1 WHERE s0.j = v.k AND v.m = s1.n", "", id="two columns"
        ),
        pytest.param(
            "SELECT 1 FROM s0, (SELECT k FROM s2) v, (SELECT k FROM s2) w, s1 WHERE s0.j = v.k AND w.k = s1.n",
            "",
            id="two subqueries",
        ),
        pytest.param(
            f"SELECT 1 FROM s0, {_V} WHERE s0.j = v.k AND EXISTS (SELECT 1 FROM {_V}, s1 WHERE v.k = s1.n)",
            "",
            id="two queries",
        ),
        pytest.param(
            f"SELECT 1 FROM s0 JOIN {_V} ON s0.j = v.k LEFT JOIN s1 ON v.k = s1.n", "", id="below an outer join"
        ),
        pytest.param(f"SELECT 1 FROM s0, {_V}, s1 WHERE s0.j = v.k AND v.k < s1.n", "", id="another comparison"),
        pytest.param(
            f"SELECT 1 FROM s0, {_V}, s1 WHERE s0.j = v.k AND (v.k = s1.n OR s1.k = 1)", "", id="one of several cases"
        ),
    ],
)
def test_columns_are_equal_in_each_row_of_inner_joins(sql: str, equal: str) -> None:
    reading = read_statement(sql)
    assert reading is not None
    equalities = Equalities(nodes_in(reading.tree), SCANS)
    columns = [(relation, name) for relation, names in SCANS.items() for name in names]
    found = {
        f"{'.'.join(one)}={'.'.join(other)}"
        for at, one in enumerate(columns)
        for other in columns[at + 1 :]
        if equalities.are_equal(one, other)
    }
    assert found == set(equal.split())
