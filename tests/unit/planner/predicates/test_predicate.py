"""Each supported form of predicate keeps exactly the partitions of the values that pass it, with constants and with parameters alike."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest

from secateur.planner.statement import SelectStatement

TABLES = (
    "CREATE TABLE numbers (a INTEGER, b INTEGER, v INTEGER, PRIMARY KEY (a, b)) PARTITION BY HASH (a) PARTITIONS 1009",
    "CREATE TABLE pairs (a INTEGER, b INTEGER, v INTEGER, PRIMARY KEY (a, b)) PARTITION BY HASH (a, b) PARTITIONS 1009",
    "CREATE TABLE flags (f BOOLEAN, t TINYINT, v INTEGER, PRIMARY KEY (f, t)) PARTITION BY HASH (f) PARTITIONS 64, HASH (t) PARTITIONS 1024",
    "CREATE TABLE texts (b VARCHAR PRIMARY KEY, v INTEGER) PARTITION BY RANGE (b) SPLIT AT ('a', 'abc', 'abd', 'b', 'é')",
    "CREATE TABLE codes (c INTEGER PRIMARY KEY, v INTEGER) PARTITION BY RANGE (c) (PARTITION VALUE = 1, PARTITION VALUE = 2, PARTITION 10 <= VALUES < 20)",
    (
        "CREATE TABLE events (ts TIMESTAMP PRIMARY KEY, v INTEGER) PARTITION BY "
        "RANGE (ts) SPLIT AT (TIMESTAMP '2024-01-01 00:00:00', TIMESTAMP '2024-01-02 00:00:00', TIMESTAMP '2024-02-01 00:00:00')"
    ),
    "CREATE TABLE days (d DATE PRIMARY KEY, v INTEGER) PARTITION BY HASH (d) PARTITIONS 1009",
)


@pytest.fixture
def tables(bench: Any) -> Any:
    for ddl in TABLES:
        bench.create(ddl)
    return bench


def kept(bench: Any, table: str, where: str, params: Any = ()) -> list[int] | None:
    statement: SelectStatement = bench.select(f"SELECT count(*) FROM {table} WHERE {where}", params)
    bound = statement.plan.scans[0].tree.bind(statement.params)
    return None if bound.is_all else list(bound.ids)


@pytest.mark.parametrize(
    ("where", "params", "values"),
    [
        pytest.param("a IN (1, 2, 3) AND a <> 2", (), [1, 3], id="not equal"),
        pytest.param("a IN (1, 2, 3) AND a <> ?", [2], [1, 3], id="not equal to a parameter"),
        pytest.param("a IN (1, 2, 3) AND a <> ?", [None], [], id="not equal to NULL"),
        pytest.param("a IN (1, 2, 3) AND NOT (a = 2)", (), [1, 3], id="not an equality"),
        pytest.param("a IN (1, 2, 3) AND a NOT IN (2, ?)", [3], [1], id="NOT IN"),
        pytest.param("a IN (1, 2, 3) AND a NOT IN (2, NULL)", (), [], id="NOT IN with NULL"),
        pytest.param("a IN (1, 2, 3) AND a NOT IN (2, ?)", [None], [], id="NOT IN with a parameter that is NULL"),
        pytest.param("a BETWEEN 1 AND 5 AND a NOT BETWEEN 2 AND 4", (), [1, 5], id="NOT BETWEEN"),
        pytest.param("a BETWEEN 1 AND 5 AND a NOT BETWEEN ? AND 4", [None], [5], id="NOT BETWEEN with NULL below"),
        pytest.param("a BETWEEN ? AND ? AND a NOT BETWEEN ? AND ?", [1, 5, 3, 9], [1, 2], id="NOT BETWEEN of parameters"),
        pytest.param("a IN (1, 2) AND NOT (a <> 1)", (), [1], id="not not equal"),
        pytest.param("a IS NOT DISTINCT FROM 5", (), [5], id="IS NOT DISTINCT FROM"),
        pytest.param("a IS NOT DISTINCT FROM ?", [None], [], id="IS NOT DISTINCT FROM NULL"),
        pytest.param("a IN (1, 2) AND a IS DISTINCT FROM ?", [2], [1], id="IS DISTINCT FROM"),
        pytest.param("a IN (1, 2) AND a IS DISTINCT FROM ?", [None], [1, 2], id="IS DISTINCT FROM NULL"),
        pytest.param("a IS NULL", (), [], id="IS NULL"),
        pytest.param("a = 1 AND a IS NOT NULL", (), [1], id="IS NOT NULL"),
        pytest.param("(a = 1) IS TRUE", (), [1], id="IS TRUE"),
        pytest.param("(a <> 1) IS FALSE", (), [1], id="IS FALSE"),
        pytest.param("(a <> 1) IS NOT TRUE", (), [1], id="IS NOT TRUE"),
        pytest.param("(a = 1 OR a = 2) IS NOT FALSE", (), [1, 2], id="IS NOT FALSE"),
        pytest.param("(a = 1) IS NULL", (), [], id="a predicate that is never NULL"),
        pytest.param("(a = 1) = TRUE", (), [1], id="compared with TRUE"),
        pytest.param("FALSE = (a <> 1)", (), [1], id="compared with FALSE"),
        pytest.param("(a IN (1, 2)) <> FALSE", (), [1, 2], id="not FALSE"),
        pytest.param("a + 1 = 5", (), [4], id="shifted"),
        pytest.param("a - 2 IN (1, ?)", [5], [3, 7], id="shifted down"),
        pytest.param("-a BETWEEN 1 AND 2", (), [-1, -2], id="negated"),
        pytest.param("10 - a > 7 AND a >= 0", (), [0, 1, 2], id="mirrored"),
        pytest.param("a + 1 = 1.5", (), None, id="shifted, and compared with a fraction"),
        pytest.param("CAST(a AS BIGINT) = 5", (), [5], id="widened"),
        pytest.param("a::BIGINT IN (?, 3000000000)", [7], [7], id="widened beyond its type"),
        pytest.param("CAST(a AS VARCHAR) = '5'", (), None, id="cast to text"),
        pytest.param("CAST(a AS SMALLINT) = 5", (), None, id="narrowed"),
        pytest.param("a % 2 = 1", (), None, id="not one to one"),
        pytest.param("(a, b) = (1, 2)", (), [1], id="a row"),
        pytest.param("(1, 2) = (a, b)", (), [1], id="a row on the right"),
        pytest.param("row(a, v) IN ((1, 2), (3, 4))", (), [1, 3], id="rows with a column that is no key"),
        pytest.param("a >= 0 AND (a, b) < (2, 5)", (), [0, 1, 2], id="rows in order"),
        pytest.param("a >= 0 AND (a, b) <= (?, ?)", [2, 5], [0, 1, 2], id="rows of parameters in order"),
        pytest.param("(a, b) BETWEEN (1, 9) AND (3, 0)", (), [1, 2, 3], id="between rows"),
        pytest.param("(a, b) = ('1', 2)", (), None, id="a row with a text"),
        pytest.param("(a, b) = (?, ?)", ["1", 2], None, id="a row with a parameter that is a text"),
        pytest.param("(a, b) < (?, 2)", [None], None, id="NULL is the greatest field"),
        pytest.param("(a, b) = (NULL, 2)", (), [], id="NULL equals no key"),
        pytest.param("(a, b) IN ((1, 2), NULL)", (), [1], id="a NULL among the rows"),
        pytest.param("a = a AND a = 1", (), [1], id="itself"),
        pytest.param("a <> a", (), [], id="not itself"),
    ],
)
def test_integers(tables: Any, where: str, params: Any, values: list[int] | None) -> None:
    expected = None if values is None else sorted({tables.partition("numbers", a=value, b=0) for value in values})
    assert kept(tables, "numbers", where, params) == expected


@pytest.mark.parametrize(
    ("where", "params", "keys"),
    [
        pytest.param("(a, b) IN ((1, 2), (3, 4))", (), [(1, 2), (3, 4)], id="constants"),
        pytest.param("(a, b) IN ((?, ?), (3, 4))", [1, 2], [(1, 2), (3, 4)], id="a row of parameters"),
        pytest.param("(b, a) = (2, 1)", (), [(1, 2)], id="in another order"),
        pytest.param("(a, b) IN ((1, 2), (3, 4)) AND (a, b) NOT IN ((1, 2))", (), [(3, 4)], id="NOT IN"),
        pytest.param("(a, b) IN ((1, 2), (3, 4)) AND (a, b) <> (?, ?)", [3, 4], [(1, 2)], id="not a row"),
        pytest.param("(a, b) >= (1, 1) AND (a, b) <= (1, 3)", (), [(1, 1), (1, 2), (1, 3)], id="bounds"),
        pytest.param("a IN (1, 2) AND b IN (1, 2) AND (a, b) > (1, 2)", (), [(2, 1), (2, 2)], id="a bound over lists"),
        pytest.param("(a, b) IN ((1, 2), ('3', 4))", (), None, id="a text in another row is a text for all"),
        pytest.param("(a, b) IN ((1, 2), (?, 4))", ["3"], None, id="as is a parameter"),
    ],
)
def test_rows(tables: Any, where: str, params: Any, keys: list[tuple[int, int]] | None) -> None:
    expected = None if keys is None else sorted({tables.partition("pairs", a=a, b=b) for a, b in keys})
    assert kept(tables, "pairs", where, params) == expected


def test_many_rows_of_parameters_are_taken_apart(tables: Any) -> None:
    rows = [(1, value) for value in range(70)]
    where = f"(a, b) IN ({', '.join('(?, ?)' for _ in rows)})"
    expected = sorted({tables.partition("pairs", a=a, b=b) for a, b in rows})
    assert kept(tables, "pairs", where, [value for row in rows for value in row]) == expected


@pytest.mark.parametrize(
    ("where", "params", "flags", "tinies"),
    [
        pytest.param("f", (), [True], None, id="a bare column"),
        pytest.param("NOT f", (), [False], None, id="NOT"),
        pytest.param("f <> true", (), [False], None, id="not equal"),
        pytest.param("f <> ?", [False], [True], None, id="not equal to a parameter"),
        pytest.param("f IS TRUE", (), [True], None, id="IS TRUE"),
        pytest.param("f IS NOT TRUE", (), [False], None, id="IS NOT TRUE"),
        pytest.param("f = false", (), [False], None, id="equal"),
        pytest.param("f > false", (), [True], None, id="in order"),
        pytest.param("f AND NOT f", (), [], None, id="a contradiction"),
        pytest.param("f AND t > 125", (), [True], [126, 127], id="the last values of a type"),
        pytest.param("t + 1 = -127", (), None, [-128], id="the first value of a type"),
    ],
)
def test_few_values(tables: Any, where: str, params: Any, flags: list[bool] | None, tinies: list[int] | None) -> None:
    some = flags is not None
    pairs = [(f, t) for f in (flags if flags is not None else [True, False]) for t in (tinies if tinies is not None else range(-128, 128))]
    expected = {tables.partition("flags", f=f, t=t) for f, t in pairs}
    found = kept(tables, "flags", where, params)
    assert found is not None
    if some and tinies is None:
        # What is not said of t leaves all its buckets, also those that none of its values is in.
        assert {partition // 1024 for partition in found} == {partition // 1024 for partition in expected}
    elif not some:
        assert {partition % 1024 for partition in found} == {partition % 1024 for partition in expected}
    else:
        assert found == sorted(expected)


@pytest.mark.parametrize(
    ("where", "params", "expected"),
    [
        pytest.param("b LIKE 'abc%'", (), [2], id="a prefix"),
        pytest.param("b LIKE ?", ["abc%"], [2], id="a prefix that is a parameter"),
        pytest.param("b LIKE ?", [None], [], id="NULL"),
        pytest.param("b LIKE 'abc_d%'", (), [2], id="a pattern with a prefix"),
        pytest.param("b LIKE 'abcd'", (), [2], id="a pattern without wildcards"),
        pytest.param("b LIKE 'a!%%' ESCAPE '!'", (), [1], id="an escaped wildcard"),
        pytest.param("b NOT LIKE 'a%'", (), [0, 4, 5], id="not a prefix"),
        pytest.param("NOT b LIKE ?", ["a%"], [0, 4, 5], id="not a prefix that is a parameter"),
        pytest.param("b NOT LIKE 'a%b'", (), None, id="not a pattern"),
        pytest.param("b LIKE '%c'", (), None, id="a wildcard first"),
        pytest.param("starts_with(b, 'abc')", (), [2], id="starts_with"),
        pytest.param("b ^@ ?", ["abc"], [2], id="the operator"),
        pytest.param("NOT prefix(b, 'a')", (), [0, 4, 5], id="not prefix"),
        pytest.param("b ILIKE 'abc%'", (), None, id="ILIKE"),
        pytest.param("b LIKE 'é%'", (), [5], id="a character of two bytes"),
        pytest.param("b <> 'a' AND b >= 'a' AND b <= 'a'", (), [], id="nothing is left"),
        pytest.param("b COLLATE NOCASE = 'ABC'", (), None, id="another collation"),
    ],
)
def test_texts(tables: Any, where: str, params: Any, expected: list[int] | None) -> None:
    assert kept(tables, "texts", where, params) == expected


@pytest.mark.parametrize(
    ("where", "params", "expected"),
    [
        pytest.param("c <> 1", (), [1, 2], id="not the value of a partition"),
        pytest.param("c <> ?", [2], [0, 2], id="a parameter"),
        pytest.param("c NOT IN (1, 2)", (), [2], id="NOT IN"),
        pytest.param("c NOT BETWEEN 1 AND 19", (), [], id="NOT BETWEEN"),
        pytest.param("c NOT BETWEEN 2 AND 18", (), [0, 2], id="a value beside"),
        pytest.param("c < 10 AND c <> 1", (), [1], id="with an order"),
    ],
)
def test_single_values(tables: Any, where: str, params: Any, expected: list[int] | None) -> None:
    assert kept(tables, "codes", where, params) == expected


@pytest.mark.parametrize(
    ("where", "params", "expected"),
    [
        pytest.param("CAST(ts AS DATE) = DATE '2024-01-01'", (), [1], id="a day"),
        pytest.param("ts::DATE = ?", [date(2024, 1, 1)], [1], id="a day that is a parameter"),
        pytest.param("CAST(ts AS DATE) <= DATE '2023-12-31'", (), [0], id="up to a day"),
        pytest.param("CAST(ts AS DATE) <> DATE '2024-01-01'", (), [0, 2, 3], id="not a day"),
        pytest.param("date_trunc('day', ts) = TIMESTAMP '2024-01-01 00:00:00'", (), [1], id="truncated"),
        pytest.param("date_trunc('month', ts) = ?", [datetime(2024, 1, 1)], [1, 2], id="a month"),
        pytest.param("date_trunc('day', ts) = TIMESTAMP '2024-01-01 12:00:00'", (), [], id="no day starts at noon"),
        pytest.param("date_trunc('decade', ts) = TIMESTAMP '2020-01-01 00:00:00'", (), None, id="another unit"),
    ],
)
def test_instants(tables: Any, where: str, params: Any, expected: list[int] | None) -> None:
    assert kept(tables, "events", where, params) == expected


@pytest.mark.parametrize(
    ("where", "params", "days"),
    [
        pytest.param("d + 1 = DATE '2024-01-03'", (), [date(2024, 1, 2)], id="the day before"),
        pytest.param("date_trunc('week', d) = ?", [datetime(2024, 1, 1)], [date(2024, 1, day) for day in range(1, 8)], id="a week"),
    ],
)
def test_days(tables: Any, where: str, params: Any, days: list[date]) -> None:
    assert kept(tables, "days", where, params) == sorted({tables.partition("days", d=day) for day in days})


@pytest.mark.parametrize(
    "where",
    [
        pytest.param("n.a IS NULL", id="IS NULL"),
        pytest.param("n.a IS NOT DISTINCT FROM NULL", id="IS NOT DISTINCT FROM NULL"),
        pytest.param("n.a IS DISTINCT FROM 5", id="IS DISTINCT FROM"),
        pytest.param("(n.a = 5) IS NOT TRUE", id="IS NOT TRUE"),
        pytest.param("(n.a = 5) IS NULL", id="a predicate that is NULL"),
        pytest.param("(n.a, n.b) <> (1, 2)", id="a row that differs"),
        pytest.param("(n.a, n.b) > (1, 2)", id="a row that is greater, as NULL is"),
    ],
)
def test_what_holds_for_rows_of_an_outer_join_prunes_nothing(tables: Any, where: str) -> None:
    statement = tables.select(f"SELECT count(*) FROM orders o LEFT JOIN numbers n ON o.id = n.a WHERE {where}")
    assert [scan.tree.bind(()).is_all for scan in statement.plan.scans] == [True, True]
