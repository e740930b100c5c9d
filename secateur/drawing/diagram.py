"""A diagram: boxes and arrows with their texts, without positions; as DOT, Mermaid and by Graphviz.

:class:`Drawable` is the base of everything that can be shown as text, data and graph.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from secateur.errors import NotSupportedError


@dataclass(frozen=True, slots=True)
class DiagramNode:
    """A node.

    Attributes:
        name: Unique in the diagram; its heading.
        lines: Texts below the heading.
        detail: The tooltip, shown with the full name; may have several lines.
        is_faint: Whether it represents something that is left out.
        is_failed: Whether it represents what has failed.
    """

    name: str
    lines: tuple[str, ...] = ()
    detail: str = ""
    is_faint: bool = False
    is_failed: bool = False


@dataclass(frozen=True, slots=True)
class DiagramEdge:
    """A connection.

    Attributes:
        source: Name of the box where it starts.
        destination: Name of the box where it ends.
        lines: Texts beside it.
        detail: The tooltip of its texts.
        is_bold: Whether it is drawn bold.
        is_dashed: Whether it is drawn dashed.
        is_faint: Whether it represents something that is left out.
    """

    source: str
    destination: str
    lines: tuple[str, ...] = ()
    detail: str = ""
    is_bold: bool = False
    is_dashed: bool = False
    is_faint: bool = False


@dataclass(frozen=True, slots=True)
class Diagram:
    """A graph without cycles.

    Attributes:
        boxes: In topological order: each after all that point to it.
        arrows: Between them; two boxes may have several.
        captions: Lines above the picture.
    """

    boxes: tuple[DiagramNode, ...]
    arrows: tuple[DiagramEdge, ...]
    captions: tuple[str, ...] = ()


def abbreviated(lines: Sequence[str], lines_max: int) -> tuple[str, ...]:
    """The lines; if there are more than ``lines_max``, the first of them and a last one that counts the rest."""
    return (
        tuple(lines) if len(lines) <= lines_max else (*lines[: lines_max - 1], f"and {len(lines) - lines_max + 1} more")
    )


_GRAPHVIZ: Final = "dot"
_GRAPHVIZ_S_MAX: Final = 30.0


class Drawable(ABC):
    """Text, JSON, DOT, Mermaid and SVG of one thing. Equal things give equal texts, to the byte.

    ``str()`` is the text. A notebook shows the picture: as SVG where Graphviz is installed, else JupyterLab draws the
    Mermaid text.
    """

    __slots__ = ()

    @abstractmethod
    def to_text(self) -> str:
        """Lines for people."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""

    @abstractmethod
    def diagram(self) -> Diagram:
        """Boxes and arrows, which the other forms draw."""

    def to_json(self) -> str:
        """:meth:`to_dict` as JSON, indented."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def to_dot(self) -> str:
        """Return a graph for Graphviz; texts that are shortened in it are complete in the tooltips."""
        return dot(self.diagram())

    def to_mermaid(self) -> str:
        """A flowchart for Mermaid: put it into a ``mermaid`` block of a Markdown file."""
        return mermaid(self.diagram())

    def to_svg(self) -> str:
        """A picture, drawn by Graphviz, as a document of its own. Costs a process: about 20 ms.

        Raises:
            NotSupportedError: Graphviz is not installed, or it takes longer than half a minute.
        """
        program = shutil.which(_GRAPHVIZ)
        if program is None:
            raise NotSupportedError(
                "to_svg() draws with Graphviz, whose program 'dot' is not on PATH: install it "
                "(Debian: apt-get install graphviz; macOS: brew install graphviz), "
                "or use to_mermaid(), which GitHub and JupyterLab draw by themselves"
            )
        drawn = self.to_dot().encode()
        try:
            done = subprocess.run(
                [program, "-Tsvg"], input=drawn, capture_output=True, check=True, timeout=_GRAPHVIZ_S_MAX
            )
        except subprocess.TimeoutExpired:
            raise NotSupportedError(
                f"Graphviz did not draw the graph within {_GRAPHVIZ_S_MAX:g} s: use to_dot() or to_mermaid()"
            ) from None
        return done.stdout.decode()

    def __str__(self) -> str:
        return self.to_text()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        forms = {"text/plain": self.to_text(), "text/vnd.mermaid": self.to_mermaid()}
        return forms | {"image/svg+xml": self.to_svg()} if shutil.which(_GRAPHVIZ) else forms


# The background is transparent and lines are grey, so that the picture is legible on light and on dark pages.
_DOT_STYLE: Final = (
    '  graph [bgcolor="transparent", fontname="sans-serif", fontsize=11, fontcolor="#808890"];',
    (
        '  node [shape=box, style="rounded,filled", fillcolor="#e6f2ea", color="#3f7d5c", fontname="sans-serif",'
        " fontsize=11];"
    ),
    '  edge [color="#808890", fontcolor="#808890", fontname="sans-serif", fontsize=10];',
)
_DOT_FAINT: Final = ', color="#b4bac0", fontcolor="#808890"'


def dot(diagram: Diagram) -> str:
    """The diagram in the language of Graphviz; captions stand above it."""
    lines = ["digraph dag {", *_DOT_STYLE]
    if diagram.captions:
        lines.append(f'  graph [labelloc="t", labeljust="l", label={_dot_left(diagram.captions)}];')
    for box in diagram.boxes:
        faint = f', style="rounded,dashed"{_DOT_FAINT}' if box.is_faint else ""
        tooltip = _dot_tooltip(f"{box.name}\n{box.detail}" if box.detail else box.name)
        lines.append(
            f"  {_quoted_for_dot(box.name)} [label={_quoted_for_dot(*box.lines, heading=box.name)}{tooltip}{faint}];"
        )
    for arrow in diagram.arrows:
        style = ",".join(word for word, on in (("bold", arrow.is_bold), ("dashed", arrow.is_dashed)) if on) or "solid"
        faint = _DOT_FAINT if arrow.is_faint else ""
        tooltip = _dot_tooltip(arrow.detail) if arrow.detail else ""
        lines.append(
            f"  {_quoted_for_dot(arrow.source)} -> {_quoted_for_dot(arrow.destination)}"
            f' [label={_quoted_for_dot(*arrow.lines)}, style="{style}"{tooltip}{faint}];'
        )
    return "\n".join([*lines, "}"])


def _quoted_for_dot(*lines: str, heading: str | None = None) -> str:
    r"""A quoted string of centred lines; ``\n`` between them is Graphviz's own."""
    return '"' + r"\n".join(map(_escaped_for_dot, lines if heading is None else (heading, *lines))) + '"'


def _dot_tooltip(text: str) -> str:
    """An attribute that SVG shows when the pointer rests on the box or the arrow."""
    return f", tooltip={_quoted_for_dot(*text.splitlines())}"


def _dot_left(lines: Sequence[str]) -> str:
    r"""A quoted string of lines that end with ``\l``, which puts each at the left."""
    return '"' + "".join(_escaped_for_dot(line) + r"\l" for line in lines) + '"'


def _escaped_for_dot(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")


_MERMAID_FAINT: Final = "stroke:#b4bac0,color:#808890"
_MERMAID_DASHES: Final = "stroke-dasharray:6 4"
_MERMAID_ESCAPES: Final = {ord(char): f"#{ord(char)};" for char in '"#&<>`\\'} | {ord(char): " " for char in "\n\r\t"}


def mermaid(diagram: Diagram) -> str:
    """The diagram as a flowchart of Mermaid, which GitHub, JupyterLab and most documentation tools draw.

    It goes from top to bottom; captions are nodes without a frame.
    Nodes are numbered, since a name may contain Mermaid's own syntax.
    """
    lines = ["flowchart TD"]
    if diagram.captions:
        lines += [
            f"  captions[{_quoted_for_mermaid(*diagram.captions)}]:::captions",
            "  classDef captions fill:none,stroke:none,text-align:left",
        ]
    if any(box.is_faint for box in diagram.boxes):
        lines.append(f"  classDef faint {_MERMAID_FAINT},{_MERMAID_DASHES}")
    numbers = {box.name: number for number, box in enumerate(diagram.boxes)}
    lines += [_mermaid_node(number, box) for number, box in enumerate(diagram.boxes)]
    lines += [_mermaid_link(numbers[arrow.source], numbers[arrow.destination], arrow) for arrow in diagram.arrows]
    for number, arrow in enumerate(diagram.arrows):
        styles = [style for style, on in ((_MERMAID_FAINT, arrow.is_faint), (_MERMAID_DASHES, arrow.is_dashed)) if on]
        if styles:
            lines.append(f"  linkStyle {number} {','.join(styles)}")
    return "\n".join(lines)


def _mermaid_node(number: int, box: DiagramNode) -> str:
    return f"  v{number}[{_quoted_for_mermaid(box.name, *box.lines)}]{':::faint' if box.is_faint else ''}"


def _mermaid_link(source: int, destination: int, arrow: DiagramEdge) -> str:
    label = f"|{_quoted_for_mermaid(*arrow.lines)}|" if arrow.lines else ""
    return f"  v{source} {'==>' if arrow.is_bold else '-->'}{label} v{destination}"


def _quoted_for_mermaid(*lines: str) -> str:
    """Quote some lines; characters that Mermaid or HTML would read as syntax become entities."""
    return '"' + "<br>".join(line.translate(_MERMAID_ESCAPES) for line in lines) + '"'
