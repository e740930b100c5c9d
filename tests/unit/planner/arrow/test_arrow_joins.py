"""Which joins the arrow kernel gets, in which form, and why it does not get the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from secateur.engine.kernels.arrow import (
    ArrowFragment,
    ArrowSource,
    CallExpression,
    ColumnExpression,
    ScalarFunction,
    SourceJoin,
)
from secateur.engine.kernels.duckdb import DuckDBKernel
from secateur.partitioning.types import parse_type
from secateur.planner.arrow import JoinInput, KernelDeclined, arrow_form
from secateur.planner.binding import BoundPlan, bind_to_plan

TYPES = {
    "s0": {"id": "BIGINT", "customer": "VARCHAR", "product": "INTEGER", "price": "DOUBLE", "paid": "BOOLEAN"},
    "s1": {"product": "INTEGER", "title": "VARCHAR", "weight": "DOUBLE", "cost": "DECIMAL(8,2)"},
    "s2": {"customer": "VARCHAR", "region": "SMALLINT", "cost": "DECIMAL(9,3)"},
}
SCHEMAS = {relation: {name: parse_type(text) for name, text in types.items()} for relation, types in TYPES.items()}
ALIASES = {"s0": "orders", "s1": "products", "s2": "customers"}


@pytest.fixture(scope="module")
def kernel() -> Iterator[DuckDBKernel]:
    kernel = DuckDBKernel(threads=1)
    yield kernel
    kernel.close()


def compiled(kernel: DuckDBKernel, sql: str, restricted: str = "", **orders: str) -> ArrowFragment | KernelDeclined:
    named = [relation for relation, alias in ALIASES.items() if alias.upper() in sql]
    for relation in named:
        sql = sql.replace(ALIASES[relation].upper(), f"{relation} AS {ALIASES[relation]}")
    params: list[Any] = [1] if "$1" in sql else []
    inputs = {relation: JoinInput(orders.get(relation), relation == restricted) for relation in named}
    plan = bind_to_plan(kernel, sql, SCHEMAS, params)
    assert isinstance(plan, BoundPlan), plan
    return arrow_form(plan.root, plan.text, kernel.describe(sql, SCHEMAS, params), inputs)


def sources(kernel: DuckDBKernel, sql: str, restricted: str = "", **orders: str) -> tuple[ArrowSource, ...]:
    fragment = compiled(kernel, sql, restricted, **orders)
    assert isinstance(fragment, ArrowFragment), fragment
    return fragment.sources


def column(name: str) -> ColumnExpression:
    relation, _, bare = name.partition(".")
    return ColumnExpression(name, SCHEMAS[relation][bare])


PRODUCT = (column("s0.product"), column("s1.product"))
CUSTOMER = (column("s0.customer"), column("s2.customer"))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT title FROM ORDERS JOIN PRODUCTS ON orders.product = products.product",
        "SELECT title FROM ORDERS JOIN PRODUCTS ON products.product = orders.product",
        "SELECT title FROM ORDERS INNER JOIN PRODUCTS USING (product)",
        "SELECT title FROM ORDERS, PRODUCTS WHERE orders.product = products.product",
        "SELECT title FROM ORDERS CROSS JOIN PRODUCTS WHERE (orders.PRODUCT) = products.product",
        "SELECT title FROM ORDERS NATURAL JOIN PRODUCTS",
        "SELECT * FROM ORDERS JOIN PRODUCTS USING (product)",
        "SELECT id FROM ORDERS JOIN (SELECT * FROM PRODUCTS) p ON p.product = orders.product",
        "SELECT id FROM ORDERS JOIN PRODUCTS ON orders.product = products.product AND 1 = 1",
        "WITH p AS (SELECT product AS x, title AS y FROM PRODUCTS) SELECT y FROM ORDERS JOIN p ON x = product",
    ],
)
def test_every_spelling_of_an_inner_join(kernel: DuckDBKernel, sql: str) -> None:
    assert sources(kernel, sql) == (ArrowSource("s0"), ArrowSource("s1", keys=(PRODUCT,)))


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("SELECT id FROM ORDERS LEFT JOIN PRODUCTS USING (product)", SourceJoin.LEFT),
        ("SELECT id FROM ORDERS LEFT OUTER JOIN PRODUCTS ON orders.product = products.product", SourceJoin.LEFT),
        ("SELECT id FROM ORDERS SEMI JOIN PRODUCTS ON orders.product = products.product", SourceJoin.SEMI),
        ("SELECT id FROM ORDERS ANTI JOIN PRODUCTS ON orders.product = products.product", SourceJoin.ANTI),
        (
            "SELECT id FROM ORDERS WHERE EXISTS (SELECT 1 FROM PRODUCTS WHERE products.product = orders.product)",
            SourceJoin.SEMI,
        ),
        (
            "SELECT id FROM ORDERS WHERE NOT EXISTS (SELECT title FROM PRODUCTS WHERE orders.product = product)",
            SourceJoin.ANTI,
        ),
        ("SELECT id FROM PRODUCTS RIGHT JOIN ORDERS USING (product)", SourceJoin.LEFT),
        ("SELECT id FROM ORDERS WHERE product IN (SELECT product FROM PRODUCTS)", SourceJoin.SEMI),
        ("SELECT id FROM ORDERS WHERE product IN (SELECT DISTINCT products.product FROM PRODUCTS)", SourceJoin.SEMI),
    ],
)
def test_kinds_of_joins(kernel: DuckDBKernel, sql: str, kind: SourceJoin) -> None:
    assert sources(kernel, sql) == (ArrowSource("s0"), ArrowSource("s1", kind=kind, keys=(PRODUCT,)))


def test_conditions_on_one_relation_are_applied_before_its_join_unless_it_may_be_missing(kernel: DuckDBKernel) -> None:
    rest = "customers.customer = orders.customer AND region = 3 WHERE price > 2 AND region IS NULL"
    first, inner = sources(kernel, f"SELECT id FROM ORDERS JOIN CUSTOMERS ON {rest}")
    assert first.where is not None
    assert isinstance(inner.where, CallExpression)
    assert inner.where.function is ScalarFunction.AND
    outer = compiled(kernel, f"SELECT id FROM ORDERS LEFT JOIN CUSTOMERS ON {rest}")
    assert isinstance(outer, ArrowFragment)
    assert isinstance(outer.where, CallExpression)
    assert outer.where.function is ScalarFunction.IS_NULL
    assert isinstance(outer.sources[1].where, CallExpression)
    assert outer.sources[1].where.function is ScalarFunction.EQUAL


def test_a_condition_on_the_kept_side_of_a_left_join_decides_about_pairs(kernel: DuckDBKernel) -> None:
    _, joined = sources(
        kernel, "SELECT id FROM ORDERS LEFT JOIN PRODUCTS ON products.product = orders.product AND orders.paid"
    )
    assert joined.condition == column("s0.paid")


def test_inner_joins_begin_with_a_relation_that_a_key_restricts(kernel: DuckDBKernel) -> None:
    sql = (
        "SELECT id FROM PRODUCTS, CUSTOMERS, ORDERS WHERE orders.product = products.product"
        " AND orders.customer = customers.customer"
    )
    found = sources(kernel, sql, restricted="s0")
    assert [source.relation for source in found] == ["s0", "s1", "s2"]
    assert [source.keys for source in found] == [(), (PRODUCT,), (CUSTOMER,)]
    assert [source.relation for source in sources(kernel, sql)] == ["s1", "s0", "s2"]


def test_keys_of_other_widths_are_widened(kernel: DuckDBKernel) -> None:
    _, joined = sources(kernel, "SELECT title FROM ORDERS JOIN PRODUCTS ON orders.id = products.product")
    widened = CallExpression(ScalarFunction.CAST, (column("s1.product"),), parse_type("BIGINT"))
    assert joined.keys == ((column("s0.id"), widened),)


def test_a_relation_in_order_of_a_key_is_searched_by_that_key(kernel: DuckDBKernel) -> None:
    sql = (
        "SELECT id FROM ORDERS JOIN CUSTOMERS ON customers.region = orders.product"
        " AND customers.customer = orders.customer"
    )
    assert [source.is_searched for source in sources(kernel, sql)] == [False, False]
    _, searched = sources(kernel, sql, s2="customer")
    assert searched.is_searched
    assert searched.keys[0] == CUSTOMER


def test_a_value_of_the_inner_side_of_a_left_join_is_null_where_there_is_none(kernel: DuckDBKernel) -> None:
    query = "SELECT {} FROM ORDERS LEFT JOIN (SELECT *, 1 AS one FROM PRODUCTS WHERE cost > 1) p USING (product)"
    _, joined = sources(kernel, query.format("id, title"))
    assert isinstance(joined.where, CallExpression)
    assert compiled(kernel, query.format("one")) == KernelDeclined("what an outer join fills with NULL")


def test_a_relation_may_be_joined_to_itself(kernel: DuckDBKernel) -> None:
    sql = "SELECT b.id FROM s0 AS a JOIN s1 AS b ON a.id = b.product"
    schema = {"id": parse_type("BIGINT"), "product": parse_type("BIGINT")}
    schemas = {"s0": schema, "s1": schema}
    plan = bind_to_plan(kernel, sql, schemas, [])
    assert isinstance(plan, BoundPlan)
    fragment = arrow_form(plan.root, plan.text, (("id", "BIGINT"),), dict.fromkeys(schemas, JoinInput()))
    assert isinstance(fragment, ArrowFragment)
    assert fragment.outputs == (("id", ColumnExpression("s1.id", parse_type("BIGINT"))),)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (
            "SELECT id FROM ORDERS FULL JOIN PRODUCTS USING (product)",
            "a join of another kind than INNER, LEFT, SEMI and ANTI",
        ),
        ("SELECT id FROM ORDERS, PRODUCTS", "a join without an equality of its two sides"),
        ("WITH p AS (FROM PRODUCTS) SELECT id FROM ORDERS", "a table that has no influence on the answer"),
        (
            "SELECT id FROM ORDERS JOIN PRODUCTS ON orders.product < products.product",
            "a join without an equality of its two sides",
        ),
        (
            "SELECT id FROM ORDERS JOIN PRODUCTS ON orders.price = products.weight",
            "two columns of which one may be NaN",
        ),
        (
            "SELECT title FROM PRODUCTS JOIN CUSTOMERS ON products.cost = customers.cost",
            "DECIMAL(8,2) together with DECIMAL(9,3)",
        ),
        (
            "SELECT id FROM ORDERS WHERE product NOT IN (SELECT product FROM PRODUCTS)",
            "a join of another kind than INNER, LEFT, SEMI and ANTI",
        ),
        (
            "SELECT id FROM ORDERS WHERE paid OR product IN (SELECT product FROM PRODUCTS)",
            "a join of another kind than INNER, LEFT, SEMI and ANTI",
        ),
        (
            "SELECT id FROM ORDERS WHERE EXISTS (SELECT max(title) FROM PRODUCTS WHERE product = orders.product)",
            "With is left to DuckDB",
        ),
        (
            "SELECT id FROM ORDERS WHERE EXISTS (SELECT * REPLACE (1 AS title) FROM PRODUCTS WHERE title = 'x')",
            "rows that are grouped or cut before they are joined or grouped",
        ),
        (
            "SELECT id FROM ORDERS WHERE EXISTS (SELECT products.* REPLACE (1 AS title) FROM PRODUCTS)",
            "rows that are grouped or cut before they are joined or grouped",
        ),
        (
            "SELECT id FROM ORDERS WHERE EXISTS (SELECT * EXCLUDE (title) FROM PRODUCTS WHERE title = 'x')",
            "rows that are grouped or cut before they are joined or grouped",
        ),
        (
            "SELECT id FROM ORDERS WHERE EXISTS (SELECT COLUMNS(*) FROM PRODUCTS WHERE title = 'x')",
            "rows that are grouped or cut before they are joined or grouped",
        ),
        (
            "SELECT id FROM ORDERS WHERE product IN (SELECT product FROM PRODUCTS LIMIT 1)",
            "rows that are grouped or cut before they are joined or grouped",
        ),
        (
            "SELECT id FROM ORDERS WHERE product IN (SELECT product FROM PRODUCTS UNION SELECT 1)",
            "Union is left to DuckDB",
        ),
        (
            "SELECT id, (SELECT max(title) FROM PRODUCTS) FROM ORDERS",
            "rows that are grouped or cut before they are joined or grouped",
        ),
    ],
)
def test_what_is_left_to_duckdb(kernel: DuckDBKernel, sql: str, reason: str) -> None:
    assert compiled(kernel, sql) == KernelDeclined(reason)
