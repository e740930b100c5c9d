"""The cases of Hazelcast's "Jet job partition pruning" about member pruning and scan partition pruning, by the names of
its sections.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import pyarrow as pa
import pytest

import secateur
from secateur.cluster import Cluster
from secateur.connectors import collect
from secateur.dag import Param
from secateur.errors import UnknownTableError


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
    for scan_and_its_groups in ("scan jet_map1", "rows of jet_map1"):
        assert places[scan_and_its_groups] == ([owner(conn, "jet_map1", 7)], 1)


@pytest.fixture(scope="module")
def composite(cluster: Cluster) -> Iterator[None]:
    """A map whose partitioning strategy has two of the three components of its key."""
    with cluster.connect() as conn:
        conn.execute(
            "CREATE TABLE jet_composite (comp1 VARCHAR, comp2 DATE, comp3 BIGINT, v BIGINT, w DOUBLE,"
            " PRIMARY KEY (comp1, comp2, comp3)) PARTITION BY HASH (comp1) PARTITIONS 8,"
            " RANGE (comp2) SPLIT AT (DATE '2024-01-08', DATE '2024-01-15', DATE '2024-01-22')"
        )
        rows = range(2800)
        conn.table("jet_composite").load(
            pa.table(
                {
                    "comp1": [f"c{row % 10}" for row in rows],
                    "comp2": [datetime.date(2024, 1, 1 + row % 28) for row in rows],
                    "comp3": rows,
                    "v": rows,
                    "w": [row / 2 for row in rows],
                }
            )
        )
        yield


def partitions_of(plan: secateur.ResolvedPlan) -> list[int]:
    return sorted(id_ for placed in plan.vertices[0].placed for id_ in placed.partitions or ())


def kept_by_sql(conn: secateur.Connection, where: str, params: list[object]) -> list[int]:
    (scan,) = conn.explain(f"SELECT v FROM jet_composite WHERE {where}", params).to_dict()["pruning"]["scans"]
    return list(range(32)) if scan["partitions"] is None else list(scan["partitions"])


@pytest.mark.usefixtures("composite")
@pytest.mark.parametrize(
    ("keys", "where", "kept"),
    [
        pytest.param({"comp1": "c3"}, "comp1 = 'c3'", 4, id="comp1"),
        pytest.param({"comp2": datetime.date(2024, 1, 9)}, "comp2 = DATE '2024-01-09'", 8, id="comp2"),
        pytest.param({"comp1": "c3", "comp3": 13}, "comp1 = 'c3' AND comp3 = 13", 4, id="comp1 and comp3"),
        pytest.param({"comp3": 13}, "comp3 = 13", 32, id="comp3"),
    ],
)
def test_not_successful_case_falls_back_to_what_the_condition_names(
    conn: secateur.Connection, keys: dict[str, object], where: str, kept: int
) -> None:
    """ "Not successful case example": a DAG keeps what SQL keeps, everything included, and says why."""
    expected = sorted(conn.execute(f"SELECT v FROM jet_composite WHERE {where}").fetchall())
    assert len(kept_by_sql(conn, where, [])) == kept
    for source in (
        secateur.Pipeline().read_table("jet_composite", where=keys, columns=["v"]),
        secateur.Pipeline().read_table("jet_composite", where=where, columns=["v"]),
    ):
        job = source.write_to(collect())
        plan = conn.plan(job)
        assert partitions_of(plan) == kept_by_sql(conn, where, [])
        scan = plan.vertices[0].scan
        assert scan is not None
        assert (scan.partitions_read, scan.partitions_total) == (kept, 32)
        assert (scan.reason is not None) == (kept == 32)
        assert ("not fewer: " in str(plan)) == (kept == 32)
        assert sorted((row["v"],) for row in job.submit(conn, light=True).result().to_pylist()) == expected


@pytest.mark.usefixtures("composite")
def test_specific_partitions_reader_evaluates_expressions_of_parameters_in_init(
    conn: secateur.Connection,
) -> None:
    """``SpecificPartitionsImapReaderPms``: expressions are evaluated in ``init``, at each run of one DAG."""
    where = "comp1 = lower(?) AND comp2 >= ? AND v % 2 = 0"
    dag = (
        secateur.Pipeline()
        .read_table("jet_composite", where=where, params=[Param("who"), Param("since")], columns=["comp3", "v"])
        .write_to(collect())
        .to_dag()
    )
    for who, day in (("C3", 20), ("c4", 5), ("C8", 28), ("nobody", 1)):
        since = datetime.date(2024, 1, day)
        plan = conn.plan(dag, params={"who": who, "since": since})
        assert partitions_of(plan) == kept_by_sql(conn, where, [who, since])
        assert len(partitions_of(plan)) <= 4
        job = conn.submit(dag, params={"who": who, "since": since}, light=True)
        expected = conn.execute(f"SELECT comp3, v FROM jet_composite WHERE {where}", [who, since]).arrow()
        assert job.result().sort_by("v").equals(expected.sort_by("v"))
        owners = {owner_of(conn, partition) for partition in partitions_of(plan)}
        assert set(job.members_touched) == owners


def owner_of(conn: secateur.Connection, partition: int) -> str:
    return str(conn.table("jet_composite").owner_of(partition))


@pytest.mark.usefixtures("composite")
def test_a_pipeline_prunes_by_the_predicates_of_sql(conn: secateur.Connection) -> None:
    """ "Scan partition pruning" for the Pipeline API: partitions, key bounds, residual filter and columns as in SQL."""
    where = "comp1 = ? AND comp2 BETWEEN ? AND ? AND w > 100"
    params: list[object] = ["c3", datetime.date(2024, 1, 9), datetime.date(2024, 1, 17)]
    job = secateur.Pipeline().read_table("jet_composite", where=where, params=params, columns=["v"]).write_to(collect())
    plan = conn.plan(job)
    scan = plan.vertices[0].scan
    assert scan is not None
    assert partitions_of(plan) == kept_by_sql(conn, where, params)
    assert (scan.partitions_read, scan.searches, scan.filter) == (2, True, where)
    assert scan.columns == ("comp1", "comp2", "v", "w"), "those of the filter and the result, and no other"
    for text in ("keeps 2 of 32 partitions", f"searches the primary key and filters by {where}"):
        assert text in str(plan)
    expected = sorted(conn.execute(f"SELECT v FROM jet_composite WHERE {where}", params).fetchall())
    recorded = job.submit(conn)
    assert sorted((row["v"],) for row in recorded.result().to_pylist()) == expected
    assert recorded.plan().vertices[0].scan == scan


@pytest.mark.usefixtures("composite", "maps")
@pytest.mark.parametrize("where", ["v IN (SELECT n FROM jet_map1)", "v = 1) LIMIT (1", "EXISTS (SELECT 1)"])
def test_what_is_no_condition_on_each_row_is_refused_by_name(conn: secateur.Connection, where: str) -> None:
    job = secateur.Pipeline().read_table("jet_composite", where=where).write_to(collect())
    with pytest.raises(secateur.Error, match="the condition on jet_composite cannot be applied to each row by itself"):
        job.submit(conn, light=True).result()


def test_a_source_is_planned_anew_when_its_table_has_changed(conn: secateur.Connection, table_name: str) -> None:
    """Nothing of a run is kept that another run could wrongly use: neither the plan nor the partitions."""
    conn.execute(
        f"CREATE TABLE {table_name} (k BIGINT PRIMARY KEY, v BIGINT) PARTITION BY RANGE (k)"
        " (PARTITION VALUES < 10, PARTITION 10 <= VALUES < 20)"
    )
    conn.execute(f"INSERT INTO {table_name} VALUES (1, 1), (11, 11)")
    job = secateur.Pipeline().read_table(table_name, where="k + 0 >= ? AND k >= ?", params=[Param(0), Param(0)])
    dag = job.write_to(collect()).to_dag()

    def found() -> list[int]:
        return sorted(conn.submit(dag, params=[5], light=True).result()["k"].to_pylist())

    assert found() == found() == [11]
    conn.execute(f"ALTER TABLE {table_name} ADD PARTITION 20 <= VALUES < 30")
    conn.execute(f"INSERT INTO {table_name} VALUES (21, 21)")
    assert found() == [11, 21]
    conn.execute(
        f"CREATE OR REPLACE TABLE {table_name} (k BIGINT PRIMARY KEY, w VARCHAR) PARTITION BY HASH (k) PARTITIONS 3"
    )
    conn.execute(f"INSERT INTO {table_name} VALUES (4, 'a'), (7, 'b')")
    assert found() == [7]
    conn.execute(f"DROP TABLE {table_name}")
    with pytest.raises(UnknownTableError, match=table_name):
        found()
