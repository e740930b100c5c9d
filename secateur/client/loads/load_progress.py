"""Shows the progress of a load in one line of the terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TextIO

_BLANK: Final = "\r\x1b[K"
"""Back to the start of the line, and erase it."""
_BAR_CHARS: Final = 30


@contextmanager
def progress_line(
    table: str, rows: int | None, show: bool | Callable[[int], None] | None
) -> Iterator[Callable[[int], None] | None]:
    """While open, show a load on ``sys.stderr``; the line is erased at its end.

    Args:
        table: The table.
        rows: How many rows there are; None if that is not known before the end.
        show: Whether to show it; or what is called with the rows sent so far, which is returned as it is.
    """
    if not isinstance(show, bool):
        yield show
        return
    if not show:
        yield None
        return
    line, begun_s = OneLine(sys.stderr), time.monotonic()

    def report(sent: int) -> None:
        rate = sent / max(time.monotonic() - begun_s, 1e-3)
        if rows:
            full = min(_BAR_CHARS * sent // rows, _BAR_CHARS)
            text = f"[{'#' * full:{_BAR_CHARS}}] {sent:,} of {rows:,} rows"
        else:
            text = f"{sent:,} rows"
        line.show(f"{table}: {text}, {rate:,.0f} rows/s")

    report(0)
    try:
        yield report
    finally:
        line.clear()


class OneLine:
    """A line of a terminal or a notebook: each text is written over the one before, and over what stood there."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_written = False

    def show(self, text: object) -> None:
        """Write a text in place of the one before."""
        self._is_written = True
        self._stream.write(f"{_BLANK}{text}")
        self._stream.flush()

    def clear(self) -> None:
        """Erase the line, if there is one."""
        if self._is_written:
            self._stream.write(_BLANK)
            self._stream.flush()
