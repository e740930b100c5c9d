"""Which processor gets which rows, edge by edge, over several members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from secateur.connectors import batch_source, collect
from secateur.dag import DAG, Edge, between
from secateur.engine.processors import map_batches
from secateur.testing import LocalCluster
from small_jobs import Numbers, Place, pipeline

RunTest = Callable[[Any], Any]


def deliveries(
    run: RunTest, edge: Callable[[Edge], Edge], *, count: int = 12, sources: tuple[str, ...] = ("m1", "m2")
) -> list[dict[str, Any]]:
    async def main() -> list[dict[str, Any]]:
        async with LocalCluster(3) as cluster:
            result = await cluster.run(pipeline(Place(lambda: Numbers(count), *sources), edge))
            assert result.members_touched == tuple(sorted({"m1", *sources}))
            return result.table().to_pylist()

    return run(main())


def test_local_unicast_stays_on_the_member_and_deals_in_turn(run: RunTest) -> None:
    rows = deliveries(run, lambda e: e)
    assert all(row["made"].split(".")[0] == row["seen"].split(".")[0] for row in rows)
    assert Counter(row["seen"] for row in rows) == {"m1.0": 12, "m1.1": 12, "m2.0": 12, "m2.1": 12}


def test_isolated_pairs_processors(run: RunTest) -> None:
    rows = deliveries(run, lambda e: e.isolated())
    assert all(row["made"] == row["seen"] for row in rows)
    assert [row["x"] for row in rows if row["seen"] == "m2.1"] == list(range(12))


def test_distributed_unicast_delivers_each_batch_once(run: RunTest) -> None:
    rows = deliveries(run, lambda e: e.distributed())
    assert Counter(row["x"] for row in rows) == dict.fromkeys(range(12), 4)
    assert {row["seen"] for row in rows} == {"m1.0", "m1.1", "m2.0", "m2.1"}


def test_distributed_partitioned_brings_equal_keys_together(run: RunTest) -> None:
    rows = deliveries(run, lambda e: e.partitioned("x").distributed(), count=40)
    where: dict[int, set[str]] = {}
    for row in rows:
        where.setdefault(row["x"], set()).add(row["seen"])
    assert Counter(row["x"] for row in rows) == dict.fromkeys(range(40), 4)
    assert all(len(seen) == 1 for seen in where.values())
    assert {seen for places in where.values() for seen in places} == {"m1.0", "m1.1", "m2.0", "m2.1"}


def test_local_partitioned_brings_equal_keys_of_a_member_together(run: RunTest) -> None:
    rows = deliveries(run, lambda e: e.partitioned("x"), count=40)
    assert Counter((row["x"], row["seen"].split(".")[0]) for row in rows) == {
        (x, m): 2 for x in range(40) for m in ("m1", "m2")
    }
    assert len({(row["x"], row["seen"]) for row in rows}) == 80


def test_distributed_broadcast_reaches_every_processor(run: RunTest) -> None:
    rows = deliveries(run, lambda e: e.broadcast().distributed())
    assert Counter(row["seen"] for row in rows) == dict.fromkeys(["m1.0", "m1.1", "m2.0", "m2.1"], 48)


def test_distributed_fan_out_reaches_one_processor_of_each_member(run: RunTest) -> None:
    rows = deliveries(run, lambda e: e.fan_out().distributed())
    assert Counter((row["made"], row["x"], row["seen"].split(".")[0]) for row in rows) == {
        (f"{m}.{i}", x, to): 1 for m in ("m1", "m2") for i in range(2) for x in range(12) for to in ("m1", "m2")
    }


def test_all_to_one_meets_in_one_processor(run: RunTest) -> None:
    assert len({row["seen"] for row in deliveries(run, lambda e: e.all_to_one("k").distributed())}) == 1


def test_distribute_to_goes_there_and_nowhere_else(run: RunTest) -> None:
    rows = deliveries(run, lambda e: e.distribute_to("m2"))
    assert {row["seen"] for row in rows} == {"m2.0", "m2.1"}
    assert len(rows) == 48


def test_a_batch_without_rows_travels(run: RunTest) -> None:
    empty = pa.schema([("u", pa.uuid()), ("x", pa.int64())]).empty_table()
    dag = DAG()
    dag.new_vertex("source", batch_source(empty))
    dag.new_vertex("there", Place(lambda: map_batches(lambda b: b).get(1)[0], "m2"))
    dag.new_vertex("out", collect())
    dag.edge(between("source", "there").distributed()).edge(between("there", "out").distributed())

    async def main() -> pa.Schema:
        async with LocalCluster(2) as cluster:
            return (await cluster.run(dag)).table().schema

    assert run(main()) == empty.schema
