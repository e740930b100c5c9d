"""What can be shown in four forms; each class that can says what its text, its data and its diagram are."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any

from secateur.drawing.diagram import Diagram
from secateur.drawing.dot import dot
from secateur.drawing.svg import svg

__all__ = ["Drawable"]


class Drawable(ABC):
    """Text, data, DOT and SVG of one thing. Equal things give equal results, to the byte; ``str()`` is the text, a notebook shows the SVG."""

    __slots__ = ()

    @abstractmethod
    def to_text(self) -> str:
        """Lines for people."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""

    @abstractmethod
    def diagram(self) -> Diagram:
        """Boxes and arrows, which :meth:`to_dot` and :meth:`to_svg` draw."""

    def to_json(self) -> str:
        """:meth:`to_dict` as JSON, indented."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def to_dot(self) -> str:
        """A graph for Graphviz."""
        return dot(self.diagram())

    def to_svg(self) -> str:
        """A picture that stands by itself and reads on light and on dark ground; names that are too long are whole in the tooltip.

        Costs about 0.2 ms for each vertex.
        """
        return svg(self.diagram())

    def __str__(self) -> str:
        return self.to_text()

    def _repr_svg_(self) -> str:
        return self.to_svg()
