"""The start-up cost as a picture: time over the number of members, one panel a runtime, plain SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from benchmarks.engine.start_up import StartUp

__all__ = ["start_up_svg"]

_PANEL_WIDTH, _PANEL_HEIGHT, _MARGIN = 320, 220, 56
_COLOURS = {True: "#0b7285", False: "#c92a2a"}
_LABELS = {True: "on the owner of one key", False: "on every member"}
_STYLE = (
    "text{font:12px"
    " sans-serif;fill:#343a40}.title{font-size:14px;font-weight:bold}.axis{stroke:#868e96}.grid{stroke:#dee2e6}"
)


def start_up_svg(measured: Sequence[StartUp]) -> str:
    """Both curves of each runtime; the numbers of frames stand at the points."""
    runtimes = list(dict.fromkeys(entry.runtime for entry in measured))
    width, height = len(runtimes) * (_PANEL_WIDTH + _MARGIN) + _MARGIN, _PANEL_HEIGHT + 2 * _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<style>{_STYLE}</style>",
    ]
    parts.append(f'<rect width="{width}" height="{height}" fill="white"/>')
    for number, runtime in enumerate(runtimes):
        left = _MARGIN + number * (_PANEL_WIDTH + _MARGIN)
        parts += _panel(runtime, [entry for entry in measured if entry.runtime == runtime], left)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(title: str, entries: Sequence[StartUp], left: int) -> list[str]:
    top, bottom = _MARGIN, _MARGIN + _PANEL_HEIGHT
    most = _rounded_up(max(entry.p50_ms for entry in entries))
    sizes = sorted({entry.members for entry in entries})

    def x(members: int) -> float:
        return left + _PANEL_WIDTH * (math.log2(members) - math.log2(sizes[0])) / max(
            1e-9, math.log2(sizes[-1]) - math.log2(sizes[0])
        )

    def y(milliseconds: float) -> float:
        return bottom - _PANEL_HEIGHT * milliseconds / most

    parts = [_text(left, top - 30, f"{title}: ms of a job of two vertices", "title")]
    for share in (0, 0.25, 0.5, 0.75, 1):
        parts.append(
            f'<line class="grid" x1="{left}" x2="{left + _PANEL_WIDTH}" y1="{y(most * share):.1f}"'
            f' y2="{y(most * share):.1f}"/>'
        )
        parts.append(_text(left - 6, y(most * share) + 4, f"{most * share:g}", anchor="end"))
    parts.append(f'<line class="axis" x1="{left}" x2="{left + _PANEL_WIDTH}" y1="{bottom}" y2="{bottom}"/>')
    parts += [_text(x(size), bottom + 18, str(size), anchor="middle") for size in sizes]
    parts.append(_text(left + _PANEL_WIDTH / 2, bottom + 36, "members", anchor="middle"))
    for pruned in (False, True):
        curve = sorted((entry for entry in entries if entry.pruned is pruned), key=lambda entry: entry.members)
        colour = _COLOURS[pruned]
        points = " ".join(f"{x(entry.members):.1f},{y(entry.p50_ms):.1f}" for entry in curve)
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{points}"/>')
        for entry in curve:
            spread = f'<line stroke="{colour}" x1="{x(entry.members):.1f}" x2="{x(entry.members):.1f}"'
            parts.append(f'{spread} y1="{y(entry.low_ms):.1f}" y2="{max(top, y(entry.high_ms)):.1f}"/>')
            parts.append(f'<circle cx="{x(entry.members):.1f}" cy="{y(entry.p50_ms):.1f}" r="3.5" fill="{colour}"/>')
            parts.append(_text(x(entry.members), y(entry.p50_ms) - 8, f"{entry.frames:g}", anchor="middle"))
        legend = top - 12
        offset = left + (0 if pruned else _PANEL_WIDTH / 2)
        parts.append(f'<circle cx="{offset + 4:.1f}" cy="{legend - 4}" r="4" fill="{colour}"/>')
        parts.append(_text(offset + 12, legend, _LABELS[pruned]))
    return parts


def _rounded_up(value: float) -> float:
    """1, 2 or 5 times a power of ten."""
    power = 10 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value)


def _text(x: float, y: float, text: str, css: str = "", *, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{css}">{escape(text)}</text>'
