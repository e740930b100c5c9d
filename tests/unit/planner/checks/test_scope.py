"""What a name in a condition means: the columns of scans that it stands for."""

from __future__ import annotations

import pytest

from secateur.planner.checks import Scope, conditions_with_scopes
from secateur.planner.text import read_statement

SCANS = {"s0": ("k", "j", "i"), "s1": ("k", "n")}


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        pytest.param("SELECT 1 FROM s0 WHERE j = 3", "s0.j", id="a column"),
        pytest.param("SELECT 1 FROM s0 AS a, s1 WHERE A.K = 3", "s0.k", id="with the name of its table"),
        pytest.param("SELECT 1 FROM s0 AS a(x, k) WHERE k = 3", "s0.j", id="with a name of the alias"),
        pytest.param("SELECT 1 FROM s0 JOIN s1 USING (k) WHERE k = 3", "s0.k s1.k", id="of both sides of USING"),
        pytest.param("SELECT j AS x FROM s0 WHERE x = 3", "s0.j", id="an alias of the SELECT list"),
        pytest.param("SELECT j AS k FROM s0 WHERE k = 3", "s0.k", id="an alias behind a column"),
        pytest.param("SELECT j + 1 AS x FROM s0 WHERE x = 3", "", id="an alias of a computed value"),
        pytest.param("SELECT 1 FROM (SELECT j AS k FROM s0) v WHERE v.k = 3", "s0.j", id="a column of a subquery"),
        pytest.param("SELECT 1 FROM (SELECT i, j FROM s0) v(k) WHERE k = 3", "s0.i", id="named by its alias"),
        pytest.param("SELECT 1 FROM (SELECT * FROM s0) v WHERE k = 3", "s0.k", id="a column of a star"),
        pytest.param("SELECT 1 FROM (SELECT s1.* FROM s0, s1) v WHERE k = 3", "s1.k", id="of the star of one table"),
        pytest.param("SELECT 1 FROM (SELECT *, 1 AS z FROM s0) v WHERE k = 3", None, id="a star among others"),
        pytest.param("SELECT 1 FROM (SELECT * EXCLUDE (i) FROM s0) v WHERE k = 3", None, id="a changed star"),
        pytest.param(
            "SELECT 1 FROM (SELECT k, n FROM s1 UNION SELECT j, k FROM s0) v WHERE n = 3", "s0.k s1.n", id="of a UNION"
        ),
        pytest.param(
            "SELECT 1 FROM (SELECT k FROM s1 UNION BY NAME SELECT j FROM s0) v WHERE j = 3", None, id="of one by name"
        ),
        pytest.param("WITH c(x) AS (SELECT i FROM s0) SELECT 1 FROM c WHERE x = 3", "s0.i", id="of a definition"),
        pytest.param(
            "WITH c AS (SELECT i AS k FROM s0), d AS (SELECT k FROM c) SELECT 1 FROM d AS c WHERE c.k = 3",
            "s0.i",
            id="of a definition that reads another",
        ),
        pytest.param(
            "WITH RECURSIVE c AS (SELECT i FROM s0 UNION SELECT i + 1 FROM c) SELECT 1 FROM c WHERE i = 3",
            None,
            id="of a recursion",
        ),
        pytest.param(
            "SELECT 1 FROM s1 AS o WHERE EXISTS (SELECT 1 FROM s0 HAVING o.k = 3)", "s1.k", id="of the SELECT outside"
        ),
        pytest.param("SELECT 1 FROM range(3) r, s1 WHERE j = 3", None, id="unknown beside a function"),
        pytest.param("SELECT 1 FROM range(3) r(k), s1 WHERE n = 3", "s1.n", id="known beside a function"),
    ],
)
def test_a_name_means_columns_of_scans(sql: str, columns: str | None) -> None:
    reading = read_statement(sql)
    assert reading is not None
    found = {
        scope.columns(condition["left"]["column_names"])
        for condition, scope in conditions_with_scopes(reading.tree, Scope(SCANS))
        if condition.get("type") == "COMPARE_EQUAL"
    }
    expected = None if columns is None else {tuple(column.split(".")) for column in columns.split()}
    assert found == {expected if expected is None else frozenset(expected)}
