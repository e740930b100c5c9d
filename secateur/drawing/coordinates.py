"""Where the cells of a layered diagram stand: each as near to its neighbours above and below as the others of its layer allow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from secateur.drawing.layers import Cell

__all__ = ["centres"]

_ROUNDS_MAX: Final = 24
_ROUNDS_MIN: Final = 2
_CELL_VISITS_MAX: Final = 8_000
_ARROW_WEIGHT: Final = 4.0
"""Lines that pass are kept straighter than boxes are kept in the middle."""


def centres(layers: Sequence[Sequence[Cell]], widths: Mapping[Cell, float], gap: float) -> dict[Cell, float]:
    """The horizontal centre of each cell; the least left edge is 0.

    Args:
        layers: From top to bottom, each from left to right.
        widths: Of each cell.
        gap: Least space between two cells of a layer.
    """
    x: dict[Cell, float] = {}
    for layer in layers:
        right = 0.0
        for cell in layer:
            x[cell] = right + widths[cell] / 2
            right += widths[cell] + gap
    rounds = max(_ROUNDS_MIN, min(_ROUNDS_MAX, _CELL_VISITS_MAX // max(len(x), 1)))
    for _ in range(rounds):
        for layer in layers:
            _settle(layer, x, widths, gap, lambda cell: cell.above)
        for layer in reversed(layers):
            _settle(layer, x, widths, gap, lambda cell: cell.below)
    for _ in range(rounds):
        for layer in layers:
            _settle(layer, x, widths, gap, lambda cell: [*cell.above, *cell.below])
    left = min((x[cell] - widths[cell] / 2 for cell in x), default=0.0)
    return {cell: centre - left for cell, centre in x.items()}


def _settle(layer: Sequence[Cell], x: dict[Cell, float], widths: Mapping[Cell, float], gap: float, neighbours: Callable[[Cell], Sequence[Cell]]) -> None:
    """Move the cells of a layer as near as possible to the mean of their neighbours, in squares, without changing their order or overlapping.

    With the widths of those to the left subtracted, that is isotonic regression, which pooling adjacent violators solves in one pass.

    Source: Ayer et al., "An Empirical Distribution Function for Sampling with Incomplete Information" (1955).
    """
    offsets = []
    offset = 0.0
    pools: list[tuple[float, float, int]] = []  # mean, weight, cells
    for index, cell in enumerate(layer):
        if index:
            offset += (widths[layer[index - 1]] + widths[cell]) / 2 + gap
        offsets.append(offset)
        near = neighbours(cell)
        wish = sum(x[other] for other in near) / len(near) if near else x[cell]
        mean, weight, size = wish - offset, 1.0 if cell.arrow is None else _ARROW_WEIGHT, 1
        while pools and pools[-1][0] > mean:
            other_mean, other_weight, other_size = pools.pop()
            mean = (mean * weight + other_mean * other_weight) / (weight + other_weight)
            weight += other_weight
            size += other_size
        pools.append((mean, weight, size))
    index = 0
    for mean, _, size in pools:
        for cell in layer[index : index + size]:
            x[cell] = mean + offsets[index]
            index += 1
