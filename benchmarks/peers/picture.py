"""The times of one client as a picture: a panel for each statement, a bar for each candidate, plain SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Final

from benchmarks.peers.summary import Cell

__all__ = ["latency_svg"]

_PANEL_WIDTH: Final = 420
_LABEL_WIDTH: Final = 150
_BAR_HEIGHT: Final = 16
_GAP: Final = 28
_COLUMNS: Final = 2
_OURS: Final = "secateur, Python"
_COLOURS: Final = {"echo": "#868e96", "empty Ray call": "#868e96", _OURS: "#0b7285"}
_OTHER: Final = "#adb5bd"
_STYLE: Final = "text{font:12px sans-serif;fill:#343a40}.title{font-size:14px;font-weight:bold}"


def latency_svg(cells: Sequence[Cell]) -> str:
    """Bars of p50 on a logarithmic scale that all panels share; the number at a bar is in microseconds."""
    one = [cell for cell in cells if cell.clients == 1 and cell.offered_per_s is None]
    statements = list(dict.fromkeys(cell.statement for cell in one))
    low, high = (math.log10(bound) for bound in _bounds([cell.p50_us for cell in one]))
    heights = [_GAP * 2 + _BAR_HEIGHT * sum(cell.statement == name for cell in one) for name in statements]
    row_heights = [max(heights[first : first + _COLUMNS]) for first in range(0, len(heights), _COLUMNS)]
    width, height = _COLUMNS * _PANEL_WIDTH + _GAP, sum(row_heights) + _GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<style>{_STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for number, name in enumerate(statements):
        left = _GAP + number % _COLUMNS * _PANEL_WIDTH
        top = _GAP + sum(row_heights[: number // _COLUMNS])
        parts.append(f'<text class="title" x="{left}" y="{top}">{escape(name)}: p50, us</text>')
        for place, cell in enumerate(cell for cell in one if cell.statement == name):
            share = (math.log10(cell.p50_us) - low) / (high - low)
            parts += _bar(cell, left, top + 10 + place * _BAR_HEIGHT, share)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _bar(cell: Cell, left: float, top: float, share: float) -> list[str]:
    length = max(1.0, share * (_PANEL_WIDTH - _LABEL_WIDTH - 90))
    colour, base = _COLOURS.get(cell.candidate, _OTHER), top + _BAR_HEIGHT - 5
    start = left + _LABEL_WIDTH
    return [
        f'<text x="{start - 6}" y="{base}" text-anchor="end">{escape(cell.candidate)}</text>',
        f'<rect x="{start}" y="{top}" width="{length:.1f}" height="{_BAR_HEIGHT - 3}" fill="{colour}"/>',
        f'<text x="{start + length + 5:.1f}" y="{base}">{cell.p50_us:,.0f}</text>',
    ]


def _bounds(values: Sequence[float]) -> tuple[float, float]:
    """Powers of ten around them, a factor of ten apart at least."""
    if not values:
        return 1.0, 10.0
    low = 10.0 ** math.floor(math.log10(max(min(values), 1.0)))
    return low, max(10.0 ** math.ceil(math.log10(max(values))), 10 * low)
