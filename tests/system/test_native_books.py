"""What the native executor answers is counted, listed and sampled as what Python answers."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pyarrow as pa
import pytest
from executors import EXECUTORS, answered_by

import secateur
from secateur.cluster import Cluster

ROWS = {"tenant": [f"T{n % 20}" for n in range(200)], "id": list(range(200)), "v": [1] * 200}
BOOKS = {
    "statements": (
        "SELECT member, number, statement, state, execution, array_to_string(members, ' '), partitions_read,"
        " partitions_total, rows, pruning FROM secateur.statements WHERE statement LIKE '%FROM carts%' ORDER BY ALL"
    ),
    "partitions": "SELECT partition, reads FROM secateur.partitions WHERE table_name = 'carts' ORDER BY ALL",
    "hot keys": "SELECT key, member, sampled FROM secateur.hot_keys WHERE table_name = 'carts' ORDER BY ALL",
}


def ask(connection: secateur.Connection) -> None:
    """Short requests of each kind, each of them several times: the first execution makes the program of a plan."""
    carts = connection.table("carts")
    for tenant in ("T1", "T2", "T3", "T1"):
        key = {"tenant": tenant, "id": int(tenant[1:])}
        connection.execute("SELECT v FROM carts WHERE tenant = ? AND id = ?", list(key.values())).fetchall()
        connection.execute("SELECT count(*), sum(v) FROM carts WHERE tenant = ?", [tenant]).fetchall()
        connection.execute("SELECT count(*) FROM carts WHERE tenant IN (?, 'T4', 'T5', 'T6')", [tenant]).fetchall()
        connection.execute(
            "SELECT c.v FROM carts c JOIN names n ON n.id = c.id WHERE c.tenant = ?", [tenant]
        ).fetchall()
        carts.get(key)
        carts.get_many([key, {"tenant": "T7", "id": 7}, {"tenant": "T8", "id": -1}])


def books(cluster: Cluster, owner: secateur.Connection) -> dict[str, Any]:
    counts = [(member.id, member.frames_received, member.executions) for member in cluster.members()]
    return {"counts": counts, **{name: owner.execute(sql).fetchall() for name, sql in BOOKS.items()}}


def kept(executor: str, *, with_tenant: bool) -> dict[str, Any]:
    """All books behind the same requests."""
    with (
        answered_by(executor),
        secateur.start(members=2, runtime="embedded", hot_key_sampling=1) as cluster,
        cluster.connect() as owner,
    ):
        owner.execute(
            "CREATE TABLE carts (tenant VARCHAR, id BIGINT, v BIGINT, PRIMARY KEY (tenant, id))"
            " PARTITION BY HASH (tenant) PARTITIONS 8"
        )
        owner.execute("CREATE TABLE names (id BIGINT PRIMARY KEY) REPLICATED")
        owner.table("carts").load(pa.table(ROWS))
        owner.table("names").load(pa.table({"id": list(range(20))}))
        ask(owner)
        if not with_tenant:
            return books(cluster, owner)
        token = cluster.tokens.create("read", principal="ann").token
        with secateur.connect(cluster.address, token=token) as ann:
            ask(ann)
        ask(owner)
        sql = "SELECT tenant, statements, failed, refused, rows FROM secateur.tenants ORDER BY ALL"
        return {**books(cluster, owner), "tenants": owner.execute(sql).fetchall()}


@pytest.mark.parametrize("with_tenant", [False, True], ids=["the owner alone", "a tenant too"])
def test_both_executors_keep_the_same_books(*, with_tenant: bool) -> None:
    native, python = (kept(executor, with_tenant=with_tenant) for executor in EXECUTORS)
    assert native == python
    assert native["statements"], "nothing was listed"
    assert sum(sampled for _, _, sampled in native["hot keys"]) > 10


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_member_that_has_ended_is_collected(executor: str) -> None:
    with (
        answered_by(executor),
        secateur.start(members=1, runtime="embedded") as cluster,
        cluster.connect() as connection,
    ):
        connection.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS 3")
        connection.execute("INSERT INTO t VALUES (1, 2)")
        for _ in range(3):
            assert connection.execute("SELECT v FROM t WHERE id = ?", [1]).fetchall() == [(2,)]
        runtime: Any = cluster._runtime
        (member,) = map(weakref.ref, runtime._members.values())
    del cluster, connection, runtime
    gc.collect()
    assert member() is None
