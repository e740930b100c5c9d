"""The 99th percentiles of a few groups over time, as a picture in SVG, on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

__all__ = ["svg"]

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 900, 360, 60, 40, 30
_COLOURS: Final = ("#0b7285", "#5f3dc4", "#c92a2a")
_STYLE: Final = "text{font:12px sans-serif;fill:#343a40}.title{font-size:14px;font-weight:bold}"


def svg(title: str, lines: Mapping[str, Sequence[float | None]], events: Mapping[int, str]) -> str:
    """Draw lines.

    Args:
        title: Above the picture.
        lines: By name, a value in milliseconds for each second; None where there is none.
        events: What happened, by the second.
    """
    values = [value for line in lines.values() for value in line if value]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    seconds = max(len(line) for line in lines.values())

    def x(second: float) -> float:
        return _LEFT + second * (_WIDTH - _LEFT - 20) / max(1, seconds - 1)

    def y(value: float) -> float:
        return _TOP + (high - math.log10(value)) * (_HEIGHT - _TOP - _BOTTOM) / max(1, high - low)

    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
        f"<style>{_STYLE}</style>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text class="title" x="{_LEFT}" y="20">{escape(title)}</text>',
    ]
    for power in range(low, high + 1):
        at = y(10.0**power)
        parts.append(f'<path d="M{_LEFT},{at:.1f}H{_WIDTH - 20}" stroke="#e9ecef"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{10.0**power:g} ms</text>')
    for second, what in events.items():
        parts.append(f'<path d="M{x(second):.1f},{_TOP}V{_HEIGHT - _BOTTOM}" stroke="#868e96" stroke-dasharray="4"/>')
        parts.append(f'<text x="{x(second) + 4:.1f}" y="{_HEIGHT - 10}">{escape(what)}</text>')
    for number, (name, line) in enumerate(lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        points = " ".join(f"{x(second):.1f},{y(value):.1f}" for second, value in enumerate(line) if value)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(
            f'<text x="{_LEFT + 10 + number * 270}" y="{_TOP - 4}" style="fill:{colour}">{escape(name)}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"
