"""Graphs for people: a diagram of boxes and arrows, and its forms as Graphviz DOT, Mermaid and SVG."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "diagram": ["Diagram", "DiagramEdge", "DiagramNode", "Drawable", "abbreviated", "dot", "mermaid"],
    "quantity": ["byte_text", "count_text", "duration_text"],
    "svg": ["layered_svg"],
}

__all__, __getattr__ = exports(__name__, _FILES)
