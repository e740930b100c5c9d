"""The first page: what is wrong now, since when and why, and the last fifteen minutes of the cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from statistics import median
from typing import Any, Final
from urllib.parse import urlencode

from secateur.drawing.quantity import byte_text, count_text, duration_text
from secateur.server.dashboard.readings import Readings
from secateur.server.dashboard.templating import ARRIVALS, MEMBERS, missing_members

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


_HISTORY: Final = "SELECT * FROM secateur.history ORDER BY time, process"
_MISSING_COPIES: Final = (
    "SELECT table_name, count(*) AS partitions, count(*) FILTER (primary_member IS NULL) AS lost"
    " FROM secateur.partitions WHERE copies_missing > 0 GROUP BY 1 ORDER BY 3 DESC, 2 DESC, 1"
)
_SLOWEST: Final = (
    "SELECT * FROM secateur.newest_statements WHERE ended AND NOT system ORDER BY elapsed_ms DESC, id LIMIT 8"
)
_SLOWEST_WITHIN: Final = (
    "SELECT * FROM secateur.statements WHERE system IS NOT TRUE AND started < $2"
    " AND started + to_microseconds(CAST(1000 * elapsed_ms AS BIGINT)) >= $1 ORDER BY elapsed_ms DESC, id LIMIT 20"
)
"""Of all that members list, not only of the newest of each text; it is read for somebody who asks for a minute."""
_MARGIN: Final = timedelta(seconds=5)
"""Statements are counted every five seconds: those of a minute may have ended shortly before it."""
_FAILED: Final = (
    "SELECT * FROM secateur.newest_statements WHERE state = 'failed' AND NOT system ORDER BY started DESC, id LIMIT 1"
)
_EVENTS: Final = "SELECT * FROM secateur.events ORDER BY number DESC LIMIT 50"
_ENDED_BADLY: Final = "SELECT * FROM secateur.jobs WHERE status = 'failed' ORDER BY ended DESC LIMIT 5"
_ROUTINE: Final = frozenset({"copies_built", "primaries_moved", "rebalancing_started", "rebalancing_finished"})
_RECENT: Final = timedelta(minutes=15)
_MEMORY_SHARE: Final = 0.9
_SLOWER_FACTOR: Final = 4.0
"""A p99 that is so many times the usual one is told, and"""
_SLOWER_MS: Final = 2.0
"""only above this: less is noise."""
_STATEMENTS_MIN: Final = 20

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Alert:
    """Something that is wrong now.

    Attributes:
        what: A sentence.
        why: What is known of the cause; empty for nothing.
        since: Since when, in UTC; None if that is not known.
        link: The page that says more.
        is_bad: Whether rows or statements are lost, rather than at risk or late.
    """

    what: str
    why: str
    since: datetime | None
    link: str
    is_bad: bool


def minute_of(text: str, now: datetime) -> tuple[datetime, datetime] | None:
    """The bounds of the newest minute of this name, with a margin; None for a text that names none.

    Args:
        text: Such as ``12:34``.
        now: The time in UTC, without a zone.
    """
    try:
        time = datetime.strptime(text, "%H:%M").time()
    except ValueError:
        return None
    begin = datetime.combine(now, time)
    if begin > now:
        begin -= timedelta(days=1)
    return begin - _MARGIN, begin + timedelta(minutes=1) + _MARGIN


def overview_values(readings: Readings, at: str) -> dict[str, Any]:
    """Returns the values that the page shows.

    Args:
        readings: Of the cluster.
        at: The minute whose slowest statements are shown, such as ``12:34``; empty for those of the newest.

    Raises:
        Error: The cluster did not answer.
    """
    history, members, events = readings.rows(_HISTORY), readings.rows(MEMBERS), readings.rows(_EVENTS)
    of_cluster = [row for row in history if row["process"] == "cluster"]
    marks = [
        Mark(row["time"], f"{row['kind']} {row['member'] or ''}: {row['detail'] or '-'}")
        for row in events
        if row["kind"] not in _ROUTINE
    ]
    found = alerts(
        members,
        missing_members(readings.rows(ARRIVALS)),
        readings.rows(_MISSING_COPIES),
        of_cluster,
        readings.rows(_FAILED),
        readings.rows(_ENDED_BADLY),
        events,
    )
    within = minute_of(at, datetime.now(UTC).replace(tzinfo=None))
    return {
        "alerts": found,
        "charts": [draw_chart(title, of_cluster, series, marks) for title, series in _charts(history)],
        "processes": list(_processes(history)),
        "slowest": readings.rows(_SLOWEST) if within is None else readings.rows(_SLOWEST_WITHIN, within),
        "within": within,
        "at": at,
        "events": [row for row in events if row["kind"] not in _ROUTINE][:8],
    }


def alerts(
    members: Sequence[Row],
    missing: Sequence[Row],
    copies: Sequence[Row],
    history: Sequence[Row],
    failed: Sequence[Row],
    failed_jobs: Sequence[Row],
    events: Sequence[Row],
) -> list[Alert]:
    """Returns all that is wrong now, the worst first.

    Args:
        members: The rows of ``secateur.members``.
        missing: The events of lost members in whose place no other has come.
        copies: For each table with partitions that lack copies their number, and how many have no owner.
        history: The rows of the cluster in ``secateur.history``, the oldest first.
        failed: Statements that have failed, the newest first.
        failed_jobs: Jobs that have failed, the newest first.
        events: The newest events, the newest first.
    """
    found = [
        *_of_copies(copies, events),
        *_of_failures(history, failed),
        *_of_times(history),
        *_of_members(members, missing),
        *_of_jobs(failed_jobs, history),
    ]
    return sorted(found, key=lambda alert: not alert.is_bad)


def _of_copies(copies: Sequence[Row], events: Sequence[Row]) -> Iterator[Alert]:
    losses = [row for row in events if row["kind"] in ("member_lost", "copy_lost", "copies_lost")]
    why = f"{losses[0]['kind']} {losses[0]['member'] or ''}: {losses[0]['detail'] or '-'}" if losses else ""
    since = losses[0]["time"] if losses else None
    for row in copies:
        link = f"/partitions?{urlencode({'table': row['table_name']})}"
        if row["lost"]:
            lost = count_text(row["lost"], "partition")
            yield Alert(f"{lost} of {row['table_name']} cannot be read: no copy is left", why, since, link, True)
        else:
            lacking = count_text(row["partitions"], "partition")
            yield Alert(f"{lacking} of {row['table_name']}: copies are missing", why, since, link, False)


def _of_failures(history: Sequence[Row], newest: Sequence[Row]) -> Iterator[Alert]:
    failing = list(takewhile(lambda row: row["failed"], reversed(history)))
    if failing:
        failed, ended = sum(row["failed"] for row in failing), sum(row["statements"] for row in failing)
        what = f"{failed:,} of {ended:,} statements failed, {failing[0]['failed'] / failing[0]['seconds']:.1f} a second"
        one: Row = newest[0] if newest else {"statement": "", "error": "", "fingerprint": ""}
        link = f"/statements/{one['fingerprint'] or ''}"
        yield Alert(what, f"{one['statement']}\n{one['error']}".strip(), _began(failing[-1]), link, True)


def _of_times(history: Sequence[Row]) -> Iterator[Alert]:
    measured = [row for row in history if row["statements"] >= _STATEMENTS_MIN]
    if len(measured) < 3:
        return
    usual_ms = median(row["p99_ms"] for row in measured)
    slow = list(
        takewhile(
            lambda row: not row["statements"] or row["p99_ms"] > max(_SLOWER_FACTOR * usual_ms, _SLOWER_MS),
            reversed(history),
        )
    )
    slow = [row for row in slow if row["statements"]]
    if slow:
        now, usual = duration_text(slow[0]["p99_ms"] / 1e3), duration_text(usual_ms / 1e3)
        began = _began(slow[-1])
        yield Alert(f"statements are slow: p99 {now}, usually {usual}", "", began, f"/?at={began:%H:%M}#slowest", False)


def _of_members(members: Sequence[Row], missing: Sequence[Row]) -> Iterator[Alert]:
    for event in missing:
        yield Alert(
            f"member {event['member']} is lost, and no other has come in its place",
            event["detail"],
            event["time"],
            "/members",
            False,
        )
    for row in members:
        if row["state"] == "suspect":
            yield Alert(f"member {row['id']} does not answer", "", None, "/members", False)
        if row["memory_limit"] and row["memory_used"] > _MEMORY_SHARE * row["memory_limit"]:
            used, limit = byte_text(row["memory_used"]), byte_text(row["memory_limit"])
            what = f"member {row['id']} refuses rows soon: {used} of {limit} of its memory are taken"
            yield Alert(what, "", None, "/members", False)
        if row["waiting_statements"]:
            waiting = count_text(row["waiting_statements"], "statement")
            yield Alert(f"{waiting} wait for a turn at member {row['id']}", "", None, "/statements", False)


def _of_jobs(failed: Sequence[Row], history: Sequence[Row]) -> Iterator[Alert]:
    now = history[-1]["time"] if history else None
    for row in failed:
        if now is not None and row["ended"] is not None and now - row["ended"] < _RECENT:
            what = f"job {row['name'] or row['id']} has failed"
            yield Alert(what, row["reason"] or "", row["ended"], f"/jobs/{row['id']}", True)


def _began(row: Row) -> datetime:
    begun: datetime = row["time"] - timedelta(seconds=row["seconds"])
    return begun


def _charts(history: Sequence[Row]) -> Iterator[tuple[str, list[Series]]]:
    memory: dict[datetime, int] = {}
    for row in history:
        memory[row["time"]] = memory.get(row["time"], 0) + (row["memory_used"] or 0)
    yield "Statements/s", [Series("", lambda row: row["statements"] / row["seconds"], _rate)]
    percentiles = [Series("p99", lambda row: row["p99_ms"], _ms), Series("p50", lambda row: row["p50_ms"], _ms)]
    yield "p99 and p50", percentiles
    yield "Longest statement", [Series("", lambda row: row["max_ms"], _ms)]
    yield "Failures/s", [Series("", lambda row: row["failed"] / row["seconds"], _rate)]
    yield "Memory of tables and results", [Series("", lambda row: memory[row["time"]], byte_text)]


def _processes(history: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Each process, with the last fifteen minutes as pictures, which have the latest figures too."""
    by_process: dict[str, list[Row]] = {}
    for row in history:
        if row["process"] != "cluster":
            by_process.setdefault(row["process"], []).append(row)
    cpu = [Series("", lambda row: row["cpu_percent"], _percent)]
    resident = [Series("", lambda row: row["resident_bytes"], byte_text)]
    for name, rows in by_process.items():
        if rows[-1]["time"] == history[-1]["time"]:  # otherwise it is gone
            yield {
                "name": name,
                "memory_used": rows[-1]["memory_used"],
                "cpu": draw_chart("Processor time", rows, cpu, small=True),
                "resident": draw_chart("Resident memory", rows, resident, small=True),
            }


def _rate(value: float) -> str:
    return f"{value:,.0f}/s" if value >= 100 else f"{value:.1f}/s"


def _ms(value: float) -> str:
    return duration_text(value / 1e3)


def _percent(value: float) -> str:
    return f"{value:.0f} %"
