"""What the overview calls wrong, since when and why; and its pictures."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from secateur.server.dashboard import Mark, Period, Series, alerts, draw_chart, minute_of

NOON = datetime(2026, 3, 1, 12)
MEMBER = {"id": "m1", "state": "active", "memory_used": 10, "memory_limit": 100, "waiting_statements": 0}
LOST = {"kind": "member_lost", "member": "m2", "detail": "its process has ended", "time": NOON}


def history(*periods: tuple[int, int, float | None]) -> list[dict[str, Any]]:
    """Statements, failures and p99 of each period of five seconds; the last one ends at noon."""
    return [
        {
            "time": NOON - timedelta(seconds=5 * (len(periods) - 1 - number)),
            "seconds": 5.0,
            "statements": statements,
            "failed": failed,
            "p99_ms": p99_ms,
        }
        for number, (statements, failed, p99_ms) in enumerate(periods)
    ]


CALM = history(*[(100, 0, 1.0)] * 20)


def found(**changed: Any) -> list[tuple[str, str, datetime | None, str, bool]]:
    given = {"members": [MEMBER], "missing": [], "copies": [], "history": CALM, "failed": [], "failed_jobs": []}
    told = alerts(**{**given, "events": [], **changed})
    return [(one.what, one.why, one.since, one.link, one.is_bad) for one in told]


def test_the_link_to_a_table_has_its_whole_name() -> None:
    (alert,) = found(copies=[{"table_name": "R&D 50%", "partitions": 1, "lost": 0}])
    assert alert[3] == "/partitions?table=R%26D+50%25"


def test_a_cluster_without_trouble_has_none() -> None:
    assert found() == []
    assert found(history=[]) == []


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param(
            {"missing": [LOST]},
            ("member m2 is lost, and no other has come in its place", "its process has ended", NOON, "/members", False),
            id="a member that was not replaced",
        ),
        pytest.param(
            {"copies": [{"table_name": "t", "partitions": 3, "lost": 0}], "events": [LOST]},
            ("3 partitions of t: copies are missing", "member_lost m2: its process has ended", NOON,
             "/partitions?table=t", False),
            id="copies that are missing",
        ),
        pytest.param(
            {"copies": [{"table_name": "t", "partitions": 3, "lost": 1}], "events": [LOST]},
            ("1 partition of t cannot be read: no copy is left", "member_lost m2: its process has ended", NOON,
             "/partitions?table=t", True),
            id="a partition that is lost",
        ),
        pytest.param(
            {
                "history": history((100, 9, 1.0), (100, 0, 1.0), (100, 5, 1.0), (50, 10, 1.0)),
                "failed": [{"statement": "SELECT 1/x", "error": "division by zero\n at x", "fingerprint": "f1"}],
            },
            ("15 of 150 statements failed, 2.0 a second", "SELECT 1/x\ndivision by zero\n at x",
             NOON - timedelta(seconds=10), "/statements/f1", True),
            id="statements that fail, since the last period without",
        ),
        pytest.param(
            {"history": history(*[(100, 0, 1.0)] * 10, (100, 0, 9.0), (0, 0, None), (100, 0, 8.0))},
            ("statements are slow: p99 8.0 ms, usually 1.0 ms", "", NOON - timedelta(seconds=15),
             "/?at=11:59#slowest", False),
            id="statements that take longer than before",
        ),
        pytest.param(
            {"members": [{**MEMBER, "memory_used": 95}]},
            ("member m1 refuses rows soon: 95 B of 100 B of its memory are taken", "", None, "/members", False),
            id="memory",
        ),
        pytest.param(
            {"members": [{**MEMBER, "waiting_statements": 1}]},
            ("1 statement wait for a turn at member m1", "", None, "/statements", False),
            id="statements that wait",
        ),
        pytest.param(
            {"members": [{**MEMBER, "state": "suspect"}]},
            ("member m1 does not answer", "", None, "/members", False),
            id="a silent member",
        ),
        pytest.param(
            {"failed_jobs": [{"id": "j1", "name": "nightly", "reason": "boom", "ended": NOON - timedelta(minutes=14)}]},
            ("job nightly has failed", "boom", NOON - timedelta(minutes=14), "/jobs/j1", True),
            id="a job that has failed",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_says_since_when_and_why(changed: dict[str, Any], expected: tuple[Any, ...]) -> None:
    assert found(**changed) == [expected]


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"history": history((100, 5, 1.0), (100, 0, 1.0))}, id="failures that are over"),
        pytest.param({"history": history(*[(100, 0, 0.1)] * 10, (100, 0, 1.0))}, id="slow, yet below two milliseconds"),
        pytest.param({"history": history(*[(100, 0, 1.0)] * 10, (100, 0, 3.9))}, id="little slower"),
        pytest.param({"failed_jobs": [{"id": "j1", "ended": NOON - timedelta(minutes=16)}]}, id="an old failure"),
    ],
)
def test_what_is_over_or_usual_is_not_told(changed: dict[str, Any]) -> None:
    assert found(**changed) == []


def test_what_loses_rows_or_statements_comes_first() -> None:
    told = found(missing=[LOST], copies=[{"table_name": "t", "partitions": 3, "lost": 1}])
    assert [bad for *_, bad in told] == [True, False]


RATE = Series("rate", lambda row: row["statements"], lambda value: f"{value:.0f}/s")
FAILED = Series("failed", lambda row: row["failed"], str)


def test_a_picture_has_a_bar_and_a_title_for_each_period_and_a_line_for_each_event() -> None:
    marks = [Mark(NOON - timedelta(minutes=5), "m2 is lost"), Mark(NOON - timedelta(minutes=16), "too old")]
    chart = draw_chart("Statements", history((100, 0, 1.0), (50, 25, 1.0)), [RATE, FAILED], marks)
    assert (chart.largest, chart.latest, chart.width, chart.height) == ("100/s", "50/s", 360, 72)
    assert chart.shapes == ["M356 72h2v-72h-2zM358 72h2v-36h-2z", "M358 72h2v-18h-2z"]
    assert chart.periods == [
        Period(356.0, 2.0, "11:59:55 UTC: rate 100/s, failed 0", "11:59"),
        Period(358.0, 2.0, "12:00:00 UTC: rate 50/s, failed 25", "12:00"),
    ]
    assert chart.marks == [(240.0, "11:55:00 UTC: m2 is lost")]
    assert chart.ticks == [(120.0, "11:50"), (240.0, "11:55")]


def test_a_picture_of_nothing_is_empty() -> None:
    chart = draw_chart("Statements", [], [RATE])
    assert (chart.shapes, chart.periods, chart.marks, chart.largest, chart.latest) == ((), (), (), "", "")
    idle = draw_chart("Statements", history((0, 0, None)), [RATE], small=True)
    assert (idle.largest, idle.latest, idle.ticks, idle.shapes, idle.periods) == ("", "0/s", [], [""], [])


@pytest.mark.parametrize(
    ("text", "begin"),
    [("11:58", NOON - timedelta(minutes=2)), ("12:00", NOON), ("12:01", NOON - timedelta(hours=23, minutes=59))],
)
def test_a_minute_is_the_newest_of_its_name(text: str, begin: datetime) -> None:
    assert minute_of(text, NOON) == (begin - timedelta(seconds=5), begin + timedelta(seconds=65))


@pytest.mark.parametrize("text", ["", "noon", "25:00", "12:00:00"])
def test_a_text_that_is_no_minute_names_none(text: str) -> None:
    assert minute_of(text, NOON) is None
