"""The progress of a load, shown to the user while Spark's tasks send rows.

The driver has no part in a load, so it asks the cluster once a second: ``secateur.loads`` has the rows that the members
have. A load never fails because that cannot be asked or shown.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, TextIO, TypeAlias

from secateur.client.dbapi.connection import Connection
from secateur.connectors.spark.endpoint import Endpoint
from secateur.errors import Error

_PERIOD_S: Final = 1.0
_QUERY: Final = "SELECT state, rows, partitions FROM secateur.loads WHERE id = ?"
_BLANK: Final = "\r\x1b[K"
"""Back to the start of the line, and erase it: Spark's own bar may stand there."""


@dataclass(frozen=True, slots=True)
class ProgressReport:
    """A load on its way.

    Attributes:
        table: The table.
        rows: Rows that have arrived at members; those of failed tasks count as well.
        partitions: Partitions of the table that they are in.
        rows_per_s: Rows a second since the report before.
        seconds: Since the load began.
        is_publishing: Whether all rows have arrived, and members sort them.
    """

    table: str
    rows: int
    partitions: int
    rows_per_s: float
    seconds: float
    is_publishing: bool = False

    def __str__(self) -> str:
        placed = f"{self.table}: {self.rows:,} rows in {self.partitions:,} partitions"
        if self.is_publishing:
            return f"{placed} are being published, {self.seconds:.0f} s"
        return f"{placed}, {self.rows_per_s:,.0f} rows/s, {self.seconds:.0f} s"


ShowProgress: TypeAlias = bool | Callable[[ProgressReport], None] | None
"""Whether to show a load: None for where a person looks on, a function to be called with each report."""


@contextmanager
def progress_shown(endpoint: Endpoint, table: str, load_id: str, show: ShowProgress) -> Iterator[None]:
    """While open, report a load once a second.

    Args:
        endpoint: The cluster.
        table: The table, for the reports.
        load_id: The load.
        show: A function that gets the reports, in a thread of its own; True for a line on ``sys.stderr`` that is
            written over; None for that line in a terminal or a notebook, and otherwise nothing.
    """
    stream = sys.stderr
    if show is None:
        show = _is_watched(stream)
    if show is False:
        yield
        return
    report = _LineReport(stream) if show is True else show
    ended = threading.Event()
    follower = threading.Thread(
        target=_follow, args=(endpoint, table, load_id, report, ended), name="secateur-progress", daemon=True
    )
    follower.start()
    try:
        yield
    finally:
        ended.set()
        follower.join(_PERIOD_S)  # not for as long as a cluster that is out of reach may take
        if isinstance(report, _LineReport):
            report.clear()


class _LineReport:
    """Writes each report over the one before."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_written = False

    def __call__(self, progress: ProgressReport) -> None:
        self._stream.write(f"{_BLANK}{progress}")
        self._stream.flush()
        self._is_written = True

    def clear(self) -> None:
        if self._is_written:
            self._stream.write(_BLANK)
            self._stream.flush()


def _follow(
    endpoint: Endpoint,
    table: str,
    load_id: str,
    report: Callable[[ProgressReport], None],
    ended: threading.Event,
) -> None:
    began_s = before_s = time.monotonic()
    before = 0
    with suppress(Error), endpoint.session() as session, Connection(session) as connection:
        while not ended.wait(_PERIOD_S):
            found = connection.execute(_QUERY, [load_id]).fetchone()
            if found is None:  # no row has arrived yet
                continue
            state, rows, partitions = found
            now_s = time.monotonic()
            rate = max(0, rows - before) / (now_s - before_s)
            before, before_s = rows, now_s
            report(ProgressReport(table, rows, partitions, rate, now_s - began_s, state != "staged"))


def _is_watched(stream: TextIO) -> bool:
    """Whether a person looks on: in a terminal, or in a notebook, whose streams are no terminals."""
    with suppress(AttributeError, ValueError):  # a stream that was replaced, or is closed
        if stream.isatty():
            return True
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"
