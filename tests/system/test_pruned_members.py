"""Members without required partitions hear nothing of a statement: held by their own counters, in both runtimes."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

import secateur
from secateur.cluster import Cluster

ROWS = pa.table(
    {
        "customer_id": [f"C{i % 200}" for i in range(10_000)],
        "order_id": pa.array(range(10_000), pa.int64()),
        "amount": pa.array([(i * 37) % 1000 / 4 for i in range(10_000)]),
    }
)


@pytest.fixture(scope="module", params=["embedded", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.slow])])
def orders(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with secateur.start(members=3, runtime=request.param, member_silence_s=10.0) as cluster, cluster.connect() as conn:
        conn.execute(
            "CREATE TABLE orders (customer_id VARCHAR, order_id BIGINT, amount DOUBLE, PRIMARY KEY (customer_id,"
            " order_id)) PARTITION BY HASH (customer_id) PARTITIONS 31"
        )
        assert conn.table("orders").load(ROWS) == 10_000
        yield cluster


def frames(cluster: Cluster) -> dict[str, int]:
    return {member.id: member.frames_received for member in cluster.members()}


def expected(sql: str, params: list[object]) -> list[tuple[object, ...]]:
    with duckdb.connect() as oracle:
        oracle.register("orders", ROWS)
        return oracle.execute(sql, params).fetchall()


def heard(before: dict[str, int], after: dict[str, int]) -> set[str]:
    return {member for member in after if after[member] > before[member]}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*), min(amount), max(amount) FROM orders WHERE customer_id = ?",
        "SELECT order_id, amount FROM orders WHERE customer_id = ? ORDER BY order_id",
        "SELECT upper(customer_id) AS c, avg(amount) FROM orders WHERE customer_id = ? GROUP BY c",
    ],
    ids=["aggregate", "rows", "expressions"],
)
def test_one_key_reaches_its_owner_alone(orders: Cluster, sql: str) -> None:
    with orders.connect() as conn:
        table = conn.table("orders")
        for customer in ("C1", "C2", "C3", "C17"):
            owner = table.owner_of(table.partition_of({"customer_id": customer}))
            before = frames(orders)
            cur = conn.execute(sql, [customer])
            assert heard(before, frames(orders)) == {owner}
            assert cur.fetchall() == expected(sql, [customer])
            assert (cur.stats.execution, cur.stats.members_touched, cur.stats.members_total) == ("local", 1, 3)
            assert (cur.stats.partitions_read, cur.stats.partitions_total) == (1, 31)


@pytest.mark.smoke
def test_several_keys_reach_their_owners_alone(orders: Cluster) -> None:
    sql = (
        "SELECT customer_id, count(*), sum(amount) FROM orders WHERE customer_id IN (?, ?) GROUP BY customer_id ORDER"
        " BY customer_id"
    )
    with orders.connect() as conn:
        table = conn.table("orders")
        owner_of = {
            customer: table.owner_of(table.partition_of({"customer_id": customer}))
            for customer in (f"C{i}" for i in range(200))
        }
        first = "C0"
        second = next(customer for customer, owner in owner_of.items() if owner != owner_of[first])
        conn.execute(sql, [first, second])
        for _ in range(3):  # whichever of the owners coordinates
            before = frames(orders)
            cur = conn.execute(sql, [first, second])
            assert heard(before, frames(orders)) == {owner_of[first], owner_of[second]}
            assert cur.stats.members_touched == 2
            assert cur.stats.execution == "scatter"
            assert cur.fetchall() == expected(sql, [first, second])


def test_an_impossible_predicate_reaches_nobody(orders: Cluster) -> None:
    with orders.connect() as conn:
        before = frames(orders)
        cur = conn.execute("SELECT count(*), max(amount) FROM orders WHERE customer_id = 'C1' AND customer_id = 'C2'")
        assert heard(before, frames(orders)) == set()
        assert cur.fetchall() == [(0, None)]
        assert (cur.stats.execution, cur.stats.members_touched) == ("none", 0)


@pytest.mark.smoke
def test_without_pruning_everybody_takes_part_and_the_answer_is_the_same(orders: Cluster) -> None:
    sql = "SELECT count(*), sum(amount) FROM orders WHERE customer_id = ?"
    with orders.connect() as conn:
        conn.execute("SET pruning = off")
        before = frames(orders)
        cur = conn.execute(sql, ["C5"])
        assert heard(before, frames(orders)) == {"m1", "m2", "m3"}
        assert cur.fetchall() == expected(sql, ["C5"])
        assert cur.stats.partitions_read == 31
        conn.execute("SET pruning = verify")
        assert conn.execute(sql, ["C5"]).fetchall() == expected(sql, ["C5"])


def test_looking_at_the_members_does_not_count(orders: Cluster) -> None:
    assert frames(orders) == frames(orders)


def test_owners_are_balanced_and_have_all_rows(orders: Cluster) -> None:
    members = orders.members()
    assert sorted(member.partitions_primary for member in members) == [10, 10, 11]
    assert sum(member.partitions_backup for member in members) == 31
    assert sum(member.rows for member in members) == 10_000
