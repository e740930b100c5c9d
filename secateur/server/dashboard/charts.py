"""Small pictures of fifteen minutes: a bar for each period, as tall as its value, and a line for each event."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

_SPAN_S: Final = 900.0
_TICK_MINUTES: Final = 5
_SIZE: Final = (360, 72)
_SMALL: Final = (180, 24)


@dataclass(frozen=True, slots=True)
class Series:
    """One figure of each period.

    Attributes:
        name: Its name in the title of a bar; empty if the picture has no other.
        value: The figure of a row; None for none.
        text: Writes it with its unit.
    """

    name: str
    value: Callable[[Mapping[str, Any]], float | None]
    text: Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that has happened at a moment."""

    time: datetime
    title: str


@dataclass(frozen=True, slots=True)
class Period:
    """A part of a picture, from its top to its bottom.

    Attributes:
        x: Where it begins, in the units of the picture.
        width: In the same.
        title: Its figures in words.
        minute: The time of its end, as ``12:34``.
    """

    x: float
    width: float
    title: str
    minute: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture.

    Attributes:
        title: What it shows.
        width: In its own units, which are pixels where it is not scaled.
        height: As the width.
        shapes: The bars of each series, as the data of an SVG path; those of the last one cover those before.
        periods: They lie above all; none if the picture is small.
        marks: Where a line stands for an event, and its title.
        ticks: Where a time is written below, and the time.
        largest: The largest value that it shows, as text; empty for none.
        latest: The newest value, as text.
    """

    title: str
    width: int
    height: int
    shapes: Sequence[str]
    periods: Sequence[Period]
    marks: Sequence[tuple[float, str]]
    ticks: Sequence[tuple[float, str]]
    largest: str
    latest: str


def draw_chart(
    title: str,
    rows: Sequence[Mapping[str, Any]],
    series: Sequence[Series],
    marks: Sequence[Mark] = (),
    *,
    small: bool = False,
) -> Chart:
    """Draw the rows of one process in ``secateur.history``, the oldest first.

    Args:
        title: What it shows.
        rows: The periods.
        series: The figures; all have one scale, and the first one is told in words.
        marks: Events; those that are older than the picture are left out.
        small: Whether it is to be as tall as a line of text.
    """
    width, height = _SMALL if small else _SIZE
    if not rows:
        return Chart(title, width, height, (), (), (), (), "", "")
    end = rows[-1]["time"]
    largest = max((one.value(row) or 0 for row in rows for one in series), default=0)

    def x_of(time: datetime) -> float:
        return round(width * (1 - (end - time).total_seconds() / _SPAN_S), 2)

    shapes, periods = [""] * len(series), []
    for row in rows:
        right = x_of(row["time"])
        left = round(max(0.0, right - width * row["seconds"] / _SPAN_S), 2)
        wide = round(right - left, 2)
        words = []
        for number, one in enumerate(series):
            value = one.value(row)
            words.append(f"{one.name} {'-' if value is None else one.text(value)}".strip())
            if value:
                tall = round(max(1.0, height * value / largest), 2)
                shapes[number] += f"M{left:g} {height}h{wide:g}v{-tall:g}h{-wide:g}z"
        if not small:
            time = row["time"]
            periods.append(Period(left, wide, f"{time:%H:%M:%S} UTC: {', '.join(words)}", f"{time:%H:%M}"))
    begin = end - timedelta(seconds=_SPAN_S)
    first, newest = series[0], series[0].value(rows[-1])
    return Chart(
        title,
        width,
        height,
        shapes,
        periods,
        [(x_of(mark.time), f"{mark.time:%H:%M:%S} UTC: {mark.title}") for mark in marks if begin <= mark.time <= end],
        [] if small else [(x_of(tick), f"{tick:%H:%M}") for tick in _ticks(begin, end)],
        first.text(largest) if largest else "",
        "-" if newest is None else first.text(newest),
    )


def _ticks(begin: datetime, end: datetime) -> list[datetime]:
    step = timedelta(minutes=_TICK_MINUTES)
    first = begin.replace(minute=begin.minute - begin.minute % _TICK_MINUTES, second=0, microsecond=0) + step
    margin = timedelta(seconds=_SPAN_S / 25)  # a time at the edge would be cut off
    ticks = (first + number * step for number in range(int((end - first) / step) + 1))
    return [tick for tick in ticks if begin + margin < tick < end - margin]
