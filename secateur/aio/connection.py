"""The client's objects on an event loop: a connection, its cursors, tables, jobs and changes, with methods to await.

Each is a :class:`Proxy` of the object that blocks.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

import pyarrow as pa

from secateur.aio.event_loop import LoopWaits
from secateur.client import changes
from secateur.client.changes import Position
from secateur.client.connect import open_session
from secateur.client.dbapi import connection, cursor
from secateur.client.dbapi.parameters import Parameters
from secateur.client.dbapi.rows import Description
from secateur.client.dbapi.stats import QueryStats
from secateur.client.jobs import job
from secateur.client.jobs.submittable import Submittable
from secateur.client.loads import table_handle
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.tables.table import Column
from secateur.protocol.job_description import JobConfig
from secateur.protocol.jobs import JobInfo, JobStatus
from secateur.wire import Tls

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Proxy(Generic[T]):
    """An object whose methods are awaited: those of a blocking one, with the waits of its connection."""

    def __init__(self, waits: LoopWaits, blocking: T) -> None:
        self._waits = waits
        self._blocking = blocking

    def __repr__(self) -> str:
        return f"<aio {repr(self._blocking).removeprefix('<')}"


def awaited(method: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[Proxy[T], P], Coroutine[Any, Any, R]]:
    """The method of a :class:`Proxy` that runs one of its object for a task, with its arguments and documentation."""

    @functools.wraps(method)
    async def run(self: Proxy[T], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._waits.run(method, self._blocking, *args, **kwargs)

    return run


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

    async def __aexit__(self, *_: object) -> None:
        self.close()


class AsyncTableHandle(Proxy[table_handle.TableHandle]):
    """One table, by :meth:`AsyncConnection.table`. As :class:`secateur.TableHandle`, with methods that are awaited.

    Each ``get`` has a row as it is then, ``put`` writes one, and ``load`` many: a load reads its data in a thread.
    """

    @property
    def name(self) -> str:
        """The name of the table, as it was written when it was created."""
        return self._blocking.name

    @property
    def schema(self) -> pa.Schema:
        """The columns as an Arrow schema."""
        return self._blocking.schema

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns."""
        return self._blocking.columns

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The names of the columns of the key."""
        return self._blocking.primary_key

    @property
    def scheme(self) -> PartitionScheme:
        """How the table is partitioned."""
        return self._blocking.scheme

    @overload
    async def get(self, key: Mapping[str, Any], /) -> dict[str, Any] | None: ...

    @overload
    async def get(self, key: Any, /) -> tuple[Any, ...] | None: ...

    @overload
    async def get(self, /, **columns: Any) -> dict[str, Any] | None: ...

    async def get(self, key: Any = None, /, **columns: Any) -> tuple[Any, ...] | dict[str, Any] | None:
        """The row with a primary key. See :meth:`secateur.TableHandle.get`."""
        return await self._waits.run(lambda: self._blocking.get(key, **columns))

    async def get_many(self, keys: Iterable[Any]) -> list[Any]:
        """The rows with some primary keys, None for those that are not there.

        See :meth:`secateur.TableHandle.get_many`.
        """
        return await self._waits.run(self._blocking.get_many, keys)

    put = awaited(table_handle.TableHandle.put)
    put_many = awaited(table_handle.TableHandle.put_many)
    delete = awaited(table_handle.TableHandle.delete)
    delete_many = awaited(table_handle.TableHandle.delete_many)
    load = awaited(table_handle.TableHandle.load)
    owner_of = awaited(table_handle.TableHandle.owner_of)
    partition_of = awaited(table_handle.TableHandle.partition_of)
    statistics = awaited(table_handle.TableHandle.statistics)


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

    async def info(self) -> JobInfo:
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

    async def __aexit__(self, *_: object) -> None:
        await self.close()
