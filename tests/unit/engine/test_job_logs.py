"""The kept lines of jobs: which they are, what of them is dropped, and that other log records are left alone."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest

from secateur.engine.runtime import JobLogs, LogScope
from secateur.protocol import JobAttempt, JobLogLine

log = logging.getLogger("tests.job_logs")


class Unwritable:
    def __str__(self) -> str:
        raise RuntimeError("no text")


def line(text: str) -> JobLogLine:
    return JobLogLine(0.0, "INFO", "x", "v", 1, text)


def texts(logs: JobLogs, job: str = "j") -> list[str]:
    return [one.message for one in logs.lines(job).lines]


@pytest.fixture(autouse=True)
def heard(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.INFO):
        yield caplog


def test_what_is_logged_inside_is_kept_with_its_place(heard: pytest.LogCaptureFixture) -> None:
    logs = JobLogs()
    with LogScope(logs, JobAttempt("j", 3), "scan").entered():
        log.info("read %d rows of %s", 5, "t")
    log.info("not of a job")
    (kept,) = logs.lines("j").lines
    assert (kept.level, kept.logger, kept.vertex, kept.attempt, kept.message) == (
        "INFO",
        "tests.job_logs",
        "scan",
        3,
        "read 5 rows of t",
    )
    assert [record.getMessage() for record in heard.records] == ["read 5 rows of t", "not of a job"], "as without"


def test_lines_below_the_level_of_their_logger_are_not_kept() -> None:
    logs = JobLogs()
    with LogScope(logs, JobAttempt("j"), "scan").entered():
        log.debug("too low")
    assert texts(logs) == []


def test_an_exception_comes_with_its_traceback() -> None:
    logs = JobLogs()
    with LogScope(logs, JobAttempt("j"), "scan").entered():
        try:
            _ = 1 // 0
        except ZeroDivisionError:
            log.exception("it went wrong")
    (text,) = texts(logs)
    assert text.startswith("it went wrong\n")
    assert "_ = 1 // 0" in text
    assert "ZeroDivisionError" in text


def test_a_line_with_wrong_arguments_is_kept_as_it_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = JobLogs()
    quiet = logging.getLogger("tests.job_logs.quiet")
    monkeypatch.setattr(quiet, "propagate", False)  # the handlers of pytest would complain of the line
    quiet.addHandler(logging.NullHandler())
    with LogScope(logs, JobAttempt("j"), "scan").entered():
        quiet.warning("%d rows", "many")
        quiet.warning("%s", Unwritable())
    assert texts(logs) == ["%d rows", "%s"]


def test_a_text_that_utf_8_cannot_carry_is_escaped() -> None:
    logs = JobLogs()
    with LogScope(logs, JobAttempt("j"), "scan").entered():
        log.makeRecord(log.name, logging.INFO, __file__, 1, "half a pair: %s", ("\ud800",), None)  # heard by nobody
    assert texts(logs) == ["half a pair: \\ud800"]


def test_each_thread_has_its_own_place() -> None:
    logs = JobLogs()
    begun, go_on = threading.Event(), threading.Event()

    def work() -> None:
        with LogScope(logs, JobAttempt("other"), "v").entered():
            begun.set()
            go_on.wait(30)
            log.info("theirs")

    thread = threading.Thread(target=work)
    with LogScope(logs, JobAttempt("j"), "v").entered():
        thread.start()
        begun.wait(30)
        log.info("ours")
        go_on.set()
        thread.join()
    assert (texts(logs), texts(logs, "other")) == (["ours"], ["theirs"])


def test_the_newest_lines_of_a_job_are_dropped_and_counted() -> None:
    logs = JobLogs(lines_max=3, job_characters_max=1000)
    for number in range(5):
        logs.add("j", line(f"{number}"))
    assert texts(logs) == ["0", "1", "2"]
    assert logs.lines("j").dropped == 2


def test_a_job_is_bounded_by_its_characters_as_well() -> None:
    logs = JobLogs(job_characters_max=10)
    for text in ("12345", "123456", "12345", "1"):
        logs.add("j", line(text))
    assert texts(logs) == ["12345", "12345"]
    assert logs.lines("j").dropped == 2


def test_a_long_line_is_cut() -> None:
    logs = JobLogs()
    with LogScope(logs, JobAttempt("j"), "v").entered():
        log.info("x" * 10_000)
    (text,) = texts(logs)
    assert text == "x" * 4000 + "..."


@pytest.mark.parametrize(
    "bounds", [pytest.param({"jobs_max": 2}, id="jobs"), pytest.param({"characters_max": 8}, id="characters")]
)
def test_the_log_of_the_oldest_job_goes(bounds: dict[str, int]) -> None:
    logs = JobLogs(**bounds)
    for job in ("a", "b", "c"):
        logs.add(job, line("1234"))
    assert [texts(logs, job) for job in ("a", "b", "c")] == [[], ["1234"], ["1234"]]


def test_basic_config_still_works_and_warnings_nobody_handles_are_still_printed() -> None:
    JobLogs()
    assert not any(type(handler).__module__.startswith("secateur") for handler in logging.getLogger().handlers)
