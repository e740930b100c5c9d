"""A diagram as Graphviz DOT."""

from __future__ import annotations

from collections.abc import Sequence

from secateur.drawing.diagram import Diagram

__all__ = ["dot"]


def dot(diagram: Diagram) -> str:
    """The diagram in the language of Graphviz; captions stand above it."""
    lines = ["digraph dag {", "  node [shape=box];"]
    if diagram.captions:
        lines.append(f'  graph [labelloc="t", labeljust="l", label={_left(diagram.captions)}];')
    for box in diagram.boxes:
        faint = ", style=dashed, color=gray, fontcolor=gray" if box.is_faint else ""
        lines.append(f"  {_quote(box.name)} [label={_quote(*box.lines, heading=box.name)}{faint}];")
    for arrow in diagram.arrows:
        style = ",".join(word for word, on in (("bold", arrow.is_bold), ("dashed", arrow.is_dashed)) if on) or "solid"
        faint = ", color=gray, fontcolor=gray" if arrow.is_faint else ""
        lines.append(f'  {_quote(arrow.source)} -> {_quote(arrow.destination)} [label={_quote(*arrow.lines)}, style="{style}"{faint}];')
    return "\n".join([*lines, "}"])


def _quote(*lines: str, heading: str | None = None) -> str:
    r"""A quoted string of centred lines; ``\n`` between them is Graphviz's own."""
    return '"' + r"\n".join(map(_escape, lines if heading is None else (heading, *lines))) + '"'


def _left(lines: Sequence[str]) -> str:
    r"""A quoted string of lines that end with ``\l``, which puts each at the left."""
    return '"' + "".join(_escape(line) + r"\l" for line in lines) + '"'


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
