"""EXPLAIN as a picture: the DAG, and above it what the text says of partitions and members."""

from __future__ import annotations

from secateur.client import Explain
from secateur.drawing import Diagram, DiagramEdge, DiagramNode

EXPLAINED = Explain(
    "execution: distributed on 2 of 3 members [m1, m2]\nscan orders: 2 of 16 partitions [p1, p4]\ndag:\n  scan x1 [m1,"
    " m2]\n  scan -> final: all-to-one",
    {
        "pruning": {"enabled": True},
        "dag": {
            "vertices": [
                {"name": "scan", "members": ["m1", "m2"], "local_parallelism": 1},
                {"name": "final", "members": ["m1"], "local_parallelism": 1},
            ],
            "edges": [{"from": "scan", "to": "final", "kind": "all-to-one", "distributed": True}],
        },
    },
)


def test_diagram() -> None:
    assert EXPLAINED.diagram() == Diagram(
        (DiagramNode("scan", ("m1 x1", "m2 x1"), "m1 x1\nm2 x1"), DiagramNode("final", ("m1 x1",), "m1 x1")),
        (DiagramEdge("scan", "final", ("all-to-one", "distributed"), is_bold=True),),
        ("execution: distributed on 2 of 3 members [m1, m2]", "scan orders: 2 of 16 partitions [p1, p4]"),
    )


def test_a_statement_without_a_dag_is_its_text() -> None:
    diagram = Explain("DDL reads no partition", {"dag": {"vertices": [], "edges": []}}).diagram()
    assert diagram == Diagram((), (), ("DDL reads no partition",))


def test_the_text_and_the_data_are_as_they_were() -> None:
    assert str(EXPLAINED) == EXPLAINED.to_text() == EXPLAINED.text
    data = EXPLAINED.to_dict()
    data["pruning"]["enabled"] = False
    assert EXPLAINED.to_dict()["pruning"] == {"enabled": True}
