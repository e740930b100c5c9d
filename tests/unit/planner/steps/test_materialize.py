"""Subqueries that run first: what becomes a step, what the rest looks like, and what stays whole."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.planner import planner
from secateur.planner.select import BoundSelect
from secateur.planner.statement import InsertSelect, Materialized, SelectStatement

VIP = "CREATE TABLE vip (customer_id VARCHAR PRIMARY KEY, region VARCHAR, since DATE, best BIGINT, score DOUBLE)"
DAYS = (
    "CREATE TABLE days (day DATE, n INTEGER, best UINTEGER, PRIMARY KEY (day, n)) "
    "PARTITION BY RANGE (day) SPLIT AT (DATE '2024-01-01', DATE '2024-02-01', DATE '2024-03-01')"
)
NUMBERS = "CREATE TABLE numbers (a BIGINT, b INTEGER, v BIGINT, PRIMARY KEY (a, b)) PARTITION BY HASH (a) PARTITIONS 7, HASH (b) PARTITIONS 3"


@pytest.fixture
def steps(bench: Any) -> Any:
    for ddl in (VIP, DAYS, NUMBERS):
        bench.create(ddl)
    return bench


def materialized(bench: Any, sql: str, params: Any = ()) -> Materialized | None:
    found: Materialized | None = bench.select(sql, params).materialized
    return found


def shown(found: Materialized | None) -> list[str]:
    """Each step as its parameter's use and text, then the trees of the rest."""
    assert found is not None
    return [*(f"{step.use.value}: {step.text}" for step in found.steps), *(str(scan.tree) for scan in found.outer.plan.scans)]


@pytest.mark.parametrize(
    ("sql", "params", "expected"),
    [
        pytest.param(
            "SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip WHERE region = ?)",
            ["north"],
            ["list: SELECT customer_id FROM vip WHERE region = $1", "orders: (?1[])"],
            id="the example of the seed",
        ),
        pytest.param(
            "SELECT * FROM orders WHERE id > $low AND customer_id IN (SELECT customer_id FROM vip WHERE region = $region) AND id < $high",
            {"low": 1, "region": "é", "high": 9},
            ["list: SELECT customer_id FROM vip WHERE region = $2", "orders: (?3[])"],
            id="named parameters on both sides",
        ),
        pytest.param(
            "SELECT * FROM orders WHERE customer_id = ANY (SELECT customer_id FROM vip)",
            (),
            ["list: SELECT customer_id FROM vip", "orders: (?0[])"],
            id="any",
        ),
        pytest.param(
            "SELECT * FROM orders WHERE customer_id = (SELECT max(customer_id) FROM vip)",
            (),
            ["value: SELECT max(customer_id) FROM vip", "orders: (?0)"],
            id="a scalar subquery",
        ),
        pytest.param(
            "SELECT * FROM days WHERE day BETWEEN (SELECT min(since) FROM vip) AND (SELECT max(since) FROM vip)",
            (),
            ["value: SELECT min(since) FROM vip", "value: SELECT max(since) FROM vip", "days: ([?0, ?1])"],
            id="a range between two scalar subqueries",
        ),
        pytest.param(
            "SELECT * FROM days WHERE day >= (SELECT max(since) FROM vip) - 7",
            (),
            ["value: SELECT max(since) FROM vip", "days: (>= CAST(?0 AS DATE) - 7)"],
            id="an expression of a scalar subquery",
        ),
        pytest.param(
            "SELECT * FROM numbers WHERE a IN (SELECT best FROM vip) AND b IN (SELECT n FROM days)",
            (),
            ["list: SELECT best FROM vip", "list: SELECT n FROM days", "numbers: ((?0[], ?1[]))"],
            id="two lists",
        ),
        pytest.param(
            "SELECT * FROM numbers WHERE a IN (SELECT best FROM days)",
            (),
            ["list: SELECT best FROM days", "numbers: ((?0[], *))"],
            id="integers of another type",
        ),
        pytest.param(
            "SELECT * FROM orders o JOIN customers c ON o.priority = c.name WHERE c.customer_id IN (SELECT customer_id FROM vip) AND c.score > 1",
            (),
            ["list: SELECT customer_id FROM vip", "orders: all", "customers: (?0[])"],
            id="inside of a join",
        ),
        pytest.param(
            "SELECT * FROM (SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip)) LIMIT 3",
            (),
            ["list: SELECT customer_id FROM vip", "orders: (?0[])"],
            id="inside of a derived table",
        ),
        pytest.param(
            "SELECT id FROM orders WHERE customer_id IN (SELECT customer_id FROM vip) UNION ALL SELECT 1",
            (),
            ["list: SELECT customer_id FROM vip", "orders: (?0[])"],
            id="inside of a union",
        ),
        pytest.param(
            "SELECT * FROM orders WHERE priority IN (SELECT region FROM vip WHERE customer_id IN (SELECT customer_id FROM customers))",
            (),
            ["list: SELECT customer_id FROM customers", "orders: all", "vip: (?0[])"],
            id="only the inner one prunes",
        ),
        pytest.param(
            "SELECT * FROM orders o WHERE EXISTS (FROM vip v WHERE v.region = o.priority AND v.customer_id IN (SELECT customer_id FROM customers))",
            (),
            ["list: SELECT customer_id FROM customers", "orders: all", "vip: (?0[])"],
            id="inside of a correlated subquery",
        ),
        pytest.param(
            "SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip) OR customer_id = ?",
            ["C1"],
            ["list: SELECT customer_id FROM vip", "orders: (?1[] | ?0)"],
            id="or",
        ),
    ],
)
def test_steps(steps: Any, sql: str, params: Any, expected: list[str]) -> None:
    assert shown(materialized(steps, sql, params)) == expected


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("SELECT * FROM orders o WHERE customer_id IN (SELECT customer_id FROM vip v WHERE v.region = o.priority)", id="correlated"),
        pytest.param("SELECT * FROM orders WHERE customer_id IN (SELECT priority)", id="nothing but a column of the outer query"),
        pytest.param("SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip WHERE random() < 0.5)", id="volatile"),
        pytest.param("SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip WHERE since < current_date)", id="clock"),
        pytest.param("SELECT * FROM orders WHERE customer_id IN (SELECT customer_id COLLATE NOCASE FROM vip)", id="collation"),
        pytest.param("SELECT * FROM orders WHERE customer_id = (SELECT k FROM (SELECT max(customer_id COLLATE NOCASE) AS k FROM vip))", id="inner collation"),
        pytest.param("SELECT * FROM orders WHERE customer_id = 'C1' AND customer_id IN (SELECT customer_id FROM vip)", id="bound to one key already"),
        pytest.param("SELECT * FROM orders WHERE customer_id IN ('C1', 'C2') AND customer_id IN (SELECT customer_id FROM vip)", id="bound to a few keys"),
        pytest.param("SELECT * FROM orders WHERE priority IN (SELECT region FROM vip)", id="not a key"),
        pytest.param("SELECT * FROM orders WHERE lower(customer_id) IN (SELECT customer_id FROM vip)", id="a function of the key"),
        pytest.param("SELECT * FROM numbers WHERE a IN (SELECT score FROM vip)", id="another type"),
        pytest.param("SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip) OR id = 1", id="an unbounded branch"),
        pytest.param("SELECT * FROM orders WHERE customer_id IN (SELECT unnest(['C1', 'C2']))", id="no table in it"),
        pytest.param("SELECT * FROM airlines WHERE code IN (SELECT region FROM vip)", id="a replicated table"),
        pytest.param("SELECT customer_id IN (SELECT customer_id FROM vip) FROM orders", id="a column"),
        pytest.param("SELECT * FROM orders WHERE customer_id < ALL (SELECT customer_id FROM vip)", id="all"),
        pytest.param("SELECT * FROM numbers WHERE (a, b) IN (SELECT n, n FROM days)", id="rows"),
        pytest.param("SELECT * FROM orders LEFT JOIN vip ON orders.customer_id IN (SELECT customer_id FROM vip)", id="condition of an outer join"),
        pytest.param(
            "SELECT (SELECT max(id) FROM orders WHERE customer_id IN (SELECT customer_id FROM vip)) FROM airlines", id="a column that is called by its text"
        ),
    ],
)
def test_what_stays_whole(steps: Any, sql: str) -> None:
    assert materialized(steps, sql) is None


@pytest.mark.parametrize(
    ("subquery", "text"),
    [
        ("SELECT customer_id FROM vip", "SELECT DISTINCT customer_id FROM s0 AS \"vip\"\nLIMIT 10001"),
        ("SELECT DISTINCT customer_id FROM vip", "SELECT DISTINCT * FROM (\nSELECT DISTINCT customer_id FROM s0 AS \"vip\"\n) AS subquery LIMIT 10001"),
        ("SELECT ALL customer_id FROM vip", "SELECT DISTINCT * FROM (\nSELECT ALL customer_id FROM s0 AS \"vip\"\n) AS subquery LIMIT 10001"),
        ("SELECT customer_id FROM vip LIMIT 2", "SELECT DISTINCT * FROM (\nSELECT customer_id FROM s0 AS \"vip\" LIMIT 2\n) AS subquery LIMIT 10001"),
        ("SELECT max(customer_id) FROM vip", "SELECT DISTINCT * FROM (\nSELECT max(customer_id) FROM s0 AS \"vip\"\n) AS subquery LIMIT 10001"),
        ("SELECT customer_id FROM vip -- all", "SELECT DISTINCT customer_id FROM s0 AS \"vip\"\nLIMIT 10001"),
        ("FROM (SELECT customer_id FROM vip)", "SELECT DISTINCT * FROM (\nFROM (SELECT customer_id FROM s0 AS \"vip\")\n) AS subquery LIMIT 10001"),
    ],
)  # fmt: skip
def test_a_step_is_bounded_where_the_rows_are(steps: Any, subquery: str, text: str) -> None:
    found = materialized(steps, f"SELECT * FROM orders WHERE customer_id IN ({subquery}\n)")
    assert found is not None
    assert found.steps[0].query.plan.local.sql == text


def test_a_scalar_step_is_bounded_to_two_rows(steps: Any) -> None:
    found = materialized(steps, "SELECT * FROM orders WHERE customer_id = (SELECT customer_id FROM vip ORDER BY since LIMIT 1)")
    assert found is not None
    assert found.steps[0].use.values_max == 1
    assert found.steps[0].query.plan.local.sql == 'SELECT * FROM (\nSELECT customer_id FROM s0 AS "vip" ORDER BY since LIMIT 1\n) AS subquery LIMIT 2'


def test_a_step_may_have_steps(steps: Any) -> None:
    sql = "SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip WHERE customer_id IN (SELECT customer_id FROM customers WHERE score > ?))"
    found = materialized(steps, sql, [0.5])
    assert found is not None
    inner = found.steps[0].query.materialized
    assert shown(inner) == ["list: SELECT customer_id FROM customers WHERE score > $1", "vip: (?1[])"]
    assert str(found.outer.plan.scans[0].tree) == "orders: (?1[])"


@pytest.mark.parametrize(
    ("sql", "step", "outer"),
    [
        pytest.param(
            "WITH v AS (SELECT * FROM vip WHERE region = ?) SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM v)",
            ["vip: all"],
            ["orders: (?1[])"],
            id="a name of WITH",
        ),
        pytest.param(
            "WITH vip AS (SELECT * FROM customers WHERE name = ?) SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip)",
            ["customers: all"],
            ["orders: (?1[])"],
            id="a name of WITH that is a table's as well",
        ),
        pytest.param(
            "WITH v AS (SELECT * FROM vip WHERE region = ?), o AS (SELECT * FROM orders), w(k) AS (SELECT customer_id FROM v) "
            "SELECT * FROM orders WHERE customer_id IN (SELECT k FROM w) AND id IN (SELECT id FROM o)",
            ["vip: all"],
            ["orders: all", "orders: (?1[])"],
            id="only what is needed goes with it",
        ),
        pytest.param(
            "WITH v AS (SELECT * FROM vip WHERE region = ?) "
            "SELECT * FROM orders o JOIN v ON o.priority = v.region WHERE o.customer_id IN (SELECT customer_id FROM v)",
            ["vip: all"],
            ["vip: all", "orders: (?1[])"],
            id="a name of WITH that the rest needs too",
        ),
    ],
)
def test_common_table_expressions_go_with_a_step(steps: Any, sql: str, step: list[str], outer: list[str]) -> None:
    found = materialized(steps, sql, ["x"])
    assert found is not None
    assert [str(scan.tree) for scan in found.steps[0].query.plan.scans] == step
    assert [str(scan.tree) for scan in found.outer.plan.scans] == outer


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param(
            "WITH vip AS (SELECT * FROM customers), w AS (SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip)) SELECT * FROM w",
            id="of the same WITH",
        ),
        pytest.param(
            "SELECT * FROM (WITH vip AS (SELECT * FROM customers) SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip))",
            id="of a part",
        ),
    ],
)
def test_names_that_cannot_go_with_a_step(steps: Any, sql: str) -> None:
    assert materialized(steps, sql) is None


def test_an_insert_runs_its_query_in_steps(steps: Any) -> None:
    statement = steps.prepare("INSERT INTO customers (customer_id) SELECT customer_id FROM orders WHERE customer_id IN (SELECT customer_id FROM vip)")
    assert isinstance(statement, InsertSelect)
    assert shown(statement.select.materialized) == ["list: SELECT customer_id FROM vip", "orders: (?0[])"]


def test_the_form_in_steps_is_remembered_with_its_plan(steps: Any) -> None:
    sql = "SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip WHERE region = ?)"
    first: SelectStatement = steps.select(sql, ["a"])
    second: SelectStatement = steps.select(sql, ["b"])
    assert first.materialized is second.materialized is not None
    assert second.params == ("b",)


def test_explain_shows_the_steps(steps: Any) -> None:
    sql = "SELECT count(*) FROM orders WHERE customer_id IN (SELECT customer_id FROM vip WHERE region = ?)"
    explained = steps.explain(sql, ["north"])
    pruning = explained.json["pruning"]
    later = "the values of the subquery are known at run time: the partitions are those of (?1[])"
    assert (pruning["tree"], pruning["execution"], pruning["applicable"]) == ("orders: (?1[])", "distributed", True)
    assert pruning["required_members"] == ["m1", "m2", "m3"]
    assert [(scan["table"], scan["partitions"]) for scan in pruning["scans"]] == [("orders", None), ("vip", None)]
    assert pruning["scans"][0]["reason"] == later
    (step,) = pruning["steps"]
    assert (step["parameter"], step["values"], step["sql"]) == (1, "list", "SELECT customer_id FROM vip WHERE region = $1")
    assert step["pruning"]["tree"] == "vip: all"
    lines = explained.text.splitlines()
    assert lines[2:4] == ["tree: orders: (?1[])", "rewrites: materialize_subquery"]
    assert lines[4:6] == ["scan orders: of 271 partitions those of the parameters", f"  because {later}"]
    position = lines.index("before that, ?1[] from: SELECT customer_id FROM vip WHERE region = $1")
    assert lines[position + 2 : position + 4] == ["  tree: vip: all", "  scan vip: all 271 partitions"]


def test_explain_without_pruning_shows_the_whole(steps: Any) -> None:
    explained = steps.explain("SELECT count(*) FROM orders WHERE customer_id IN (SELECT customer_id FROM vip)", pruning="off")
    assert "steps" not in explained.json["pruning"]
    assert explained.json["pruning"]["tree"] == "orders: all; vip: all"


def test_explain_of_one_key_from_another_one_key(steps: Any) -> None:
    steps.create("CREATE TABLE one (k VARCHAR PRIMARY KEY, customer_id VARCHAR) REPLICATED")
    explained = steps.explain("SELECT * FROM orders WHERE customer_id = (SELECT customer_id FROM one WHERE k = ?)", ["a"])
    assert explained.json["pruning"]["tree"] == "orders: (?1)"
    assert explained.json["pruning"]["steps"][0]["pruning"]["execution"] == "local"


def test_subqueries_in_subqueries_do_not_explode(steps: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of them prunes, so that each could be tried alone, and inside of each other."""
    bound = []

    def counted(*args: Any, **options: Any) -> BoundSelect:
        bound.append(args[0])
        return BoundSelect(*args, **options)

    monkeypatch.setattr(planner, "BoundSelect", counted)
    nested = "SELECT region FROM vip"
    for _ in range(12):
        nested = f"SELECT region FROM vip WHERE region IN ({nested}) AND region = (SELECT max(region) FROM vip)"
    assert materialized(steps, f"SELECT * FROM orders WHERE priority IN ({nested})") is None
    assert len(bound) <= 25
