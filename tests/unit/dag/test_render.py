"""DAGs as text, plain data and diagrams."""

from __future__ import annotations

import json

import pytest

from secateur.dag import DAG, Edge, FrozenDAG, Processor, between, from_
from secateur.drawing import Diagram, DiagramEdge, DiagramNode, dot, mermaid


def sample() -> FrozenDAG:
    dag = DAG()
    dag.new_vertex("scan", Processor, 2)
    dag.new_vertex('the "join"', Processor)
    dag.new_vertex("small", Processor)
    dag.edge(from_("small").to('the "join"', 0).broadcast().distributed().with_priority(-1))
    dag.edge(from_("scan").to('the "join"', 1).partitioned("k").distribute_to("m2"))
    return dag.freeze()


def test_text() -> None:
    assert sample().to_text().splitlines() == [
        "scan x2",
        '  -> the "join" partitioned(k) distributed to m2',
        "small",
        '  -> the "join" broadcast distributed priority -1',
        'the "join"',
    ]


def test_diagram() -> None:
    assert sample().diagram() == Diagram(
        (DiagramNode("scan", ("x2",)), DiagramNode("small"), DiagramNode('the "join"')),
        (
            DiagramEdge(
                "scan",
                'the "join"',
                ("partitioned(k)", "distributed to m2"),
                "'scan'[0] -> 'the \"join\"'[1]",
                is_bold=True,
            ),
            DiagramEdge(
                "small",
                'the "join"',
                ("broadcast", "distributed", "priority -1"),
                "'small'[0] -> 'the \"join\"'[0]",
                is_bold=True,
            ),
        ),
    )


def test_edges_that_are_read_late_are_dashed() -> None:
    dag = DAG()
    dag.new_vertex("a", Processor)
    dag.new_vertex("b", Processor)
    dag.edge(between("a", "b").with_priority(1))
    (arrow,) = dag.diagram().arrows
    assert arrow.is_dashed


@pytest.mark.parametrize(
    ("edge", "words"),
    [
        pytest.param(between("a", "b"), ["unicast"], id="unicast"),
        pytest.param(between("a", "b").isolated(), ["isolated"], id="isolated"),
        pytest.param(between("a", "b").fan_out().distributed(), ["fan-out", "distributed"], id="fan-out"),
        pytest.param(between("a", "b").all_to_one().distributed(), ["all-to-one", "distributed"], id="all-to-one"),
        pytest.param(between("a", "b").all_to_one("total"), ["all-to-one(total)"], id="all-to-one-by-key"),
        pytest.param(
            between("a", "b").partitioned("k", "j").with_priority(2),
            ["partitioned(k, j)", "priority 2"],
            id="partitioned",
        ),
        pytest.param(
            between("a", "b").partitioned(table="t").distributed(),
            ["partitioned like t", "distributed"],
            id="partitioned like a table",
        ),
        pytest.param(
            between("a", "b").broadcast().distribute_to("m2"), ["broadcast", "distributed to m2"], id="to-one-member"
        ),
    ],
)
def test_edge_words(edge: Edge, words: list[str]) -> None:
    assert edge.words == words


def test_a_dag_can_be_shown_while_it_is_built() -> None:
    dag = DAG()
    dag.new_vertex("late", Processor)
    dag.new_vertex("early", Processor)
    dag.edge(from_("early", 1).to("late", 3))  # ordinals with gaps, which freeze() refuses
    assert dag.to_text().splitlines() == ["early", "  -> late unicast", "late"]
    assert dag.to_dot() == dot(dag.diagram())
    assert dag.to_mermaid() == mermaid(dag.diagram())
    assert json.loads(dag.to_json()) == dag.to_dict()
    dag.new_vertex("still open", Processor)


def test_nothing_can_be_shown_as_well() -> None:
    assert (DAG().to_text(), DAG().to_dict()) == ("", {"vertices": [], "edges": []})


def test_the_frozen_dag_looks_the_same() -> None:
    dag = DAG()
    dag.new_vertex("a", Processor, 2)
    before = (dag.to_text(), dag.to_json(), dag.to_dot(), dag.to_mermaid())
    frozen = dag.freeze()
    assert (frozen.to_text(), frozen.to_json(), frozen.to_dot(), frozen.to_mermaid()) == before


def test_dict_has_the_form_of_explain() -> None:
    assert sample().to_dict({"scan": (["m1", "m2"], 2), "small": (["m1"], 1)}) == {
        "vertices": [
            {"name": "scan", "members": ["m1", "m2"], "local_parallelism": 2},
            {"name": "small", "members": ["m1"], "local_parallelism": 1},
            {"name": 'the "join"', "members": [], "local_parallelism": 0},
        ],
        "edges": [
            {"from": "scan", "to": 'the "join"', "kind": "partitioned", "distributed": True},
            {"from": "small", "to": 'the "join"', "kind": "broadcast", "distributed": True},
        ],
    }


def test_dict_of_a_dag_that_is_not_placed_has_no_members() -> None:
    assert sample().to_dict()["vertices"][0] == {"name": "scan", "members": None, "local_parallelism": 2}
