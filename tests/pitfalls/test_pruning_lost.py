"""Pruning that real systems lost silently: the answer was right and every partition was read.

Each statement here must keep what it needs and no more.
"""

from __future__ import annotations

import pytest

from secateur.planner import PlannedSelect
from worlds import World

ORDERS = (
    "CREATE TABLE orders (customer VARCHAR, id BIGINT, paid BOOLEAN, amount BIGINT, PRIMARY KEY (customer, id))"
    " PARTITION BY HASH (customer) PARTITIONS 271"
)
ROWS = "SELECT 'C' || i % 50, i, i % 3 = 0, i FROM range(500) x(i)"


@pytest.fixture(scope="module")
def shop() -> World:
    world = World()
    world.fill(ORDERS, ROWS)
    world.fill(ORDERS.replace("TABLE orders", "TABLE refunds"), ROWS)
    return world


def kept(world: World, sql: str, params: tuple[object, ...] = ()) -> list[set[int]]:
    statement: PlannedSelect = world.prepare(sql, params)
    return [set(ids) for ids in world.kept(statement.plan, statement.params or ())]


def of(world: World, *customers: str) -> set[int]:
    scheme = world.table("orders").scheme
    return {scheme.partition_of({"customer": customer}) for customer in customers}


@pytest.mark.parametrize(
    ("sql", "params", "customers"),
    [
        pytest.param(
            "SELECT * FROM orders WHERE customer = 'C1' OR customer = 'C2'",
            (),
            ["C1", "C2"],
            id="citus #1537: any OR sent the query everywhere",
        ),
        pytest.param(
            "SELECT * FROM orders WHERE (customer = 'C1' AND id = 1) OR (customer = 'C2' AND amount > 5)",
            (),
            ["C1", "C2"],
            id="citus #1537: an OR of ANDs",
        ),
        pytest.param(
            "SELECT * FROM orders WHERE customer IN ('C1', 'C2')",
            (),
            ["C1", "C2"],
            id="cloudberry #1839: IN over two segments dropped direct dispatch",
        ),
        pytest.param(
            "SELECT * FROM orders WHERE customer = 'C1'", (), ["C1"], id="gpdb #7779: text keys were never pruned"
        ),
        pytest.param(
            "SELECT * FROM orders WHERE customer = $1",
            ("C7",),
            ["C7"],
            id="gpdb #17075: prepared statements were never pruned",
        ),
        pytest.param(
            "SELECT * FROM orders WHERE customer IN ($1, $2)",
            ("C7", "C8"),
            ["C7", "C8"],
            id="gpdb #17075: a prepared IN list",
        ),
        pytest.param(
            "SELECT * FROM orders WHERE customer = CAST($1 AS VARCHAR)",
            ("C7",),
            ["C7"],
            id="Hazelcast: CAST(?) was not folded",
        ),
        pytest.param(
            "SELECT * FROM orders WHERE customer = 'C' || (1 + 1)", (), ["C2"], id="Hazelcast: 1 + 1 was not folded"
        ),
        pytest.param(
            "SELECT * FROM orders WHERE customer = upper('c2')",
            (),
            ["C2"],
            id="citus #6712: a function of a constant was not folded",
        ),
        pytest.param(
            "SELECT * FROM orders WHERE customer = 'C2' LIMIT 1",
            (),
            ["C2"],
            id="Hazelcast: LIMIT above the scan stopped it",
        ),
        pytest.param(
            "SELECT DISTINCT id FROM orders WHERE customer = 'C2'",
            (),
            ["C2"],
            id="Hazelcast: DISTINCT above the scan stopped it",
        ),
        pytest.param(
            "SELECT paid, sum(amount) FROM orders WHERE customer = 'C2' GROUP BY paid",
            (),
            ["C2"],
            id="Hazelcast: an aggregate above the scan stopped it",
        ),
        pytest.param(
            "SELECT * FROM orders WHERE customer = 'C2' AND paid",
            (),
            ["C2"],
            id="Hazelcast: a bare BOOLEAN conjunct gave up the whole AND",
        ),
        pytest.param(
            "SELECT * FROM orders WHERE paid AND NOT paid IS NULL AND customer = 'C2'",
            (),
            ["C2"],
            id="Hazelcast: BOOLEAN conjuncts in front",
        ),
        pytest.param(
            "SELECT * FROM (SELECT * FROM orders) x WHERE customer = 'C2' ORDER BY amount",
            (),
            ["C2"],
            id="Hazelcast #25249: another plan shape, a derived table",
        ),
        pytest.param(
            "WITH x AS (SELECT * FROM orders) SELECT count(*) FROM x WHERE customer = 'C2'",
            (),
            ["C2"],
            id="Hazelcast #25249: another plan shape, a CTE",
        ),
    ],
)
def test_what_others_lost_is_kept(shop: World, sql: str, params: tuple[object, ...], customers: list[str]) -> None:
    assert kept(shop, sql, params) == [of(shop, *customers)]


def test_a_join_above_the_scans_does_not_stop_their_pruning(shop: World) -> None:
    """Hazelcast: LIMIT, DISTINCT, an aggregate or a join above the scan stopped it."""
    sql = (
        "SELECT o.id, r.amount FROM orders o JOIN refunds r ON o.customer = r.customer AND o.id = r.id WHERE o.customer"
        " = 'C3'"
    )
    assert kept(shop, sql)[0] == of(shop, "C3")


def test_binding_one_column_of_a_two_column_key_says_why_nothing_is_pruned() -> None:
    """Everywhere: no system says why not."""
    world = World()
    world.fill(
        "CREATE TABLE t (a BIGINT, b BIGINT, PRIMARY KEY (a, b)) PARTITION BY HASH (a, b) PARTITIONS 31", "SELECT 1, 1"
    )
    (scan,) = world.prepare("SELECT * FROM t WHERE a = 1", ()).plan.scans
    assert scan.reason == "partition key is (a, b) but only a is bound: compare b with values as well"
