"""A diagram as a Mermaid flowchart, which GitHub, JupyterLab and most documentation tools draw."""

from __future__ import annotations

from typing import Final

from secateur.drawing.diagram import Diagram, DiagramEdge, DiagramNode

_FAINT: Final = "stroke:#b4bac0,color:#808890"
_DASHES: Final = "stroke-dasharray:6 4"
_ESCAPES: Final = {ord(char): f"#{ord(char)};" for char in '"#&<>`\\'} | {ord(char): " " for char in "\n\r\t"}


def mermaid(diagram: Diagram) -> str:
    """Return the diagram in Mermaid's language, from top to bottom; captions are nodes without a frame.

    Nodes are numbered, since a name may contain Mermaid's own syntax.
    """
    lines = ["flowchart TD"]
    if diagram.captions:
        lines += [
            f"  captions[{_quote(*diagram.captions)}]:::captions",
            "  classDef captions fill:none,stroke:none,text-align:left",
        ]
    if any(box.is_faint for box in diagram.boxes):
        lines.append(f"  classDef faint {_FAINT},{_DASHES}")
    numbers = {box.name: number for number, box in enumerate(diagram.boxes)}
    lines += [_node(number, box) for number, box in enumerate(diagram.boxes)]
    lines += [_link(numbers[arrow.source], numbers[arrow.destination], arrow) for arrow in diagram.arrows]
    for number, arrow in enumerate(diagram.arrows):
        styles = [style for style, on in ((_FAINT, arrow.is_faint), (_DASHES, arrow.is_dashed)) if on]
        if styles:
            lines.append(f"  linkStyle {number} {','.join(styles)}")
    return "\n".join(lines)


def _node(number: int, box: DiagramNode) -> str:
    return f"  v{number}[{_quote(box.name, *box.lines)}]{':::faint' if box.is_faint else ''}"


def _link(source: int, destination: int, arrow: DiagramEdge) -> str:
    label = f"|{_quote(*arrow.lines)}|" if arrow.lines else ""
    return f"  v{source} {'==>' if arrow.is_bold else '-->'}{label} v{destination}"


def _quote(*lines: str) -> str:
    """Quote some lines; characters that Mermaid or HTML would read as syntax become entities."""
    return '"' + "<br>".join(line.translate(_ESCAPES) for line in lines) + '"'
