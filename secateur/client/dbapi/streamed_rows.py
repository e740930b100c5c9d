"""A result whose rows arrive as they are read: the row side of a cursor for answers of many parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from secateur.client.dbapi.rows import Rows
from secateur.client.execution.result_stream import ResultStream
from secateur.protocol.statements import ResultColumn


class StreamedRows:
    """The interface of :class:`~secateur.client.dbapi.rows.Rows` over a result that is read part by part.

    One part is held at a time.

    Args:
        first: The part that is there.
        rest: The others.
        columns: The columns of the result.
    """

    def __init__(self, first: pa.Table, rest: ResultStream, columns: Sequence[ResultColumn]) -> None:
        self.columns = tuple(columns)
        self._part = Rows(first, columns)
        self._rest = rest
        self._before = 0

    @property
    def num_rows(self) -> int:
        """The number of rows; -1 while it is not known."""
        return self._before + self._part.num_rows if self._rest.is_done else -1

    @property
    def position(self) -> int:
        """Rows handed out so far."""
        return self._before + self._part.position

    @property
    def schema(self) -> pa.Schema:
        """The columns in Arrow."""
        return self._part.schema

    def take(self, count: int) -> list[tuple[Any, ...]]:
        """The next rows, at most ``count``; fewer only at the end."""
        rows = self._part.take(count)
        while len(rows) < count and self._turn():
            rows += self._part.take(count - len(rows))
        return rows

    def ahead(self, count: int) -> list[tuple[Any, ...]]:
        """The next rows of the part that is held, at most ``count``, which are not handed out by that."""
        return self._part.ahead(count)

    def take_all(self) -> list[tuple[Any, ...]]:
        """The rest."""
        return list(self.iterate())

    def iterate(self) -> Iterator[tuple[Any, ...]]:
        """The rest, a part at a time. Rows may be taken in between: it goes on behind them."""
        while True:
            part = self._part
            yield from part.iterate()
            if part is self._part and not self._turn():
                return

    def take_table(self) -> pa.Table:
        """Return the rest as one Arrow table, which is held as a whole."""
        return pa.concat_tables(list(self.tables()))

    def tables(self) -> Iterator[pa.Table]:
        """The rest as Arrow tables, a part at a time; at least one, were it without rows."""
        while True:
            yield self._part.take_table()
            if not self._turn():
                return

    def close(self) -> None:
        """Leave the rest: the members stop to make it."""
        self._rest.close()

    def _turn(self) -> bool:
        """Go on to the next part; False when there is none."""
        part = self._rest.next()
        if part is None:
            return False
        self._before += self._part.num_rows
        self._part = Rows(part, self.columns)
        return True
