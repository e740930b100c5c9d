"""Clients of a table with many ranges fetch those that their statements need, whatever becomes of the ranges."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from client_process import in_client

from secateur.cluster import Cluster
from secateur.partitioning.schemes.partial_ranges import PAGE_RANGES

RANGES = 3000


@pytest.fixture(scope="module")
def many(cluster: Cluster) -> Iterator[str]:
    """A table with 3,000 ranges of ten keys, a gap behind the 100th, and a row in every hundredth range."""
    with cluster.connect() as conn:
        splits = ", ".join(str(10 * number) for number in range(1, RANGES))
        conn.execute(
            "CREATE TABLE many_ranges (k BIGINT, v BIGINT, PRIMARY KEY (k)) PARTITION BY RANGE (k)"
            f" SPLIT AT ({splits}) BACKUPS 0"
        )
        conn.execute("ALTER TABLE many_ranges DROP PARTITION 1000 <= VALUES < 1010")
        keys = [number * 1000 + 5 for number in range(RANGES // 100) if number != 1]
        conn.table("many_ranges").load(pa.table({"k": keys, "v": keys}))
    yield "many_ranges"
    with cluster.connect() as conn:
        conn.execute("DROP TABLE many_ranges")


def test_a_look_up_fetches_one_page_of_ranges(cluster: Cluster, many: str) -> None:
    out = in_client(
        cluster,
        f"""
found = conn.execute("SELECT v FROM {many} WHERE k = ?", [20005])
out["rows"], out["stats"] = found.fetchall(), [found.stats.partitions_read, found.stats.partitions_total]
out["known"] = known()
out["again"] = conn.execute("SELECT v FROM {many} WHERE k = ?", [20006]).fetchall()
out["listed"] = conn.execute("SELECT v FROM {many} WHERE k IN (?, ?, ?)", [5, 20005, 29005]).fetchall()
out["still"] = known()
""",
    )
    assert out["rows"] == [[20005]]
    assert out["stats"] == [1, RANGES - 1]
    assert out["known"] == PAGE_RANGES
    assert out["again"] == []
    assert sorted(out["listed"]) == [[5], [20005], [29005]]
    assert out["still"] < 4 * PAGE_RANGES


def test_scans_and_changes_and_loads_know_what_they_need(cluster: Cluster, many: str) -> None:
    out = in_client(
        cluster,
        f"""
out["count"] = conn.execute("SELECT count(*) FROM {many}").fetchall()[0][0]
out["whole"] = known()
out["span"] = conn.execute("SELECT count(*) FROM {many} WHERE k BETWEEN ? AND ?", [4000, 21000]).fetchall()[0][0]
out["updated"] = conn.execute("UPDATE {many} SET v = v + 1 WHERE k = ?", [7005]).rowcount
conn.execute("INSERT INTO {many} VALUES (?, ?)", [8123, 1])
out["deleted"] = conn.execute("DELETE FROM {many} WHERE k IN (?, ?)", [8123, 7005]).rowcount
conn.execute("INSERT INTO {many} VALUES (7005, 7005)")
try:
    conn.execute("INSERT INTO {many} VALUES (?, ?)", [1005, 1])
except NoRangeError as error:
    out["gap"] = error.message
out["in the gap"] = conn.execute("SELECT v FROM {many} WHERE k = ?", [1007]).fetchall()
out["loaded"] = conn.table("{many}").load({{"k": list(range(100, 900)), "v": [0] * 800}})
out["gone"] = conn.execute("DELETE FROM {many} WHERE k BETWEEN 100 AND 899 AND v = 0").rowcount
""",
    )
    assert out["count"] == RANGES // 100 - 1
    assert out["whole"] == 0  # a scan of everything needs no ranges
    assert (out["span"], out["updated"], out["deleted"]) == (17, 1, 2)
    assert "no range partition covers k=1005" in out["gap"]
    assert out["in the gap"] == []
    assert (out["loaded"], out["gone"]) == (800, 800)


def test_an_update_from_another_table_is_made_once(cluster: Cluster, many: str, table_name: str) -> None:
    with cluster.connect() as conn:
        conn.execute(
            f"CREATE TABLE {table_name} (k BIGINT, d BIGINT, PRIMARY KEY (k)) PARTITION BY HASH (k) PARTITIONS 3"
        )
        conn.execute(f"INSERT INTO {table_name} VALUES (5, 1), (20005, 1), (29005, 1)")
    out = in_client(
        cluster,
        f"""
change = "UPDATE {many} SET v = v + (?) * s.d FROM {table_name} s WHERE {many}.k = s.k AND {many}.k BETWEEN ? AND ?"
out["changed"] = conn.execute(change, [1, 0, 25000]).rowcount
out["rows"] = conn.execute("SELECT k, v - k FROM {many} WHERE k IN (5, 20005, 29005) ORDER BY k").fetchall()
conn.execute(change, [-1, 0, 25000])
""",
    )
    assert out["changed"] == 2
    assert out["rows"] == [[5, 1], [20005, 1], [29005, 0]]
    with cluster.connect() as conn:
        conn.execute(f"DROP TABLE {table_name}")


def test_a_job_with_a_condition_fetches_the_ranges_that_it_needs(cluster: Cluster, many: str) -> None:
    out = in_client(
        cluster,
        f"""
from secateur import Pipeline
from secateur.connectors import collect
rows = Pipeline().read_table("{many}", where="k BETWEEN ? AND ?", params=[4000, 21000]).write_to(collect())
out["plan"] = len(conn.plan(rows).to_dict())
out["rows"] = conn.submit(rows, light=True).result(timeout_s=60).num_rows
out["known"] = known()
""",
    )
    assert out["rows"] == 17
    assert out["known"] < RANGES


def test_a_table_object_and_jobs_by_key_fetch_the_ranges_that_they_need(cluster: Cluster, many: str) -> None:
    out = in_client(
        cluster,
        f"""
from secateur import DAG, Pipeline
from secateur.connectors import collect, table_source
requests = []
ask = conn._session._controller.request
def counted(message, *args, **named):
    answer = ask(message, *args, **named)
    requests.append(type(message).__name__)
    return answer
conn._session._controller.request = counted
table = conn.table("{many}")
out["seen"] = [table.name, list(table.primary_key), table.schema.names, table.partitions, repr(table)]
out["first"] = [known(), list(requests)]
out["partition"] = table.partition_of({{"k": 20005}})
out["owner"] = table.owner_of(out["partition"])[0]
try:
    table.partition_of({{"k": 1005}})
except NoRangeError:
    out["gap"] = True
out["second"] = [known(), list(requests)]
for light in (False, True):
    job = conn.submit(Pipeline().read_table("{many}", keys=[{{"k": 20005}}]).write_to(collect()), light=light)
    out["rows", light] = None
    assert job.result(timeout_s=60).num_rows == 1
del out["rows", False], out["rows", True]
out["third"] = known()
out["loaded"] = table.load({{"k": [20008], "v": [0]}}, mode="upsert")
out["fourth"] = known()
out["whole schemes"] = len(schemes._by_reference)
conn.execute("DELETE FROM {many} WHERE k = 20008")
out["all"] = len(table.scheme.ranges())
""",
    )
    assert out["seen"] == [
        "many_ranges",
        ["k"],
        ["k", "v"],
        RANGES,
        "<Table many_ranges: 2 columns, 3000 partitions by k>",
    ]
    assert out["first"] == [0, ["GetTables"]]
    assert out["partition"] == 2000
    assert (out["owner"], out["gap"], out["loaded"]) == ("m", True, 1)
    pages, asked = out["second"]
    assert 0 < pages <= 3 * PAGE_RANGES  # those of the keys, and of the gap again for the new table
    assert asked.count("GetTables") == 2
    assert out["third"] == out["fourth"] == pages
    assert out["whole schemes"] == 0
    assert out["all"] == RANGES - 1


def test_a_client_learns_of_ranges_that_others_add_and_drop(cluster: Cluster, many: str) -> None:
    out = in_client(
        cluster,
        f"""
look = "SELECT v FROM {many} WHERE k = ?"
out["before"] = conn.execute(look, [1005]).fetchall()
with secateur.connect(os.environ["ADDRESS"]) as other:
    other.execute("ALTER TABLE {many} ADD PARTITION 1000 <= VALUES < 1010")
    other.execute("INSERT INTO {many} VALUES (1006, 1006)")
    out["added"] = conn.execute(look, [1006]).fetchall()
    out["known"] = known()
    other.execute("INSERT INTO {many} VALUES (20, 20)")
    out["near"] = conn.execute(look, [20]).fetchall()
    other.execute("ALTER TABLE {many} DROP PARTITION 1000 <= VALUES < 1010")
    out["dropped"] = conn.execute(look, [1006]).fetchall()
    other.execute("DELETE FROM {many} WHERE k = 20")
""",
    )
    assert out["before"] == []
    assert out["added"] == [[1006]]
    assert out["known"] <= 2 * PAGE_RANGES
    assert out["near"] == [[20]]
    assert out["dropped"] == []


def test_every_makes_ranges_for_clients_that_know_few(cluster: Cluster, table_name: str) -> None:
    with cluster.connect() as conn:
        conn.execute(
            f"CREATE TABLE {table_name} (k BIGINT, v BIGINT, PRIMARY KEY (k)) PARTITION BY RANGE (k) EVERY 10"
            " STARTING 0 BACKUPS 0"
        )
        conn.table(table_name).load(pa.table({"k": range(0, 10000, 10), "v": range(1000)}))
    out = in_client(
        cluster,
        f"""
conn.execute("INSERT INTO {table_name} VALUES (?, ?)", [20001, 1])
conn.execute("INSERT INTO {table_name} VALUES (?, ?)", [20002, 2])
out["known"] = known()
conn.execute("INSERT INTO {table_name} VALUES (30001, 1), (40001, 2)")
conn.table("{table_name}").load({{"k": list(range(50000, 51000, 10)), "v": [0] * 100}})
out["count"] = conn.execute("SELECT count(*) FROM {table_name}").fetchall()[0][0]
""",
    )
    assert out["known"] <= PAGE_RANGES
    assert out["count"] == 1000 + 2 + 2 + 100
    with cluster.connect() as conn:
        assert len(conn.table(table_name).scheme.ranges()) == 1000 + 1 + 2 + 100
        conn.execute(f"DROP TABLE {table_name}")
