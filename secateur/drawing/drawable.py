"""The base of everything that can be shown as text, data and graph."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any

from secateur.drawing import graphviz
from secateur.drawing.diagram import Diagram
from secateur.drawing.dot import dot
from secateur.drawing.mermaid import mermaid


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
        """A picture, drawn by Graphviz. Costs a process: about 20 ms.

        Raises:
            NotSupportedError: Graphviz is not installed.
        """
        return graphviz.svg(self.to_dot())

    def __str__(self) -> str:
        return self.to_text()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        forms = {"text/plain": self.to_text(), "text/vnd.mermaid": self.to_mermaid()}
        return forms | {"image/svg+xml": self.to_svg()} if graphviz.is_installed() else forms
