from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from secateur.client.execution import take_literals

HEAD = "SELECT * FROM t WHERE "


def taken(condition: str) -> tuple[str, list[Any]] | None:
    """What is left of a condition, and its literals."""
    found = take_literals(HEAD + condition)
    return None if found is None else (found.text.removeprefix(HEAD.rstrip()).strip(), found.values)


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        pytest.param("5", 5, id="an integer"),
        pytest.param("-5", -5, id="a negative integer"),
        pytest.param("007", 7, id="zeros in front"),
        pytest.param("3000000000", 3_000_000_000, id="a bigint"),
        pytest.param("1.50", Decimal("1.50"), id="a decimal"),
        pytest.param("-12.00", Decimal("-12.00"), id="a negative decimal"),
        pytest.param("1e3", 1000.0, id="a double"),
        pytest.param("2.5E-1", 0.25, id="a double with a sign"),
        pytest.param("'x'", "x", id="a text"),
        pytest.param("''", "", id="an empty text"),
        pytest.param("'it''s'", "it's", id="a quote"),
        pytest.param("' Ab '", " Ab ", id="spaces and small letters"),
        pytest.param("'-- /* ? $1 ; \\ WHERE'", "-- /* ? $1 ; \\ WHERE", id="signs in a text"),
        pytest.param("'a\n b'", "a\n b", id="a line break"),
        pytest.param("date '2024-02-29'", date(2024, 2, 29), id="a date"),
        pytest.param("TIMESTAMP '2024-02-29 01:02:03.5'", datetime(2024, 2, 29, 1, 2, 3, 500_000), id="a timestamp"),
    ],
)
def test_values_have_the_types_of_the_literals(literal: str, value: Any) -> None:
    found = taken(f"k = {literal}")
    assert found == ("k = ?", [value])
    assert type(found[1][0]) is type(value)


@pytest.mark.parametrize(
    "literal",
    [
        pytest.param("0.5", id="a decimal below one, which Python writes with a digit less"),
        pytest.param(".5", id="a point in front"),
        pytest.param("5.", id="a point behind"),
        pytest.param("1_000", id="an underscore"),
        pytest.param("0x10", id="hexadecimal"),
        pytest.param("1234567890123456789", id="nineteen digits"),
        pytest.param("1e300", id="a large exponent"),
        pytest.param("TRUE", id="a truth value"),
        pytest.param("NULL", id="null"),
        pytest.param("E'a'", id="an escaped text"),
        pytest.param("x'41'", id="bytes"),
        pytest.param("$$a$$", id="dollar quotes"),
        pytest.param("'a' 'b'", id="two texts"),
        pytest.param("'abc", id="a text without an end"),
        pytest.param("DATE '2024-02-30'", id="no day"),
        pytest.param("DATE 'infinity'", id="infinity"),
        pytest.param("TIMESTAMPTZ '2024-02-29 00:00:00'", id="an instant"),
        pytest.param("INTERVAL '5' DAY", id="an interval"),
        pytest.param("INTERVAL 5 DAY", id="an interval of a number"),
        pytest.param("5 + 1", id="a sum"),
        pytest.param("5::BIGINT", id="a cast"),
        pytest.param("'a' || 'b'", id="a text in an expression"),
        pytest.param("'a' COLLATE nocase", id="a collation"),
        pytest.param("5 = TRUE", id="a comparison of a comparison"),
        pytest.param("5 IS NULL", id="a test of a comparison"),
        pytest.param("(5)", id="parentheses"),
        pytest.param("ANY (5)", id="any"),
        pytest.param("5 -- five", id="a comment"),
        pytest.param("5 /* five */", id="a comment in the middle"),
        pytest.param("5; SELECT 1", id="a second statement"),
        pytest.param("5 AND l = ?", id="a parameter"),
        pytest.param("5 AND l = $1", id="a numbered parameter"),
        pytest.param("5 AND a BETWEEN b AND c = 1", id="a BETWEEN of columns"),
        pytest.param("5 AND (SELECT)) AND (l = 7", id="parentheses that close nothing"),
    ],
)
def test_in_doubt_a_text_is_left_as_it_stands(literal: str) -> None:
    assert taken(f"k = {literal}") is None


@pytest.mark.parametrize(
    ("condition", "left", "values"),
    [
        ("a=5 AND \"b c\"<>'x' OR NOT t.d >= 7", "a= ? AND \"b c\"<> ? OR NOT t.d >= ?", [5, "x", 7]),
        ("(é = 5 or (a < -5)) ;", "(é = ? or (a < ?)) ;", [5, -5]),
        ("a BETWEEN 1 AND 2 AND b NOT BETWEEN 'a' AND 'b'", "a BETWEEN ? AND ? AND b NOT BETWEEN ? AND ?",
         [1, 2, "a", "b"]),
        ("a IN (1, -2) AND b NOT IN ('x','y')", "a IN ( ?, ?) AND b NOT IN ( ?, ?)", [1, -2, "x", "y"]),
        ("a = 5 LIMIT 10 OFFSET 3", "a = ? LIMIT 10 OFFSET 3", [5]),
        ("a = 5 GROUP BY a, 2 HAVING b = 3 AND c = 4 ORDER BY 1",
         "a = ? GROUP BY a, 2 HAVING b = 3 AND c = 4 ORDER BY 1", [5]),
        ("a = 5 WINDOW w AS (ORDER BY b ROWS 3 PRECEDING)", "a = ? WINDOW w AS (ORDER BY b ROWS 3 PRECEDING)", [5]),
        ("a = 5 UNION SELECT b = 3 FROM u WHERE c = 4", "a = ? UNION SELECT b = 3 FROM u WHERE c = ?", [5, 4]),
        ("a = 5 AND b LIKE 'x%' AND f(c) = 3 AND 4 = d", "a = ? AND b LIKE 'x%' AND f(c) = 3 AND 4 = d", [5]),
        ("a = 5 AND b =-5 AND c->>'x' = 'y' AND d[1] = 2", "a = ? AND b =-5 AND c->>'x' = 'y' AND d[1] = 2", [5]),
        ("a = 5 AND b >> 1 AND c <@ 2 AND d == 3 AND e IS NOT DISTINCT FROM 4 AND g = 6",
         "a = ? AND b >> 1 AND c <@ 2 AND d == 3 AND e IS NOT DISTINCT FROM 4 AND g = ?", [5, 6]),
        ("a = 5 AND b IN (1, 'x') AND c IN (1.5, 2.5) AND d IN (1, e)",
         "a = ? AND b IN (1, 'x') AND c IN (1.5, 2.5) AND d IN (1, e)", [5]),
        ("a = 5 AND b = (SELECT max(c = 1) FROM u WHERE d = 2 LIMIT 3)",
         "a = ? AND b = (SELECT max(c = 1) FROM u WHERE d = ? LIMIT 3)", [5, 2]),
        ("a = 5 AND CASE WHEN b = 1 AND c = 2 THEN d = 3 END",
         "a = ? AND CASE WHEN b = 1 AND c = 2 THEN d = 3 END", [5]),
        ("a = 5 AND t.a = 5 AND u.A = '5' AND b = 5", "a = $1 AND t.a = $1 AND u.A = $2 AND b = $3", [5, "5", 5]),
        ("a IN (1, 2, 1) OR a = 1.0 OR a = 1.00", "a IN ( $1, $2, $1) OR a = $3 OR a = $4",
         [1, 2, Decimal("1.0"), Decimal("1.00")]),
        ("a = 5 AND \"b = 7 AND c = 8\" = 9", "a = ? AND \"b = 7 AND c = 8\" = ?", [5, 9]),
    ],
)  # fmt: skip
def test_a_bare_comparison_of_a_column_is_taken(condition: str, left: str, values: list[Any]) -> None:
    assert taken(condition) == (left, values)


@pytest.mark.parametrize(
    ("sql", "left", "values"),
    [
        ("WITH w AS (SELECT a = 1 FROM t WHERE b = 2) SELECT * FROM w JOIN t ON c = 3 AND d = 4 WHERE e = 5",
         "WITH w AS (SELECT a = 1 FROM t WHERE b = ?) SELECT * FROM w JOIN t ON c = 3 AND d = 4 WHERE e = ?", [2, 5]),
        ("SELECT (SELECT max(v) FROM t WHERE k = 5), count(*) FILTER (WHERE a = 1) FROM t WHERE k = 6",
         "SELECT (SELECT max(v) FROM t WHERE k = 5), count(*) FILTER (WHERE a = 1) FROM t WHERE k = ?", [6]),
        ("(SELECT a FROM t WHERE k = 5) ORDER BY (SELECT 1 WHERE a = 2)",
         "(SELECT a FROM t WHERE k = ?) ORDER BY (SELECT 1 WHERE a = 2)", [5]),
        ("UPDATE t SET a = 5, b = c + 1, d='x', e = (SELECT 1 WHERE f = 2), g = 3 WHERE k = -1 RETURNING a = 7",
         "UPDATE t SET a = ?, b = c + 1, d= ?, e = (SELECT 1 WHERE f = 2), g = ? WHERE k = ? RETURNING a = 7",
         [5, "x", 3, -1]),
        ("DELETE FROM t WHERE k = 5", "DELETE FROM t WHERE k = ?", [5]),
        ("INSERT INTO t VALUES (1, 1, 'x')", "INSERT INTO t VALUES ( ?, ?, ?)", [1, 1, "x"]),
        ("INSERT INTO t VALUES (1, 'x', NULL, true, DATE '2024-01-01', -1.5);",
         "INSERT INTO t VALUES ( ?, ?, NULL, true, ?, ?);", [1, "x", date(2024, 1, 1), Decimal("-1.5")]),
    ],
)  # fmt: skip
def test_of_whole_statements(sql: str, left: str, values: list[Any]) -> None:
    found = take_literals(sql)
    assert found is not None
    assert (found.text, found.values) == (left, values)


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "SELECT 5, 'a'",
        "SELECT k = 5 FROM t",
        "CREATE TABLE t (k INTEGER DEFAULT 5, CHECK (k = 5))",
        "CREATE VIEW v AS SELECT * FROM t WHERE k = 5",
        "EXPLAIN SELECT * FROM t WHERE k = 5",
        "SET pruning = 'off'",
        "COPY (SELECT * FROM t WHERE k = 5) TO 'a.csv'",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
        "INSERT INTO t VALUES (1, 0.5)",
        "INSERT INTO t VALUES (1, 2 + 3)",
        "INSERT INTO t VALUES (1, 'a') ON CONFLICT DO NOTHING",
        "INSERT INTO t VALUES (1, 'a') -- one row",
        "INSERT INTO t SELECT * FROM u WHERE k = 5",
        f"SELECT * FROM t WHERE k = 5 AND s <> '{'x' * 5000}'",
    ],
)
def test_other_statements_are_left_as_they_stand(sql: str) -> None:
    assert take_literals(sql) is None


@pytest.mark.parametrize(
    ("condition", "has_ranges"),
    [("a = 5", False), ("a <> 5", False), ("a IN (1, 2)", False), ("a <= 5", True), ("a BETWEEN 1 AND 2", True)],
)
def test_bounds_of_ranges_are_told_apart(condition: str, has_ranges: bool) -> None:
    found = take_literals(HEAD + condition)
    assert found is not None
    assert found.has_ranges is has_ranges
