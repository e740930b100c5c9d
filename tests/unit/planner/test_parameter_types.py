"""On which parameters' types a plan depends, and that it depends on no other."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from secateur.engine.kernels.duckdb import default_kernel
from secateur.errors import DatabaseError
from secateur.planner import PlannedSelect, Planner, typed_parameters
from secateur.planner.binding import BoundPlan, bind_to_plan, type_uses_in
from secateur.planner.text import sample_value


@pytest.mark.parametrize(
    ("expression", "needed"),
    [
        pytest.param("$1", [1], id="a column of the result"),
        pytest.param("k + $1", [1], id="arithmetic"),
        pytest.param("sum(k * $1)", [1], id="inside of an aggregate"),
        pytest.param("coalesce($1, k)", [1], id="one of several values"),
        pytest.param("CASE WHEN k = $1 THEN $2 ELSE 1 END", [2], id="a condition, and a value"),
        pytest.param("k = $1 AND v >= $2 AND NOT k <> $3", [], id="compared"),
        pytest.param("k BETWEEN $1 AND $2", [], id="bounds"),
        pytest.param("k IN ($1, 2)", [], id="one of a list"),
        pytest.param("(k, v) IN (($1, $2), (3, $3))", [], id="one of some rows"),
        pytest.param("k = ANY($1) AND k IN $2 AND list_contains($3, k)", [], id="a list of keys"),
        pytest.param("k IS NOT DISTINCT FROM $1", [], id="compared, NULL too"),
        pytest.param("k = $1 + 1", [1], id="arithmetic of the planner"),
        pytest.param("$1 IN (SELECT k FROM t)", [1], id="compared with the values of a query"),
        pytest.param("k IN (SELECT $1)", [1], id="a value of a query"),
        pytest.param("CAST($1 AS DECIMAL(10, 2))", [], id="cast"),
        pytest.param("TRY_CAST(k + $1 * v AS BIGINT)", [], id="arithmetic that is cast"),
        pytest.param("CAST(d * $1 AS DECIMAL(38, 10))", [], id="decimals that are cast"),
        pytest.param("CAST(CASE WHEN v > $1 THEN $2 ELSE -abs($3) END AS BIGINT)", [], id="a case that is cast"),
        pytest.param("sum(CAST(k * $1 AS BIGINT))", [], id="cast before it is added up"),
        pytest.param("CAST(sum(k * $1) AS BIGINT)", [1], id="cast afterwards"),
        pytest.param("CAST(sum(k * $1) OVER () AS BIGINT)", [1], id="a window"),
        pytest.param("CAST((SELECT max($1) FROM t) AS BIGINT)", [1], id="a query that is cast"),
        pytest.param("CAST(list_transform([1], lambda y: y + $1) AS BIGINT[])", [1], id="inside of a function"),
        pytest.param("max(k) FILTER (WHERE k < $1)", [], id="a filter"),
        pytest.param("k = $1 OR k + $1 > 3", [1], id="in two places"),
    ],
)
def test_what_depends_on_a_type(expression: str, needed: list[int]) -> None:
    values = [[1] if number <= 3 and "ANY" in expression else 1 for number in range(1, 10)]
    sql = f"SELECT {expression} FROM t LIMIT $9"
    plan = bind_to_plan(default_kernel(), sql, {"t": {"k": "BIGINT", "v": "BIGINT", "d": "DECIMAL(18,4)"}}, values)
    assert isinstance(plan, BoundPlan)
    uses = type_uses_in(plan)
    assert sorted(index + 1 for index in uses.needed) == needed
    assert not uses.needed & uses.unneeded
    assert 8 in uses.unneeded, "the limit is one number"
    assert uses.typed(10)[-1] == 9, "of a parameter that it does not have, nothing is known"


QUERIES = [
    "SELECT amount FROM orders WHERE id IN (?, ?) AND amount > ? LIMIT 5",
    "SELECT (customer_id, id) IN (('C1', ?)), sum(amount) FROM orders GROUP BY 1 HAVING sum(amount) > ?",
    "SELECT sum(CAST(amount * ? AS DECIMAL(20, 4))), max(amount) FILTER (WHERE amount < ?) FROM orders",
    "SELECT count(*) FROM orders WHERE id = ANY(?)",
    "SELECT name FROM customers WHERE customer_id = (SELECT max(customer_id) FROM orders WHERE amount = ?)",
    "SELECT c.name, o.amount FROM customers c JOIN orders o USING (customer_id) WHERE o.id = ? AND o.amount < ?",
    "SELECT value FROM metrics WHERE host = 'a' AND time > ?",
    "DESCRIBE SELECT id, ? FROM orders",
    "UPDATE orders SET amount = amount + ? WHERE customer_id = 'C1' AND id = ?",
    "UPDATE orders SET amount = (SELECT sum(id * ?) FROM orders) WHERE id = ?",
    "DELETE FROM orders WHERE amount = ? RETURNING id",
    "INSERT INTO orders (customer_id, id, amount) SELECT customer_id, ?, ? FROM customers",
    "INSERT INTO customers VALUES ('C1', '', ?) ON CONFLICT DO UPDATE SET score = customers.score + excluded.score * ?",
    "INSERT INTO customers VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET name = excluded.name, score = ?",
    "MERGE INTO orders o USING customers c ON o.customer_id = c.name WHEN MATCHED AND o.id > ? THEN UPDATE SET id = ?",
]
VALUES = [
    (1, 2**70),
    (Decimal("1.5"), Decimal("12345678901234.55555")),
    (datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC)),
    ([1], [2**40]),
]


@pytest.mark.parametrize("sql", QUERIES, ids=str)
def test_values_that_have_one_plan_would_be_planned_alike(context: Any, sql: str) -> None:
    compared = 0
    for first, other in VALUES:
        params = [first] * sql.count("?")
        try:
            planned = context.planner.prepare(sql, params, context)
        except DatabaseError:  # of this class no value fits
            continue
        typed = typed_parameters(planned)
        given = [value if index in typed else other for index, value in enumerate(params)]
        again = Planner().prepare(sql, given, context)
        assert content(again) == content(planned), given
        compared += 1
    assert compared


def content(planned: Any) -> list[Any]:
    """What is executed, and what decides how."""
    found: list[Any] = [type(planned).__name__]
    pending = [planned]
    while pending:
        part = pending.pop()
        if isinstance(part, PlannedSelect):
            # An answer over no rows has bytes behind its NULLs that mean nothing.
            plans = part.plan, part.whole().plan
            found += [replace(plan, empty=None, plan_id="").named().plan_id for plan in plans]
            steps = part.materialized
            if steps is not None:
                found += [step.use for step in steps.steps]
                pending += [steps.outer, *(step.query for step in steps.steps)]
        elif part is not None:
            pending += [part.select, getattr(part, "returning", None)]
    return found


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(["a", "b", "c"], ["a"], id="texts have one type"),
        pytest.param([date(2024, 1, 1)] * 3, [date(2024, 1, 1)], id="and dates"),
        pytest.param([5, -(2**40), 3], [-(2**40), 5], id="the widest integers decide"),
        pytest.param([1, "a", 2.5], [1, "a", 2.5], id="several types stay"),
        pytest.param([1, 2], [1, 2], id="short"),
        pytest.param("abc", "abc", id="no list"),
    ],
)
def test_specimen(value: Any, expected: Any) -> None:
    assert sample_value(value) == expected
