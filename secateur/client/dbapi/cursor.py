"""The cursor of PEP 249, with Arrow and pandas results as well as rows."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from secateur.client.backup import back_up, restore
from secateur.client.controller_calls import StatementTimeout
from secateur.client.copy.copy import copy_from, copy_to
from secateur.client.dbapi.frames import pandas_frame, polars_frame, schema_with_categories, with_categories
from secateur.client.dbapi.parameters import IN_ORDER, Parameters, plain_values
from secateur.client.dbapi.pep249 import CursorConnection
from secateur.client.dbapi.rows import Description, Rows, describe
from secateur.client.dbapi.session_statements import (
    ExecuteText,
    TransactionBound,
    carry_out,
    prepared_text,
    read_session_statement,
    shown_settings,
)
from secateur.client.dbapi.shown_rows import html_table
from secateur.client.dbapi.stats import QueryStats, UnreadStats
from secateur.client.execution.analyze import analyze
from secateur.client.execution.change import run_change
from secateur.client.execution.create_table_as import create_table_as, create_table_from
from secateur.client.execution.execute import StatementCall
from secateur.client.execution.executemany import execute_many
from secateur.client.execution.forget_tenant import COLUMNS, forget_tenant
from secateur.client.execution.insert import insert_select, insert_values
from secateur.client.execution.reads import RunOptions, SelectResult
from secateur.client.execution.select import run_select
from secateur.client.execution.shared_plans import shared_call
from secateur.client.session import Prepared, Session
from secateur.errors import (
    DataError,
    Error,
    InterfaceError,
    JobCancelledError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    forget_frames,
)
from secateur.protocol import statements
from secateur.tracing import statement_span
from secateur.wire import CallControl, ShortTable

if TYPE_CHECKING:
    import pandas as pd
    import polars

_BATCH_ROWS: Final = 65_536
_ROWS_SHOWN_MAX: Final = 20


class Cursor:
    """Executes statements and returns their results.

    Made by :meth:`Connection.cursor`; not to be shared between threads.

    A result up to a few megabytes is complete when :meth:`execute` returns. A larger one comes in parts, each when it
    is read: members make no more than that, so a slow reader slows the statement down, and closing the cursor or
    executing something else ends it. Errors after the first rows are raised where the next ones are read.

    Attributes:
        connection: The connection that made it.
        arraysize: Rows that :meth:`fetchmany` fetches by default.
        rowcount: Rows of the last result, or rows inserted, updated or deleted; -1 if there is no such number, and for
            a large result until its last row was read.
        stats: The cost of the last SELECT, UPDATE or DELETE; None after anything else.
    """

    # On the class, where they cost nothing: most cursors execute one statement.
    arraysize = 1
    _rowcount = -1
    _stats: QueryStats | UnreadStats | None = None
    _rows: Rows | None = None
    _iteration: Iterator[tuple[Any, ...]] | None = None
    _closed = False
    _control: CallControl | None = None
    _later: deque[SelectResult] | None = None

    def __init__(self, connection: CursorConnection, session: Session) -> None:
        self.connection = connection
        self._session = session

    @property
    def stats(self) -> QueryStats | None:
        stats = self._stats
        if isinstance(stats, UnreadStats):
            stats = self._stats = stats.read()
        return stats

    @property
    def description(self) -> list[Description] | None:
        """The columns of the result; None when there is no result.

        Each has name, type code, display size, internal size, precision, scale and null-ok.

        The type code is the SQL text of the type; it equals the type object of its kind (``code == secateur.NUMBER``).
        """
        return None if self._rows is None else [describe(column) for column in self._rows.columns]

    @property
    def rowcount(self) -> int:
        return self._rowcount if self._rows is None or self._rowcount >= 0 else self._rows.num_rows

    @property
    def rownumber(self) -> int | None:
        """The index of the next row in the result; None when there is no result."""
        return None if self._rows is None else self._rows.position

    def execute(self, operation: str, parameters: Parameters = (), *, timeout: float | None = None) -> Self:
        """Execute one statement.

        Args:
            operation: Its text.
            parameters: A sequence for ``?`` and ``$1``, a mapping for ``$name``.
            timeout: Seconds after which the statement is cancelled, until its first rows are here, with a
                :class:`~secateur.errors.DeadlineError`; None for ``statement_timeout`` of the connection.

        Returns:
            This cursor, so that a fetch can follow.

        Raises:
            Error: The statement, its parameters or the data are invalid; the connection and the cursor stay usable.
        """
        started_s = time.perf_counter()
        session, control = self._session, None
        tried: Error | bool = False
        try:
            # What nearly every execution of a text that is known needs stands here and in its serving call: when it
            # runs, little of it is in the caches of the processor, and each function costs half a microsecond.
            if self._closed or session.closed or type(operation) is not str:
                self._check_statement(operation)
            if self._rows is not None:
                self._drop_rows()
            self._rowcount, self._stats, self._later = -1, None, None
            if timeout is None and not session.statement_timeout.milliseconds:
                control = self._control = CallControl()
            else:
                control = self._control = session.timed_control(timeout)
            session.running.add(control)
            call = None
            if type(parameters) in IN_ORDER and not session.is_traced:
                call = session.serving_calls.get((operation, *map(type, parameters)))
            if call is not None:
                try:
                    served = call(session, control, parameters, started_s)
                except Error as error:  # the rest of the ladder decides whether to try again
                    tried = error
                    session.serving_calls.pop((operation, *map(type, parameters)), None)  # its plan may be stale
                else:
                    if served is not None:
                        self._rows, self._stats = served
                        return self
                    tried = True
            if session.is_traced:
                with statement_span(operation) as describe:
                    self._execute(operation, parameters, started_s, control, tried)
                    describe(_described(self.stats))
            else:
                self._execute(operation, parameters, started_s, control, tried)
        except Error as error:
            if isinstance(error, OperationalError) and not error.retry_safe:
                session.note_change()  # nobody knows whether it was made
            forget_frames(error)
            raise
        finally:
            if control is not None:
                session.running.discard(control)
                control.deadline_s = None  # the rest of a result comes as fast as it is read
        return self

    def _execute(
        self, operation: str, parameters: Parameters, started_s: float, control: CallControl, tried: Error | bool
    ) -> None:
        """Execute a statement, whatever it is.

        ``tried`` says whether its serving call was, or is the error of that.
        """
        session = self._session
        before = session.work_for(control)
        try:
            params = plain_values(parameters)
            known = session.known(operation, params)
            if known is None:
                own = read_session_statement(operation)
                if own is not None and (not isinstance(own, TransactionBound) or session.commits is not None):
                    if not isinstance(own, ExecuteText):
                        carry_out(own, session, self.connection)
                        return
                    operation, params = prepared_text(own, params, session, self.connection)
                    session.work_for(control)  # which evaluated the values meanwhile
                    known = session.known(operation, params)
            if known is None and not params and self._execute_shared(operation, started_s):
                return
            prepared = known or session.prepare_anew(operation, params)
            called = StatementCall(session, operation, params, prepared, known is not None, started_s, time.time())
            self._carry_out(called, tried)
        finally:
            session.work_for(before)

    def _execute_shared(self, operation: str, started_s: float) -> bool:
        """Execute a text by the plan that it shares with texts of other literals; whether it has one."""
        call = shared_call(self._session, operation, started_s)
        if call is None:
            return False
        try:
            self._carry_out(call)
        except ProgrammingError:  # nothing was done, and the error is to be about the user's own text
            return False
        return True

    def executemany(self, operation: str, seq_of_parameters: Sequence[Parameters]) -> Self:
        """Execute a statement once for each set of parameters.

        A query leaves one result for each set, in their order: the first can be fetched at once, and :meth:`nextset`
        goes on to the next. Each is of its own moment.

        All rows of an ``INSERT ... VALUES`` become visible at once, or none. Every UPDATE, DELETE, ``INSERT ... ON
        CONFLICT DO UPDATE`` and ``INSERT OR REPLACE`` of some columns is a change of its own; changes of the same row
        are made in the order of their sets. An error does not undo what was executed before it, and changes of other
        rows by sets behind it may have been made as well. Where the rows of such an INSERT are many, those up to one
        whose key has come before may be made by one statement: they become visible at once, or none.

        Executions that one member answers from a few rows, or that change one row, go to their member in one frame for
        many of them, and all members work at the same time.

        Raises:
            NotSupportedError: The statement sets an option, or is another one without parameters.
        """
        session = self._session
        try:
            self._check_statement(operation)
            if self._rows is not None:
                self._drop_rows()
            self._rowcount, self._stats, self._later = -1, None, None
            control = self._control = session.begin_statement()
            try:
                with statement_span(operation) if session.is_traced else nullcontext():
                    self._rowcount, results = execute_many(session, operation, map(plain_values, seq_of_parameters))
                if results:
                    self._later = deque(results)
                    self.nextset()
            finally:
                session.end_statement(control)
        except Error as error:
            forget_frames(error)
            raise
        return self

    def nextset(self) -> bool | None:
        """Go on to the result of the next set of parameters of :meth:`executemany`; None if there is none.

        :attr:`description`, :attr:`rowcount` and :attr:`stats` are then those of that result. What was not fetched of
        the one before is dropped.
        """
        self._check_open()
        if self._rows is not None:
            self._drop_rows()
        if not self._later:
            return None
        selected = self._later.popleft()
        self._rows, self._stats = selected.rows, selected.cost
        return True

    def cancel(self) -> None:
        """Cancel the statement that this cursor executes or reads; to be called from another thread.

        The waiting thread gets a :class:`~secateur.errors.JobCancelledError`, and the work ends on every member. A
        change may have been made by then. Without a running statement there is no effect; cursor and connection stay
        usable.
        """
        control = self._control
        if control is not None:
            control.end(JobCancelledError("the statement was cancelled: cursor.cancel() was called"))

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, or None when there is none left."""
        rows = self._result().take(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """The next ``size`` rows (:attr:`arraysize` unless given), fewer at the end."""
        wanted = self.arraysize if size is None else size
        if wanted < 0:
            raise InterfaceError(f"fetchmany({wanted}): the number of rows cannot be negative")
        return self._result().take(wanted)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows that are left."""
        rows = self._rows
        if rows is None or self._closed or self._session.closed:
            rows = self._result()  # says what is wrong
        return rows.take_all()

    def fetch_arrow_table(self) -> pa.Table:
        """The rows that are left, as they came: nothing is converted or copied, but ENUM, which is a dictionary."""
        return self._arrow_table()

    def fetch_record_batch(self, rows_max: int = _BATCH_ROWS) -> pa.RecordBatchReader:
        """Return the remaining rows as Arrow batches, made on demand; for results that are larger than memory.

        Args:
            rows_max: Rows of a batch, at most.

        Returns:
            A reader, which ends when the cursor is closed or executes something else.
        """
        if rows_max < 1:
            raise InterfaceError(f"fetch_record_batch({rows_max}): a batch has at least one row")
        rows = self._result()

        def check_is_open() -> None:
            if self._rows is not rows:
                raise InterfaceError(
                    "the cursor was closed or has executed something else: nothing more can be read of this result"
                )

        def batches() -> Iterator[pa.RecordBatch]:
            # Rows are taken once they are read: DuckDB exports a stream several times to see its columns.
            check_is_open()
            for table in rows.tables():
                yield from (
                    with_categories(table, rows.columns).combine_chunks().to_batches(max_chunksize=rows_max)
                )  # partitions make many small chunks
                check_is_open()

        return pa.RecordBatchReader.from_batches(schema_with_categories(rows.schema, rows.columns), batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the remaining rows as an Arrow stream, which polars, pandas, pyarrow, DuckDB and others read.

        For example ``polars.DataFrame(cursor)``.

        Source: the Arrow PyCapsule interface.
        """
        return self.fetch_record_batch().__arrow_c_stream__(requested_schema)

    def arrow(self) -> pa.Table:
        """As :meth:`fetch_arrow_table`."""
        return self.fetch_arrow_table()

    def df(self) -> pd.DataFrame:
        """As :meth:`fetch_df`."""
        return self.fetch_df()

    def pl(self) -> polars.DataFrame:
        """The rows that are left as a polars DataFrame; of columns of one name, the second is ``a_1``.

        Raises:
            NotSupportedError: polars is not installed.
            DataError: A value that it cannot hold, such as an infinite DATE; the message names the column.
        """
        return polars_frame(self._arrow_table)

    def fetch_df(self) -> pd.DataFrame:
        """The rows that are left as a pandas DataFrame; of columns of one name, the second is ``a_1``.

        Raises:
            NotSupportedError: pandas is not installed.
            DataError: A value that it cannot hold, such as an infinite DATE; the message names the column.
        """
        return pandas_frame(lambda: self._arrow_table(ordered=True))

    def _arrow_table(self, *, ordered: bool = False) -> pa.Table:
        rows = self._result()
        return with_categories(rows.take_table(), rows.columns, ordered=ordered)

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Does nothing: PEP 249 asks for the method only."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing: PEP 249 asks for the method only."""

    def close(self) -> None:
        """Drop the result; the cursor is of no further use."""
        self._closed = True
        self._later = None
        self._drop_rows()

    def __iter__(self) -> Self:
        """The cursor itself: iterating and fetching go through the same rows, each of which comes once."""
        self._result()
        return self

    def __next__(self) -> tuple[Any, ...]:
        rows = self._result()
        if self._iteration is None:
            self._iteration = rows.iterate()
        try:
            return next(self._iteration)
        except BaseException:  # a generator that has raised says from then on that there are no more rows
            self._iteration = None
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._closed:
            return "<Cursor closed>"
        if self._rows is None:
            return "<Cursor without result>"
        rows = "many" if self._rows.num_rows < 0 else self._rows.num_rows
        return (
            f"<Cursor at row {self._rows.position} of {rows}:"
            f" {', '.join(column.name for column in self._rows.columns)}>"
        )

    def _repr_html_(self) -> str:
        """The next rows as a notebook shows them; they stay to be fetched."""
        if self._closed or self._rows is None:
            return f"<pre>{escape(repr(self))}</pre>"
        try:
            return html_table(*self._shown(self._rows))
        except DataError as error:  # a value that Python has none for: the result can still be read as Arrow
            return f"<pre>{escape(repr(self))}\n{escape(error.message)}</pre>"

    def _shown(self, rows: Rows) -> tuple[Sequence[statements.ResultColumn], list[tuple[Any, ...]], int | None]:
        """The columns, the next rows, which stay to be fetched, and how many are left; None if that is not known.

        Raises:
            DataError: A value that Python has none for.
        """
        left = None if rows.num_rows < 0 else rows.num_rows - rows.position
        return rows.columns, rows.ahead(_ROWS_SHOWN_MAX), left

    def _check_statement(self, operation: str) -> None:
        self._check_open()
        if not isinstance(operation, str):
            raise InterfaceError(f"a statement is text, not a {type(operation).__name__}")

    def _drop_rows(self) -> None:
        rows, self._rows, self._iteration = self._rows, None, None
        if rows is not None:
            rows.close()

    def _carry_out(self, call: StatementCall[Prepared], tried: Error | bool = False) -> None:
        prepared = call.statement
        if prepared.refused_to_others and not self._session.local_effects:
            raise NotSupportedError(prepared.refused_to_others)
        match prepared:
            case statements.SelectStatement():
                selected = run_select(call.of(prepared), RunOptions.ROWS_IN_PARTS, tried)
                self._rows, self._stats = selected.rows, selected.cost
            case statements.InsertRows() | statements.EvaluatedInsert():
                self._rowcount = insert_values([call.of(prepared)]).rows
            case statements.InsertSelect():
                self._rowcount = insert_select(call.of(prepared)).rows
            case statements.ChangeStatement() | statements.CoordinatedChange():
                changed = run_change(call.of(prepared))
                self._rowcount, self._stats, self._rows = changed.rows, changed.stats, changed.returned
            case statements.PlanText():
                lines: Sequence[str] = prepared.lines
                if prepared.analyzed is not None:
                    lines, self._stats = analyze(self._session, prepared, prepared.analyzed, call.params)
                self._take(
                    pa.table({"plan": pa.array(lines, pa.string())}), [statements.ResultColumn("plan", "VARCHAR")]
                )
            case statements.SetPruning():
                self._session.set_pruning(prepared.value)
            case statements.SetTimeout():
                self._session.statement_timeout = StatementTimeout(prepared.text, prepared.milliseconds)
            case statements.SetOption():
                self._session.set_plan_option(prepared.name, prepared.value)
            case statements.ShowSettings():
                self._take(*shown_settings(self._session, prepared))
            case statements.CopyFrom():
                self._rowcount = self._session.apart(partial(copy_from, self._session, prepared))
            case statements.CopyTo():
                self._rowcount = self._session.apart(partial(copy_to, call.of(prepared)))
            case statements.BackupTo():
                self._rowcount = self._session.apart(partial(back_up, self._session, prepared))
            case statements.RestoreFrom():
                self._rowcount = self._session.apart(partial(restore, self._session, prepared))
            case statements.ForgetTenant():
                self._take(forget_tenant(self._session, prepared), COLUMNS)
                self._session.note_change()
            case statements.CreateTableFrom():
                self._rowcount = self._session.apart(partial(create_table_from, self._session, prepared))
            case statements.CreateTableAs():
                self._rowcount = create_table_as(call.of(prepared))
            case statements.Done():
                pass
        if prepared.is_change and self._rowcount:
            self._session.note_change()

    def _take(self, result: pa.Table | ShortTable, columns: Sequence[statements.ResultColumn]) -> None:
        self._rows = Rows(result, columns)

    def _result(self) -> Rows:
        if self._closed or self._session.closed:
            self._check_open()
        if self._rows is None:
            raise InterfaceError("there is no result to fetch: execute a query first")
        return self._rows

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed; make another with connection.cursor()")
        if self._session.closed:
            self._session.check_open()  # says so


def _described(stats: QueryStats | None) -> dict[str, Any]:
    """The cost of a statement as attributes of its span."""
    if stats is None:
        return {}
    return {
        "secateur.execution": stats.execution.value,
        "secateur.partitions_read": stats.partitions_read,
        "secateur.partitions_total": stats.partitions_total,
        "secateur.members_touched": stats.members_touched,
        "secateur.members_total": stats.members_total,
        "secateur.plan_cached": stats.plan_cached,
        "secateur.topology_version": stats.topology_version,
    }
