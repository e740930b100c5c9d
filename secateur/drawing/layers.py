"""Which layer each box stands in, and in which order the boxes of a layer stand.

Between two layers of boxes there is one of texts: the text of an arrow is a cell of the graph that is laid out, so that no two overlap, and nothing that passes
them. An arrow over several layers passes each through a cell of its own.

Source: Sugiyama, Tagawa and Toda, "Methods for Visual Understanding of Hierarchical System Structures" (1981): layers by longest path, then barycentres;
labels as cells as in Gansner et al., "A Technique for Drawing Directed Graphs" (1993), section 5.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from secateur.drawing.diagram import Diagram

__all__ = ["Cell", "Layered", "layered"]

_SWEEPS_MAX: Final = 8
_SWEEPS_MIN: Final = 2
_CELL_VISITS_MAX: Final = 20_000
"""Large graphs are swept less often: nobody counts their crossings."""


@dataclass(slots=True, eq=False)
class Cell:
    """A place in a layer.

    Attributes:
        box: Position of the box that stands here; None in what belongs to an arrow.
        arrow: Position of the arrow that passes here; None at a box.
        has_text: Whether the text of the arrow stands here.
        order: Position in its layer.
        above: The cells of the layer above that lead here.
        below: The cells of the layer below to which this leads.
    """

    box: int | None = None
    arrow: int | None = None
    has_text: bool = False
    order: int = 0
    above: list[Cell] = field(default_factory=list, repr=False)
    below: list[Cell] = field(default_factory=list, repr=False)


@dataclass(frozen=True, slots=True)
class Layered:
    """A diagram in layers.

    Attributes:
        layers: From top to bottom, each from left to right. Even ones have boxes, odd ones texts.
        paths: For each arrow, its cells from box to box.
    """

    layers: tuple[tuple[Cell, ...], ...]
    paths: tuple[tuple[Cell, ...], ...]


def layered(diagram: Diagram) -> Layered:
    """Put a diagram in layers with few crossings. The same diagram always gives the same layers."""
    position = {box.name: index for index, box in enumerate(diagram.boxes)}
    arrows = [(position[arrow.source], position[arrow.destination]) for arrow in diagram.arrows]
    ranks = _ranks(len(diagram.boxes), arrows)
    layers: list[list[Cell]] = [[] for _ in range(2 * max(ranks, default=-1) + 1)]
    boxes = [Cell(box=index) for index in range(len(ranks))]
    for cell, rank in zip(boxes, ranks, strict=True):
        layers[2 * rank].append(cell)
    paths = []
    for index, (source, destination) in enumerate(arrows):
        path = [boxes[source]]
        for layer in range(2 * ranks[source] + 1, 2 * ranks[destination]):
            path.append(Cell(arrow=index, has_text=layer == 2 * ranks[source] + 1))
            layers[layer].append(path[-1])
        path.append(boxes[destination])
        for upper, lower in pairwise(path):
            upper.below.append(lower)
            lower.above.append(upper)
        paths.append(tuple(path))
    _order(layers)
    return Layered(tuple(map(tuple, layers)), tuple(paths))


def _ranks(count: int, arrows: Sequence[tuple[int, int]]) -> list[int]:
    """The longest path from a source to each box; then what has no more inputs than outputs moves down to what it feeds, which makes no line longer in sum."""
    below: list[list[int]] = [[] for _ in range(count)]
    inputs = [0] * count
    for source, destination in arrows:
        below[source].append(destination)
        inputs[destination] += 1
    ranks = [0] * count
    for source in range(count):
        for destination in below[source]:
            ranks[destination] = max(ranks[destination], ranks[source] + 1)
    for source in reversed(range(count)):
        if inputs[source] <= len(below[source]) > 0:
            ranks[source] = min(ranks[destination] for destination in below[source]) - 1
    return ranks


def _order(layers: list[list[Cell]]) -> None:
    """Sweep down and up, and keep the best that was seen."""
    _number(layers)
    best, fewest = [list(layer) for layer in layers], _crossings(layers)
    cells = sum(map(len, layers))
    for sweep in range(max(_SWEEPS_MIN, min(_SWEEPS_MAX, _CELL_VISITS_MAX // max(cells, 1)))):
        if not fewest:
            break
        is_down = sweep % 2 == 0
        for layer in layers if is_down else reversed(layers):
            layer.sort(key=_barycentre_above if is_down else _barycentre_below)
            for order, cell in enumerate(layer):
                cell.order = order
        crossings = _crossings(layers)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    layers[:] = best
    _number(layers)


def _number(layers: Sequence[Sequence[Cell]]) -> None:
    for layer in layers:
        for order, cell in enumerate(layer):
            cell.order = order


def _barycentre_above(cell: Cell) -> float:
    return sum(other.order for other in cell.above) / len(cell.above) if cell.above else cell.order


def _barycentre_below(cell: Cell) -> float:
    return sum(other.order for other in cell.below) / len(cell.below) if cell.below else cell.order


def _crossings(layers: Sequence[Sequence[Cell]]) -> int:
    """The pairs of lines between neighbouring layers that cross: inversions, counted by insertion."""
    total = 0
    for layer in layers:
        ends: list[int] = []
        for cell in layer:
            for end in sorted(other.order for other in cell.below):
                total += len(ends) - bisect_right(ends, end)
                insort(ends, end)
    return total
