"""Graphs for people: a diagram of boxes and arrows, and its forms as Graphviz DOT, Mermaid and SVG."""

from secateur.drawing.diagram import Diagram, DiagramEdge, DiagramNode, abbreviated
from secateur.drawing.drawable import Drawable

__all__ = ["Diagram", "DiagramEdge", "DiagramNode", "Drawable", "abbreviated"]
