"""The dialect for SQLAlchemy's asyncio extension, which runs its core in greenlets as ``secateur.aio`` runs calls."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Self

from sqlalchemy.engine.url import URL
from sqlalchemy.pool import AsyncAdaptedQueuePool, Pool
from sqlalchemy.util import await_only

from secateur.aio.event_loop import LoopWaits
from secateur.client.connect import open_session
from secateur.client.dbapi.connection import Connection
from secateur.client.dbapi.cursor import Cursor
from secateur.client.dbapi.parameters import Parameters
from secateur.client.dbapi.rows import Rows
from secateur.sqlalchemy_dialect.dialect import SecateurDialect, SecateurExecutionContext


async def _nothing() -> None:
    """What an execution awaits, whether it has waited for a member or not.

    Of one that has awaited nothing, SQLAlchemy says that its driver blocks; but the client answers ``SELECT 1`` itself,
    and an answer may be there before it is waited for.
    """


class _StreamingCursor(Cursor):
    """Its rows come as they are awaited: ``AsyncConnection.stream``."""

    def execute(self, operation: str, parameters: Parameters = (), *, timeout: float | None = None) -> Self:
        super().execute(operation, parameters, timeout=timeout)
        await_only(_nothing())
        return self

    def executemany(self, operation: str, seq_of_parameters: Sequence[Parameters]) -> Self:
        super().executemany(operation, seq_of_parameters)
        await_only(_nothing())
        return self

    async def _async_soft_close(self) -> None:
        """SQLAlchemy asks for it where it hands rows on that are here."""


class _WholeCursor(_StreamingCursor):
    """Its rows are all here after an execution, since SQLAlchemy fetches them outside of any greenlet."""

    def execute(self, operation: str, parameters: Parameters = (), *, timeout: float | None = None) -> Self:
        super().execute(operation, parameters, timeout=timeout)
        if self._rows is not None and self._rows.rest is not None:
            self._rows = Rows(self._rows.take_table(), self._rows.columns)
        return self


class _AioConnection(Connection):
    """A blocking connection with the waits of an event loop."""

    def cursor(self, *, is_streaming: bool = False) -> Cursor:
        self._session.check_open()
        return (_StreamingCursor if is_streaming else _WholeCursor)(self, self._session)


class _AioExecutionContext(SecateurExecutionContext):
    def create_server_side_cursor(self) -> Any:
        return self._dbapi_connection.cursor(is_streaming=True)


class SecateurAioDialect(SecateurDialect):
    """``secateur+aio://host:port/?token=...``, for ``create_async_engine``. Everything else is as without ``+aio``.

    The greenlet in which SQLAlchemy calls a connection stands still while that waits, and the event loop goes on.
    """

    driver = "aio"
    is_async = True
    supports_statement_cache = True
    execution_ctx_cls = _AioExecutionContext

    @classmethod
    def get_pool_class(cls, url: URL) -> type[Pool]:
        return AsyncAdaptedQueuePool

    def connect(self, *cargs: Any, **cparams: Any) -> Any:
        waits = LoopWaits(asyncio.get_running_loop())
        return _AioConnection(open_session(*cargs, **cparams, waits=waits))
