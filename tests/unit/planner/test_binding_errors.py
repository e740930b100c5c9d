"""Every mistake that DuckDB's binder finds is shown where it stands in the user's text, under the user's names."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.errors import DataError, Error, NotSupportedError, ProgrammingError, SqlSyntaxError, UnknownColumnError, UnknownTableError


@pytest.mark.parametrize(
    ("sql", "kind", "message", "line", "column"),
    [
        pytest.param("SELECT 'ü',\n  nope FROM orders", UnknownColumnError, "'nope' does not exist; there is customer_id, id,", 2, 3, id="column"),
        pytest.param(
            "SELECT 1, c.nam FROM orders o, customers c", UnknownColumnError, "'nam' does not exist; did you mean name", 1, 13, id="column of a table"
        ),
        pytest.param(
            "WITH a AS (SELECT id FROM orders) SELECT idd FROM a", UnknownColumnError, "'idd' does not exist; did you mean id?", 1, 42, id="column of a CTE"
        ),
        pytest.param("SELECT x FROM (SELECT id FROM orders)", UnknownColumnError, "'x' does not exist; there is id", 1, 8, id="column of a subquery"),
        pytest.param("SELECT * EXCLUDE (nope) FROM customers", UnknownColumnError, "'nope' does not exist", 1, 19, id="left out of a star"),
        pytest.param("SELECT id FROM orders WHERE priority = ? AND q = ?", UnknownColumnError, "'q' does not exist", 1, 46, id="behind a parameter"),
        pytest.param("SELECT x.id FROM orders o", UnknownTableError, "'x' names no table of this statement; there is o", 1, 8, id="table"),
        pytest.param("SELECT x.* FROM orders, customers AS c", UnknownTableError, "'x' names no table of this statement; there is orders, c", 1, 8, id="star"),
        pytest.param("SELECT customer_id FROM orders o, customers c", ProgrammingError, "Ambiguous reference to column name", 1, 8, id="ambiguous"),
        pytest.param("SELECT * FROM orders a, customers a", ProgrammingError, 'duplicate alias "a"', 1, 35, id="one alias for two"),
        pytest.param("SELECT 1 FROM orders JOIN customers USING (zz)", ProgrammingError, 'Column "zz" does not exist on left side', 1, 44, id="USING"),
        pytest.param("SELECT id, sum(amount) FROM orders", ProgrammingError, "must appear in the GROUP BY clause", 1, 8, id="not grouped"),
        pytest.param("SELECT id FROM orders WHERE sum(id) > 1", ProgrammingError, "cannot contain aggregates", 1, 29, id="aggregate in WHERE"),
        pytest.param("SELECT id FROM orders ORDER BY 3", ProgrammingError, "ORDER term out of range", 1, 32, id="order by a number"),
        pytest.param("SELECT id FROM orders GROUP BY 5", ProgrammingError, "GROUP BY term out of range", 1, 23, id="group by a number"),
        pytest.param("SELECT id FROM orders QUALIFY id > 1", ProgrammingError, "window function must appear", 1, 23, id="qualify"),
        pytest.param("SELECT id FROM orders UNION SELECT 1, 2", ProgrammingError, "same number of result columns", 1, 23, id="set operation"),
        pytest.param("SELECT nofunction(id) FROM orders", ProgrammingError, "nofunction", 1, 8, id="function"),
        pytest.param("SELECT CAST(id AS nope) FROM orders", ProgrammingError, "Type with name nope does not exist", 1, 19, id="type"),
        pytest.param("SELECT id FROM orders WHERE (SELECT 1, 2) = 1", ProgrammingError, "Subquery returns 2 columns", 1, 29, id="subquery"),
        pytest.param("SELECT o.id FROM orders o, LATERAL (SELECT zz FROM customers) l", UnknownColumnError, "'zz' does not exist", 1, 44, id="lateral"),
        pytest.param("WITH a AS (SELECT 1), a AS (SELECT 2) FROM a", SqlSyntaxError, 'Duplicate CTE name "a"', 1, 23, id="CTE twice"),
        pytest.param("SELECT id FROM orders LIMIT 'a'", DataError, "Could not convert", 1, 29, id="a value of another type"),
        pytest.param("UPDATE orders SET priority = nope", UnknownColumnError, "'nope' does not exist", 1, 30, id="update"),
        pytest.param("DELETE FROM orders WHERE nope = 1", UnknownColumnError, "'nope' does not exist", 1, 26, id="delete"),
        pytest.param("EXPLAIN SELECT nope FROM orders", UnknownColumnError, "'nope' does not exist", 1, 16, id="explain"),
    ],
)
def test_mistakes_are_shown_where_they_stand(bench: Any, sql: str, kind: type[Error], message: str, line: int, column: int) -> None:
    with pytest.raises(kind) as caught:
        bench.prepare(sql, ["a", "b"][: sql.count("?")])
    assert message in caught.value.message
    assert (caught.value.details["line"], caught.value.details["column"]) == (line, column)


def test_a_with_behind_a_with_is_refused_where_it_stands(bench: Any) -> None:
    with pytest.raises(NotSupportedError, match="'u' cannot be seen from its query: WITH in parentheses directly behind another WITH") as caught:
        bench.prepare("WITH w AS (SELECT id FROM orders) (WITH u AS (SELECT 2) SELECT * FROM u, w)")
    assert caught.value.details["column"] == 41


def test_advice_follows_the_place(bench: Any) -> None:
    with pytest.raises(ProgrammingError) as caught:
        bench.prepare("SELECT abs(day) FROM orders")
    assert caught.value.message.splitlines()[:4] == [
        "No function matches the given name and argument types 'abs(DATE)'. You might need to add explicit type casts. (line 1, column 8)",
        "  SELECT abs(day) FROM orders",
        "         ^^^^^^^^",
        "Candidate functions:",
    ]


def test_relations_go_by_their_own_names(bench: Any) -> None:
    with pytest.raises(ProgrammingError) as caught:
        bench.prepare("SELECT * FROM orders NATURAL JOIN (SELECT 1 AS y) q")
    assert "Left candidates: orders.customer_id" in caught.value.message
