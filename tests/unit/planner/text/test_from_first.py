"""``FROM ... SELECT ...`` is the tree of ``SELECT ... FROM ...``: rules that look at the joins of a SELECT find
them.
"""

from __future__ import annotations

import pytest
from sqlglot import exp

from secateur.planner.text import parse_query, tokenize

FROM_FIRST = [
    (
        "FROM a LEFT JOIN b ON a.k = b.k SELECT a.k WHERE a.v > 1",
        "SELECT a.k FROM a LEFT JOIN b ON a.k = b.k WHERE a.v > 1",
    ),
    (
        "FROM a x RIGHT JOIN b ON x.k = b.k, c FULL JOIN d ON b.v = d.v SELECT 1 LIMIT 2",
        "SELECT 1 FROM a x RIGHT JOIN b ON x.k = b.k, c FULL JOIN d ON b.v = d.v LIMIT 2",
    ),
    (
        "FROM (SELECT 1 AS k) x JOIN b USING (k) SELECT DISTINCT k",
        "SELECT DISTINCT k FROM (SELECT 1 AS k) x JOIN b USING (k)",
    ),
    ("FROM a JOIN b USING (k)", "SELECT * FROM a JOIN b USING (k)"),
    ("SELECT (FROM a LEFT JOIN b USING (k) SELECT max(k))", "SELECT (SELECT max(k) FROM a LEFT JOIN b USING (k))"),
    (
        "FROM (a JOIN b USING (k)) AS t LEFT JOIN c USING (k) SELECT k",
        "SELECT k FROM (a JOIN b USING (k)) AS t LEFT JOIN c USING (k)",
    ),
    (
        "FROM (VALUES (0)) x(i), (VALUES (1)) y LEFT JOIN b ON TRUE SELECT k",
        "SELECT k FROM (VALUES (0)) x(i), (VALUES (1)) y LEFT JOIN b ON TRUE",
    ),
    ("FROM unnest([1, 2]) t(x) JOIN b ON k = x SELECT k", "SELECT k FROM unnest([1, 2]) t(x) JOIN b ON k = x"),
]


def read(sql: str) -> exp.Expr:
    return parse_query(sql, tokenize(sql))


@pytest.mark.parametrize(("from_first", "select_first"), FROM_FIRST)
def test_both_orders_are_one_tree(from_first: str, select_first: str) -> None:
    assert read(from_first) == read(select_first)
    tables = [[table.name for table in read(sql).find_all(exp.Table)] for sql in (from_first, select_first)]
    assert tables[0] == tables[1]
    assert [len(select.args.get("joins") or []) for select in read(from_first).find_all(exp.Select)] == [
        len(select.args.get("joins") or []) for select in read(select_first).find_all(exp.Select)
    ]
