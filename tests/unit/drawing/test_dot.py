"""Graphviz DOT: quotes, line ends and styles."""

from __future__ import annotations

from secateur.drawing import Diagram, DiagramEdge, DiagramNode, dot


def test_dot() -> None:
    diagram = Diagram(
        (DiagramNode("scan", ("m1 x2",)), DiagramNode('the "join"\\', is_faint=True), DiagramNode("two\nlines")),
        (
            DiagramEdge("scan", 'the "join"\\', ("partitioned(k)", "distributed"), is_bold=True, is_dashed=True),
            DiagramEdge('the "join"\\', "two\nlines", is_faint=True),
        ),
        ("on 1 of 2 members", "left out: m2"),
    )
    assert [line for line in dot(diagram).splitlines() if not line.startswith(("  node", "  edge", "  graph [bg"))] == [
        "digraph dag {",
        '  graph [labelloc="t", labeljust="l", label="on 1 of 2 members\\lleft out: m2\\l"];',
        '  "scan" [label="scan\\nm1 x2", tooltip="scan"];',
        (
            '  "the \\"join\\"\\\\" [label="the \\"join\\"\\\\", tooltip="the \\"join\\"\\\\", style="rounded,dashed",'
            ' color="#b4bac0", fontcolor="#808890"];'
        ),
        '  "two lines" [label="two lines", tooltip="two\\nlines"];',
        '  "scan" -> "the \\"join\\"\\\\" [label="partitioned(k)\\ndistributed", style="bold,dashed"];',
        '  "the \\"join\\"\\\\" -> "two lines" [label="", style="solid", color="#b4bac0", fontcolor="#808890"];',
        "}",
    ]
