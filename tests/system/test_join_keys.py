"""Keys of a join that are found first, in a running cluster: who reads less for it, what is said of it, and what
happens when rows change meanwhile.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from between_steps import once_after_a_step

import secateur
from secateur.cluster import Cluster
from secateur.planner import CostModel
from secateur.protocol import StepResult

CUSTOMERS = 2_000
TABLES = {
    "customers": pa.table(
        {
            "id": pa.array(range(CUSTOMERS), pa.int64()),
            "region": [f"r{i // 4}" for i in range(CUSTOMERS)],
            "nation": pa.array([None if i % 7 == 0 else i % 100 for i in range(CUSTOMERS)], pa.int32()),
        }
    ),
    "orders": pa.table(
        {
            "customer_id": pa.array([i % (CUSTOMERS - 100) for i in range(12_000)], pa.int64()),
            "order_id": pa.array(range(12_000), pa.int64()),
            "amount": [(i * 37) % 1000 / 4 for i in range(12_000)],
        }
    ),
    "nations": pa.table({"id": pa.array(range(100), pa.int32()), "name": [f"n{i}" for i in range(100)]}),
}
DDL = (
    (
        "CREATE TABLE customers (id BIGINT PRIMARY KEY, region VARCHAR, nation INTEGER) PARTITION BY HASH (id)"
        " PARTITIONS 32"
    ),
    (
        "CREATE TABLE orders (customer_id BIGINT, order_id BIGINT, amount DOUBLE, PRIMARY KEY (customer_id, order_id)) "
        "PARTITION BY HASH (customer_id) PARTITIONS 64"
    ),
    "CREATE TABLE nations (id INTEGER PRIMARY KEY, name VARCHAR) REPLICATED",
)


@pytest.fixture(scope="module")
def shop() -> Iterator[Cluster]:
    with (
        secateur.start(members=3, runtime="embedded", cost_model=CostModel(step_rows=3_000)) as cluster,
        cluster.connect() as conn,
    ):
        for ddl in DDL:
            conn.execute(ddl)
        for name, rows in TABLES.items():
            conn.table(name).load(rows)
            conn.table(name).statistics()
        yield cluster


@pytest.fixture
def conn(shop: Cluster) -> Iterator[secateur.Connection]:
    with shop.connect() as connection:
        yield connection


@pytest.fixture
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for name, rows in TABLES.items():
            connection.register("rows", rows)
            connection.execute(f"CREATE TABLE {name} AS FROM rows")
        yield connection


JOIN = "SELECT o.* FROM customers c JOIN orders o ON o.customer_id = c.id WHERE c.region = ?"
QUERIES = [
    pytest.param(JOIN, ["r7"], id="inner"),
    pytest.param(JOIN, ["nowhere"], id="no key"),
    pytest.param(
        "SELECT c.id, o.order_id FROM customers c LEFT JOIN orders o ON o.customer_id = c.id WHERE c.region = ?",
        ["r499"],
        id="left, without partners",
    ),
    pytest.param(
        "SELECT c.* FROM customers c ANTI JOIN orders o ON o.customer_id = c.id WHERE c.region = ?", ["r475"], id="anti"
    ),
    pytest.param(
        "SELECT count(*), sum(amount) FROM orders o WHERE EXISTS (FROM customers c WHERE c.id = o.customer_id AND"
        " c.region = ?)",
        ["r3"],
        id="EXISTS",
    ),
    pytest.param(
        "SELECT o.*, n.name FROM nations n JOIN customers c ON c.nation = n.id AND c.id < 50 JOIN orders o ON"
        " o.customer_id = c.id WHERE n.name = ?",
        ["n5"],
        id="a chain",
    ),
]


@pytest.mark.parametrize("pruning", ["on", "off", "verify"])
@pytest.mark.parametrize(("sql", "params"), QUERIES)
def test_answers_are_those_of_duckdb(
    conn: secateur.Connection, oracle: duckdb.DuckDBPyConnection, sql: str, params: list[Any], pruning: str
) -> None:
    conn.execute(f"SET pruning = {pruning}")
    expected = sorted(map(repr, oracle.execute(sql, params).fetchall()))
    for _ in range(2):
        cur = conn.execute(sql, params)
        assert sorted(map(repr, cur.fetchall())) == expected
    assert cur.stats is not None
    assert all(step.used for step in cur.stats.steps)
    assert bool(cur.stats.steps) == (pruning != "off")


@pytest.mark.smoke
def test_few_keys_leave_few_partitions_and_members(shop: Cluster, conn: secateur.Connection) -> None:
    """The orders of the four customers of a region: without their keys every member reads all its orders."""
    orders = conn.table("orders")
    heard: dict[str, set[str]] = {}
    for rules in ("", "join_keys_first"):
        conn.execute(f"SET disabled_rules = '{rules}'")
        lines = [line for (line,) in conn.execute(f"EXPLAIN ANALYZE (FORMAT JSON) {JOIN}", ["r7"])]
        analyzed = json.loads(lines[0])["analyze"]
        heard[rules] = {
            entry["member"]
            for stage in analyzed["stages"]
            if "join" in stage["name"]
            for entry in stage["members"]
            if entry["partitions"]
        }
        if not rules:
            needed = {orders.owner_of(orders.partition_of({"customer_id": key})) for key in (28, 29, 30, 31)}
            customers = conn.table("customers")
            needed |= {customers.owner_of(customers.partition_of({"id": key})) for key in (28, 29, 30, 31)}
            assert analyzed["narrowed"]["before"] == {"partitions": 96, "members": ["m1", "m2", "m3"]}
            assert analyzed["narrowed"]["after"]["members"] == sorted(needed)
            assert analyzed["narrowed"]["after"]["partitions"] <= 8
            assert analyzed["steps"] == [{"values": 4, "used": True}]
            assert analyzed["partitions_read"] == 32 + analyzed["narrowed"]["after"]["partitions"]
    assert heard["join_keys_first"] == {"m1", "m2", "m3"}


def test_explain_analyze_says_what_was_found(conn: secateur.Connection) -> None:
    lines = [line for (line,) in conn.execute(f"EXPLAIN ANALYZE {JOIN}", ["r7"])]
    assert "rewrites: join_keys_first" in lines
    assert 'runs first, for $2[]: SELECT DISTINCT "id" FROM "customers" WHERE ("region" = $1)' in lines
    assert "  step 1 found 4 values" in lines
    (narrowed,) = [line for line in lines if line.startswith("  run-time pruning")]
    assert re.fullmatch(
        r"  run-time pruning: [1-8] of 96 partitions remain, on [1-3] of 3 members(; pruned: .*)?", narrowed
    )


def test_too_many_keys_run_undivided(
    conn: secateur.Connection, oracle: duckdb.DuckDBPyConnection, table_name: str
) -> None:
    conn.execute(f"CREATE TABLE {table_name} (k BIGINT PRIMARY KEY, kind VARCHAR) PARTITION BY HASH (k) PARTITIONS 4")
    kinds = pa.table(
        {"k": pa.array(range(1_000), pa.int64()), "kind": ["many" if i < 600 else f"k{i}" for i in range(1_000)]}
    )
    conn.table(table_name).load(kinds)
    conn.table(table_name).statistics()
    oracle.register(table_name, kinds)
    sql = f"SELECT count(*), sum(o.order_id) FROM {table_name} t JOIN orders o ON o.customer_id = t.k WHERE t.kind = ?"
    for kind, used in (("k700", True), ("many", False)):
        cur = conn.execute(sql, [kind])
        assert cur.fetchall() == oracle.execute(sql, [kind]).fetchall()
        assert cur.stats is not None
        assert [step.used for step in cur.stats.steps] == [used]


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    """Has something done once, between the step of the next statement and its rest."""

    return lambda act: once_after_a_step(monkeypatch, act)


PRESERVED = (
    "SELECT c.id, count(o.order_id) FROM {customers} c LEFT JOIN orders o ON o.customer_id = c.id WHERE c.region = 'r9'"
    " GROUP BY c.id"
)
CHANGES = [
    pytest.param("INSERT INTO {customers} VALUES (5, 'r9', NULL)", [(5, 7), (36, 7)], id="a row"),
    pytest.param("UPDATE {customers} SET region = 'r9' WHERE id = 1", [(1, 7), (36, 7)], id="a row that is changed"),
    pytest.param("DELETE FROM {customers} WHERE id = 36", [], id="a row that goes"),
    pytest.param(
        "INSERT INTO {customers} SELECT i, 'r9', NULL FROM range(100, 140) r(i)",
        [(36, 7), *((key, 7) for key in range(100, 140))],
        id="rows of all partitions",
    ),
]


@pytest.mark.parametrize("placed", ["PARTITION BY HASH (id) PARTITIONS 32", "REPLICATED"])
@pytest.mark.parametrize(("change", "expected"), CHANGES)
def test_keys_are_not_used_once_their_rows_have_changed(
    shop: Cluster,
    conn: secateur.Connection,
    table_name: str,
    between: Any,
    placed: str,
    change: str,
    expected: list[tuple[int, int]],
) -> None:
    conn.execute(f"CREATE TABLE {table_name} (id BIGINT PRIMARY KEY, region VARCHAR, nation INTEGER) {placed}")
    conn.table(table_name).load(
        pa.table({"id": [1, 2, 36], "region": ["a", "b", "r9"], "nation": pa.array([1, 2, 3], pa.int32())})
    )
    conn.table(table_name).statistics()
    sql = PRESERVED.format(customers=table_name)
    first = conn.execute(sql)
    assert first.fetchall() == [(36, 7)]
    assert first.stats is not None
    assert first.stats.steps == (StepResult(1, used=True),)
    with shop.connect() as other:
        between(lambda: other.execute(change.format(customers=table_name)))
        cur = conn.execute(sql)
    assert sorted(cur.fetchall()) == expected
    assert cur.stats is not None
    assert cur.stats.steps == (StepResult(1, used=False),)
    assert cur.stats.partitions_read > 64


@pytest.mark.smoke
def test_keys_are_checked_wherever_the_rest_runs(
    shop: Cluster, conn: secateur.Connection, table_name: str, between: Any
) -> None:
    """The members coordinate in turn, so the rest for one key is at the coordinator once, and twice at another one."""
    conn.execute(
        f"CREATE TABLE {table_name} (id BIGINT PRIMARY KEY, region VARCHAR) PARTITION BY HASH (id) PARTITIONS 64"
    )
    conn.table(table_name).load(pa.table({"id": [36], "region": ["r9"]}))
    conn.table(table_name).statistics()
    sql = (
        f"SELECT c.id, count(*) FROM {table_name} c JOIN orders o ON o.customer_id = c.id WHERE c.region = 'r9'"
        " GROUP BY 1"
    )
    first = conn.execute(sql)
    assert first.stats is not None
    assert first.stats.partitions_read == 64 + 2, "the rest reads one key of each table, at one member"
    with shop.connect() as other:
        for key in (37, 38, 39):
            between(lambda key=key: other.execute(f"INSERT INTO {table_name} VALUES ({key}, 'r9')"))
            cur = conn.execute(sql)
            assert sorted(cur.fetchall()) == [(36, 7), (key, 7)]
            assert cur.stats is not None
            assert cur.stats.steps == (StepResult(1, used=False),)
            other.execute(f"DELETE FROM {table_name} WHERE id = {key}")


def test_a_change_elsewhere_does_no_harm(shop: Cluster, conn: secateur.Connection, between: Any) -> None:
    conn.execute(JOIN, ["r7"]).fetchall()
    with shop.connect() as other:
        between(lambda: other.execute("INSERT INTO nations VALUES (1000, 'new')"))
        cur = conn.execute(JOIN, ["r7"])
    assert cur.stats is not None
    assert cur.stats.steps == (StepResult(4, used=True),)
