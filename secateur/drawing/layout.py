"""Where everything of a diagram is drawn: frames of texts and the points of lines, in pixels, from top to bottom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from secateur.drawing.coordinates import centres
from secateur.drawing.diagram import Box, Diagram
from secateur.drawing.layers import Cell, layered
from secateur.drawing.text_fit import columns_of, fit, printable

__all__ = ["LINE_HEIGHT", "PAD", "Block", "Layout", "Line", "lay_out"]

LINE_HEIGHT: Final = 16
PAD: Final = 10
_COLUMN: Final = 7.25
"""Width of a character at 12 px in the widest of the fonts of fixed width that browsers have."""
_GAP: Final = 24
_RISE: Final = 26
_MARGIN: Final = 12
_BOX_WIDTH_MIN: Final = 60
_NAME_COLUMNS_MAX: Final = 32
_TEXT_COLUMNS_MAX: Final = 48


@dataclass(frozen=True, slots=True)
class Block:
    """Lines of text in a frame.

    Attributes:
        x: Left edge.
        y: Upper edge.
        width: Of the frame.
        height: Of the frame.
        lines: The texts as they fit.
    """

    x: float
    y: float
    width: float
    height: float
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """The way of an arrow.

    Attributes:
        points: Curved from the first to the second, straight to the third, curved to the fourth, and so on: straight through layers, curved between them.
    """

    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """A diagram with places.

    Attributes:
        width: Of the whole.
        height: Of the whole.
        caption: The captions; None when there are none.
        boxes: In the order of the diagram.
        labels: The texts of arrows, in the order of the diagram; None for one without.
        lines: In the order of the diagram.
    """

    width: float
    height: float
    caption: Block | None
    boxes: tuple[Block, ...]
    labels: tuple[Block | None, ...]
    lines: tuple[Line, ...]


def lay_out(diagram: Diagram) -> Layout:
    """Place a diagram. The same diagram is always placed the same way."""
    graph = layered(diagram)
    boxes = [_box_texts(box) for box in diagram.boxes]
    labels = [tuple(fit(printable(line), _TEXT_COLUMNS_MAX) for line in arrow.lines) for arrow in diagram.arrows]
    texts = {cell: _texts(cell, boxes, labels) for layer in graph.layers for cell in layer}
    widths = {cell: _width(cell, lines) for cell, lines in texts.items()}
    x = centres(graph.layers, widths, _GAP)
    caption = _caption(diagram.captions)
    frames: dict[Cell, Block] = {}
    right = max((x[cell] + widths[cell] / 2 for cell in x), default=0.0)
    left = _MARGIN + (max(caption.width - right, 0) / 2 if caption is not None else 0)
    top = float(_MARGIN if caption is None else caption.y + caption.height + _RISE)
    for layer in graph.layers:
        heights = [_height(cell, texts[cell]) for cell in layer]
        highest = max(heights)
        for cell, height in zip(layer, heights, strict=True):
            # What only passes is as high as the layer, so that it passes beside the boxes and not behind them.
            own = height if texts[cell] else highest
            frames[cell] = Block(left + x[cell] - widths[cell] / 2, top + (highest - own) / 2, widths[cell], own, texts[cell])
        top += highest + _RISE
    blocks = [*frames.values(), *([] if caption is None else [caption])]
    by_arrow = {cell.arrow: frame for cell, frame in frames.items() if cell.arrow is not None and frame.lines}
    by_box = {cell.box: frame for cell, frame in frames.items() if cell.box is not None}
    return Layout(
        width=max((block.x + block.width for block in blocks), default=0) + _MARGIN,
        height=max((block.y + block.height for block in blocks), default=0) + _MARGIN,
        caption=caption,
        boxes=tuple(by_box[index] for index in range(len(diagram.boxes))),
        labels=tuple(by_arrow.get(index) for index in range(len(diagram.arrows))),
        lines=tuple(_line(path, frames) for path in graph.paths),
    )


def _box_texts(box: Box) -> tuple[str, ...]:
    return (fit(printable(box.name), _NAME_COLUMNS_MAX), *(fit(printable(line), _TEXT_COLUMNS_MAX) for line in box.lines))


def _texts(cell: Cell, boxes: Sequence[tuple[str, ...]], labels: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    if cell.box is not None:
        return boxes[cell.box]
    return labels[cell.arrow] if cell.has_text and cell.arrow is not None else ()


def _width(cell: Cell, lines: Sequence[str]) -> float:
    text = max(map(columns_of, lines), default=0) * _COLUMN
    if cell.box is not None:
        return max(text + 2 * PAD, _BOX_WIDTH_MIN)
    return text + PAD if lines else 2.0


def _height(cell: Cell, lines: Sequence[str]) -> float:
    return len(lines) * LINE_HEIGHT + (PAD if cell.box is not None else 2 if lines else 0)


def _caption(captions: Sequence[str]) -> Block | None:
    if not captions:
        return None
    lines = tuple(map(printable, captions))
    return Block(_MARGIN, _MARGIN, max(map(columns_of, lines)) * _COLUMN + 2 * PAD, len(lines) * LINE_HEIGHT + PAD, lines)


def _line(path: Sequence[Cell], frames: dict[Cell, Block]) -> Line:
    first, last = frames[path[0]], frames[path[-1]]
    points = [(_port(path[0], path[0].below, path[1], frames), first.y + first.height)]
    for cell in path[1:-1]:
        frame = frames[cell]
        centre = frame.x + frame.width / 2
        points += [(centre, frame.y), (centre, frame.y + frame.height)]
    return Line((*points, (_port(path[-1], path[-1].above, path[-2], frames), last.y)))


def _port(cell: Cell, neighbours: Sequence[Cell], neighbour: Cell, frames: dict[Cell, Block]) -> float:
    """Where on the edge of a box a line begins or ends: the lines stand side by side, in the order of where they go."""
    position = sorted(other.order for other in neighbours).index(neighbour.order)
    return frames[cell].x + frames[cell].width * (position + 1) / (len(neighbours) + 1)
