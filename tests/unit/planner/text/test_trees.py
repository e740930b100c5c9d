from __future__ import annotations

from secateur.planner.text import children_of, parse_query, tokenize


def test_ways_through_a_tree_are_those_of_the_library() -> None:
    sql = (
        "WITH c AS (SELECT x.a FROM t AS x) SELECT (SELECT max(b) FROM u WHERE u.a = c.a) FROM c JOIN (v JOIN w USING"
        " (a)) USING (a) WHERE EXISTS (FROM y)"
    )
    tree = parse_query(sql, tokenize(sql))
    assert all(children_of(node) == list(node.iter_expressions()) for node in tree.walk())
