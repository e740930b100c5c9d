"""The cursor of a connection on an event loop."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Sequence
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from secateur.aio.proxy import Proxy, awaited
from secateur.client.dbapi import cursor
from secateur.client.dbapi.parameters import Parameters
from secateur.client.dbapi.rows import Description
from secateur.client.dbapi.stats import QueryStats

P = ParamSpec("P")
R = TypeVar("R")


def _of_rows(
    method: Callable[Concatenate[cursor.Cursor, P], R],
) -> Callable[Concatenate[AsyncCursor, P], Coroutine[Any, Any, R]]:
    """A method that returns rows: at once where all of them are here."""

    @functools.wraps(method)
    async def run(self: AsyncCursor, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._blocking.rowcount >= 0:
            return method(self._blocking, *args, **kwargs)
        return await self._waits.run(method, self._blocking, *args, **kwargs)

    return run


class AsyncCursor(Proxy[cursor.Cursor]):
    """Executes statements and returns their results. Made by :meth:`AsyncConnection.cursor`; for one task at a time.

    As :class:`secateur.Cursor`, whose results it has. If the task of a call is cancelled, by itself or by
    :func:`asyncio.timeout`, the work ends on every member; a change may have been made by then.
    """

    @property
    def description(self) -> list[Description] | None:
        """As :attr:`secateur.Cursor.description`."""
        return self._blocking.description

    @property
    def rowcount(self) -> int:
        """As :attr:`secateur.Cursor.rowcount`."""
        return self._blocking.rowcount

    @property
    def rownumber(self) -> int | None:
        """The index of the next row in the result; None when there is no result."""
        return self._blocking.rownumber

    @property
    def stats(self) -> QueryStats | None:
        """The cost of the last SELECT, UPDATE or DELETE; None after anything else."""
        return self._blocking.stats

    @property
    def arraysize(self) -> int:
        """Rows that :meth:`fetchmany` fetches by default."""
        return self._blocking.arraysize

    @arraysize.setter
    def arraysize(self, value: int) -> None:
        self._blocking.arraysize = value

    async def execute(
        self,
        operation: str,
        parameters: Parameters = (),
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - as the blocking one has it, and the members hear of it
    ) -> Self:
        """Execute one statement, and return this cursor. See :meth:`secateur.Cursor.execute`."""
        await self._waits.run(self._blocking.execute, operation, parameters, timeout=timeout)
        return self

    async def executemany(self, operation: str, seq_of_parameters: Sequence[Parameters]) -> Self:
        """Execute a statement once for each set of parameters. See :meth:`secateur.Cursor.executemany`."""
        await self._waits.run(self._blocking.executemany, operation, seq_of_parameters)
        return self

    nextset = awaited(cursor.Cursor.nextset)
    fetchone = _of_rows(cursor.Cursor.fetchone)
    fetchmany = _of_rows(cursor.Cursor.fetchmany)
    fetchall = _of_rows(cursor.Cursor.fetchall)
    fetch_arrow_table = _of_rows(cursor.Cursor.fetch_arrow_table)
    arrow = _of_rows(cursor.Cursor.arrow)
    fetch_df = _of_rows(cursor.Cursor.fetch_df)
    df = _of_rows(cursor.Cursor.df)
    pl = _of_rows(cursor.Cursor.pl)

    def cancel(self) -> None:
        """Cancel the statement that this cursor executes or reads, from another task.

        See :meth:`secateur.Cursor.cancel`.
        """
        self._blocking.cancel()

    def close(self) -> None:
        """Drop the result; the cursor is of no further use."""
        self._blocking.close()

    def __aiter__(self) -> Self:
        iter(self._blocking)
        return self

    async def __anext__(self) -> tuple[Any, ...]:
        if self._blocking.rowcount >= 0:
            row = next(self._blocking, None)
        else:  # more of it is to come
            row = await self._waits.run(next, self._blocking, None)
        if row is None:
            raise StopAsyncIteration
        return row

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
