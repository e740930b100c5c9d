"""Which conditions bound a key, and which must not: the overload of a function and the type of a cast decide."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from bound_plans import BoundPlans
from described_tables import DescribedTables
from secateur.planner.constrain import ScanConditions
from secateur.planner.prune import bound_scan

COLUMNS = (
    "i INTEGER, g BIGINT, s TINYINT, b VARCHAR, c DATE, t TIMESTAMP, f BOOLEAN, n DECIMAL(10,2), u UUID, x BLOB,"
    " v INTEGER, w VARCHAR, j DOUBLE"
)
KEYS = ["i", "g", "s", "b", "c", "t", "f", "n", "u", "x"]


@pytest.fixture(scope="module")
def plans() -> BoundPlans:
    """A table for each key, which is named as its key is."""
    described, plans = DescribedTables(), BoundPlans()
    for key in KEYS:
        table = f"CREATE TABLE k{key} ({COLUMNS}, PRIMARY KEY ({key})) PARTITION BY HASH ({key}) PARTITIONS 16"
        plans.define(described.create(table))
    return plans


def tree(plans: BoundPlans, key: str, where: str, params: list[Any]) -> str:
    return str(plans.bounds(f"SELECT * FROM k{key} WHERE {where}", params).tree).partition(": ")[2]


@pytest.mark.parametrize(
    ("key", "where", "params", "expected"),
    [
        ("i", "i = CAST($1 AS BIGINT)", [5], "($1)"),
        ("g", "g = $1", [5], "($1)"),
        ("i", "i = $1", [2**40], "($1)"),
        ("i", "i = $1", [Decimal("1.5")], "($1)"),
        ("i", "i = $1 + 1", [Decimal("1.5")], "all"),
        ("n", "n = CAST($1 AS DECIMAL(10,1))", [Decimal("1.55")], "all"),
        ("i", "i = $1", [1.5], "(CAST(key AS DOUBLE) = $1)"),
        ("i", "i = CAST($1 AS INTEGER)", [1.5], "(CAST($1 AS INTEGER))"),
        ("c", "c = $1", [datetime(2024, 1, 1)], "($1)"),
        ("c", "c = $1", ["2024-01-01"], "(CAST($1 AS DATE))"),
        ("t", "CAST(t AS DATE) = $1", [date(2024, 1, 1)], "(CAST(key AS DATE) = $1)"),
        ("n", "n = $1", [5], "($1)"),
        ("i", "i IN $1", [[1, 2]], "($1[])"),
        ("b", "b IN ($1, 'x')", ["y"], "(p1 | $1)"),
        ("f", "NOT (f IN [$1, NULL])", [True], "(not {$1, NULL})"),
        ("f", "$1 BETWEEN f AND f", [True], "([$1, $1])"),
    ],
)
def test_parameters(plans: BoundPlans, key: str, where: str, params: list[Any], expected: str) -> None:
    assert tree(plans, key, where, params) == expected


@pytest.mark.parametrize(
    ("key", "where"),
    [
        ("i", "i = 3"),
        ("i", "CAST(i AS HUGEINT) = 3"),
        ("i", "i = 3.0"),
        ("s", "s + 1 = 3"),
        ("s", "CAST(s AS DECIMAL(4,1)) = 3"),
        ("s", "TRY_CAST(s AS INTEGER) = 3"),
        ("b", "b = lower('A')"),
        ("c", "c = DATE '2024-01-01' + 2"),
        ("c", "c = '2024-1-1'"),
        ("t", "t = DATE '2024-01-01'"),
        ("f", "f IS NOT TRUE"),
        ("f", "f = 1"),
        ("n", "n = 3"),
        ("n", "n = 3.125 OR n = 3"),
        ("u", "u = 'eeccb8c5-9943-b2bb-bb5e-222f4e14b687'"),
        ("i", "i IN [1, NULL]"),
        ("i", "list_has([2], i)"),
        ("i", "nullif(i, 4) = 3"),
        ("i", "CASE WHEN i = 3 THEN 1 ELSE 2 END = 1.0"),
        ("i", "(i, b) = (3, 'x')"),
        ("i", "(i, b) IN ((3, 'x'), NULL)"),
        ("i", "v = 3 AND i = v + 1"),
    ],
)
def test_conditions_that_bound_the_key(plans: BoundPlans, key: str, where: str) -> None:
    assert tree(plans, key, where, []).startswith("(p")


@pytest.mark.parametrize(
    ("key", "where"),
    [
        ("b", "b = 1"),
        ("b", "CAST(b AS INTEGER) = 1"),
        ("b", "b COLLATE NOCASE = 'a'"),
        ("b", "b COLLATE NOCASE LIKE 'a'"),
        ("b", "b COLLATE C = 'a'"),
        ("b", "contains(b, 'a')"),
        ("b", "lower(b) = 'a'"),
        ("b", "b IN $1"),
        ("x", "x = $1 OR v = 1"),
        ("i", "CAST(i AS FLOAT) = 3"),
        ("i", "TRY_CAST(i AS TINYINT) IS NULL"),
        ("c", "TRY_CAST(c AS TIMESTAMP) IS NULL"),
        ("i", "(i = $1) IS NULL"),
        ("i", "(i = $1) IS NOT TRUE"),
        ("i", "(i < 3 AND v = 1) IS NULL"),
        ("i", "i % 2 = 1"),
        ("i", "i * 0 = 0"),
        ("i", "i = random()"),
        ("i", "i = v"),
        ("i", "i = 9007199254740993::DOUBLE"),
        ("g", "CAST(g AS DECIMAL(18,1)) = 3"),
        ("g", "CAST(g AS INTEGER) = 3"),
        ("t", "date_trunc('decade', t) = DATE '2020-01-01'"),
        ("n", "CAST(n AS DOUBLE) = 3"),
        ("n", "CAST(n AS DECIMAL(10,1)) = 3"),
        ("i", "TRY(i = 3)"),
        ("i", "NOT (i = 3)"),
        ("i", "i = 3 OR v = 1"),
    ],
)
def test_conditions_that_do_not(plans: BoundPlans, key: str, where: str) -> None:
    sample = {"b": "y", "x": b"y"}.get(key, 5)
    assert tree(plans, key, where, [sample] if "$1" in where else []) == "all"


@pytest.mark.parametrize(
    ("key", "where", "same"),
    [
        ("b", "b LIKE 'a%' AND length(b) < 2", "b = 'a'"),
        ("b", "b LIKE 'a%' AND 1 >= strlen(b)", "b = 'a'"),
        ("i", "v = 3 AND i = v * 2", "i = 6"),
        ("i", "i = v AND v IN (1, 2)", "i IN (1, 2)"),
        ("i", "i BETWEEN 1 AND 2", "i IN (1, 2)"),
        ("i", "v * 2 = i AND 2e0 = v", "i = 4"),
        ("f", "NOT (f IN [TRUE, NULL])", "f = FALSE"),
        ("i", "NOT (i < 1 OR i > 2)", "i IN (1, 2)"),
        ("i", "i = 1 AND v = 1 AND v = 2", "i IN []"),
        ("i", "7 IN (i, v) AND v = 1", "i = 7"),
        ("c", "c >= '2024-01-01' AND c < TIMESTAMP '2024-01-01 00:00:01'", "c = '2024-01-01'"),
        ("t", "date_trunc('year', t) = DATE '2024-06-01'", "t IN []"),
    ],
)
def test_conditions_that_say_the_same(plans: BoundPlans, key: str, where: str, same: str) -> None:
    assert tree(plans, key, where, []) == tree(plans, key, same, [])


def test_a_column_behind_those_of_the_scan_is_another_tables(plans: BoundPlans) -> None:
    table, names, conditions = plans.scan("SELECT * FROM ki WHERE i = 3 AND g = 4")
    unknown = bound_scan(table, ScanConditions(tuple(names[:0]), tuple(conditions)))
    assert str(unknown.tree) == "ki: all"
    assert unknown.residual == ()
    known = bound_scan(table, ScanConditions(tuple(names[:1]), tuple(conditions), frozenset({0, 1})))
    assert str(known.tree) == "ki: (p11)"
    assert known.residual == (1,)


@pytest.mark.parametrize(
    ("key", "where", "params"),
    [
        ("i", "i = repeat('1', $1)::INTEGER", [2]),
        ("b", "b = replace($1, 'a', $2)", ["aa", "b"]),
    ],
)
def test_what_duckdb_evaluates_at_binding(plans: BoundPlans, key: str, where: str, params: list[Any]) -> None:
    bounds = plans.bounds(f"SELECT * FROM k{key} WHERE {where}", params)
    (expression,) = bounds.tree.expressions
    assert expression.index == len(params)


@pytest.mark.parametrize(
    ("key", "where", "reason"),
    [
        ("b", "b LIKE '%a'", "the pattern of b LIKE '%a' begins with a wildcard"),
        ("i", "i = 3 OR v = 1", "the OR branch v = 1 does not restrict the key"),
        ("b", "upper(b) = 'A'", "b is wrapped in upper(): compare the bare column"),
        ("b", "b = 5", "b is cast in CAST(b AS INTEGER) = 5"),
        ("i", "v = 1", "no predicate on the partition key i"),
        ("i", "i <> 3.0", "i <> 3.0 excludes values of i"),
        ("i", "i = v", "i is compared with v, which is neither a constant nor a parameter"),
    ],
)
def test_reasons(plans: BoundPlans, key: str, where: str, reason: str) -> None:
    found = plans.bounds(f"SELECT * FROM k{key} WHERE {where}").reason
    assert found is not None
    assert found.startswith(reason)
