"""Graphs for the eye: a diagram of boxes and arrows, and what it becomes as DOT and SVG. Pure values, no I/O, no library."""

from secateur.drawing.diagram import Arrow, Box, Diagram
from secateur.drawing.drawable import Drawable

__all__ = ["Arrow", "Box", "Diagram", "Drawable"]
