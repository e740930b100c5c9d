"""Pipelines on a cluster: answers, and who had to work for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import secateur
from secateur.cluster import Cluster
from secateur.connectors import collect, parquet_sink, table_sink
from secateur.dag import Param
from secateur.errors import DagError, ParameterError, UnknownTableError
from secateur.processors import count_rows, desc, sum_of

ROWS = pa.table(
    {"user_id": [n % 50 for n in range(2000)], "event_id": range(2000), "value": [n % 7 for n in range(2000)]}
)
P = secateur.Pipeline()


@pytest.fixture(scope="module")
def clicks(cluster: Cluster) -> Iterator[str]:
    with cluster.connect() as conn:
        conn.execute(
            "CREATE TABLE clicks (user_id BIGINT, event_id BIGINT, value BIGINT, PRIMARY KEY (user_id, event_id))"
            " PARTITION BY HASH (user_id) PARTITIONS 17"
        )
        conn.table("clicks").load(ROWS)
        yield "clicks"
        conn.execute("DROP TABLE clicks")


@pytest.mark.parametrize("light", [False, True])
@pytest.mark.smoke
def test_a_key_touches_one_member(cluster: Cluster, conn: secateur.Connection, clicks: str, light: bool) -> None:
    per_value = P.read_table(clicks, keys=[{"user_id": Param("user")}]).filter(
        lambda batch: pc.greater(batch["value"], 2)
    )
    pipeline = per_value.key_by("value").aggregate(n=count_rows()).sort(desc("n"), "value", limit=2).write_to(collect())
    expected = sorted(
        Counter(n % 7 for n in range(2000) if n % 50 == 7 and n % 7 > 2).items(), key=lambda item: (-item[1], item[0])
    )[:2]
    before = {member.id: member.frames_received for member in cluster.members()}
    job: Any = (
        pipeline.submit(conn, params={"user": 7}, light=True) if light else pipeline.submit(conn, params={"user": 7})
    )
    rows = job.result(timeout_s=30)
    after = {member.id: member.frames_received for member in cluster.members()}
    assert list(zip(rows["value"].to_pylist(), rows["n"].to_pylist(), strict=True)) == expected
    table = conn.table(clicks)
    owner = table.owner_of(table.partition_of({"user_id": 7}))
    assert job.members_touched == [owner]
    assert [member for member in after if after[member] > before[member]] == [owner]


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize("light", [False, True])
@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("user_id = ?", np.int64(7)),
        ("user_id = ?", pa.scalar(7)),
        ("list_contains(?, user_id)", [np.int8(7), None]),
        ("CAST(user_id AS VARCHAR) = ?", Text("7")),
        ("TIMESTAMP '2024-01-01' + INTERVAL (user_id) HOUR = ?", pd.Timestamp("2024-01-01 07:00")),
        ("TIMESTAMP '2024-01-01' + INTERVAL (user_id) HOUR = ?", np.datetime64("2024-01-01T07:00")),
        ("INTERVAL (user_id) HOUR = ?", pd.Timedelta("7h")),
    ],
)
def test_a_job_takes_the_values_that_a_statement_takes(
    conn: secateur.Connection, clicks: str, where: str, value: Any, light: bool
) -> None:
    def rows(pipeline: Any, **more: Any) -> int:
        job: Any = pipeline.write_to(collect()).submit(conn, light=light, **more)
        return int(job.result(timeout_s=30).num_rows)

    assert conn.execute(f"SELECT count(*) FROM {clicks} WHERE {where}", [value]).fetchall() == [(40,)]
    assert rows(P.read_table(clicks, where=where, params=[value])) == 40
    assert rows(P.read_table(clicks, where=where.replace("?", "$x"), params={"x": value})) == 40
    assert rows(P.read_table(clicks, where=where, params=[Param("x")]), params={"x": value}) == 40
    if where == "user_id = ?":
        assert rows(P.read_table(clicks, keys=[{"user_id": value}])) == 40
        assert rows(P.read_table(clicks, where={"user_id": [value, None]})) == 40
        assert rows(P.read_table(clicks, keys=[{"user_id": Param(0)}]), params=[value]) == 40


def test_a_value_that_no_column_holds_is_refused_where_it_is_given(conn: secateur.Connection, clicks: str) -> None:
    with pytest.raises(ParameterError, match=r"parameter 2 is a builtins\.object"):
        P.read_table(clicks, where="user_id = ? AND value = ?", params=[1, object()])
    with pytest.raises(ParameterError, match=r"parameter for user_id is a builtins\.object"):
        P.read_table(clicks, keys=[{"user_id": object()}])
    with pytest.raises(ParameterError, match=r"parameter \$user is a builtins\.object"):
        P.read_table(clicks, keys=[{"user_id": Param("user")}]).write_to(collect()).submit(
            conn, params={"user": object()}
        )


def test_a_connection_takes_pipelines_and_dags_without_a_config(conn: secateur.Connection, clicks: str) -> None:
    pipeline = P.read_table(clicks).aggregate(n=count_rows()).write_to(collect())
    for job in (pipeline, pipeline.to_dag()):
        assert conn.submit(job).result(timeout_s=30).to_pylist() == [{"n": 2000}]
        assert conn.submit(job, light=True).result(timeout_s=30).to_pylist() == [{"n": 2000}]
        assert conn.new_job_if_absent("counts clicks", job).result(timeout_s=30).to_pylist() == [{"n": 2000}]
        assert conn.plan(job).to_dict() == conn.plan(job, secateur.JobConfig()).to_dict()


def test_a_chain_without_a_sink_is_told_to_end(conn: secateur.Connection, clicks: str) -> None:
    for submit in (
        lambda stage: conn.submit(stage),
        lambda stage: stage.submit(conn),
        lambda stage: stage.submit(conn, secateur.JobConfig(), light=True),
    ):
        with pytest.raises(
            DagError, match=rf"the rows of the stage 'read {clicks}' go nowhere: end the chain with write_to\(...\)"
        ):
            submit(P.read_table(clicks))
    with pytest.raises(ParameterError, match=r"a str is not a job: submit a secateur.DAG, or a secateur.Pipeline"):
        conn.submit("SELECT 1")  # type: ignore[call-overload]
    with pytest.raises(ParameterError, match=r"a dict is not a job configuration: pass a secateur.JobConfig"):
        conn.submit(P.read_table(clicks).write_to(collect()), {"name": "x"})  # type: ignore[call-overload]


def test_the_whole_table_is_counted_everywhere(conn: secateur.Connection, clicks: str) -> None:
    job = P.read_table(clicks).aggregate(n=count_rows(), total=sum_of("value")).write_to(collect()).submit(conn)
    assert job.result(timeout_s=30).to_pylist() == [{"n": 2000, "total": sum(n % 7 for n in range(2000))}]
    assert job.members_touched == ["m1", "m2", "m3"]


@pytest.mark.parametrize("at_members", [False, True], ids=["at one", "at the members"])
def test_all_rows_in_order(conn: secateur.Connection, clicks: str, at_members: bool) -> None:
    rows = (
        P.read_table(clicks)
        .sort(desc("value"), "event_id", at_members=at_members)
        .write_to(collect())
        .submit(conn)
        .result(timeout_s=30)
    )
    assert rows == ROWS.cast(rows.schema).sort_by([("value", "descending"), ("event_id", "ascending")])


def test_two_sinks_of_one_stage(conn: secateur.Connection, clicks: str) -> None:
    users = P.read_table(clicks, columns=["user_id"]).key_by("user_id").distinct()
    job = (
        users.write_to(collect(), name="users")
        .together(users.aggregate(n=count_rows()).write_to(collect(), name="count"))
        .submit(conn)
    )
    results = job.results(timeout_s=30)
    assert sorted(results["users"]["user_id"].to_pylist()) == list(range(50))
    assert results["count"].to_pylist() == [{"n": 50}]


def test_from_a_table_to_files_to_a_table(
    conn: secateur.Connection, clicks: str, table_name: str, tmp_path: Path
) -> None:
    P.read_table(clicks).write_to(parquet_sink(tmp_path)).submit(conn).results(timeout_s=30)
    assert pq.read_table(tmp_path).sort_by("event_id") == ROWS.cast(pq.read_table(tmp_path).schema)
    conn.execute(f"CREATE TABLE {table_name} (user_id BIGINT, total BIGINT, PRIMARY KEY (user_id))")
    read = (
        P.read_files(tmp_path / "*.parquet", columns=["user_id", "value"])
        .key_by("user_id")
        .aggregate(total=sum_of("value"))
    )
    read.write_to(table_sink(table_name)).submit(conn).results(timeout_s=30)
    expected = Counter[int]()
    for n in range(2000):
        expected[n % 50] += n % 7
    assert dict(conn.execute(f"SELECT user_id, total FROM {table_name}").fetchall()) == dict(expected)


def test_rows_as_dicts_and_unions(conn: secateur.Connection) -> None:
    schema = pa.schema({"word": pa.string()})
    lines = P.read_rows([{"line": "to be"}]).union(P.read_rows([{"line": "or not to be"}]))
    words = lines.flat_map_rows(lambda row: ({"word": word} for word in row["line"].split()), schema).filter_rows(
        lambda row: row["word"] != "or"
    )
    upper = (
        words.map_rows(lambda row: {"word": row["word"].upper()}, schema)
        .rebalance("word")
        .sort("word")
        .write_to(collect())
    )
    assert upper.submit(conn).result(timeout_s=30)["word"].to_pylist() == ["BE", "BE", "NOT", "TO", "TO"]


@pytest.mark.parametrize("partitioned", [False, True])
def test_a_join_of_a_key_with_rows_in_hand_touches_one_member(
    cluster: Cluster, conn: secateur.Connection, clicks: str, partitioned: bool
) -> None:
    names = P.read_rows([{"value": 3, "name": "three"}, {"value": 5, "name": "five"}, {"value": 9, "name": "nine"}])
    joined = P.read_table(clicks, keys=[{"user_id": 7}]).hash_join(names, ["value"], partitioned=partitioned)
    before = {member.id: member.frames_received for member in cluster.members()}
    job = joined.key_by("name").aggregate(n=count_rows()).sort("name").write_to(collect()).submit(conn)
    counts = Counter(n % 7 for n in range(2000) if n % 50 == 7)
    assert job.result(timeout_s=30).to_pylist() == [{"name": "five", "n": counts[5]}, {"name": "three", "n": counts[3]}]
    assert len([member for member in cluster.members() if member.frames_received > before[member.id]]) == 1


@pytest.mark.parametrize("partitioned", [False, True])
def test_a_left_join_over_all_members(conn: secateur.Connection, clicks: str, partitioned: bool) -> None:
    names = P.read_rows([{"number": 3, "name": "three"}])
    schema = pa.schema({"number": pa.int64(), "name": pa.string()})
    joined = P.read_table(clicks).hash_join(
        names, {"value": "number"}, how="left", build_schema=schema, partitioned=partitioned
    )
    rows = joined.key_by("name").aggregate(n=count_rows()).write_to(collect()).submit(conn).result(timeout_s=30)
    three = sum(n % 7 == 3 for n in range(2000))
    assert {row["name"]: row["n"] for row in rows.to_pylist()} == {"three": three, None: 2000 - three}


@pytest.mark.parametrize("how", ["right", "full"])
def test_joins_that_keep_the_build_side(conn: secateur.Connection, clicks: str, how: str) -> None:
    names = P.read_rows(
        [{"number": 3, "name": "three"}, {"number": 9, "name": "nine"}, {"number": None, "name": "none"}]
    )
    schemas = {
        "build_schema": pa.schema({"number": pa.int64(), "name": pa.string()}),
        "probe_schema": pa.schema({"value": pa.int64()}),
    }
    joined = P.read_table(clicks, columns=["value"]).hash_join(
        names, {"value": "number"}, how=how, partitioned=True, **schemas
    )
    rows = (
        joined.key_by("value", "name").aggregate(n=count_rows()).write_to(collect()).submit(conn).result(timeout_s=30)
    )
    counts = Counter(n % 7 for n in range(2000))
    without = {(value, None): n for value, n in counts.items() if value != 3} if how == "full" else {}
    assert {(row["value"], row["name"]): row["n"] for row in rows.to_pylist()} == {
        (3, "three"): counts[3],
        (None, "nine"): 1,
        (None, "none"): 1,
        **without,
    }


def test_a_join_that_keeps_a_build_side_that_everybody_has_is_refused() -> None:
    with pytest.raises(
        DagError,
        match=(
            r"after 'read t': a right join needs partitioned=True: where every member has all of the build side, none"
            r" can tell"
        ),
    ):
        P.read_table("t").hash_join(P.read_table("u"), ["k"], how="right")


def test_required_partitions_of_the_user_are_kept(conn: secateur.Connection, clicks: str) -> None:
    partitions = frozenset(range(17))
    job = (
        P.read_table(clicks, keys=[{"user_id": 7}])
        .write_to(collect())
        .submit(conn, secateur.JobConfig(required_partitions={clicks: partitions}))
    )
    assert job.result(timeout_s=30).num_rows == 40


def test_a_table_that_is_not_there(conn: secateur.Connection) -> None:
    with pytest.raises(UnknownTableError):
        P.read_table("nowhere", keys=[{"a": 1}]).write_to(collect()).submit(conn)
