"""What a pipeline becomes: vertices, edges, and errors that name the stage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from secateur.connectors import batch_source, collect, logger_sink
from secateur.dag import Edge, FrozenDAG, Processor
from secateur.errors import DagError
from secateur.pipeline import Pipeline, Stage
from secateur.processors import count_rows, desc, sum_of

ROWS = Pipeline().read_batches(pa.table({"a": [1, 2, 1], "x": [10, 20, 30]}))

OTHERS = Pipeline().read_rows([{"a": 1, "b": 1}])


def same(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


def edges(dag: FrozenDAG) -> list[str]:
    """Each edge as ``from -> to``, with what is not the default of an edge."""

    def words(edge: Edge) -> str:
        special = [
            word
            for word in (type(edge.routing).__name__, type(edge.reach).__name__)
            if word not in ("Unicast", "Local")
        ]
        return " ".join([f"{edge.source} -> {edge.destination}", *special, *(["first"] if edge.priority < 0 else [])])

    return [words(edge) for edge in dag.edges]


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        pytest.param(ROWS, ["read batches -> collect Distributed"], id="nothing"),
        pytest.param(
            ROWS.map(same).map(same, name="score").filter(lambda batch: batch["a"]).map(same),
            [
                "read batches -> map",
                "map -> score",
                "score -> filter",
                "filter -> map-2",
                "map-2 -> collect Distributed",
            ],
            id="stages-stay-on-their-member",
        ),
        pytest.param(
            ROWS.key_by("a").aggregate(n=count_rows(), name="by a"),
            ["read batches -> accumulate", "accumulate -> by a Partitioned Distributed", "by a -> collect Distributed"],
            id="aggregate-by-key",
        ),
        pytest.param(
            ROWS.aggregate(total=sum_of("x")),
            [
                "read batches -> accumulate",
                "accumulate -> combine AllToOne Distributed",
                "combine -> collect Distributed",
            ],
            id="aggregate",
        ),
        pytest.param(
            ROWS.key_by("a", half=lambda batch: batch["x"]).distinct(),
            [
                "read batches -> key by",
                "key by -> distinct here",
                "distinct here -> distinct Partitioned Distributed",
                "distinct -> collect Distributed",
            ],
            id="distinct-by-made-key",
        ),
        pytest.param(
            ROWS.sort("a"), ["read batches -> sort AllToOne Distributed", "sort -> collect Distributed"], id="sort"
        ),
        pytest.param(
            ROWS.sort("a", at_members=True),
            ["read batches -> sort here", "sort here -> sort AllToOne Distributed", "sort -> collect Distributed"],
            id="sort-at-members",
        ),
        pytest.param(
            ROWS.sort("a", limit=1),
            ["read batches -> top n here", "top n here -> top n AllToOne Distributed", "top n -> collect Distributed"],
            id="sort-limit",
        ),
        pytest.param(
            ROWS.rebalance().rebalance("a"),
            [
                "read batches -> rebalance Distributed",
                "rebalance -> rebalance-2 Partitioned Distributed",
                "rebalance-2 -> collect Distributed",
            ],
            id="rebalance",
        ),
        pytest.param(
            ROWS.hash_join(OTHERS, ["a"]),
            [
                "read batches -> hash join",
                "read rows -> hash join Broadcast Distributed first",
                "hash join -> collect Distributed",
            ],
            id="hash-join",
        ),
        pytest.param(
            ROWS.hash_join(OTHERS, {"a": "b"}, how="semi", partitioned=True),
            [
                "read batches -> hash join Partitioned Distributed",
                "read rows -> hash join Partitioned Distributed first",
                "hash join -> collect Distributed",
            ],
            id="hash-join-partitioned",
        ),
        pytest.param(
            ROWS.union(ROWS.map(same)),
            ["read batches -> map", "read batches -> union", "map -> union", "union -> collect Distributed"],
            id="one-stage-twice",
        ),
    ],
)
def test_the_edges(stage: Stage, expected: list[str]) -> None:
    assert edges(stage.write_to(collect()).to_dag()) == expected


def test_each_side_of_a_join_is_repartitioned_by_its_own_columns() -> None:
    dag = ROWS.hash_join(OTHERS, {"a": "b"}, partitioned=True).write_to(collect()).to_dag()
    assert [edge.routing.columns for edge in dag.inbound["hash join"]] == [("a",), ("b",)]


def test_one_stage_may_feed_several_sinks() -> None:
    mapped = ROWS.map(same)
    pipeline = mapped.write_to(collect(), name="rows").together(
        mapped.sort("a").write_to(collect()), mapped.write_to(logger_sink())
    )
    assert [vertex.name for vertex in pipeline.to_dag()] == ["read batches", "map", "rows", "sort", "write", "collect"]


def test_a_pipeline_goes_on_with_another_chain() -> None:
    pipeline = ROWS.write_to(logger_sink()).read_rows([{"y": 1}]).write_to(logger_sink())
    assert edges(pipeline.to_dag()) == ["read batches -> write", "read rows -> write-2"]


def test_a_union_keeps_the_chains_of_both() -> None:
    first = ROWS.write_to(logger_sink(), name="a").read_rows([{"a": 1, "x": 1}])
    second = ROWS.write_to(logger_sink(), name="b").read_rows([{"a": 2, "x": 2}])
    names = [vertex.name for vertex in first.union(second).write_to(collect()).to_dag()]
    assert names == ["read batches", "read rows", "read rows-2", "a", "b", "union", "collect"]


def test_processors_of_ones_own() -> None:
    stage = (
        Pipeline()
        .read_from(Processor, name="mine", local_parallelism=2)
        .apply(lambda: Processor, kind="yours", route=lambda edge: edge.broadcast())
    )
    dag = stage.write_to(Processor, name="end").to_dag()
    assert edges(dag) == ["mine -> yours Broadcast", "yours -> end"]
    assert [vertex.local_parallelism for vertex in dag] == [2, None, None]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda: Pipeline().to_dag(), "the pipeline has no sink", id="no-sink"),
        pytest.param(
            lambda: ROWS.sort(), r"stage 'sort' after 'read batches': sort\(\) is ordered by \[\]", id="sort-by-nothing"
        ),
        pytest.param(
            lambda: ROWS.map(same).sort("a", limit=-1),
            "stage 'top n here' after 'map': .* n must be at least 0",
            id="negative-limit",
        ),
        pytest.param(
            lambda: ROWS.sort(desc("a"), "a", name="mine"), "stage 'mine' after 'read batches': ", id="named-stage"
        ),
        pytest.param(
            lambda: ROWS.hash_join(OTHERS, []),
            r"stage 'hash join' after 'read batches' and 'read rows': hash_join\(\) joins on \[\]",
            id="join-on-nothing",
        ),
        pytest.param(
            lambda: ROWS.hash_join(OTHERS, "a", partitioned=True),
            "name at least one column, as a list",
            id="join-on-text",
        ),
        pytest.param(
            lambda: ROWS.hash_join(ROWS.map(same), ["a"]).write_to(collect()).to_dag(),
            "vertex 'hash join' reads .* would deadlock",
            id="join-with-itself",
        ),
        pytest.param(lambda: ROWS.key_by(), "stage 'key by' after 'read batches': the keys are none", id="no-key"),
        pytest.param(
            lambda: ROWS.key_by("a", "a"), "the keys are a, a; name at least one column, each once", id="key-twice"
        ),
        pytest.param(
            lambda: ROWS.key_by("a").aggregate(), "stage 'accumulate' after 'read batches': ", id="no-aggregate"
        ),
        pytest.param(
            lambda: ROWS.write_to(7), "stage 'write' after 'read batches': 7 makes no processors", id="no-processors"
        ),  # type: ignore[arg-type]
        pytest.param(
            lambda: Pipeline().read_table("t", keys=[], partitions=[]),
            "stage 'read t': .* give keys, where or partitions, not several",
            id="source",
        ),
        pytest.param(
            lambda: Pipeline().read_files("*"), "stage 'read files': .* the suffix does not say the format", id="files"
        ),
        pytest.param(
            lambda: ROWS.map(same, name="x").map(same, name="x").write_to(collect()).to_dag(),
            "two stages were named 'x'; names are unique",
            id="name-twice",
        ),
        pytest.param(
            lambda: (
                ROWS.map(same)
                .apply(lambda: Processor, name="p", route=lambda edge: edge.isolated().distributed())
                .write_to(collect())
                .to_dag()
            ),
            "stage 'p': edge 'map'.* is isolated and distributed",
            id="edge-that-cannot-be",
        ),
    ],
)
def test_what_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(DagError, match=message):
        make()


def test_stages_are_never_changed() -> None:
    start = Pipeline().read_from(batch_source(pa.table({"a": [1]})))
    ends = [start.map(same).write_to(collect()), start.sort("a").write_to(collect())]
    assert [[vertex.name for vertex in end.to_dag()] for end in ends] == [
        ["read", "map", "collect"],
        ["read", "sort", "collect"],
    ]
