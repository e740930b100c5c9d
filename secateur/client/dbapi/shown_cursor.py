"""A cursor for a shell of Python, which shows its rows."""

from __future__ import annotations

from secateur.client.dbapi.cursor import Cursor
from secateur.client.dbapi.text_table import text_table
from secateur.errors import DataError


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
