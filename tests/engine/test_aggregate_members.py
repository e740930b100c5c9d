"""Aggregation in jobs on several members, beside DuckDB."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from secateur.connectors import batch_source, collect, table_source
from secateur.dag import DAG, between
from secateur.engine_limits import EngineLimits
from secateur.partitioning.tables import TableDef
from secateur.processors import (
    AggregateOperation,
    accumulate,
    aggregate,
    avg_of,
    combine,
    count_distinct_of,
    count_of,
    count_rows,
    map_batches,
    max_of,
    min_of,
    sum_of,
)
from secateur.testing import LocalCluster
from secateur.testing.verify import difference

TableOf = Callable[[pa.Table, str], TableDef]
RunTest = Callable[[Awaitable[Any]], Any]


def _add_values(state: list[float], rows: pa.RecordBatch) -> list[float]:
    return state + pc.drop_null(rows["v"]).to_pylist()


MEDIAN = AggregateOperation(
    create=list,
    accumulate=_add_values,
    combine=lambda one, other: one + other,
    state_type=pa.list_(pa.float64()),
    finish=lambda state: float(np.median(state)) if state else None,
    result_type=pa.float64(),
)


def random_rows(seed: int, count: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "id": pa.array(range(count)),
            "k": pa.array([None if x == 0 else f"key{x}" for x in rng.integers(0, 8, count)]),
            "j": pa.array(rng.integers(0, 3, count), pa.int16(), mask=rng.random(count) < 0.2),
            "i": pa.array(rng.integers(-(2**40), 2**40, count), mask=rng.random(count) < 0.2),
            "d": pa.array(rng.integers(-8, 8, count) / 4, mask=rng.random(count) < 0.2),
        }
    )


ORACLE = {
    "rows": (count_rows(), "count(*)"),
    "values": (count_of("i"), "count(i)"),
    "sum_i": (sum_of("i"), "CAST(sum(i) AS BIGINT)"),
    "sum_d": (sum_of("d"), "sum(d)"),
    "least": (min_of("i"), "min(i)"),
    "most": (max_of("d"), "max(d)"),
    "mean": (avg_of("i"), "CAST(sum(i) AS DOUBLE) / count(i)"),
    "kinds": (count_distinct_of("d"), "count(DISTINCT d)"),
}


@pytest.mark.parametrize("two_stages", [False, True], ids=["one stage", "two stages"])
@pytest.mark.parametrize("by", [["k"], ["k", "j"], []], ids=["one key", "two keys", "no key"])
@pytest.mark.parametrize("seed", range(2))
def test_in_a_job_on_three_members_as_duckdb_does(
    run: RunTest, table_of: TableOf, seed: int, by: list[str], two_stages: bool
) -> None:
    limits = EngineLimits(block_rows=64)
    rows = random_rows(seed, 700)
    aggregates = {name: made for name, (made, _) in ORACLE.items()}
    dag = DAG()
    dag.new_vertex("rows", table_source("rows"))
    last = "rows"
    if two_stages:
        dag.new_vertex("accumulate", accumulate(by, aggregates))
        dag.edge(between(last, "accumulate"))
        last = "accumulate"
    dag.new_vertex("aggregate", (combine if two_stages else aggregate)(by, aggregates), 2 if by else None)
    edge = between(last, "aggregate").distributed()
    dag.edge(edge.partitioned(*by) if by else edge.all_to_one())
    dag.new_vertex("result", collect())
    dag.edge(between("aggregate", "result").all_to_one().distributed())

    async def main() -> pa.Table:
        async with LocalCluster(3, limits=limits) as cluster:
            cluster.create_table(table_of(rows, "id"), rows)
            return (await cluster.run(dag)).table()

    connection = duckdb.connect()
    connection.register("rows", rows)
    selected = ", ".join([*by, *(f"{sql} AS {name}" for name, (_, sql) in ORACLE.items())])
    expected = connection.sql(
        f"SELECT {selected} FROM rows" + (f" GROUP BY {', '.join(by)}" if by else "")
    ).to_arrow_table()
    actual = run(main())
    assert actual.num_rows == expected.num_rows
    problem = difference(actual, expected.cast(actual.schema), ordered=False)
    assert problem is None, problem


@pytest.mark.parametrize("aggregates", [{"m": sum_of("v")}, {"m": MEDIAN}], ids=["kernel", "operation"])
@pytest.mark.parametrize("schema", [None, pa.schema({"k": pa.string(), "v": pa.float64()})], ids=["unknown", "known"])
def test_an_answer_without_rows_has_columns_when_the_schema_is_known(
    run: RunTest, aggregates: dict[str, Any], schema: pa.Schema | None
) -> None:
    dag = DAG()
    dag.new_vertex("rows", batch_source(pa.table({"k": pa.array([], pa.string()), "v": pa.array([], pa.float64())})))
    dag.new_vertex("nothing", map_batches(lambda batch: []))
    dag.new_vertex("first", accumulate(["k"], aggregates, schema=schema))
    dag.new_vertex("second", combine(["k"], aggregates, schema=schema))
    dag.new_vertex("result", collect())
    dag.edge(between("rows", "nothing")).edge(between("nothing", "first"))
    dag.edge(between("first", "second").partitioned("k").distributed()).edge(
        between("second", "result").all_to_one().distributed()
    )

    async def main() -> dict[str, pa.Table]:
        async with LocalCluster(2) as cluster:
            return dict((await cluster.run(dag)).tables)

    tables = run(main())
    if schema is None:
        assert tables == {"result": pa.table({})}
    else:
        assert tables["result"].schema.equals(pa.schema({"k": pa.string(), "m": pa.float64()}))
        assert tables["result"].num_rows == 0
