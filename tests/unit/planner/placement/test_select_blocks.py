"""One SELECT taken apart: its core, the queries inside of it, its exact spelling, and whose order it has."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlglot import exp

from secateur.planner.binding import Query
from secateur.planner.fragments import NotDistributable
from secateur.planner.placement import (
    behind_from,
    core_of,
    is_windowed,
    nested_queries,
    ordered_source,
    qualified_block,
    tagged_tree,
    title_of,
    without_order,
)
from secateur.planner.relations import FromClause, RelationBuilder, VisibleNames
from secateur.planner.text import parse_query, to_sql, tokenize


def parsed(sql: str) -> exp.Select:
    tree = parse_query(sql, tokenize(sql))
    assert isinstance(tree, exp.Select)
    return tree


@pytest.mark.parametrize(
    ("sql", "core"),
    [
        (
            "SELECT a, sum(b) FROM t WHERE c > 1 GROUP BY a HAVING sum(b) > 2 ORDER BY a LIMIT 3",
            "SELECT * FROM t WHERE c > 1",
        ),
        ("SELECT DISTINCT t.a FROM t JOIN u ON t.a = u.a, v", "SELECT * FROM t JOIN u ON t.a = u.a, v"),
        ("SELECT a, rank() OVER w FROM t WINDOW w AS (ORDER BY a) QUALIFY rank() OVER w = 1", "SELECT * FROM t"),
    ],
)
def test_the_core_is_from_and_where(sql: str, core: str) -> None:
    found = core_of(parsed(sql))
    assert to_sql(found) == core
    assert behind_from(found) == core.removeprefix("SELECT * FROM ")


@pytest.mark.parametrize(
    ("sql", "queries"),
    [
        ("SELECT a FROM t", []),
        (
            "SELECT (SELECT max(b) FROM u) FROM (SELECT a FROM v WHERE a IN (SELECT 1)) x",
            ["SELECT MAX(b) FROM u", "SELECT a FROM v WHERE a IN (SELECT 1)"],
        ),
        ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u) AND a IN (SELECT 2)", ["SELECT 1 FROM u", "SELECT 2"]),
    ],
)
def test_queries_inside(sql: str, queries: list[str]) -> None:
    found = [to_sql(node).strip("()").removesuffix(") AS x") for node in nested_queries(parsed(sql))]
    assert sorted(found) == sorted(queries)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT rank() OVER (ORDER BY a) FROM t", True),
        ("SELECT a FROM t QUALIFY count(*) OVER () = 1", True),
        ("SELECT a FROM t ORDER BY sum(a) OVER ()", True),
        ("SELECT sum(a) FROM t", False),
        ("SELECT (SELECT rank() OVER () FROM u) FROM t", False),
    ],
)
def test_windows(sql: str, *, expected: bool) -> None:
    assert is_windowed(parsed(sql)) is expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a FROM t ORDER BY a LIMIT 3 OFFSET 1", "SELECT a FROM t"),
        ("SELECT a FROM t UNION SELECT a FROM u ORDER BY a", "SELECT a FROM t UNION SELECT a FROM u"),
        ("SELECT a FROM (SELECT a FROM t LIMIT 1) x LIMIT 2", "SELECT a FROM (SELECT a FROM t LIMIT 1) AS x"),
    ],
)
def test_without_order(sql: str, expected: str) -> None:
    tree = parse_query(sql, tokenize(sql))
    assert to_sql(without_order(tree)) == expected
    assert "LIMIT" in to_sql(tree) or "ORDER" in to_sql(tree)


@pytest.mark.parametrize(
    ("sql", "is_ordered"),
    [
        ("SELECT a FROM (SELECT a FROM t ORDER BY a) x", True),
        ("SELECT a FROM (SELECT a FROM (SELECT a FROM t ORDER BY a) y WHERE a > 1) x", True),
        ("SELECT a FROM (SELECT a FROM t ORDER BY a) x WHERE a > 1", True),
        ("SELECT a FROM (SELECT a FROM t ORDER BY a) x ORDER BY a", False),
        ("SELECT DISTINCT a FROM (SELECT a FROM t ORDER BY a) x", False),
        ("SELECT x.a FROM (SELECT a FROM t ORDER BY a) x, u", False),
        ("SELECT a FROM (SELECT a FROM t) x", False),
        ("SELECT a FROM t", False),
    ],
)
def test_whose_order_a_select_has(sql: str, *, is_ordered: bool) -> None:
    assert (ordered_source(parsed(sql)) is not None) is is_ordered


def qualified(query: Query) -> str:
    tree = tagged_tree(query)
    assert isinstance(tree, exp.Select)
    scans = {scan.relation: scan for scan in query.scans}
    builder = RelationBuilder([scans[f"s{number}"] for number in range(len(scans))], {}, frozenset())
    assert isinstance(query.tree, exp.Select)
    found, _ = qualified_block(query.tree, FromClause(builder, {}, VisibleNames(), query.tree).read().names)
    return to_sql(found).partition(" FROM ")[0]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT ID, o.Amount + 1 FROM orders o", 'SELECT "o"."id", "o"."amount" + 1'),
        ("SELECT * FROM airlines", 'SELECT "airlines"."code", "airlines"."name"'),
        ("SELECT a.*, id FROM orders o, airlines a", 'SELECT "a"."code", "a"."name", "o"."id"'),
    ],
)
def test_columns_are_named_exactly(bound: Callable[[str], Query], sql: str, expected: str) -> None:
    assert qualified(bound(sql)) == expected


@pytest.mark.parametrize(
    ("sql", "reason"),
    [("SELECT COLUMNS('a') FROM orders", "a pattern"), ("SELECT * EXCLUDE (id) FROM orders", "changes the columns")],
)
def test_what_is_not_certain_is_not_taken_apart(bound: Callable[[str], Query], sql: str, reason: str) -> None:
    with pytest.raises(NotDistributable, match=reason):
        qualified(bound(sql))


@pytest.mark.parametrize(
    ("sql", "title"),
    [
        ("SELECT id FROM orders", "scan orders"),
        ("SELECT 1 FROM orders O JOIN customers c ON TRUE", "join o"),
        ("SELECT 1", "scan rows"),
    ],
)
def test_what_a_stage_is_called(bound: Callable[[str], Query], sql: str, title: str) -> None:
    tree = tagged_tree(bound(sql))
    assert isinstance(tree, exp.Select)
    assert title_of(tree) == title
