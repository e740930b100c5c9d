from __future__ import annotations

import pytest
from sqlglot import exp

from secateur.planner.text import children_of, copied, parse_query, tables_in, to_sql, tokenize


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param(
            "WITH c(a) AS (SELECT 1) SELECT a, count(*) FILTER (WHERE a > 1) OVER w FROM c AS x JOIN t USING (a) WINDOW"
            " w AS (ORDER BY a)",
            id="SELECT",
        ),
        pytest.param("(SELECT 1) UNION ALL (VALUES (1), (2)) ORDER BY 1 LIMIT 3", id="set operation"),
        pytest.param("SELECT /* why */ [1, 2], {'a': 1}, CAST(x AS DECIMAL(8, 2)) FROM t", id="values and a comment"),
    ],
)
def test_a_copy_is_equal_and_apart(sql: str) -> None:
    tree = parse_query(sql, tokenize(sql))
    for node in tree.walk():
        node.meta["mark"] = id(node)
    copy = copied(tree)
    assert copy == tree
    assert to_sql(copy) == to_sql(tree)
    nodes, copies = list(tree.walk()), list(copy.walk())
    assert {id(node) for node in nodes}.isdisjoint(map(id, copies))
    for node, twin in zip(nodes, copies, strict=True):
        assert (twin.meta, twin.comments or [], twin.arg_key, twin.index) == (
            node.meta,
            node.comments or [],
            node.arg_key,
            node.index,
        )
        assert twin.parent is (
            None if node.parent is None else copies[[id(other) for other in nodes].index(id(node.parent))]
        )
    copies[0].meta["mark"] = None
    assert nodes[0].meta["mark"] == id(nodes[0])


def test_printing_changes_no_tree() -> None:
    sql = "SELECT a / b AS q FROM (SELECT * FROM t LIMIT 3 OFFSET 1) AS s ORDER BY q NULLS FIRST"
    tree = parse_query(sql, tokenize(sql))
    before = repr(tree)
    to_sql(tree)
    assert repr(tree) == before


def test_a_tree_of_any_depth() -> None:
    tree: exp.Expr = exp.Literal.number(0)
    for number in range(5_000):
        tree = exp.Add(this=tree, expression=exp.Literal.number(number))
    assert sum(1 for _ in copied(tree).walk()) == 10_001


def test_ways_through_a_tree_are_those_of_the_library() -> None:
    sql = (
        "WITH c AS (SELECT x.a FROM t AS x) SELECT (SELECT max(b) FROM u WHERE u.a = c.a) FROM c JOIN (v JOIN w USING"
        " (a)) USING (a) WHERE EXISTS (FROM y)"
    )
    tree = parse_query(sql, tokenize(sql))
    assert [table.name for table in tables_in(tree)] == [table.name for table in tree.find_all(exp.Table)]
    assert all(children_of(node) == list(node.iter_expressions()) for node in tree.walk())
