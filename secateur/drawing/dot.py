"""A diagram as Graphviz DOT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from secateur.drawing.diagram import Diagram

# The background is transparent and lines are grey, so that the picture is legible on light and on dark pages.
_STYLE: Final = (
    '  graph [bgcolor="transparent", fontname="sans-serif", fontsize=11, fontcolor="#808890"];',
    (
        '  node [shape=box, style="rounded,filled", fillcolor="#e6f2ea", color="#3f7d5c", fontname="sans-serif",'
        " fontsize=11];"
    ),
    '  edge [color="#808890", fontcolor="#808890", fontname="sans-serif", fontsize=10];',
)
_FAINT: Final = ', color="#b4bac0", fontcolor="#808890"'


def dot(diagram: Diagram) -> str:
    """The diagram in the language of Graphviz; captions stand above it."""
    lines = ["digraph dag {", *_STYLE]
    if diagram.captions:
        lines.append(f'  graph [labelloc="t", labeljust="l", label={_left(diagram.captions)}];')
    for box in diagram.boxes:
        faint = f', style="rounded,dashed"{_FAINT}' if box.is_faint else ""
        tooltip = _tooltip(f"{box.name}\n{box.detail}" if box.detail else box.name)
        lines.append(f"  {_quote(box.name)} [label={_quote(*box.lines, heading=box.name)}{tooltip}{faint}];")
    for arrow in diagram.arrows:
        style = ",".join(word for word, on in (("bold", arrow.is_bold), ("dashed", arrow.is_dashed)) if on) or "solid"
        faint = _FAINT if arrow.is_faint else ""
        tooltip = _tooltip(arrow.detail) if arrow.detail else ""
        lines.append(
            f"  {_quote(arrow.source)} -> {_quote(arrow.destination)} [label={_quote(*arrow.lines)},"
            f' style="{style}"{tooltip}{faint}];'
        )
    return "\n".join([*lines, "}"])


def _quote(*lines: str, heading: str | None = None) -> str:
    r"""A quoted string of centred lines; ``\n`` between them is Graphviz's own."""
    return '"' + r"\n".join(map(_escape, lines if heading is None else (heading, *lines))) + '"'


def _tooltip(text: str) -> str:
    """An attribute that SVG shows when the pointer rests on the box or the arrow."""
    return f", tooltip={_quote(*text.splitlines())}"


def _left(lines: Sequence[str]) -> str:
    r"""A quoted string of lines that end with ``\l``, which puts each at the left."""
    return '"' + "".join(_escape(line) + r"\l" for line in lines) + '"'


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
