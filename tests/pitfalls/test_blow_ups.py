"""Where planning or fan-out blew up in real systems: bounded here, by counts where there is something to count, by
generous times where there is not.
"""

from __future__ import annotations

import time
import tracemalloc

import pyarrow as pa

import secateur
from secateur.cluster import Cluster
from secateur.planner import Planner
from worlds import World


def test_the_product_of_three_in_lists_is_not_built() -> None:
    """KUDU-3455: cross product of IN lists built in memory, 600 MB; hash depth first and stop when all buckets are
    hit.
    """
    world = World()
    world.fill(
        "CREATE TABLE t (a BIGINT, b BIGINT, c BIGINT, PRIMARY KEY (a, b, c)) PARTITION BY HASH (a, b, c)"
        " PARTITIONS 64",
        "SELECT 1, 1, 1",
    )
    values = ", ".join(map(str, range(300)))
    tracemalloc.start()
    started = time.process_time()
    statement = world.prepare(f"SELECT * FROM t WHERE a IN ({values}) AND b IN ({values}) AND c IN ({values})", ())
    (kept,) = world.kept(statement.plan, statement.params or ())
    elapsed_s = time.process_time() - started
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(kept) == 64
    assert peak_bytes < 30_000_000
    assert elapsed_s < 5


def test_a_point_predicate_costs_the_same_with_a_hundred_times_the_partitions() -> None:
    """citus #1305: planning cost grew with all shards: seconds at 100,000."""
    costs = []
    for partitions in (300, 30_000):
        world = World(planner=Planner(cached_max=1))
        world.fill(f"CREATE TABLE t (k BIGINT PRIMARY KEY) PARTITION BY HASH (k) PARTITIONS {partitions}", "SELECT 1")
        world.prepare("SELECT * FROM t WHERE k = 0", ())
        rounds = []
        for key in range(1, 8):
            started = time.process_time()
            statement = world.prepare(f"SELECT * FROM t WHERE k = {key}", ())
            assert len(world.kept(statement.plan, ())[0]) == 1
            rounds.append(time.process_time() - started)
        costs.append(min(rounds))
    assert costs[1] < 5 * costs[0]


def test_a_known_statement_is_planned_and_sent_once(conn: secateur.Connection, table_name: str) -> None:
    """hazelcast #21032, #17592, hazelcast-jet #1500: the plan was serialised again at each call, start-up cost
    dominated.
    """
    conn.execute(f"CREATE TABLE {table_name} (k BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (k) PARTITIONS 31")
    conn.table(table_name).load(pa.table({"k": range(100), "v": range(100)}))
    cached = []
    for key in (3, 4, 5):
        cur = conn.execute(f"SELECT v FROM {table_name} WHERE k = ?", [key])
        assert cur.fetchall() == [(key,)]
        assert cur.stats is not None
        cached.append(cur.stats.plan_cached)
    assert cached == [False, True, True]


def test_the_query_of_one_tenant_reaches_one_member_and_no_other_coordinates(
    cluster: Cluster, conn: secateur.Connection, table_name: str
) -> None:
    """druid #15149, pinot #18201: 92 of 94 nodes for one tenant.

    Hazelcast #24813: the coordinator took part although it held no data.
    """
    conn.execute(
        f"CREATE TABLE {table_name} (tenant VARCHAR, n BIGINT, PRIMARY KEY (tenant, n)) PARTITION BY HASH (tenant)"
        " PARTITIONS 31"
    )
    table = conn.table(table_name)
    table.load(pa.table({"tenant": [f"T{i % 20}" for i in range(400)], "n": range(400)}))
    sql = f"SELECT count(*), sum(n) FROM {table_name} WHERE tenant = ?"
    conn.execute(sql, ["T0"]).fetchall()
    for tenant in ("T1", "T2", "T3", "T4"):
        before = {member.id: member.frames_received for member in cluster.members()}
        cur = conn.execute(sql, [tenant])
        after = {member.id: member.frames_received for member in cluster.members()}
        assert cur.fetchall()[0][0] == 20
        assert {member for member in after if after[member] > before[member]} == {
            table.owner_of(table.partition_of({"tenant": tenant}))
        }


def test_a_large_result_stays_on_the_way_of_a_small_one(conn: secateur.Connection, table_name: str) -> None:
    """ray #58351: results over 100 KiB left the fast path."""
    conn.execute(
        f"CREATE TABLE {table_name} (tenant BIGINT, id BIGINT, text VARCHAR, PRIMARY KEY (tenant, id)) PARTITION BY"
        " HASH (tenant) PARTITIONS 16"
    )
    conn.table(table_name).load(pa.table({"tenant": [7] * 5000, "id": range(5000), "text": ["x" * 100] * 5000}))
    for limit in (1, 5000):
        cur = conn.execute(f"SELECT id, text FROM {table_name} WHERE tenant = 7 LIMIT {limit}")
        assert cur.stats is not None
        assert (cur.stats.execution, cur.stats.members_touched, cur.rowcount) == ("local", 1, limit)


def test_rows_outlive_the_member_that_held_them() -> None:
    """ray #7189, raydp #454: data held in actors or by ray.put died with its owner."""
    with secateur.start(members=3, runtime="embedded", member_silence_s=2.0) as cluster, cluster.connect() as conn:
        conn.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (k) PARTITIONS 8 BACKUPS 1")
        conn.table("t").load(pa.table({"k": range(100), "v": range(100)}))
        cluster.kill_member(conn.table("t").owner_of(conn.table("t").partition_of({"k": 7})))
        assert conn.execute("SELECT v FROM t WHERE k = 7").fetchall() == [(7,)]
        assert conn.execute("SELECT count(*), sum(v) FROM t").fetchall() == [(100, 4950)]
