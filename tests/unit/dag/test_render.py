"""DAGs as text, DOT and plain data."""

from __future__ import annotations

from secateur.dag import DAG, FrozenDAG, Processor, between, from_
from secateur.dag.render import to_dict, to_dot, to_text


def sample() -> FrozenDAG:
    dag = DAG()
    dag.new_vertex("scan", Processor, 2)
    dag.new_vertex('the "join"', Processor)
    dag.new_vertex("small", Processor)
    dag.edge(from_("small").to('the "join"', 0).broadcast().distributed().with_priority(-1))
    dag.edge(from_("scan").to('the "join"', 1).partitioned("k").distribute_to("m2"))
    return dag.freeze()


def test_text() -> None:
    assert to_text(sample()).splitlines() == [
        "scan x2",
        '  -> the "join" partitioned(k) distributed to m2',
        "small",
        '  -> the "join" broadcast distributed priority -1',
        'the "join"',
    ]


def test_dot_escapes_names() -> None:
    assert to_dot(sample()).splitlines() == [
        "digraph dag {",
        "  rankdir=LR;",
        "  node [shape=box];",
        '  "scan";',
        '  "small";',
        '  "the \\"join\\"";',
        '  "scan" -> "the \\"join\\"" [label="partitioned(k) distributed to m2", style="bold"];',
        '  "small" -> "the \\"join\\"" [label="broadcast distributed priority -1", style="bold"];',
        "}",
    ]


def test_dot_draws_late_local_edges_dashed() -> None:
    dag = DAG()
    dag.new_vertex("a", Processor)
    dag.new_vertex("b", Processor)
    dag.edge(between("a", "b").with_priority(1))
    assert 'style="dashed"' in to_dot(dag.freeze())


def test_dict_has_the_form_of_explain() -> None:
    assert to_dict(sample(), {"scan": (["m1", "m2"], 2), "small": (["m1"], 1)}) == {
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
    assert to_dict(sample())["vertices"][0] == {"name": "scan", "members": None, "local_parallelism": 2}
