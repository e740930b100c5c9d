"""The processors that ship, each in a job over a table of a running cluster, with rows that travel between members by
key.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import secateur
from secateur import between, from_, processors
from secateur.cluster import Cluster
from secateur.connectors import batch_source, collect, table_source
from secateur.processors import AggregateOperation

COUNT = 3000
ROWS = pa.table(
    {"id": range(COUNT), "user": [f"u{i % 37}" for i in range(COUNT)], "value": [i * 7 % 101 for i in range(COUNT)]}
)
USERS = pa.table({"name": [f"u{i}" for i in range(0, 40, 2)], "city": [f"c{i % 3}" for i in range(20)]})


@pytest.fixture(scope="module")
def visits(cluster: Cluster) -> Iterator[str]:
    with cluster.connect() as conn:
        conn.execute(
            "CREATE TABLE visits (id BIGINT, user VARCHAR, value BIGINT, PRIMARY KEY (id)) PARTITION BY HASH (id)"
            " PARTITIONS 13"
        )
        conn.table("visits").load(ROWS)
        yield "visits"
        conn.execute("DROP TABLE visits")


def job(*stages: tuple[Any, str]) -> secateur.DAG:
    """Reads the table, through stages in a row, into the result.

    With each stage the way to it: ``local``, ``one``, or the column of a partitioned edge.
    """
    dag = secateur.DAG()
    dag.new_vertex("visits", table_source("visits"))
    last = "visits"
    for number, (stage, way) in enumerate([*stages, (collect(), "one")]):
        dag.new_vertex(f"stage{number}", stage)
        edge = between(last, f"stage{number}")
        match way:
            case "local":
                dag.edge(edge)
            case "one":
                dag.edge(edge.all_to_one().distributed())
            case column:
                dag.edge(edge.partitioned(column).distributed())
        last = f"stage{number}"
    return dag


def rows_of(conn: secateur.Connection, dag: secateur.DAG) -> list[tuple[Any, ...]]:
    table = conn.submit(dag, secateur.JobConfig()).result(timeout_s=60)
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


STATES = {
    "n": processors.count_rows(),
    "total": processors.sum_of("value"),
    "mean": processors.avg_of("value"),
    "kinds": processors.count_distinct_of("value"),
}
COUNTED = {"n": processors.count_rows()}
BY_USER = (
    "SELECT user, count(*), CAST(sum(value) AS BIGINT), avg(value), count(DISTINCT value) FROM visits GROUP BY user"
)
SPREAD = AggregateOperation(
    create=lambda: None,
    accumulate=lambda state, rows: spread(state, pc.min_max(rows["value"]).as_py()),
    combine=lambda one, other: spread(one, other),
    state_type=pa.struct({"min": pa.int64(), "max": pa.int64()}),
    finish=lambda state: state["max"] - state["min"],
    result_type=pa.int64(),
)


def spread(one: dict[str, int] | None, other: dict[str, int]) -> dict[str, int]:
    return other if one is None else {"min": min(one["min"], other["min"]), "max": max(one["max"], other["max"])}


@pytest.mark.parametrize(
    ("stages", "sql"),
    [
        pytest.param([(processors.aggregate(["user"], STATES), "user")], BY_USER, id="aggregate"),
        pytest.param(
            [(processors.accumulate(["user"], STATES), "local"), (processors.combine(["user"], STATES), "user")],
            BY_USER,
            id="two stages",
        ),
        pytest.param(
            [(processors.accumulate([], STATES), "local"), (processors.combine([], STATES), "one")],
            "SELECT count(*), CAST(sum(value) AS BIGINT), avg(value), count(DISTINCT value) FROM visits",
            id="two stages without keys",
        ),
        pytest.param(
            [
                (processors.filter_rows(lambda rows: pc.less(rows["id"], 0)), "local"),
                (processors.aggregate([], COUNTED), "one"),
            ],
            "SELECT 0",
            id="count of nothing",
        ),
        pytest.param(
            [
                (processors.accumulate(["user"], {"s": SPREAD}), "local"),
                (processors.combine(["user"], {"s": SPREAD}), "user"),
            ],
            "SELECT user, max(value) - min(value) FROM visits GROUP BY user",
            id="operation of one's own",
        ),
        pytest.param(
            [
                (processors.distinct("user", "value"), "local"),
                (processors.distinct("user", "value"), "user"),
                (processors.aggregate(["user"], COUNTED), "local"),
            ],
            "SELECT user, count(DISTINCT value) FROM visits GROUP BY user",
            id="distinct",
        ),
        pytest.param(
            [
                (processors.key_by({"key": lambda rows: pc.bit_wise_and(rows["value"], 7)}), "local"),
                (processors.aggregate(["key"], COUNTED), "key"),
            ],
            "SELECT value & 7, count(*) FROM visits GROUP BY ALL",
            id="key_by",
        ),
        pytest.param(
            [
                (
                    processors.flat_map_dicts(
                        lambda row: [{"x": row["value"]}] * (row["id"] % 3), pa.schema({"x": pa.int64()})
                    ),
                    "local",
                ),
                (processors.filter_dicts(lambda row: row["x"] > 50), "local"),
                (processors.map_dicts(lambda row: {"x": row["x"] % 10}, pa.schema({"x": pa.int64()})), "local"),
                (processors.aggregate(["x"], COUNTED), "x"),
            ],
            "SELECT value % 10, CAST(sum(id % 3) AS BIGINT) FROM visits WHERE value > 50 AND id % 3 > 0 GROUP BY ALL",
            id="functions over rows",
        ),
    ],
)
def test_in_a_job(conn: secateur.Connection, visits: str, stages: list[tuple[Any, str]], sql: str) -> None:
    assert sorted(rows_of(conn, job(*stages))) == sorted(conn.execute(sql).fetchall())


@pytest.mark.parametrize(
    ("stages", "sql"),
    [
        pytest.param(
            [(processors.sort(processors.desc("value"), "id"), "one")],
            "SELECT * FROM visits ORDER BY value DESC, id",
            id="sort",
        ),
        pytest.param(
            [(processors.top_n(7, "value", "id"), "local"), (processors.top_n(7, "value", "id"), "one")],
            "SELECT * FROM visits ORDER BY value, id LIMIT 7",
            id="top-n",
        ),
    ],
)
def test_in_order(conn: secateur.Connection, visits: str, stages: list[tuple[Any, str]], sql: str) -> None:
    assert rows_of(conn, job(*stages)) == conn.execute(sql).fetchall()


@pytest.mark.parametrize("how", ["inner", "left", "semi", "anti"])
def test_a_join_by_key(conn: secateur.Connection, visits: str, how: str) -> None:
    dag = secateur.DAG()
    dag.new_vertex("visits", table_source("visits"))
    dag.new_vertex("users", batch_source(USERS))
    dag.new_vertex("join", processors.hash_join({"user": "name"}, how, build_schema=USERS.schema), 2)
    dag.new_vertex("result", collect())
    dag.edge(from_("visits").to("join", 0).partitioned("user").distributed())
    dag.edge(from_("users").to("join", 1).partitioned("name").distributed().with_priority(-1))
    dag.edge(between("join", "result").all_to_one().distributed())
    city = dict(zip(USERS["name"].to_pylist(), USERS["city"].to_pylist(), strict=True))
    visits_rows = list(zip(*(column.to_pylist() for column in ROWS.columns), strict=True))
    expected = {
        "inner": [(*row, row[1], city[row[1]]) for row in visits_rows if row[1] in city],
        "left": [(*row, row[1] if row[1] in city else None, city.get(row[1])) for row in visits_rows],
        "semi": [row for row in visits_rows if row[1] in city],
        "anti": [row for row in visits_rows if row[1] not in city],
    }[how]
    assert sorted(rows_of(conn, dag)) == sorted(expected)


def test_sorted_where_the_rows_are_and_merged(cluster: Cluster, conn: secateur.Connection, visits: str) -> None:
    table = conn.table(visits)
    dag = secateur.DAG()
    members = [member.id for member in cluster.members()]
    dag.new_vertex("merge", processors.merge("value", "id", inputs=len(members)))
    dag.new_vertex("result", collect())
    for ordinal, member in enumerate(members):
        partitions = [partition for partition in range(13) if table.owner_of(partition) == member]
        dag.new_vertex(f"visits {member}", table_source(visits, partitions=partitions))
        dag.new_vertex(f"sort {member}", processors.sort("value", "id"))
        dag.edge(between(f"visits {member}", f"sort {member}"))
        dag.edge(from_(f"sort {member}").to("merge", ordinal).all_to_one().distributed())
    dag.edge(between("merge", "result").all_to_one().distributed())
    assert rows_of(conn, dag) == conn.execute("SELECT * FROM visits ORDER BY value, id").fetchall()


def test_a_union_of_two_scans(conn: secateur.Connection, visits: str) -> None:
    dag = secateur.DAG()
    dag.new_vertex("some", table_source(visits, keys=[{"id": 5}, {"id": 6}]))
    dag.new_vertex("others", table_source(visits, keys=[{"id": 6}, {"id": 7}], columns=["value", "user", "id"]))
    dag.new_vertex("union", processors.union(ROWS.schema))
    dag.new_vertex("distinct", processors.distinct("id"))
    dag.new_vertex("result", collect())
    dag.edge(from_("some").to("union", 0).distributed()).edge(from_("others").to("union", 1).distributed())
    dag.edge(between("union", "distinct").partitioned("id").distributed())
    dag.edge(between("distinct", "result").all_to_one().distributed())
    assert (
        sorted(rows_of(conn, dag)) == conn.execute("SELECT * FROM visits WHERE id IN (5, 6, 7) ORDER BY id").fetchall()
    )


def test_processors_without_functions_run_where_no_code_is_accepted() -> None:
    with secateur.start(members=2, runtime="embedded", allow_code=False) as cluster, cluster.connect() as conn:
        dag = secateur.DAG()
        dag.new_vertex("rows", batch_source(ROWS))
        dag.new_vertex("total", processors.aggregate(["user"], COUNTED))
        dag.new_vertex("top", processors.top_n(1, "user"))
        dag.new_vertex("result", collect())
        dag.edge(between("rows", "total").partitioned("user").distributed()).edge(
            between("total", "top").all_to_one().distributed()
        )
        dag.edge(between("top", "result").all_to_one().distributed())
        assert rows_of(conn, dag) == [("u0", sum(i % 37 == 0 for i in range(COUNT)))]
