"""Graphs for people: a diagram of boxes and arrows, and its forms as Graphviz DOT, Mermaid and SVG."""

from __future__ import annotations

from secateur.drawing.diagram import Diagram, DiagramEdge, DiagramNode, abbreviated
from secateur.drawing.drawable import Drawable
from secateur.drawing.layered_svg import layered_svg
from secateur.drawing.quantity import byte_text, count_text, duration_text

__all__ = [
    "Diagram",
    "DiagramEdge",
    "DiagramNode",
    "Drawable",
    "abbreviated",
    "byte_text",
    "count_text",
    "duration_text",
    "layered_svg",
]
