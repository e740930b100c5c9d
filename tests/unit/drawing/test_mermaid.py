"""Mermaid: names that hold its syntax, line ends and styles."""

from __future__ import annotations

from secateur.drawing import Diagram, DiagramEdge, DiagramNode, mermaid


def test_mermaid() -> None:
    diagram = Diagram(
        (DiagramNode("scan", ("m1 x2",)), DiagramNode('the "join"', is_faint=True), DiagramNode("a]-->b;\nc<d>")),
        (
            DiagramEdge("scan", 'the "join"', ("partitioned(k)", "distributed"), is_bold=True, is_dashed=True),
            DiagramEdge('the "join"', "a]-->b;\nc<d>", is_faint=True),
        ),
        ("on 1 of 2 members", "left out: m2"),
    )
    assert mermaid(diagram).splitlines() == [
        "flowchart TD",
        '  captions["on 1 of 2 members<br>left out: m2"]:::captions',
        "  classDef captions fill:none,stroke:none,text-align:left",
        "  classDef faint stroke:#b4bac0,color:#808890,stroke-dasharray:6 4",
        '  v0["scan<br>m1 x2"]',
        '  v1["the #34;join#34;"]:::faint',
        '  v2["a]--#62;b; c#60;d#62;"]',
        '  v0 ==>|"partitioned(k)<br>distributed"| v1',
        "  v1 --> v2",
        "  linkStyle 0 stroke-dasharray:6 4",
        "  linkStyle 1 stroke:#b4bac0,color:#808890",
    ]


def test_nothing_is_a_flowchart_too() -> None:
    assert mermaid(Diagram((), ())) == "flowchart TD"
