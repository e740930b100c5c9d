"""Building a DAG: what is refused, when, and with which words."""

from __future__ import annotations

import pytest

from secateur.dag import DAG, Edge, Processor, Vertex, between, from_
from secateur.errors import DagError


def dag_of(*names: str) -> DAG:
    dag = DAG()
    for name in names:
        dag.new_vertex(name, Processor)
    return dag


def test_frozen_dag_lists_vertices_in_topological_order() -> None:
    dag = dag_of("sink", "middle", "source")
    dag.edge(between("middle", "sink")).edge(between("source", "middle"))
    assert [vertex.name for vertex in dag.freeze()] == ["source", "middle", "sink"]


def test_frozen_dag_indexes_edges_by_ordinal() -> None:
    dag = dag_of("a", "b", "c")
    dag.edge(from_("a", 1).to("c", 1)).edge(from_("a", 0).to("b")).edge(from_("b").to("c", 0))
    frozen = dag.freeze()
    assert [(e.source, e.source_ordinal, e.destination_ordinal) for e in frozen.inbound["c"]] == [
        ("b", 0, 0),
        ("a", 1, 1),
    ]
    assert [(e.destination, e.source_ordinal) for e in frozen.outbound["a"]] == [("b", 0), ("c", 1)]
    assert [(e.source, e.destination) for e in frozen.edges] == [("a", "b"), ("a", "c"), ("b", "c")]


def test_freeze_returns_one_value_and_ends_the_building() -> None:
    dag = dag_of("a", "b")
    frozen = dag.freeze()
    assert dag.freeze() is frozen
    assert frozen.freeze() is frozen
    with pytest.raises(DagError, match="frozen"):
        dag.new_vertex("c", Processor)
    with pytest.raises(DagError, match="frozen"):
        dag.edge(between("a", "b"))


@pytest.mark.parametrize(
    ("edge", "message"),
    [
        pytest.param(between("a", "x"), "'x', which is not in the DAG; it has 'a', 'b', 'c'", id="unknown destination"),
        pytest.param(between("x", "a"), "'x', which is not in the DAG", id="unknown source"),
        pytest.param(between("a", "c"), "output 0 of 'a' already feeds 'b'", id="source ordinal taken"),
        pytest.param(from_("a", 1).to("b", 0), "input 0 of 'b' is already fed by 'a'", id="destination ordinal taken"),
        pytest.param(from_("b", 1).to("a", 0), "closes a cycle", id="cycle of two"),
        pytest.param(from_("c").to("a"), "closes a cycle", id="cycle of three"),
    ],
)
def test_wrong_edges_are_refused_at_once(edge: Edge, message: str) -> None:
    dag = dag_of("a", "b", "c")
    dag.edge(between("a", "b")).edge(between("b", "c"))
    with pytest.raises(DagError) as caught:
        dag.edge(edge)
    assert message in str(caught.value)
    assert len(dag.freeze().edges) == 2


def test_vertex_names_are_unique() -> None:
    dag = dag_of("a")
    with pytest.raises(DagError, match="already has a vertex 'a'"):
        dag.vertex(Vertex.of("a", Processor))


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        pytest.param([from_("a", 1).to("c", 0)], "vertex 'a' has output ordinals [1]", id="output gap"),
        pytest.param([from_("a").to("c", 1)], "vertex 'c' has input ordinals [1]", id="input gap"),
        pytest.param(
            [from_("a").to("c", 0), from_("b").to("c", 2)],
            "vertex 'c' has input ordinals [0, 2]",
            id="gap in the middle",
        ),
    ],
)
def test_gaps_in_ordinals_are_refused_at_freeze_and_can_be_mended(edges: list[Edge], message: str) -> None:
    dag = dag_of("a", "b", "c")
    for edge in edges:
        dag.edge(edge)
    with pytest.raises(DagError) as caught:
        dag.freeze()
    assert message in str(caught.value)
    dag.new_vertex("d", Processor)  # still open


def test_an_empty_dag_is_refused() -> None:
    with pytest.raises(DagError, match="no vertex"):
        DAG().freeze()


def priorities(build: int, probe: int, *, shared: bool) -> DAG:
    dag = dag_of("left", "right", "work", "join")
    if shared:
        dag.edge(from_("left", 0).to("join", 0).with_priority(build)).edge(from_("left", 1).to("work", 0))
    else:
        dag.edge(from_("left", 0).to("join", 0).with_priority(build)).edge(from_("right", 0).to("work", 0))
    return dag.edge(from_("work").to("join", 1).with_priority(probe))


def test_priorities_with_a_shared_upstream_deadlock_and_are_refused() -> None:
    with pytest.raises(
        DagError,
        match=r"'join' reads 'left'\[0\] -> 'join'\[0\] before 'work'\[0\] -> 'join'\[1\], but both come from 'left'",
    ):
        priorities(0, 1, shared=True).freeze()


@pytest.mark.parametrize(
    "dag",
    [
        pytest.param(priorities(0, 1, shared=False), id="no shared upstream"),
        pytest.param(priorities(1, 1, shared=True), id="same priority"),
    ],
)
def test_priorities_that_cannot_deadlock_are_accepted(dag: DAG) -> None:
    dag.freeze()


@pytest.mark.parametrize(
    ("name", "source", "parallelism", "message"),
    [
        pytest.param("", Processor, None, "non-empty name", id="empty name"),
        pytest.param("a", Processor, 0, "at least 1", id="no processors"),
        pytest.param("a", 7, None, "7 makes no processors", id="no supplier"),
    ],
)
def test_wrong_vertices_are_refused(name: str, source: object, parallelism: int | None, message: str) -> None:
    with pytest.raises(DagError, match=message):
        Vertex.of(name, source, parallelism)  # type: ignore[arg-type]
