"""The cases of Hazelcast's "Jet job partition pruning" about member pruning and scan partition pruning, by the names of
its sections.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import secateur
from secateur.cluster import Cluster


@pytest.fixture(scope="module")
def maps(cluster: Cluster) -> Iterator[None]:
    with cluster.connect() as conn:
        for name in ("jet_map1", "jet_map2"):
            conn.execute(
                f"CREATE TABLE {name} (k BIGINT, n BIGINT, v BIGINT, PRIMARY KEY (k, n)) PARTITION BY HASH (k)"
                " PARTITIONS 31"
            )
            conn.table(name).load(pa.table({"k": [i % 40 for i in range(400)], "n": range(400), "v": range(400)}))
        yield


def owner(conn: secateur.Connection, table: str, key: int) -> str:
    handle = conn.table(table)
    return str(handle.owner_of(handle.partition_of({"k": key})))


def heard(cluster: Cluster, conn: secateur.Connection, sql: str) -> tuple[list[tuple[object, ...]], set[str]]:
    """The answer, and the members that received a frame for it once the statement is known."""
    conn.execute(sql).fetchall()
    before = {member.id: member.frames_received for member in cluster.members()}
    rows = conn.execute(sql).fetchall()
    return rows, {member.id for member in cluster.members() if member.frames_received > before[member.id]}


@pytest.mark.usefixtures("maps")
def test_member_pruning_for_simple_map_scan(cluster: Cluster, conn: secateur.Connection) -> None:
    """``SCAN[map2, partitionKey=1]``: prune all members except one; the job could be even local."""
    rows, members = heard(cluster, conn, "SELECT count(*) FROM jet_map2 WHERE k = 1")
    assert rows == [(10,)]
    assert members == {owner(conn, "jet_map2", 1)}


@pytest.mark.usefixtures("maps")
def test_member_pruning_for_scan_hash_join(cluster: Cluster, conn: secateur.Connection) -> None:
    """``HASH JOIN (SCAN[map1, partitionKey=1], SCAN[map2, partitionKey=K])``: only the two owners are left."""
    first = owner(conn, "jet_map1", 1)
    other = next(key for key in range(2, 40) if owner(conn, "jet_map2", key) != first)
    rows, members = heard(
        cluster, conn, f"SELECT count(*) FROM jet_map1 x JOIN jet_map2 y ON x.n < y.n WHERE x.k = 1 AND y.k = {other}"
    )
    assert rows == [(sum(left < right for left in range(1, 400, 40) for right in range(other, 400, 40)),)]
    assert members == {first, owner(conn, "jet_map2", other)}


@pytest.mark.usefixtures("maps")
def test_member_pruning_for_scan_transform_aggregate(cluster: Cluster, conn: secateur.Connection) -> None:
    """``AGGREGATION (TRANSFORM (SCAN[map, partitionKey=K]))``: source and aggregate are on one member."""
    rows, members = heard(cluster, conn, "SELECT v % 2 AS odd, sum(v * 2) FROM jet_map1 WHERE k = 7 GROUP BY odd")
    assert rows == [(1, 2 * sum(range(7, 400, 40)))]
    assert members == {owner(conn, "jet_map1", 7)}


@pytest.mark.usefixtures("maps")
def test_scan_partition_pruning_reads_the_precise_partition_set(conn: secateur.Connection) -> None:
    """For every prunable scan a precise partition set, found at run time from the parameters."""
    table = conn.table("jet_map1")
    for keys in ((1,), (1, 2), (3, 4, 5)):
        cur = conn.execute(f"SELECT count(*) FROM jet_map1 WHERE k IN ({', '.join('?' * len(keys))})", list(keys))
        assert cur.fetchall() == [(10 * len(keys),)]
        assert cur.stats is not None
        assert cur.stats.partitions_read == len({table.partition_of({"k": key}) for key in keys})


@pytest.mark.usefixtures("maps")
def test_required_partitions_of_the_plan_name_the_required_members(conn: secateur.Connection) -> None:
    """``__sql.requiredPartitions``: the execution plan builder chooses only the required members."""
    pruning = conn.explain("SELECT * FROM jet_map1 WHERE k IN (1, 2, 3)").to_dict()["pruning"]
    assert pruning["required_members"] == sorted({owner(conn, "jet_map1", key) for key in (1, 2, 3)})


@pytest.mark.usefixtures("maps")
def test_sql_fills_required_partitions_and_the_job_is_deployed_by_them(conn: secateur.Connection) -> None:
    """SQL-oriented approach: ``ExecutionPlanBuilder`` chooses the members by the partitions that SQL found.

    Work of one partition inside the statement is one processor, ``lazyForceTotalParallelismOne``, at that owner.
    """
    sql = (
        "SELECT x.v, y.n FROM (SELECT v, count(*) AS n FROM jet_map1 WHERE k = 7 GROUP BY v) AS y"
        " JOIN jet_map2 AS x ON x.v = y.v"
    )
    assert sorted(conn.execute(sql).fetchall()) == [(v, 1) for v in range(7, 400, 40)]
    vertices = conn.explain(sql).to_dict()["dag"]["vertices"]
    places = {vertex["name"]: (vertex["members"], vertex["local_parallelism"]) for vertex in vertices}
    for scan_and_its_groups in ("scan jet_map1", "y"):
        assert places[scan_and_its_groups] == ([owner(conn, "jet_map1", 7)], 1)
