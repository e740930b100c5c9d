"""Subqueries that run first: their values decide which members hear of the rest, held by the members' own counters; and
the answers are DuckDB's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import secateur
from secateur.cluster import Cluster
from secateur.errors import DataError

TABLES = {
    "orders": pa.table(
        {
            "customer_id": [f"C{i % 200}é" for i in range(4000)],
            "order_id": pa.array(range(4000), pa.int64()),
            "amount": [(i * 37) % 1000 / 4 for i in range(4000)],
        }
    ),
    "vip": pa.table(
        {
            "id": pa.array(range(60), pa.int64()),
            "customer_id": [None if i % 9 == 0 else f"C{i * 3 % 50}é" for i in range(60)],
            "region": [f"r{i % 7}" for i in range(60)],
        }
    ),
    "regions": pa.table({"region": [f"r{i}" for i in range(7)], "big": [i % 3 == 0 for i in range(7)]}),
}
DDL = (
    (
        "CREATE TABLE orders (customer_id VARCHAR, order_id INT8, amount DOUBLE, PRIMARY KEY (customer_id, order_id))"
        " PARTITION BY HASH (customer_id) PARTITIONS 9"
    ),
    "CREATE TABLE vip (id BIGINT PRIMARY KEY, customer_id VARCHAR, region VARCHAR) PARTITION BY HASH (id) PARTITIONS 5",
    "CREATE TABLE regions (region VARCHAR PRIMARY KEY, big BOOLEAN) REPLICATED",
)


@pytest.fixture(scope="module")
def orders() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded") as cluster, cluster.connect() as conn:
        for ddl in DDL:
            conn.execute(ddl)
        for name, rows in TABLES.items():
            conn.table(name).load(rows)
        yield cluster


@pytest.fixture
def conn(orders: Cluster) -> Iterator[secateur.Connection]:
    with orders.connect() as connection:
        yield connection


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for name, rows in TABLES.items():
            connection.register(name, rows)
        yield connection


def heard(cluster: Cluster, run: Any) -> set[str]:
    before = {member.id: member.frames_received for member in cluster.members()}
    run()
    return {member.id for member in cluster.members() if member.frames_received > before[member.id]}


@pytest.mark.smoke
def test_the_values_decide_who_hears_of_the_rest(
    orders: Cluster, conn: secateur.Connection, oracle: duckdb.DuckDBPyConnection
) -> None:
    sql = "SELECT count(*), sum(amount) FROM orders WHERE customer_id IN (SELECT customer_id FROM vip WHERE id = ?)"
    parts, vips = conn.table("orders"), conn.table("vip")
    conn.execute(sql, [1])
    for vip in (1, 2, 4, 5, 10):
        (customer,) = [row["customer_id"] for row in TABLES["vip"].to_pylist() if row["id"] == vip]
        expected = {
            vips.owner_of(vips.partition_of({"id": vip})),
            parts.owner_of(parts.partition_of({"customer_id": customer})),
        }
        found: list[secateur.Cursor] = []
        assert heard(orders, lambda vip=vip, found=found: found.append(conn.execute(sql, [vip]))) == expected
        stats = found[0].stats
        assert stats is not None
        assert (stats.members_touched, stats.partitions_read, stats.partitions_total) == (len(expected), 2, 14)
        assert stats.execution == ("local" if len(expected) == 1 else "distributed")
        assert stats.plan_cached
        assert found[0].fetchall() == oracle.execute(sql, [vip]).fetchall()


def test_without_a_value_only_the_subquery_runs(orders: Cluster, conn: secateur.Connection) -> None:
    sql = "SELECT count(*), sum(amount) FROM orders WHERE customer_id IN (SELECT customer_id FROM vip WHERE id = ?)"
    vips = conn.table("vip")
    conn.execute(sql, [1])
    found: list[secateur.Cursor] = []
    assert heard(orders, lambda: found.append(conn.execute(sql, [9]))) == {vips.owner_of(vips.partition_of({"id": 9}))}
    assert found[0].fetchall() == [(0, None)]
    assert found[0].stats is not None
    assert (found[0].stats.execution, found[0].stats.partitions_read) == ("local", 1)


LOGGED = "SELECT count(*) FROM secateur.statements WHERE statement = ?"


def frames(cluster: Cluster) -> int:
    return sum(member.frames_received for member in cluster.members())


def vip_at(conn: secateur.Connection, *, together: bool) -> int:
    """A key of ``vip`` whose row is at the member that has the orders of its customer, or at another one."""
    orders, vips = conn.table("orders"), conn.table("vip")
    return next(
        row["id"]
        for row in TABLES["vip"].to_pylist()
        if row["customer_id"] is not None
        and (
            vips.owner_of(vips.partition_of({"id": row["id"]}))
            == orders.owner_of(orders.partition_of({"customer_id": row["customer_id"]}))
        )
        is together
    )


@pytest.mark.parametrize("together", [True, False], ids=["one member", "two members"])
def test_the_client_sends_one_request(orders: Cluster, conn: secateur.Connection, together: bool) -> None:
    """The member that has the rows of the step asks the one that has the rest, and nobody else."""
    sql = "SELECT count(*) FROM orders WHERE customer_id = (SELECT customer_id FROM vip WHERE id = ?)"
    vip = vip_at(conn, together=together)
    conn.execute(sql, [vip])
    before, logged = frames(orders), conn.execute(LOGGED, [sql]).fetchall()[0][0]
    assert conn.execute(sql, [vip]).fetchall() == [(20,)]
    assert frames(orders) - before - 1 == (1 if together else 2), "the one frame is that of the look into the log"
    assert conn.execute(LOGGED, [sql]).fetchall() == [(logged + 1,)]


QUERIES = [
    pytest.param(
        "SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip)", [], id="NULLs and duplicates"
    ),
    pytest.param(
        "SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip WHERE region = ?) AND order_id > ?",
        ["r3", 1000],
        id="parameters",
    ),
    pytest.param(
        "SELECT * FROM orders WHERE order_id > ? AND customer_id IN (SELECT customer_id FROM vip WHERE region = ?)",
        [1000, "r3"],
        id="mixed order",
    ),
    pytest.param(
        "SELECT * FROM orders WHERE order_id > $2 AND customer_id IN (SELECT customer_id FROM vip WHERE region = $1 OR"
        " id < $2)",
        ["r3", 20],
        id="numbered",
    ),
    pytest.param(
        "SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip WHERE region = 'none')", [], id="no row"
    ),
    pytest.param("SELECT * FROM orders WHERE customer_id IN (SELECT NULL::VARCHAR FROM vip)", [], id="NULL alone"),
    pytest.param(
        "SELECT * FROM orders WHERE customer_id = (SELECT max(customer_id) FROM vip WHERE region = ?)",
        ["r1"],
        id="a scalar",
    ),
    pytest.param(
        "SELECT * FROM orders WHERE customer_id = (SELECT customer_id FROM vip WHERE id = ?)", [3], id="one row"
    ),
    pytest.param(
        "SELECT * FROM orders WHERE customer_id = (SELECT customer_id FROM vip WHERE id = ?)", [99], id="no scalar"
    ),
    pytest.param(
        "SELECT * FROM orders WHERE customer_id = upper((SELECT 'c' FROM vip WHERE id = ?)) || '7é'",
        [3],
        id="inside of a function",
    ),
    pytest.param(
        "SELECT * FROM orders WHERE customer_id = (SELECT 'C' FROM vip WHERE id = ?) || ? || 'é'",
        [3, "7"],
        id="an expression of a scalar",
    ),
    pytest.param(
        "SELECT * FROM orders WHERE customer_id = (SELECT 'C' FROM vip WHERE id = ?) || '7é'",
        [99],
        id="an expression of no scalar",
    ),
    pytest.param(
        "SELECT count(*) FROM orders WHERE customer_id IN (SELECT lower(customer_id) COLLATE NOCASE FROM vip)",
        [],
        id="a collation of the values",
    ),
    pytest.param(
        "SELECT count(*) FROM orders WHERE customer_id IN (SELECT customer_id FROM vip WHERE region IN (SELECT region"
        " FROM regions WHERE big))",
        [],
        id="nested",
    ),
    pytest.param(
        "SELECT count(*) FROM orders WHERE customer_id IN (SELECT customer_id FROM orders WHERE customer_id IN (SELECT"
        " customer_id FROM vip WHERE id < ?) AND amount > ?)",
        [8, 100.0],
        id="a step with a step",
    ),
    pytest.param(
        "SELECT count(*) FROM orders WHERE customer_id NOT IN (SELECT customer_id FROM vip)", [], id="not in with NULL"
    ),
    pytest.param(
        "SELECT count(*) FROM orders WHERE customer_id NOT IN (SELECT customer_id FROM vip WHERE customer_id IS NOT"
        " NULL)",
        [],
        id="not in",
    ),
    pytest.param(
        "SELECT o.customer_id, v.region, count(*) FROM orders o LEFT JOIN vip v ON o.customer_id = v.customer_id "
        "WHERE o.customer_id IN (SELECT customer_id FROM vip WHERE region = 'r2') GROUP BY ALL",
        [],
        id="above a join",
    ),
    pytest.param(
        "WITH v AS (SELECT * FROM vip WHERE region = ?) SELECT count(*) FROM orders WHERE customer_id IN (SELECT"
        " customer_id FROM v)",
        ["r4"],
        id="WITH",
    ),
    pytest.param(
        "SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip WHERE region = ?) OR customer_id ="
        " 'C1é' ORDER BY amount, order_id LIMIT 5",
        ["r5"],
        id="or",
    ),
]


@pytest.mark.parametrize("pruning", ["on", "off", "verify"])
@pytest.mark.parametrize(("sql", "params"), QUERIES)
@pytest.mark.sampled(one_in=3)
def test_answers_are_those_of_duckdb(
    conn: secateur.Connection, oracle: duckdb.DuckDBPyConnection, sql: str, params: list[Any], pruning: str
) -> None:
    conn.execute(f"SET pruning = {pruning}")
    expected = sorted(map(repr, oracle.execute(sql, params).fetchall()))
    for _ in range(2):
        assert sorted(map(repr, conn.execute(sql, params).fetchall())) == expected


def test_named_parameters_are_those_of_both_parts(conn: secateur.Connection, oracle: duckdb.DuckDBPyConnection) -> None:
    sql = (
        "SELECT count(*) FROM orders WHERE order_id > $low AND customer_id IN (SELECT customer_id FROM vip WHERE region"
        " = $region AND id > $low)"
    )
    params = {"region": "r2", "low": 7}
    assert conn.execute(sql, params).fetchall() == oracle.execute(sql, params).fetchall()


@pytest.mark.smoke
def test_too_many_values_run_undivided(orders: Cluster, conn: secateur.Connection, table_name: str) -> None:
    conn.execute(f"CREATE TABLE {table_name} (k BIGINT PRIMARY KEY, v VARCHAR) PARTITION BY HASH (k) PARTITIONS 4")
    conn.table(table_name).load(pa.table({"k": pa.array(range(10_050), pa.int64()), "v": ["x"] * 10_050}))
    sql = f"SELECT count(*) FROM {table_name} WHERE k IN (SELECT k + 1 FROM {table_name} WHERE k < ?)"
    assert conn.execute(sql, [20_000]).fetchall() == [(10_049,)]
    cur = conn.execute(sql, [3])
    assert cur.fetchall() == [(3,)]
    assert cur.stats is not None
    assert cur.stats.partitions_total == 8


def test_a_scalar_subquery_of_two_rows_is_the_error_that_it_is(conn: secateur.Connection) -> None:
    with pytest.raises(DataError, match="More than one row"):
        conn.execute("SELECT * FROM orders WHERE customer_id = (SELECT customer_id FROM vip WHERE region = 'r1')")


def test_an_error_of_a_step_is_left_to_the_whole_statement(conn: secateur.Connection) -> None:
    sql = (
        "SELECT count(*) FROM orders WHERE customer_id IN (SELECT customer_id FROM vip WHERE CAST(region AS INTEGER)"
        " = 1)"
    )
    with pytest.raises(DataError, match="Could not convert string"):
        conn.execute(sql)


def test_explain_analyze_has_the_partitions_of_all_steps(conn: secateur.Connection) -> None:
    sql = "EXPLAIN ANALYZE SELECT count(*) FROM orders WHERE customer_id IN (SELECT customer_id FROM vip WHERE id = ?)"
    lines = [line for (line,) in conn.execute(sql, [1]).fetchall()]
    assert "tree: orders: ($2[])" in lines
    assert "runs first, for $2[]: SELECT customer_id FROM vip WHERE id = $1" in lines
    assert re.fullmatch(
        r"actual: \w+ on [12] of 3 members, 2 of 14 partitions, 1 row, .* ms",
        next(line for line in lines if line.startswith("actual")),
    )


def test_an_insert_reads_in_steps(
    conn: secateur.Connection, oracle: duckdb.DuckDBPyConnection, table_name: str
) -> None:
    conn.execute(
        f"CREATE TABLE {table_name} (customer_id VARCHAR, order_id BIGINT, PRIMARY KEY (customer_id, order_id))"
    )
    query = (
        "SELECT customer_id, order_id FROM orders WHERE customer_id IN (SELECT customer_id FROM vip WHERE region = ?)"
    )
    inserted = conn.execute(f"INSERT INTO {table_name} {query}", ["r6"]).rowcount
    expected = sorted(oracle.execute(query, ["r6"]).fetchall())
    assert inserted == len(expected)
    assert sorted(conn.execute(f"SELECT customer_id, order_id FROM {table_name}").fetchall()) == expected


def test_a_table_that_was_made_again_is_planned_again(conn: secateur.Connection, table_name: str) -> None:
    sql = f"SELECT count(*) FROM orders WHERE customer_id IN (SELECT k FROM {table_name})"
    with secateur.connect(conn.address) as other:
        for key, count in (("C1é", 20), ("nobody", 0)):
            other.execute(f"CREATE TABLE {table_name} (k VARCHAR PRIMARY KEY)")
            other.execute(f"INSERT INTO {table_name} VALUES (?)", [key])
            assert conn.execute(sql).fetchall() == [(count,)]
            other.execute(f"DROP TABLE {table_name}")
