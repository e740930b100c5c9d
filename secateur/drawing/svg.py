"""A diagram as SVG that stands by itself.

No style sheet and no script: inside of a page, they would reach beyond the picture. Every text stands on ground of its own, and lines are grey, so that the
picture reads on light and on dark pages alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final
from xml.sax.saxutils import escape

from secateur.drawing.diagram import Arrow, Box, Diagram
from secateur.drawing.layout import LINE_HEIGHT, PAD, Block, Line, lay_out
from secateur.drawing.text_fit import printable

__all__ = ["svg"]

_FONT: Final = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_BASELINE: Final = 12
_HEAD_LENGTH: Final = 9
_HEAD_WIDTH: Final = 9
_LINE_WIDTH: Final = 1.5
_BOLD_LINE_WIDTH: Final = 3
_LINE_COLOUR: Final = "#808890"
_FAINT_COLOUR: Final = "#b4bac0"


@dataclass(frozen=True, slots=True)
class _Ground:
    """The colours of what stands behind a text, and of the text."""

    fill: str
    stroke: str
    text: str


_BOX: Final = _Ground("#e6f2ea", "#3f7d5c", "#12261b")
_FAINT_BOX: Final = _Ground("#f1f1f0", _FAINT_COLOUR, "#62686e")
_TEXT: Final = _Ground("#f4f5f6", "none", "#33393f")


def svg(diagram: Diagram) -> str:
    """The diagram as SVG, from top to bottom. The same diagram always gives the same text."""
    layout = lay_out(diagram)
    width, height = _length(layout.width), _length(layout.height)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    parts = [f'{head} font-family="{_FONT}" font-size="12" text-anchor="middle">']
    if layout.caption is not None:
        parts.append(_block(layout.caption, _TEXT, "", is_centred=False))
    parts += [_line(arrow, line) for arrow, line in zip(diagram.arrows, layout.lines, strict=True)]
    for box, block in zip(diagram.boxes, layout.boxes, strict=True):
        parts.append(_block(block, _FAINT_BOX if box.is_faint else _BOX, _tooltip(box), has_heading=True))
    for arrow, label in zip(diagram.arrows, layout.labels, strict=True):
        if label is not None:
            parts.append(_block(label, _TEXT, arrow.detail or "\n".join(arrow.lines)))
    return "\n".join([*parts, "</svg>"])


def _tooltip(box: Box) -> str:
    return f"{box.name}\n{box.detail}" if box.detail else box.name


def _block(block: Block, ground: _Ground, tooltip: str, *, has_heading: bool = False, is_centred: bool = True) -> str:
    """A rectangle with lines on it, and a tooltip on both."""
    title = f"<title>{_xml(tooltip)}</title>" if tooltip else ""
    place = f'x="{_length(block.x)}" y="{_length(block.y)}" width="{_length(block.width)}" height="{_length(block.height)}"'
    anchor = "" if is_centred else ' text-anchor="start" xml:space="preserve"'
    x = _length(block.x + (block.width / 2 if is_centred else PAD))
    first = block.y + (block.height - len(block.lines) * LINE_HEIGHT) / 2 + _BASELINE
    texts = []
    for index, line in enumerate(block.lines):
        weight = ' font-weight="bold"' if has_heading and index == 0 else ""
        texts.append(f'<text x="{x}" y="{_length(first + index * LINE_HEIGHT)}"{weight}>{_xml(line)}</text>')
    return f'<g fill="{ground.text}"{anchor}>{title}<rect {place} rx="4" fill="{ground.fill}" stroke="{ground.stroke}"/>{"".join(texts)}</g>'


def _line(arrow: Arrow, line: Line) -> str:
    """The line with a head at its end."""
    *points, (end, tip) = line.points
    steps = [f"M{_point(*points[0])}"]
    for index, ((x0, y0), (x1, y1)) in enumerate(pairwise([*points, (end, tip - _HEAD_LENGTH)])):
        middle = (y0 + y1) / 2
        steps.append(f"L{_point(x1, y1)}" if index % 2 else f"C{_point(x0, middle)} {_point(x1, middle)} {_point(x1, y1)}")
    colour = _FAINT_COLOUR if arrow.is_faint else _LINE_COLOUR
    width = _BOLD_LINE_WIDTH if arrow.is_bold else _LINE_WIDTH
    dashes = ' stroke-dasharray="6 4"' if arrow.is_dashed else ""
    head = "L".join([_point(end - _HEAD_WIDTH / 2, tip - _HEAD_LENGTH), _point(end + _HEAD_WIDTH / 2, tip - _HEAD_LENGTH), _point(end, tip)])
    return f'<path d="{"".join(steps)}" fill="none" stroke="{colour}" stroke-width="{width}"{dashes}/><path d="M{head}Z" fill="{colour}"/>'


def _xml(text: str) -> str:
    return escape("\n".join(map(printable, text.split("\n"))))


def _point(x: float, y: float) -> str:
    return f"{_length(x)},{_length(y)}"


def _length(value: float) -> str:
    """To a tenth of a pixel, so that no two machines disagree about digits that nobody sees."""
    return f"{value:.1f}".removesuffix(".0")
