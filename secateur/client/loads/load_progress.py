"""Shows the progress of a load in one line of the terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TextIO

_BLANK: Final = "\r\x1b[K"
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
    line = _Line(table, rows, sys.stderr)
    line(0)
    try:
        yield line
    finally:
        line.clear()


class _Line:
    def __init__(self, table: str, rows: int | None, stream: TextIO) -> None:
        self._table = table
        self._rows = rows
        self._stream = stream
        self._begun_s = time.monotonic()

    def __call__(self, sent: int) -> None:
        rate = sent / max(time.monotonic() - self._begun_s, 1e-3)
        if self._rows:
            full = min(_BAR_CHARS * sent // self._rows, _BAR_CHARS)
            text = f"[{'#' * full:{_BAR_CHARS}}] {sent:,} of {self._rows:,} rows"
        else:
            text = f"{sent:,} rows"
        self._stream.write(f"{_BLANK}{self._table}: {text}, {rate:,.0f} rows/s")
        self._stream.flush()

    def clear(self) -> None:
        self._stream.write(_BLANK)
        self._stream.flush()
