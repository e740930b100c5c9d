"""The statements that were submitted over HTTP: they run in threads, and their results are kept for a while."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from secateur.client.copy.copy import csv_parts
from secateur.client.dbapi.cursor import Cursor
from secateur.client.dbapi.rows import Rows
from secateur.client.dbapi.stats import QueryStats
from secateur.errors import Error, InternalError, JobCancelledError, LimitExceededError
from secateur.http.answers import ARROW_TYPE, StatementState, described
from secateur.http.json_values import json_value_of
from secateur.partitioning.types.arrow_layout import map_leaves
from secateur.partitioning.types.sql_text import told_apart
from secateur.protocol.statements import ResultColumn
from secateur.server.callers import Caller
from secateur.server.limits import ServerLimits

_BATCH_ROWS: Final = 65_536
_TEXT_ROWS: Final = 8_192
_NANOSECONDS: Final = pa.timestamp("ns")
_INFINITE: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class KeptResult:
    """All rows of a result.

    Attributes:
        columns: Names and types of SQL.
        table: The rows.
    """

    columns: tuple[ResultColumn, ...]
    table: pa.Table

    @property
    def bytes(self) -> int:
        """The memory of its rows."""
        return int(self.table.nbytes)


@dataclass(frozen=True, slots=True)
class JsonPage:
    """Some rows of a result.

    Attributes:
        rows: A JSON array of arrays.
        next_offset: The number of the first row behind them; None at the end.
    """

    rows: bytes
    next_offset: int | None


def fetched(cursor: Cursor, bytes_max: int) -> KeptResult | None:
    """Read the result of a cursor to its end; None if it has none.

    Raises:
        LimitExceededError: It has more bytes than that.
        Error: The statement failed while its rows were read.
    """
    if cursor.description is None:
        return None
    columns = tuple(ResultColumn(name, type_code) for name, type_code, *_ in cursor.description)
    reader = cursor.fetch_record_batch(_BATCH_ROWS)
    batches, size = [], 0
    for batch in reader:
        batches.append(batch)
        size += batch.nbytes
        if size > bytes_max:
            raise LimitExceededError(
                f"the result has more than {bytes_max:,} bytes, which is what the HTTP server keeps of one: add a LIMIT"
                " or an aggregation, or read it with the Python client, which gets it part by part",
                limit=bytes_max,
            )
    return KeptResult(columns, pa.Table.from_batches(batches, reader.schema))


def json_page(result: KeptResult, offset: int, rows_max: int, bytes_max: int, *, objects: bool = False) -> JsonPage:
    """Some rows in JSON. Takes about a microsecond for each value.

    Args:
        result: The result.
        offset: The number of the first row, from 0.
        rows_max: How many rows.
        bytes_max: How many bytes of JSON; the page ends early when the next row has no room.
        objects: Whether a row is an object with the names of the columns, instead of an array.

    Raises:
        LimitExceededError: One row alone has more bytes.
        DataError: A value that Python has none for, such as a year beyond 9999.
    """
    if not result.columns:  # a job without a result; a slice of a table without columns has any number of rows
        return JsonPage(b"[]", None)
    part = result.table.slice(offset, rows_max)
    texts: list[bytes] = []
    size = 2
    for text in _json_rows(part, result.columns, objects=objects):
        size += len(text) + 1
        if size > bytes_max:
            if not texts:
                raise LimitExceededError(
                    f"row {offset} has {len(text):,} bytes as JSON, an answer may have {bytes_max:,}: ask for the"
                    f" result as an Arrow stream, with the header 'Accept: {ARROW_TYPE}'",
                    limit=bytes_max,
                )
            break
        texts.append(text)
    end = offset + len(texts)
    return JsonPage(b"[" + b",".join(texts) + b"]", end if end < result.table.num_rows else None)


def _json_rows(rows: pa.Table, columns: Sequence[ResultColumn], *, objects: bool) -> Iterator[bytes]:
    """Each row as an array, or as an object with the names of the columns."""
    names = list(told_apart(column.name for column in columns))
    encoders = [json_value_of(column.type) for column in columns]
    for row in Rows(_with_nanoseconds(rows), columns).iterate():
        values = [encode(value) for encode, value in zip(encoders, row, strict=True)]
        yield msgspec.json.encode(dict(zip(names, values, strict=True)) if objects else values)


def _with_nanoseconds(rows: pa.Table) -> pa.Table:
    """The rows with texts in place of TIMESTAMP_NS, whose Python values have microseconds."""
    for position, column in enumerate(rows.columns):
        if str(_NANOSECONDS) in str(column.type) and column.num_chunks:  # perhaps inside of a list, a struct or a map
            texts = pa.chunked_array([map_leaves(chunk, _nanosecond_texts) for chunk in column.chunks])
            rows = rows.set_column(position, rows.schema.field(position).name, texts)
    return rows


def _nanosecond_texts(leaf: pa.Array) -> pa.Array:
    if leaf.type != _NANOSECONDS:
        return leaf
    instants = leaf.to_numpy(zero_copy_only=False)
    if (np.abs(instants.view(np.int64)) == _INFINITE).any():
        return leaf  # refused where rows become Python values, as those of other types are
    return pa.array(np.datetime_as_string(instants), mask=np.isnat(instants))


def text_stream(result: KeptResult, *, is_csv: bool) -> Iterator[bytes]:
    """The result as CSV, or as lines of JSON with an object for each row, a part for some thousand rows.

    Raises:
        DataError: A value that JSON or Python has none for, such as a year beyond 9999.
        NotSupportedError: A column of a type that CSV has no form for.
    """
    if not result.columns:
        return
    slices = (result.table.slice(start, _TEXT_ROWS) for start in range(0, result.table.num_rows, _TEXT_ROWS))
    if is_csv:
        yield from csv_parts(slices, result.columns)
        return
    for rows in slices:
        yield b"".join(text + b"\n" for text in _json_rows(rows, result.columns, objects=True))


def arrow_stream(result: KeptResult, description: Mapping[str, Any]) -> Iterator[bytes]:
    """The result in the Arrow IPC streaming format, a part for each batch.

    Args:
        result: The result.
        description: What a JSON answer says beside the rows.
    """
    sink = BytesIO()
    with pa.ipc.new_stream(sink, described(result.table.schema, description)) as writer:
        yield _taken(sink)
        for batch in result.table.to_batches(max_chunksize=_BATCH_ROWS):
            writer.write_batch(batch)
            yield _taken(sink)
    yield _taken(sink)


def _taken(sink: BytesIO) -> bytes:
    """Takes the bytes that were written since the last call."""
    written = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return written


_CANCEL_PAUSE_S: Final = 0.05
"""A statement may be cancelled before its thread has begun it: it is told again until it has ended."""
_CLOSE_S: Final = 10.0
_SQL_KEPT_MAX: Final = 10_000
_log: Final = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class SubmittedStatement:
    """One statement. Its thread writes it until it has ended, and ``state`` last.

    Attributes:
        sql: Its text; after its end, the beginning of it.
        params: Its parameters; none after its end.
        settings: Settings of SQL that it runs with.
        caller: Who submitted it, and whose connections it runs on.
        id: Unique in the server.
        state: Where it is.
        submitted_s: Seconds since the epoch.
        started_s: Seconds since the epoch; None before.
        ended_s: Seconds since the epoch; None before.
        result: Its rows; None if it has none, before its end, and when they were dropped.
        has_result: Whether it has rows, dropped or not.
        row_count: Rows of its result, or rows that it changed; None if there is no such number.
        stats: What it cost; None for what is no query.
        error: Why it failed, or was cancelled.
        is_job: Whether it was submitted as a job.
    """

    sql: str
    params: list[Any] | dict[str, Any]
    settings: Mapping[str, str]
    caller: Caller
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    state: StatementState = StatementState.WAITING
    submitted_s: float = field(default_factory=time.time)
    started_s: float | None = None
    ended_s: float | None = None
    result: KeptResult | None = None
    has_result: bool = False
    row_count: int | None = None
    stats: QueryStats | None = None
    error: Error | None = None
    is_job: bool = False
    is_cancelled: bool = False
    cursor: Cursor | None = None
    future: Future[None] | None = None

    def interrupt(self) -> None:
        """Cancel what its thread executes just now; nothing happens before it has begun and after it has ended."""
        cursor = self.cursor
        if cursor is not None:
            cursor.cancel()


class SubmittedStatements:
    """Runs statements, and knows them while they run and for a while after. Thread-safe.

    Nobody sees the statements and rows of another token.

    Args:
        limits: How many run, wait, and are kept.
    """

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._threads = ThreadPoolExecutor(limits.running_max, thread_name_prefix="secateur-statement")
        self._known: dict[str, SubmittedStatement] = {}
        self._ended: OrderedDict[str, SubmittedStatement] = OrderedDict()  # oldest first
        self._kept_bytes = 0
        self._lock = threading.Lock()

    def submit(
        self,
        sql: str,
        params: list[Any] | dict[str, Any],
        settings: Mapping[str, str] | None = None,
        *,
        caller: Caller,
        is_job: bool = False,
    ) -> SubmittedStatement:
        """Begin a statement of a caller, or put it behind those that wait. Does not block.

        Raises:
            LimitExceededError: Too many wait; nothing was done.
        """
        statement = SubmittedStatement(sql, params, settings or {}, caller, is_job=is_job)
        with self._lock:
            unfinished = len(self._known) - len(self._ended)
            most = self._limits.running_max + self._limits.waiting_max
            if unfinished >= most:
                raise LimitExceededError(
                    f"{unfinished} statements of the HTTP server run or wait, and no more may: try again later, or"
                    " start the server with a larger running_max or waiting_max",
                    limit=most,
                    retry_safe=True,
                )
            self._known[statement.id] = statement
            statement.future = self._threads.submit(self._run, statement)
        return statement

    def find(self, statement_id: str, caller: Caller) -> SubmittedStatement | None:
        """The statement of that id; None if there is none, it was forgotten, or somebody else has submitted it."""
        self.forget_old()
        found = self._known.get(statement_id)
        return found if found is not None and found.caller.digest == caller.digest else None

    def newest(self, caller: Caller | None) -> Sequence[SubmittedStatement]:
        """Returns the statements of a caller, or all for None, the newest first."""
        self.forget_old()
        with self._lock:
            found = list(reversed(self._known.values()))
        return [one for one in found if caller is None or one.caller.digest == caller.digest]

    async def wait(self, statement: SubmittedStatement, wait_s: float) -> None:
        """Wait until a statement has ended, or the time is over."""
        assert statement.future is not None
        if wait_s > 0 and not statement.future.done():
            await asyncio.wait([asyncio.wrap_future(statement.future)], timeout=wait_s)

    async def cancel(self, statement: SubmittedStatement) -> None:
        """Cancel a statement on every member, and wait until it has ended; forget one that has ended.

        The change of an INSERT, UPDATE or DELETE may have been made by then. What cannot be cancelled, such as a DDL
        statement at the controller, goes on after ``wait_s_max``.
        """
        assert statement.future is not None
        if statement.state.is_final:
            self._forget(statement)
            return
        statement.is_cancelled = True
        if statement.future.cancel():
            self._end(statement, StatementState.CANCELLED, JobCancelledError("the statement was cancelled by a DELETE"))
            return
        end_s = time.monotonic() + self._limits.wait_s_max
        while not statement.future.done() and time.monotonic() < end_s:
            statement.interrupt()
            await self.wait(statement, _CANCEL_PAUSE_S)

    def forget_old(self) -> None:
        """Drop what has been kept for long enough."""
        oldest_s = time.time() - self._limits.kept_s
        with self._lock:
            while self._ended:
                statement = next(iter(self._ended.values()))
                if (statement.ended_s or 0.0) > oldest_s:
                    return
                self._drop(statement)

    def close(self) -> None:
        """Cancel everything, and take no more. Blocks until all has ended, for some seconds at most."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            unfinished = {one.future: one for one in self._known.values() if one.future is not None}
        end_s = time.monotonic() + _CLOSE_S
        while unfinished and time.monotonic() < end_s:
            for statement in unfinished.values():
                statement.is_cancelled = True
                statement.interrupt()
            _, left = wait_for(unfinished, timeout=_CANCEL_PAUSE_S)
            unfinished = {future: unfinished[future] for future in left}

    def _run(self, statement: SubmittedStatement) -> None:
        statement.started_s = time.time()
        statement.state = StatementState.RUNNING
        try:
            with statement.caller.connections.lent(statement.settings) as connection, connection.cursor() as cursor:
                statement.cursor = cursor
                if statement.is_cancelled:
                    raise JobCancelledError("the statement was cancelled by a DELETE")
                cursor.execute(statement.sql, statement.params)
                statement.result = fetched(cursor, self._limits.result_bytes_max)
                statement.has_result = statement.result is not None
                statement.row_count = cursor.rowcount if cursor.rowcount >= 0 else None
                statement.stats = cursor.stats
        except Error as error:
            is_cancelled = statement.is_cancelled and isinstance(error, JobCancelledError)
            self._end(statement, StatementState.CANCELLED if is_cancelled else StatementState.FAILED, error)
        except Exception as error:
            _log.exception("a statement failed with an error that is no secateur.errors.Error")
            bug = InternalError(f"the HTTP server cannot run the statement: {type(error).__name__}: {error}")
            self._end(statement, StatementState.FAILED, bug)
        else:
            self._end(statement, StatementState.DONE, None)

    def _end(self, statement: SubmittedStatement, state: StatementState, error: Error | None) -> None:
        # What is kept for ten minutes must not keep what nobody asks for: large parameters, and the frames of an error.
        statement.cursor, statement.params = None, []
        statement.sql = statement.sql[:_SQL_KEPT_MAX]
        if error is not None:
            error.__traceback__ = error.__cause__ = error.__context__ = None
        statement.error = error
        statement.ended_s = time.time()
        if state is not StatementState.DONE:
            statement.result = None
        with self._lock:
            statement.state = state
            self._ended[statement.id] = statement
            if statement.result is not None:
                self._kept_bytes += statement.result.bytes
            while len(self._ended) > self._limits.kept_max:
                self._drop(next(iter(self._ended.values())))
            for old in self._ended.values():
                if self._kept_bytes <= self._limits.kept_bytes_max:
                    break
                if old is not statement:
                    self._drop_result(old)

    def _forget(self, statement: SubmittedStatement) -> None:
        with self._lock:
            if statement.id in self._ended:
                self._drop(statement)

    def _drop(self, statement: SubmittedStatement) -> None:
        self._drop_result(statement)
        del self._ended[statement.id]
        del self._known[statement.id]

    def _drop_result(self, statement: SubmittedStatement) -> None:
        if statement.result is not None:
            self._kept_bytes -= statement.result.bytes
            statement.result = None
