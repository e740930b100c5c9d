"""Keeps the log lines of the processors of jobs on one member: the first lines of each of the newest jobs.

A line belongs to a job if it was logged by a call that the engine made for it: of a supplier, a processor, or what a
processor has offloaded. Which call that is, a context variable says; so any logger will do, and no code of a job needs
to know of this.

Log records are noticed where Python makes them, not by a handler: a handler of the root logger would make
``logging.basicConfig()`` do nothing in the process of a user, and silence warnings that nobody else handles.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from secateur.engine.failure import users_traceback
from secateur.protocol.jobs import JobAttempt, JobLogLine, JobLogLines

_CHARACTERS_MAX: Final = 4000
_scope: Final[ContextVar[LogScope | None]] = ContextVar("secateur_job_log", default=None)
"""The vertex for which this thread or task works now; None outside of jobs."""


@dataclass(slots=True)
class _Log:
    lines: list[JobLogLine] = field(default_factory=list)
    characters: int = 0
    dropped: int = 0


class JobLogs:
    """The lines of the newest jobs, bounded for each of them and for all. Thread-safe.

    When a job has logged too much, its newest lines are dropped and counted: the first cause is worth more than the
    thousandth repetition. When there are too many jobs, the log of the oldest goes.

    Args:
        lines_max: Lines of one job.
        job_characters_max: Characters of one job.
        jobs_max: Jobs.
        characters_max: Characters of all jobs.
    """

    def __init__(
        self,
        *,
        lines_max: int = 1000,
        job_characters_max: int = 1 << 18,
        jobs_max: int = 256,
        characters_max: int = 1 << 24,
    ) -> None:
        _notice_records()
        self._lines_max = lines_max
        self._job_characters_max = job_characters_max
        self._jobs_max = jobs_max
        self._characters_max = characters_max
        self._characters = 0
        self._logs: OrderedDict[str, _Log] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, job: str, line: JobLogLine) -> None:
        """Keep a line of a job, or count it."""
        size = len(line.message)
        with self._lock:
            log = self._logs.get(job)
            if log is None:
                log = self._logs[job] = _Log()
            if len(log.lines) >= self._lines_max or log.characters + size > self._job_characters_max:
                log.dropped += 1
                return
            log.lines.append(line)
            log.characters += size
            self._characters += size
            while len(self._logs) > 1 and (len(self._logs) > self._jobs_max or self._characters > self._characters_max):
                _, oldest = self._logs.popitem(last=False)
                self._characters -= oldest.characters

    def lines(self, job: str) -> JobLogLines:
        """The lines of a job, in the order in which they came; none of a job that is not known here."""
        with self._lock:
            log = self._logs.get(job)
            return JobLogLines([], 0) if log is None else JobLogLines(list(log.lines), log.dropped)


class LogScope:
    """The log of one vertex of an attempt of a job."""

    __slots__ = ("_logs", "_run", "_vertex")

    def __init__(self, logs: JobLogs, run: JobAttempt, vertex: str) -> None:
        self._logs = logs
        self._run = run
        self._vertex = vertex

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Add the lines that are logged inside to the log of this vertex. Costs about a microsecond."""
        token = _scope.set(self)
        try:
            yield
        finally:
            _scope.reset(token)

    def note_failure(self, doing: str, error: BaseException) -> None:
        """Keep why a call has failed."""
        text = f"{doing} failed: {type(error).__name__}: {error}\n{users_traceback(error)}"
        self._add(time.time(), "ERROR", "secateur.job", text)

    def note(self, record: logging.LogRecord) -> None:
        """Keep a record."""
        try:
            text = record.getMessage()
        except Exception:  # wrong arguments, of which handlers complain; whoever logs does not hear of them
            text = str(record.msg)
        if record.exc_info is not None and record.exc_info[1] is not None:
            text = f"{text}\n{users_traceback(record.exc_info[1])}"
        self._add(record.created, record.levelname, record.name, text)

    def _add(self, time_s: float, level: str, logger: str, text: str) -> None:
        shown = text if len(text) <= _CHARACTERS_MAX else f"{text[:_CHARACTERS_MAX]}..."
        shown = shown.encode(errors="backslashreplace").decode()  # half a surrogate pair does not travel
        self._logs.add(self._run.job, JobLogLine(time_s, level, logger, self._vertex, self._run.attempt, shown))


_noticing = threading.Lock()
_is_noticing = False


def _notice_records() -> None:
    """Have this process look at each log record that it makes; only the first call does anything."""
    global _is_noticing
    with _noticing:
        if _is_noticing:
            return
        _is_noticing = True
        make = logging.getLogRecordFactory()

    def noticed(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make(*args, **kwargs)
        scope = _scope.get()
        if scope is not None:
            scope.note(record)
        return record

    logging.setLogRecordFactory(noticed)
