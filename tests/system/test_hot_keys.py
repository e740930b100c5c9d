"""Hot keys and hits of partitions: what members count of the statements, gets and writes that reach them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from eventually import eventually

import secateur
from secateur.cluster import Cluster
from secateur.errors import AuthenticationError

HOT = "SELECT key, member, partition, share, sampled FROM secateur.hot_keys WHERE table_name = 'carts' ORDER BY ALL"


@pytest.fixture(scope="module")
def sampling() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded", hot_key_sampling=1) as running:
        yield running


@pytest.fixture
def conn(sampling: Cluster) -> Iterator[secateur.Connection]:
    with sampling.connect() as opened:
        opened.execute("DROP TABLE IF EXISTS carts")
        opened.execute(
            "CREATE TABLE carts (tenant VARCHAR, id BIGINT, v BIGINT, PRIMARY KEY (tenant, id))"
            " PARTITION BY HASH (tenant) PARTITIONS 16"
        )
        rows = {"tenant": [f"T{n % 40}" for n in range(400)], "id": range(400), "v": [1] * 400}
        opened.table("carts").load(pa.table({name: list(column) for name, column in rows.items()}))
        yield opened


def shares(conn: secateur.Connection) -> dict[str, tuple[Any, ...]]:
    return {key: tuple(rest) for key, *rest in conn.execute(HOT).fetchall()}


def uses(conn: secateur.Connection) -> dict[int, tuple[int, int]]:
    sql = "SELECT partition, reads, writes FROM secateur.partitions WHERE table_name = 'carts'"
    return {partition: (reads, writes) for partition, reads, writes in conn.execute(sql).fetchall()}


def test_each_way_to_name_a_key_is_sampled(conn: secateur.Connection) -> None:
    carts = conn.table("carts")
    for _ in range(6):
        conn.execute("SELECT sum(v) FROM carts WHERE tenant = ?", ["T1"]).fetchall()
    conn.execute("SELECT v FROM carts WHERE tenant = 'T2' AND id = 2").fetchall()
    conn.execute("SELECT v FROM carts WHERE id = 3 AND tenant = upper(?)", ["t3"]).fetchall()
    conn.execute("SELECT count(*) FROM carts WHERE tenant IN ('T4', 'T5', 'T6')").fetchall()
    carts.get({"tenant": "T7", "id": 7})
    carts.put({"tenant": "T8", "id": 8, "v": 2})
    conn.execute("UPDATE carts SET v = v + 1 WHERE tenant = ? AND id = ?", ["T9", 9])
    conn.execute("SELECT count(*) FROM carts").fetchall()
    conn.execute("SELECT count(*) FROM carts WHERE v = 1").fetchall()
    found = shares(conn)
    expected = {f'{{"tenant":"T{n}"}}': 6 if n == 1 else 1 for n in range(1, 10)}
    assert {key: sampled for key, (*_, sampled) in found.items()} == expected
    for key, (member, partition, share, sampled) in found.items():
        name = key.split('"')[3]
        assert partition == carts.partition_of({"tenant": name})
        # Of a statement over several members, one of them samples all keys.
        assert member == carts.owner_of(partition) or name in ("T4", "T5", "T6")
        assert share == pytest.approx(sampled / 14)


def test_hits_are_counted_at_the_partitions_that_are_used(conn: secateur.Connection) -> None:
    carts, before = conn.table("carts"), uses(conn)
    here = carts.partition_of({"tenant": "T1"})
    for _ in range(5):
        conn.execute("SELECT sum(v) FROM carts WHERE tenant = ?", ["T1"]).fetchall()
    carts.get({"tenant": "T1", "id": 1})
    carts.put({"tenant": "T1", "id": 1, "v": 2})
    conn.execute("UPDATE carts SET v = v + 1 WHERE tenant = ? AND id = ?", ["T1", 1])
    conn.execute("DELETE FROM carts WHERE tenant = ? AND id = ?", ["T1", 1])
    after = uses(conn)
    grown = {
        partition: (reads - before[partition][0], writes - before[partition][1])
        for partition, (reads, writes) in after.items()
        if (reads, writes) != before[partition]
    }
    assert grown.keys() == {here}
    reads, writes = grown[here]
    assert (reads, writes) == (6, 3)
    conn.execute("SELECT count(*) FROM carts WHERE v > 0").fetchall()
    assert {partition: reads - after[partition][0] for partition, (reads, _) in uses(conn).items()} == dict.fromkeys(
        range(16), 1
    )


def test_a_load_is_one_change_of_each_of_its_partitions(conn: secateur.Connection) -> None:
    assert {writes for _, writes in uses(conn).values()} <= {0, 1}
    assert sum(writes for _, writes in uses(conn).values()) == len(
        {conn.table("carts").partition_of({"tenant": f"T{n}"}) for n in range(40)}
    )


def test_a_dropped_table_has_no_hot_keys(conn: secateur.Connection) -> None:
    conn.execute("SELECT sum(v) FROM carts WHERE tenant = ?", ["T1"]).fetchall()
    assert shares(conn)
    conn.execute("DROP TABLE carts")
    assert shares(conn) == {}


def test_a_token_for_some_tables_reads_hot_keys_only_if_they_were_granted(
    sampling: Cluster, conn: secateur.Connection
) -> None:
    conn.execute("SELECT sum(v) FROM carts WHERE tenant = ?", ["T1"]).fetchall()
    some = sampling.tokens.create("read on carts")
    with (
        secateur.connect(sampling.address, token=some.token) as limited,
        pytest.raises(AuthenticationError, match=r"read on secateur\.hot_keys"),
    ):
        limited.execute(HOT).fetchall()
    granted = sampling.tokens.create("read on carts, secateur.hot_keys")
    with secateur.connect(sampling.address, token=granted.token) as limited:
        assert len(limited.execute(HOT).fetchall()) == 1


def test_sampling_is_off_where_it_was_switched_off() -> None:
    with secateur.start(members=1, runtime="embedded", hot_key_sampling=0) as running, running.connect() as conn:
        conn.execute("CREATE TABLE carts (tenant VARCHAR PRIMARY KEY)")
        for _ in range(300):
            conn.execute("SELECT * FROM carts WHERE tenant = ?", ["T1"]).fetchall()
        assert conn.execute("SELECT count(*) FROM secateur.hot_keys").fetchall() == [(0,)]


def test_by_default_some_are_sampled(cluster: Cluster, table_name: str) -> None:
    with cluster.connect() as conn:
        conn.execute(f"CREATE TABLE {table_name} (tenant VARCHAR PRIMARY KEY)")
        for _ in range(2000):
            conn.execute(f"SELECT * FROM {table_name} WHERE tenant = ?", ["T1"]).fetchall()
        sql = "SELECT sum(sampled) FROM secateur.hot_keys WHERE table_name = ?"
        eventually(lambda: conn.execute(sql, [table_name]).fetchall() != [(None,)], "nothing was sampled")
        ((sampled,),) = conn.execute(sql, [table_name]).fetchall()
        assert 5 < sampled < 200
        conn.execute(f"DROP TABLE {table_name}")
