"""A cursor for a shell of Python, which shows its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from secateur.client.dbapi.cursor import Cursor
from secateur.client.dbapi.html_table import count_of, cut
from secateur.errors import DataError
from secateur.protocol.statements import ResultColumn

_CHARS_MAX: Final = 40


def text_table(columns: Sequence[ResultColumn], rows: Sequence[Sequence[Any]], left: int | None) -> str:
    """Lines with names, types and rows in columns; long values are cut, and line breaks in them escaped.

    Args:
        columns: Name and type of each.
        rows: Those to show.
        left: How many rows can still be fetched, including those shown; None if that is not known yet.
    """
    lines = [[column.name for column in columns], [column.type for column in columns], *rows]
    cells = [[cut(value, _CHARS_MAX).replace("\n", "\\n") for value in line] for line in lines]
    widths = [max(map(len, cell)) for cell in zip(*cells, strict=True)]
    names, types, *values = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in cells]
    rule = "  ".join("-" * width for width in widths)
    return "\n".join([names, types, rule, *values, count_of(len(rows), left)])


class ShownCursor(Cursor):
    """A cursor that is shown by its next rows, which stay to be fetched.

    Made by :meth:`Connection.sql <secateur.client.dbapi.connection.Connection.sql>`.
    """

    def __repr__(self) -> str:
        if self._closed or self._rows is None:
            return super().__repr__()
        try:
            return text_table(*self._shown(self._rows))
        except DataError as error:
            return f"{super().__repr__()}\n{error.message}"
