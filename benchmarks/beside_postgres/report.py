"""The tables in Markdown, as the documentation has them, and the bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from benchmarks.beside_postgres.lines import LINES, Line
from benchmarks.record import Bar

__all__ = ["bars_of", "print_table"]

Figures = Mapping[tuple[str, str], Sequence[float]]
"""Of a line and a system, a figure of each round."""


def bars_of(times_us: Figures) -> dict[str, Bar]:
    """The bars by line; a line whose control is not here has none."""
    ratios = {line: _ratio(times_us, line) for line in LINES}
    return {
        line.name: Bar.at_most(f"{line.name} / {line.control}", ratio, line.bound)
        for line, ratio in ratios.items()
        if ratio is not None
    }


def print_table(title: str, figures: Figures, systems: Sequence[str], bars: Mapping[str, Bar]) -> None:
    """The median of each line and system, the ratio to the control, and the bar where there is one."""
    print(f"\n{title}:\n\n| | {' | '.join(systems)} | ratio | bar |\n{'|---' * (len(systems) + 3)}|")
    for line in LINES:
        cells = [f"{median(figures[key]):,.0f}" if (key := (line.name, one)) in figures else "" for one in systems]
        ratio, bar = _ratio(figures, line), bars.get(line.name)
        cells.append(f"{ratio:.2f} of {line.control}" if ratio is not None else "")
        cells.append(f"{bar.bound}: {'met' if bar.met else 'MISSED'}" if bar else "")
        if any(cells):
            print(f"| {line.name} | {' | '.join(cells)} |")


def _ratio(figures: Figures, line: Line) -> float | None:
    is_line = any(other.name == line.control for other in LINES)
    ours = figures.get((line.name, "secateur"))
    control = figures.get((line.control, "secateur") if is_line else (line.name, line.control))
    return median(ours) / median(control) if ours and control else None
