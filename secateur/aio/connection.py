"""A connection on an event loop, its jobs, and the changes of its tables."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from secateur.aio.cursor import AsyncCursor
from secateur.aio.event_loop import LoopWaits
from secateur.aio.proxy import Proxy, awaited
from secateur.aio.table import AsyncTableHandle
from secateur.client import changes
from secateur.client.changes import Position
from secateur.client.connect import open_session
from secateur.client.dbapi import connection
from secateur.client.dbapi.parameters import Parameters
from secateur.client.jobs import job
from secateur.client.jobs.job_status import JobStatus
from secateur.client.jobs.submittable import Submittable
from secateur.protocol.job_config import JobConfig
from secateur.wire import Tls


class AsyncJob(Proxy[job.Job]):
    """A job on record. As :class:`secateur.Job`, with methods that are awaited.

    To cancel the task that waits for it does not cancel the job.
    """

    @property
    def job_id(self) -> str:
        """Unique in the cluster."""
        return self._blocking.job_id

    async def status(self) -> JobStatus:
        """The status of the job."""
        return await self._waits.run(lambda: self._blocking.status)

    async def info(self) -> job.JobInfo:
        """The status of the job with attempt, coordinator and times."""
        return await self._waits.run(lambda: self._blocking.info)

    async def members_touched(self) -> list[str]:
        """Wait for the job and return the members of its successful attempt, by id; none after a failure."""
        return await self._waits.run(lambda: self._blocking.members_touched)

    result = awaited(job.Job.result)
    results = awaited(job.Job.results)
    metrics = awaited(job.Job.metrics)
    logs = awaited(job.Job.logs)
    plan = awaited(job.Job.plan)
    cancel = awaited(job.Job.cancel)


class AsyncChanges(Proxy[changes.Changes]):
    """The changes of the rows of a table, as batches of Arrow: ``async for batch in changes``.

    Made by :meth:`AsyncConnection.changes`; as :class:`secateur.client.changes.Changes`.
    """

    @property
    def position(self) -> changes.Position:
        """Behind the last batch."""
        return self._blocking.position

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        batch = await self._waits.run(next, self._blocking, None)
        if batch is None:
            raise StopAsyncIteration
        return batch


async def connect(
    address: str | None = None,
    token: str | None = None,
    timeout_s: float | None = None,
    connect_timeout_s: float | None = None,
    *,
    tls: Tls | None = None,
    autocommit_only: bool = False,
) -> AsyncConnection:
    """Connect to a cluster from a task.

    ::

        async with await secateur.aio.connect(address) as conn:
            cur = await conn.execute("SELECT * FROM orders WHERE customer_id = ?", ["C1"])
            async for row in cur: ...

    The arguments and errors are those of :func:`secateur.connect`.
    """
    waits = LoopWaits(asyncio.get_running_loop())
    session = await waits.run(
        open_session,
        *(address, token, timeout_s, connect_timeout_s),
        tls=tls,
        autocommit_only=autocommit_only,
        waits=waits,
    )
    return AsyncConnection(waits, connection.Connection(session))


class AsyncConnection(Proxy[connection.Connection]):
    """A connection to a cluster. Made by :func:`connect`; ``async with`` closes it.

    As :class:`secateur.Connection`, with methods that are awaited. The tasks of one event loop share it: each statement
    has a socket of its own while it runs, so none waits for another, and a pool is not needed.
    """

    @property
    def address(self) -> str:
        """``secateur://host:port`` of the cluster."""
        return self._blocking.address

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._blocking.closed

    @property
    def local_effects(self) -> bool:
        """As :attr:`secateur.Connection.local_effects`."""
        return self._blocking.local_effects

    @local_effects.setter
    def local_effects(self, value: bool) -> None:
        self._blocking.local_effects = value

    def cursor(self) -> AsyncCursor:
        """A new cursor."""
        return AsyncCursor(self._waits, self._blocking.cursor())

    async def execute(
        self,
        sql: str,
        params: Parameters = (),
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - as the blocking one has it, and the members hear of it
    ) -> AsyncCursor:
        """Execute one statement on a new cursor; see :meth:`secateur.Cursor.execute`."""
        return await self.cursor().execute(sql, params, timeout=timeout)

    async def executemany(self, sql: str, seq_of_params: Sequence[Parameters]) -> AsyncCursor:
        """Execute a statement on a new cursor, for many sets of parameters; see :meth:`secateur.Cursor.executemany`."""
        return await self.cursor().executemany(sql, seq_of_params)

    explain = awaited(connection.Connection.explain)
    plan = awaited(connection.Connection.plan)
    jobs = awaited(connection.Connection.jobs)
    register = awaited(connection.Connection.register)
    commit = awaited(connection.Connection.commit)
    rollback = awaited(connection.Connection.rollback)
    close = awaited(connection.Connection.close)

    async def submit(self, dag: Submittable, config: JobConfig | None = None, params: Parameters = ()) -> AsyncJob:
        """Run a DAG or a pipeline on the members that own the partitions it requires.

        See :meth:`secateur.Connection.submit`.
        """
        return AsyncJob(self._waits, await self._waits.run(self._blocking.submit, dag, config, params))

    async def new_job_if_absent(
        self, name: str, dag: Submittable, config: JobConfig | None = None, params: Parameters = ()
    ) -> AsyncJob:
        """Return the job of that name that has not ended, or start a new one.

        See :meth:`secateur.Connection.new_job_if_absent`.
        """
        return AsyncJob(self._waits, await self._waits.run(self._blocking.new_job_if_absent, name, dag, config, params))

    async def job(self, id_or_name: str) -> AsyncJob:
        """The job on record with that id, or else the newest of that name. See :meth:`secateur.Connection.job`."""
        return AsyncJob(self._waits, await self._waits.run(self._blocking.job, id_or_name))

    async def table(self, name: str) -> AsyncTableHandle:
        """One table, by name without regard to case. See :meth:`secateur.Connection.table`."""
        return AsyncTableHandle(self._waits, await self._waits.run(self._blocking.table, name))

    async def create_table(self, name: str, like: Any, **options: Any) -> AsyncTableHandle:
        """Create an empty table with the columns of a DataFrame, an Arrow table or schema, or another table.

        See :meth:`secateur.Connection.create_table`, whose options it takes.
        """
        return AsyncTableHandle(self._waits, await self._waits.run(self._blocking.create_table, name, like, **options))

    async def changes(self, table: str, since: Position | str | None = None, *, follow: bool = False) -> AsyncChanges:
        """The changes of the rows of a table, as batches of Arrow. See :meth:`secateur.Connection.changes`."""
        return AsyncChanges(self._waits, await self._waits.run(self._blocking.changes, table, since, follow=follow))

    def interrupt(self) -> None:
        """Cancel every statement of this connection that runs or is being read."""
        self._blocking.interrupt()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
