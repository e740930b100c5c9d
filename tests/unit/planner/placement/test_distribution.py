"""The law of placement, one table a relation: whether what the members compute by themselves is together what is asked
for.

``orders`` and ``customers`` are co-located by customer_id, ``airlines`` is replicated, ``metrics`` is partitioned by
other columns. Scans are s0, s1, ... in the order of the text; those in ``whole`` see all rows at every member.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

import pytest

from secateur.planner.placement import (
    Distribution,
    Distributions,
    HashPartitioned,
    Repartition,
    Replicated,
    UnsupportedDistribution,
)
from secateur.planner.relations import Relation, Scan, postorder

BY_KEY = "FROM orders o JOIN customers c ON o.customer_id = c.customer_id"
BY_NAME = "FROM orders o JOIN customers c ON o.priority = c.name"


def said(distribution: Distribution) -> str:
    """Every member all rows; single rows, and by which columns; or why not."""
    match distribution:
        case Replicated(None):
            return "everywhere"
        case Replicated(singleton_reason):
            return f"once: {singleton_reason}"
        case HashPartitioned(partition_keys=partition_keys):
            return "pieces by " + (
                " or ".join(sorted({", ".join(attribute.name for attribute in place) for place in partition_keys}))
                or "nothing"
            )
        case UnsupportedDistribution(reason):
            return f"not: {reason}"
        case _:
            assert_never(distribution)


CASES = {
    "scans": [
        ("SELECT * FROM orders", "", "pieces by customer_id"),
        ("SELECT * FROM orders", "s0", "everywhere"),
        ("SELECT * FROM airlines", "", "everywhere"),
        ("SELECT * FROM metrics", "", "pieces by host, metric, time"),
        ("SELECT * FROM (VALUES (1)) v(a)", "", "everywhere"),
        ("SELECT * FROM orders WHERE amount > 1", "", "pieces by customer_id"),
        ("SELECT amount FROM orders", "", "pieces by nothing"),
        ("SELECT customer_id AS c FROM orders", "", "pieces by c"),
        ("SELECT customer_id AS c, customer_id AS d FROM orders", "", "pieces by c or d"),
        ("SELECT priority FROM orders WHERE priority = customer_id", "", "pieces by priority"),
    ],
    "joins": [
        (f"SELECT o.id {BY_KEY}", "", "pieces by nothing"),
        (f"SELECT o.customer_id {BY_KEY}", "", "pieces by customer_id"),
        (
            f"SELECT o.id {BY_NAME}",
            "",
            (
                "not: the sides of a join are not partitioned by the columns that it compares: join on the partitioning"
                " keys"
            ),
        ),
        (f"SELECT o.customer_id {BY_NAME}", "s1", "pieces by customer_id"),
        (f"SELECT c.customer_id {BY_NAME}", "s0", "pieces by customer_id"),
        ("SELECT o.id FROM orders o JOIN airlines a ON o.priority = a.code", "", "pieces by nothing"),
        (
            "SELECT o.id FROM orders o, customers c WHERE o.customer_id = c.customer_id AND c.score > 1",
            "",
            "pieces by nothing",
        ),
        (
            "SELECT o.id FROM orders o, customers c",
            "",
            (
                "not: the sides of a join are not partitioned by the columns that it compares: join on the partitioning"
                " keys"
            ),
        ),
        ("SELECT o.customer_id FROM orders o, customers c", "s1", "pieces by customer_id"),
        (
            "SELECT o.customer_id FROM orders o LEFT JOIN customers c ON o.customer_id = c.customer_id",
            "",
            "pieces by customer_id",
        ),
        ("SELECT c.name FROM orders o LEFT JOIN customers c ON o.priority = c.name", "s1", "pieces by nothing"),
        (
            "SELECT c.name FROM orders o LEFT JOIN customers c ON o.priority = c.name",
            "s0",
            (
                "not: the LEFT JOIN preserves rows that are replicated: preserve the partitioned side, or use an inner"
                " join"
            ),
        ),
        (
            "SELECT a.name FROM airlines a LEFT JOIN orders o ON o.priority = a.code",
            "",
            (
                "not: the LEFT JOIN preserves rows that are replicated: preserve the partitioned side, or use an inner"
                " join"
            ),
        ),
        (
            "SELECT a.name FROM orders o RIGHT JOIN airlines a ON o.priority = a.code",
            "",
            (
                "not: the RIGHT JOIN preserves rows that are replicated: preserve the partitioned side, or use an inner"
                " join"
            ),
        ),
        ("SELECT customer_id FROM orders o FULL JOIN customers c USING (customer_id)", "", "pieces by customer_id"),
        (
            "SELECT o.customer_id FROM orders o FULL JOIN customers c ON o.customer_id = c.customer_id",
            "",
            "pieces by nothing",
        ),
        (
            "SELECT o.id FROM orders o FULL JOIN airlines a ON o.priority = a.code",
            "",
            (
                "not: the FULL JOIN preserves rows that are replicated: preserve the partitioned side, or use an inner"
                " join"
            ),
        ),
        (
            "SELECT o.customer_id FROM orders o SEMI JOIN customers c ON o.customer_id = c.customer_id",
            "",
            "pieces by customer_id",
        ),
        (
            "SELECT o.customer_id FROM orders o ANTI JOIN customers c ON o.customer_id = c.customer_id",
            "",
            "pieces by customer_id",
        ),
        (
            "SELECT o.customer_id FROM orders o ANTI JOIN customers c ON o.priority = c.name",
            "s1",
            "pieces by customer_id",
        ),
        (
            "SELECT o.id FROM orders o ANTI JOIN customers c ON o.priority = c.name",
            "s0",
            (
                "not: the ANTI JOIN preserves rows that are replicated: preserve the partitioned side, or use an inner"
                " join"
            ),
        ),
    ],
    "groups, windows and what takes some rows": [
        ("SELECT customer_id, sum(amount) FROM orders GROUP BY customer_id", "", "pieces by customer_id"),
        ("SELECT priority, customer_id, sum(amount) FROM orders GROUP BY ALL", "", "pieces by customer_id"),
        (
            "SELECT priority, sum(amount) FROM orders GROUP BY priority",
            "",
            "not: GROUP BY does not name the partitioning key: add it",
        ),
        ("SELECT sum(amount) FROM orders", "", "not: GROUP BY does not name the partitioning key: add it"),
        ("SELECT priority, sum(amount) FROM orders GROUP BY priority", "s0", "everywhere"),
        (f"SELECT c.customer_id, sum(o.amount) {BY_KEY} GROUP BY c.customer_id", "", "pieces by customer_id"),
        ("SELECT DISTINCT customer_id, priority FROM orders", "", "pieces by customer_id"),
        (
            "SELECT DISTINCT priority FROM orders",
            "",
            "not: DISTINCT does not name the partitioning key: select it as well",
        ),
        (
            "SELECT customer_id, rank() OVER (PARTITION BY customer_id ORDER BY day) FROM orders",
            "",
            "pieces by customer_id",
        ),
        (
            "SELECT customer_id, rank() OVER (PARTITION BY priority ORDER BY day) FROM orders",
            "",
            "not: a window is not partitioned by the partitioning key: add it to PARTITION BY",
        ),
        (
            "SELECT rank() OVER (ORDER BY day) FROM orders",
            "s0",
            "once: a window may number equal rows differently on each member: order it by a unique key",
        ),
        ("SELECT * FROM orders ORDER BY day", "", "pieces by customer_id"),
        ("SELECT * FROM orders ORDER BY day LIMIT 3", "", "not: LIMIT chooses among the rows of several members"),
        (
            "SELECT * FROM airlines ORDER BY name LIMIT 3",
            "",
            "once: LIMIT may choose other rows on each member",
        ),
    ],
    "set operations": [
        ("SELECT customer_id FROM orders UNION ALL SELECT customer_id FROM customers", "", "pieces by customer_id"),
        ("SELECT priority FROM orders UNION ALL SELECT customer_id FROM customers", "", "pieces by nothing"),
        ("SELECT customer_id FROM orders UNION SELECT customer_id FROM customers", "", "pieces by customer_id"),
        (
            "SELECT priority FROM orders UNION SELECT customer_id FROM customers",
            "",
            "not: UNION compares rows of several members: select the partitioning key in every input",
        ),
        ("SELECT customer_id FROM orders INTERSECT SELECT customer_id FROM customers", "", "pieces by customer_id"),
        ("SELECT customer_id FROM orders EXCEPT ALL SELECT customer_id FROM customers", "", "pieces by customer_id"),
        (
            "SELECT priority FROM orders UNION ALL SELECT code FROM airlines",
            "",
            "not: UNION combines replicated rows with partitioned rows: partition both tables alike",
        ),
        ("SELECT customer_id FROM orders EXCEPT SELECT code FROM airlines", "", "pieces by customer_id"),
        (
            "SELECT code FROM airlines EXCEPT SELECT customer_id FROM orders",
            "",
            "not: EXCEPT combines replicated rows with partitioned rows: partition both tables alike",
        ),
        ("SELECT code FROM airlines UNION SELECT name FROM airlines", "", "everywhere"),
    ],
    "subqueries": [
        (
            "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM customers c WHERE c.customer_id = o.customer_id)",
            "",
            "pieces by nothing",
        ),
        (
            "SELECT customer_id FROM orders WHERE customer_id IN (SELECT customer_id FROM customers)",
            "",
            "pieces by customer_id",
        ),
        ("SELECT id FROM orders WHERE customer_id NOT IN (SELECT customer_id FROM customers)", "", "pieces by nothing"),
        (
            "SELECT id FROM orders WHERE priority IN (SELECT name FROM customers)",
            "",
            "not: a subquery reads other partitions than the outer query: correlate it by the partitioning key",
        ),
        (
            "SELECT customer_id FROM orders WHERE priority IN (SELECT name FROM customers)",
            "s1",
            "pieces by customer_id",
        ),
        ("SELECT customer_id FROM orders WHERE priority IN (SELECT code FROM airlines)", "", "pieces by customer_id"),
        (
            "SELECT id FROM orders WHERE amount > (SELECT max(score) FROM customers)",
            "",
            "not: GROUP BY does not name the partitioning key: add it",
        ),
        (
            (
                "SELECT o.customer_id, (SELECT max(score) FROM customers c WHERE c.customer_id = o.customer_id) FROM"
                " orders o"
            ),
            "",
            "pieces by customer_id",
        ),
        (
            "SELECT code FROM airlines a WHERE EXISTS (SELECT 1 FROM orders o WHERE o.priority = a.code)",
            "",
            "not: a subquery reads other partitions than the outer query: correlate it by the partitioning key",
        ),
    ],
}


@pytest.mark.parametrize(
    ("sql", "whole", "expected"),
    [pytest.param(*case, id=f"{topic}: {case[0]}") for topic, cases in CASES.items() for case in cases],
)
def test_spread(relation_of: Callable[[str], Relation], sql: str, whole: str, expected: str) -> None:
    assert said(Distributions(relation_of(sql), orderless=True).under(frozenset(whole.split()))) == expected


def test_an_aggregate_of_ordered_rows_is_computed_once(relation_of: Callable[[str], Relation]) -> None:
    relation = relation_of("SELECT code, first(name) FROM airlines GROUP BY code")
    assert (
        said(Distributions(relation, orderless=False).under(frozenset()))
        == "once: an aggregate depends on the order of its rows, which may differ between members"
    )


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        pytest.param(
            f"SELECT o.customer_id {BY_NAME}", "pieces by customer_id", id="met by the rows that they are routed to"
        ),
        pytest.param(
            "SELECT o.customer_id FROM orders o LEFT JOIN customers c ON o.customer_id = c.name",
            "pieces by customer_id",
            id="on the side that may have none",
        ),
        pytest.param(
            "SELECT c.name FROM customers c LEFT JOIN orders o ON o.customer_id = c.name",
            "not: routed rows do not meet the table that they are routed to: join on its partitioning key",
            id="on the side that is kept",
        ),
    ],
)
def test_routed_rows(relation_of: Callable[[str], Relation], sql: str, expected: str) -> None:
    """The rows of customers are sent, by their names, to the owners of the partitions of orders."""
    sql = sql.replace("o.priority = c.name", "o.customer_id = c.name")
    first_is_orders = sql.index("orders") < sql.index("customers")
    moved, anchor = ("s1", "s0") if first_is_orders else ("s0", "s1")
    relation = relation_of(sql)
    group = next(node.scan.table.scheme.affinity_group() for node in scans_of(relation) if node.scan.relation == anchor)
    assert (
        said(Distributions(relation, orderless=True).under(frozenset(), {moved: Repartition(anchor, group, ("name",))}))
        == expected
    )


def scans_of(relation: Relation) -> list[Scan]:
    return [node for node in postorder(relation) if isinstance(node, Scan)]
