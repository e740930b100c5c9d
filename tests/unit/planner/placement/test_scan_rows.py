"""Which columns of a scan travel, and where a filter need not be applied again to rows that it has been applied to."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlglot import exp

from secateur.planner.binding import Query
from secateur.planner.checks import read_by_position
from secateur.planner.placement import tagged_tree
from secateur.planner.placement.scan_rows import ScanRows, columns_read, mark_applied, settle_applied
from secateur.planner.placement.table_references import table_references
from secateur.planner.predicates import flat
from secateur.planner.text import read_statement, to_sql


def first_mention(query: Query) -> tuple[exp.Expr, exp.Table]:
    tree = tagged_tree(query)
    return tree, next(node for node, relation in table_references(tree) if relation == "s0")


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        pytest.param("SELECT id FROM orders WHERE amount > 1", "id amount", id="those that are named"),
        pytest.param(
            "SELECT o.id FROM orders o JOIN customers c ON c.name = o.priority", "id priority", id="in any clause"
        ),
        pytest.param("SELECT * FROM orders", "customer_id id priority amount day", id="a star"),
        pytest.param("SELECT o.* FROM orders o, customers c", "customer_id id priority amount day", id="its own star"),
        pytest.param("SELECT c.*, o.id FROM orders o, customers c", "id", id="not the star of another"),
        pytest.param("SELECT count(*) FROM orders", "customer_id", id="none: one is needed to count"),
        pytest.param("SELECT orders FROM orders", "customer_id id priority amount day", id="the row as a value"),
        pytest.param("SELECT COLUMNS('a.*') FROM orders", "customer_id id priority amount day", id="a pattern"),
        pytest.param(
            "SELECT a, id FROM orders AS o(a, b)",
            "customer_id id priority amount day",
            id="columns that get other names",
        ),
    ],
)
def test_columns_that_travel(bound: Callable[[str], Query], sql: str, columns: str) -> None:
    query = bound(sql)
    _, reference = first_mention(query)
    reading = read_statement(query.sql)
    assert reading is not None
    found = columns_read(reference, query.scans[0], read_by_position(reading.tree))
    assert set(found) == set(columns.split())
    assert list(found) == [column for column in query.scans[0].columns if column in found]


@pytest.mark.parametrize(
    ("sql", "settled"),
    [
        pytest.param("SELECT id FROM orders WHERE amount > 1 AND id = 2", "WHERE TRUE AND id = 2", id="WHERE"),
        pytest.param(
            "SELECT 1 FROM orders o JOIN customers c ON o.id = c.score AND amount > 1",
            "ON o.id = c.score AND TRUE",
            id="ON of an inner join",
        ),
        pytest.param(
            "SELECT 1 FROM customers c LEFT JOIN orders o ON o.id = c.score AND amount > 1",
            "ON o.id = c.score AND amount > 1",
            id="ON of another scan",
        ),
        pytest.param(
            "SELECT 1 FROM orders o FULL JOIN customers c USING (customer_id) WHERE amount > 1",
            "WHERE amount > 1",
            id="WHERE above an outer join",
        ),
    ],
)
def test_a_filter_that_has_been_applied(bound: Callable[[str], Query], sql: str, settled: str) -> None:
    tree, reference = first_mention(bound(sql))
    conjuncts = [
        node
        for clause in tree.find_all(exp.Where, exp.Join)
        for node in flat(clause.this if isinstance(clause, exp.Where) else clause.args.get("on") or exp.true(), exp.And)
    ]
    about = tuple(node for node in conjuncts if to_sql(node) == "amount > 1")
    mark_applied("s0", ScanRows(about, "amount > 1", ""))
    settle_applied(reference, "s0")
    assert settled in to_sql(tree)


@pytest.mark.parametrize(
    ("where", "sql"), [("", 'SELECT "a", "b" FROM s0'), ("a > 1", 'SELECT "a", "b" FROM s0 WHERE a > 1')]
)
def test_the_rows_as_sql(where: str, sql: str) -> None:
    assert ScanRows((), where, "").sql("s0", ["a", "b"]) == sql
