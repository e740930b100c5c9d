"""Which vertices are taken apart before a job is planned, and what the edges become."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from secateur import processors
from secateur.connectors import collect, iterable_source
from secateur.dag import DAG, Edge, Processor, between, from_
from secateur.engine.execution_plan import with_partial_aggregation
from secateur.processors import count_rows, sum_of

COUNTS = {"n": count_rows(), "s": sum_of("v")}
OWN = {
    "n": processors.AggregateOperation(lambda: 0, lambda state, rows: state + rows.num_rows, int.__add__, pa.int64())
}


def job(aggregation: object, *edges: Callable[[Edge], Edge], parallelism: int | None = None) -> DAG:
    """One source for each edge, all into one vertex ``total``, and the result."""
    dag = DAG()
    for number, _ in enumerate(edges):
        dag.new_vertex(f"rows{number}", iterable_source([{"k": 1, "v": 2}]))
    dag.new_vertex("total", aggregation, parallelism)  # type: ignore[arg-type]
    dag.new_vertex("out", collect())
    for number, shaped in enumerate(edges):
        dag.edge(shaped(from_(f"rows{number}").to("total", number)))
    dag.edge(between("total", "out").distributed())
    return dag


def by_key(edge: Edge) -> Edge:
    return edge.partitioned("k").distributed()


def to_one(edge: Edge) -> Edge:
    return edge.all_to_one("all").distributed()


@pytest.mark.parametrize(
    ("dag", "expected"),
    [
        pytest.param(
            job(processors.aggregate(["k"], COUNTS), by_key),
            [
                "rows0 -> total, first stage: Unicast, Local",
                "total, first stage -> total: Partitioned, Distributed",
                "total -> out: Unicast, Distributed",
            ],
            id="by a key",
        ),
        pytest.param(
            job(processors.aggregate([], COUNTS), to_one),
            [
                "rows0 -> total, first stage: Unicast, Local",
                "total, first stage -> total: AllToOne, Distributed",
                "total -> out: Unicast, Distributed",
            ],
            id="without a key",
        ),
        pytest.param(
            job(processors.aggregate(["k", "v"], COUNTS), by_key, by_key),
            [
                "rows0 -> total, first stage: Unicast, Local",
                "rows1 -> total, first stage 2: Unicast, Local",
                "total, first stage -> total: Partitioned, Distributed",
                "total, first stage 2 -> total: Partitioned, Distributed",
                "total -> out: Unicast, Distributed",
            ],
            id="two inputs, by a part of the key",
        ),
        pytest.param(
            job(processors.aggregate(["k"], COUNTS), lambda edge: edge.partitioned("k").distribute_to("m2")),
            [
                "rows0 -> total, first stage: Unicast, Local",
                "total, first stage -> total: Partitioned, DistributedTo",
                "total -> out: Unicast, Distributed",
            ],
            id="by a key, on one member",
        ),
    ],
)
def test_taken_apart(dag: DAG, expected: list[str]) -> None:
    made = with_partial_aggregation(dag.freeze())
    found = [
        f"{edge.source} -> {edge.destination}: {type(edge.routing).__name__}, {type(edge.reach).__name__}"
        for edge in made.edges
    ]
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize(
    "dag",
    [
        pytest.param(
            job(processors.aggregate(["k"], COUNTS), lambda edge: edge.partitioned("k")), id="rows stay on the member"
        ),
        pytest.param(
            job(processors.aggregate(["k"], COUNTS), lambda edge: edge.partitioned("v").distributed()),
            id="rows meet by what is no key",
        ),
        pytest.param(
            job(processors.aggregate(["k"], COUNTS), lambda edge: edge.partitioned("k", table="t").distributed()),
            id="rows follow a table",
        ),
        pytest.param(
            job(processors.aggregate(["k"], COUNTS), by_key, lambda edge: edge.distributed()),
            id="one of two inputs brings nothing together",
        ),
        pytest.param(job(processors.aggregate(["k"], OWN), by_key), id="operations of one's own"),
        pytest.param(job(processors.combine(["k"], COUNTS), by_key), id="a second stage"),
        pytest.param(job(processors.distinct(["k"]), by_key), id="no aggregation"),
        pytest.param(job(Processor, by_key), id="a processor of one's own"),
    ],
)
def test_left_in_one_piece(dag: DAG) -> None:
    frozen = dag.freeze()
    assert with_partial_aggregation(frozen) is frozen


def test_both_stages_are_as_parallel_as_the_vertex() -> None:
    made = with_partial_aggregation(job(processors.aggregate(["k"], COUNTS), by_key, parallelism=3).freeze())
    assert {vertex.name: vertex.local_parallelism for vertex in made.vertices if "total" in vertex.name} == {
        "total, first stage": 3,
        "total": 3,
    }


def test_a_name_that_is_taken() -> None:
    dag = DAG()
    dag.new_vertex("total, first stage", iterable_source([{"k": 1, "v": 2}]))
    dag.new_vertex("total", processors.aggregate(["k"], COUNTS))
    dag.edge(by_key(between("total, first stage", "total")))
    assert [vertex.name for vertex in with_partial_aggregation(dag.freeze()).vertices] == [
        "total, first stage",
        "total, first stage 2",
        "total",
    ]
