"""The kernel for the whole dialect: DuckDB over Arrow tables in memory.

One closed in-memory database per kernel: no file, no extension, no setting can be reached from a statement. Each call
borrows a *slot*, a cursor with its own temporary views, so calls from several threads never see each other's relations.

A small aggregate takes about a millisecond, half of it to parse, bind and plan. ``sql(...).to_arrow_table()`` is the
fastest way to Arrow of DuckDB's public interface: ``execute(...).to_arrow_table()`` binds once less, but copies the
result once more, and warns about it in each call.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from secateur.engine.kernels.duckdb.cancellation import Cancellation, running_under
from secateur.engine.kernels.duckdb.errors import translated, unreadable
from secateur.engine.kernels.duckdb.result_types import arrow_type, delivered_type, delivery_sql
from secateur.engine.kernels.duckdb.results import (
    RESULT_BYTES_MAX,
    batch_rows_over,
    batches_from,
    conform,
    exported,
    reader_of,
)
from secateur.engine.kernels.duckdb.slot import Binder, Relations, Slot, is_about_rows, rows_told_apart
from secateur.engine.threads import call_with_low_priority
from secateur.engine_limits import EngineLimits
from secateur.errors import InterfaceError, ParameterError
from secateur.memory_database import open_database
from secateur.partitioning.types.sql_text import text_literal

Casts = Sequence[tuple[str, Sequence[tuple[str, str]]]]

_ROW_ID: Final = "rowid"
_TABLE_BINDERS_MAX: Final = 16
"""Binders that are kept for tables, each for those of some statements: with one for all, planning took 4.7 ms where
statements were about three tables in turn, and 2.8 where they were about one.
"""


class DuckDBKernel:
    """A closed DuckDB database that answers SELECT statements over Arrow tables.

    Args:
        memory_limit_bytes: Most memory for intermediate results of all calls together; None for DuckDB's default, 80 %
            of the machine.
        threads: Worker threads shared by all calls; None for one per core.
        spill_directory: Where intermediate results go that pass the limit, in a folder of their own that goes with the
            kernel; None to raise LimitExceededError instead.
        result_bytes_max: Most bytes of the Arrow result of one call, which DuckDB does not count.
        slots_kept_max: Idle connections that are kept; None for the default of EngineLimits.
    """

    def __init__(
        self,
        *,
        memory_limit_bytes: int | None = None,
        threads: int | None = None,
        spill_directory: Path | None = None,
        result_bytes_max: int = RESULT_BYTES_MAX,
        slots_kept_max: int | None = None,
    ) -> None:
        self._slots_kept_max = EngineLimits().duckdb_slots_max if slots_kept_max is None else slots_kept_max
        self._config = {
            "threads": str(threads or os.cpu_count() or 1),
            "arrow_lossless_conversion": "true",
        }
        if memory_limit_bytes is not None:
            self._config["memory_limit"] = f"{memory_limit_bytes}B"
        self._spill = None if spill_directory is None else _folder_in(spill_directory)
        self._database = self._opened()
        self._result_bytes_max = result_bytes_max
        self._lock = threading.Lock()
        self._idle: list[Slot] = []
        self._binders: list[Binder] = []
        self._apart: dict[str, str] = {}
        self._function_names: frozenset[str] | None = None
        self._closed = False

    def run(
        self,
        sql: str,
        relations: Mapping[str, pa.Table],
        params: Sequence[Any] = (),
        *,
        names: Sequence[str] | None = None,
        casts: Casts = (),
        cancellation: Cancellation | None = None,
    ) -> pa.Table:
        """Answer one SELECT.

        Args:
            sql: One SELECT (or VALUES, or a set operation) over the names of ``relations``, parameters as ``$1``.
            relations: The tables it may read, by name. Nothing is copied.
            params: Values of ``$1`` to ``$n``; those that the statement does not name are ignored.
            names: Names for the result columns in place of DuckDB's.
            casts: As :attr:`Fragment.casts`.
            cancellation: Lets another thread stop the call.

        Returns:
            The result in the delivered types of ``result_types``. Rows are in no order unless the statement orders
            them.

        Raises:
            Error: As :func:`secateur.engine.kernels.fragment.run`.
        """
        with self._running(sql, relations, params, names, casts, cancellation) as (types, names, relation, again):
            try:
                table = exported(relation, self._result_bytes_max, cancellation)
            except duckdb.InvalidTypeException as error:
                table = exported(again(error), self._result_bytes_max, cancellation)
        return conform(table, types, names)

    def parts(
        self,
        sql: str,
        relations: Mapping[str, pa.Table],
        params: Sequence[Any] = (),
        *,
        names: Sequence[str] | None = None,
        casts: Casts = (),
        cancellation: Cancellation | None = None,
    ) -> Generator[pa.Table, None, None]:
        """Like :meth:`run`, with rows made on demand, about a megabyte at a time; at least one part, even without rows.

        The statement's input and working memory are held until the last part was taken or the generator is closed, and
        unordered rows have no limit in bytes. Must not be used by two threads at once.
        """
        batch_rows = batch_rows_over(relations.values())
        with self._running(sql, relations, params, names, casts, cancellation) as (types, names, relation, again):
            try:
                reader = reader_of(relation, batch_rows)
                batches = batches_from(reader, cancellation)
                first = next(batches, None)
            except duckdb.InvalidTypeException as error:
                reader = reader_of(again(error), batch_rows)
                batches = batches_from(reader, cancellation)
                first = next(batches, None)
            yield conform(pa.Table.from_batches([] if first is None else [first], reader.schema), types, names)
            for batch in batches:
                yield conform(pa.Table.from_batches([batch]), types, names)

    def describe(
        self,
        sql: str,
        relations: Relations,
        params: Sequence[Any] = (),
        *,
        are_tables: bool = False,
    ) -> tuple[tuple[str, str], ...]:
        """Bind one SELECT against relations that need not exist, without running it.

        Args:
            sql: As :meth:`run`.
            relations: Relation name to column name to SQL type, in column order.
            params: Values of the parameters; the types of results may depend on theirs.
            are_tables: Whether a plan of the text over the same relations is wanted as well. Both cost less then.

        Returns:
            Name and SQL type text of each result column. The text is DuckDB's, except that an untyped NULL is INTEGER;
            it may name a type that no table column can have, such as ``STRUCT(a INTEGER)``: ``result_types`` says how
            such a column is delivered.

        Raises:
            SqlSyntaxError, UnknownTableError, UnknownColumnError, ParameterError, DataError, ProgrammingError: The
                statement does not bind.
        """
        # The rows of a table have numbers, which those of a statement do not.
        with self._binder(relations if are_tables and _ROW_ID not in sql.casefold() else None) as binder:
            return binder.describe(sql, relations, params)

    def plan(self, sql: str, relations: Relations) -> bytes:
        """Bind one statement against relations that need not exist, and return DuckDB's logical plan of it.

        Args:
            sql: As :meth:`run`; each parameter in a place that says its type, or in a cast.
            relations: As :meth:`describe`.

        Returns:
            The plan before any optimization, as JSON; it may be an error, as JSON.
        """
        with self._binder(relations) as binder:
            return binder.plan(sql, relations)

    def parse(self, sql: str) -> None:
        """Parse a text of any kind with DuckDB's parser; nothing is bound or run.

        Costs some 50 microseconds for a short one.

        Raises:
            SqlSyntaxError, NotSupportedError: It does not parse.
        """
        with self._binder() as binder:
            binder.cursor.extract_statements(sql)

    def function_names(self) -> frozenset[str]:
        """The names of all functions that DuckDB has here, of every kind. Costs some milliseconds at the first call."""
        if self._function_names is None:
            names = (
                self.run("SELECT DISTINCT lower(function_name) AS name FROM duckdb_functions()", {})
                .column("name")
                .to_pylist()
            )
            self._function_names = frozenset(names)
        return self._function_names

    def trees(self, statements: Sequence[str]) -> tuple[str, ...]:
        """Return DuckDB's parse trees of some texts, in JSON; the tree of an invalid text contains its error.

        Raises:
            Error: DuckDB's parser fails otherwise.
        """
        with self._binder() as binder:
            return binder.trees(statements)

    @contextmanager
    def _running(
        self,
        sql: str,
        relations: Mapping[str, pa.Table],
        params: Sequence[Any],
        names: Sequence[str] | None,
        casts: Casts,
        cancellation: Cancellation | None,
    ) -> Iterator[
        tuple[
            list[pa.DataType],
            list[str],
            duckdb.DuckDBPyRelation,
            Callable[[duckdb.InvalidTypeException], duckdb.DuckDBPyRelation],
        ]
    ]:
        """Bind a statement that is ready to run.

        Yields the types and names of its result, the relation, and a replacement to run if that is refused.
        """
        # Unnamed columns are named by their text, which has to be the user's.
        text = sql if names is None else self._apart.get(sql, sql)
        with self._slot(sql) as slot, _interruptible(slot.cursor, cancellation), slot.reading(relations, dict(casts)):
            relation = slot.bound(params, None if text is sql else text)
            texts = tuple(map(str, relation.types))
            named = [f"c{index}" for index in range(len(texts))]
            items = list(map(delivery_sql, named, texts))
            names = relation.columns if names is None else names

            def again(error: duckdb.InvalidTypeException) -> duckdb.DuckDBPyRelation:
                apart = self._rows_apart(slot, sql) if is_about_rows(str(error)) else None
                if apart is None:
                    raise error
                return slot.bound(params, apart if items == named else _delivered(apart, named, items))

            if items != named:
                relation = slot.bound(params, _delivered(text, named, items))
            if cancellation is not None:
                cancellation.check()  # an interrupt while the statement was bound is forgotten by now
            yield [arrow_type(delivered_type(text)) for text in texts], list(names), relation, again

    def _rows_apart(self, slot: Slot, sql: str) -> str | None:
        """The text to use in place of one that failed for its comparisons of rows, from now on."""
        (serialized,) = self.trees([sql])
        apart = rows_told_apart(sql, serialized)
        if apart is not None:
            if len(self._apart) >= self._slots_kept_max:
                self._apart.clear()
            self._apart[sql] = apart
        return apart

    def close(self) -> None:
        """Refuse new calls and end the database with the last one that runs. Closing twice does nothing."""
        with self._lock:
            self._closed = True
            cursors = self._take_idle()
        for cursor in cursors:
            cursor.close()
        self._database.close()
        if self._spill is not None:
            shutil.rmtree(self._spill, ignore_errors=True)

    def _opened(self) -> duckdb.DuckDBPyConnection:
        """A new database, closed to everything outside of it."""
        # Its worker threads inherit the priority of the thread that opens it.
        database = call_with_low_priority(lambda: open_database(**self._config))
        # GLOBAL: a plain SET would hold for this connection and not for its cursors. The directory is not to be set any
        # more once access is off.
        for setting, value in (
            ("temp_directory", "" if self._spill is None else str(self._spill)),
            ("enable_external_access", "false"),
            ("python_enable_replacements", "false"),
            ("TimeZone", "UTC"),
            ("lock_configuration", "true"),
        ):
            database.execute(f"SET GLOBAL {setting} = {text_literal(value)}")
        return database

    def _replace(self, broken: duckdb.DuckDBPyConnection) -> None:
        """Go on with a new database: one in which DuckDB has found an error of its own answers nothing any more."""
        with self._lock:
            if self._closed or self._database is not broken:
                return
            self._database = self._opened()
            cursors = self._take_idle()
        for cursor in cursors:
            cursor.close()
        broken.close()

    def _take_idle(self) -> list[duckdb.DuckDBPyConnection]:
        """Take the cursors that are not in use, so that they are not used again."""
        cursors = [*(slot.cursor for slot in self._idle), *(binder.cursor for binder in self._binders)]
        self._idle, self._binders = [], []
        return cursors

    def _take_binder(self, tables: Relations | None) -> Binder:
        """A binder that is not in use: for tables one that has them, if there is one."""
        fitting = [binder for binder in self._binders if binder.has_tables == (tables is not None)]
        known = next((binder for binder in reversed(fitting) if tables is None or binder.relations == tables), None)
        if known is None and (tables is None or len(fitting) < _TABLE_BINDERS_MAX):
            return Binder(self._database.cursor(), has_tables=tables is not None)
        binder = known or fitting[0]  # the one that was used longest ago
        self._binders.remove(binder)
        return binder

    @contextmanager
    def _binder(self, tables: Relations | None = None) -> Iterator[Binder]:
        with self._lock:
            self._check_open()
            binder, database = self._take_binder(tables), self._database
        is_broken = False
        try:
            with _translating(), _interruptible(binder.cursor, None):
                yield binder
        except BaseException as error:
            is_broken = isinstance(error.__cause__, (duckdb.FatalException, duckdb.InternalException))
            if is_broken:
                self._replace(database)
            raise
        finally:
            with self._lock:
                kept = (
                    not is_broken
                    and not self._closed
                    and self._database is database
                    and len(self._binders) < self._slots_kept_max + _TABLE_BINDERS_MAX
                )
                if kept:
                    self._binders.append(binder)
            if not kept:
                binder.cursor.close()

    @contextmanager
    def _slot(self, sql: str) -> Iterator[Slot]:
        slot, database = self._take(sql)
        try:
            with _translating():
                yield slot
        except BaseException as error:
            slot.cursor.close()  # whatever the failure left behind goes with it
            if isinstance(error.__cause__, (duckdb.FatalException, duckdb.InternalException)):
                self._replace(database)
            raise
        with self._lock:
            if self._database is database:
                self._idle.append(slot)
                spare = self._idle if self._closed else self._idle[: -self._slots_kept_max]
                self._idle = self._idle[len(spare) :]
            else:
                spare = [slot]
        for slot in spare:
            slot.cursor.close()

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("the DuckDB kernel is closed")

    def _take(self, sql: str) -> tuple[Slot, duckdb.DuckDBPyConnection]:
        with self._lock:
            self._check_open()
            for index in range(len(self._idle) - 1, -1, -1):
                if self._idle[index].sql == sql:
                    return self._idle.pop(index), self._database
            database = self._database
            cursor = database.cursor()
        try:
            with _translating():
                return Slot(cursor, sql), database
        except BaseException:
            cursor.close()
            raise


_default: DuckDBKernel | None = None
_default_lock: Final = threading.Lock()


def default_kernel() -> DuckDBKernel:
    """The kernel of this process, started at the first call."""
    return _default if _default is not None else configure()


def configure(
    *,
    memory_limit_bytes: int | None = None,
    threads: int | None = None,
    spill_directory: Path | None = None,
    slots_kept_max: int | None = None,
) -> DuckDBKernel:
    """Start the kernel of this process with limits of its own, unless it runs already; returns it.

    Members of one process share it, and its limits. It ends with the process.
    """
    global _default
    with _default_lock:
        if _default is None:
            _default = DuckDBKernel(
                memory_limit_bytes=memory_limit_bytes,
                threads=threads,
                spill_directory=spill_directory,
                slots_kept_max=slots_kept_max,
            )
            atexit.register(_default.close)
        return _default


@contextmanager
def _interruptible(cursor: duckdb.DuckDBPyConnection, cancellation: Cancellation | None) -> Iterator[None]:
    with ExitStack() as attached:
        for handle in running_under(cancellation):
            handle.attach(cursor)
            attached.callback(handle.detach, cursor)
        yield


@contextmanager
def _translating() -> Iterator[None]:
    try:
        yield
    except duckdb.Error as error:
        raise translated(error) from error
    except UnicodeDecodeError as error:
        # DuckDB cuts long texts in the middle of a character, and then Python cannot decode the message.
        raise unreadable(error) from error
    except (OverflowError, UnicodeError) as error:
        raise ParameterError(f"a parameter has no SQL value: {error}") from error


def _delivered(sql: str, names: Sequence[str], items: Sequence[str]) -> str:
    """The statement, its columns named and then delivered as items say.

    Rows keep their order: DuckDB preserves it through a projection.
    """
    return f"SELECT {', '.join(items)} FROM (\n{sql}\n) AS result({', '.join(names)})"


def _folder_in(directory: Path) -> Path:
    """Make a separate folder, because DuckDB names its files alike in every database."""
    directory.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix="secateur-spill-", dir=directory))
