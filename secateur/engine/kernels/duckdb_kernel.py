"""The kernel that answers the whole dialect: DuckDB over Arrow tables in memory.

One closed in-memory database per kernel: no file, no extension, no setting can be reached from a statement. Each call borrows a *slot*, a cursor with its
own temporary views, so that calls from several threads never see each other's relations.

What a call costs is mostly registering Arrow objects and binding the text (about 0.3 and 0.2 ms of 1.2 ms for a small aggregate). Slots therefore keep their
views: over a small table a view reads through an object whose content is exchanged for each call. Large tables are registered anew each time: only then does
DuckDB know their row count, and orders joins by it. ``execute(...).to_arrow_table()`` was measured against ``sql(...)``: it copies the result once more and
warns about it, and wins nothing that matters.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from secateur.engine.kernels.cancellation import Cancellation
from secateur.engine.kernels.duckdb_errors import translated
from secateur.engine.kernels.duckdb_results import conform
from secateur.engine.kernels.result_types import arrow_type, delivered_type, relation_casts
from secateur.errors import InterfaceError, ParameterError, ProgrammingError
from secateur.partitioning.types import SqlType

__all__ = ["DuckDBKernel", "configure", "default_kernel"]

Casts = Sequence[tuple[str, Sequence[tuple[str, str]]]]

#: Up to so many rows in all, relations are read through exchangeable views: a wrong join order costs less than a registration.
_EXCHANGEABLE_ROWS_MAX: Final = 20_000
_SLOTS_KEPT_MAX: Final = 64


class DuckDBKernel:
    """A closed DuckDB database that answers SELECT statements over Arrow tables.

    Args:
        memory_limit_bytes: Most memory for intermediate results of all calls together; None for DuckDB's default, 80 % of the machine.
        threads: Worker threads shared by all calls; None for one per core.
        spill_directory: Where intermediate results go that pass the limit; None to raise LimitExceededError instead.
    """

    def __init__(self, *, memory_limit_bytes: int | None = None, threads: int | None = None, spill_directory: Path | None = None) -> None:
        config = {
            "threads": str(threads or os.cpu_count() or 1),
            "autoload_known_extensions": "false",
            "autoinstall_known_extensions": "false",
            "arrow_lossless_conversion": "true",
        }
        if memory_limit_bytes is not None:
            config["memory_limit"] = f"{memory_limit_bytes}B"
        self._database = duckdb.connect(":memory:", config=config)
        # GLOBAL: a plain SET would hold for this connection and not for its cursors. The directory is not to be set any more once access is off.
        for setting, value in (
            ("temp_directory", "" if spill_directory is None else str(spill_directory)),
            ("enable_external_access", "false"),
            ("python_enable_replacements", "false"),
            ("TimeZone", "UTC"),
            ("lock_configuration", "true"),
        ):
            self._database.execute(f"SET GLOBAL {setting} = {_text(value)}")
        self._lock = threading.Lock()
        self._idle: list[_Slot] = []
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
            The result in the delivered types of ``result_types``. Rows are in no order unless the statement orders them.

        Raises:
            Error: As :func:`secateur.engine.kernels.fragment.run`.
        """
        with self._slot(sql) as slot, _interruptible(slot.cursor, cancellation), slot.reading(relations, dict(casts)):
            relation = slot.bound(params)
            texts = tuple(map(str, relation.types))
            delivered = tuple(map(delivered_type, texts))
            names = relation.columns if names is None else names
            if delivered != texts:
                relation = slot.bound(params, _cast_columns(sql, texts, delivered))
            exported = relation.to_arrow_table()
        return conform(exported, [arrow_type(text) for text in delivered], list(names))

    def describe(
        self,
        sql: str,
        relations: Mapping[str, Mapping[str, SqlType | str]],
        params: Sequence[Any] = (),
    ) -> tuple[tuple[str, str], ...]:
        """Bind one SELECT against relations that need not exist, without running it.

        Args:
            sql: As :meth:`run`.
            relations: Relation name to column name to SQL type, in column order.
            params: Values of the parameters; the types of results may depend on theirs.

        Returns:
            Name and SQL type text of each result column. The text is DuckDB's, except that an untyped NULL is INTEGER; it may name a type that no table
            column can have, such as ``STRUCT(a INTEGER)``: ``result_types`` says how such a column is delivered.

        Raises:
            SqlSyntaxError, UnknownTableError, UnknownColumnError, ParameterError, DataError, ProgrammingError: The statement does not bind.
        """
        # nulls(0) and not array([]) or empty_table(): those refuse UUID[]
        empty = {name: pa.table({column: pa.nulls(0, arrow_type(str(kind))) for column, kind in schema.items()}) for name, schema in relations.items()}
        casts = {name: relation_casts(schema) for name, schema in relations.items()}
        with self._slot(sql) as slot, slot.reading(empty, casts):
            relation = slot.bound(params)
            texts = (delivered_type(text) if text == '"NULL"' else text for text in map(str, relation.types))
            return tuple(zip(relation.columns, texts, strict=True))

    def close(self) -> None:
        """Refuse new calls and end the database with the last one that runs. Closing twice does nothing."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for slot in idle:
            slot.cursor.close()
        self._database.close()

    @contextmanager
    def _slot(self, sql: str) -> Iterator[_Slot]:
        slot = self._take(sql)
        try:
            with _translating():
                yield slot
        except BaseException:
            slot.cursor.close()  # whatever the failure left behind goes with it
            raise
        with self._lock:
            self._idle.append(slot)
            spare = self._idle if self._closed else self._idle[:-_SLOTS_KEPT_MAX]
            self._idle = self._idle[len(spare) :]
        for slot in spare:
            slot.cursor.close()

    def _take(self, sql: str) -> _Slot:
        with self._lock:
            if self._closed:
                raise InterfaceError("the DuckDB kernel is closed")
            for index in range(len(self._idle) - 1, -1, -1):
                if self._idle[index].sql == sql:
                    return self._idle.pop(index)
            cursor = self._database.cursor()
        try:
            with _translating():
                return _Slot(cursor, sql, _parameters_of_select(cursor, sql))
        except BaseException:
            cursor.close()
            raise


class _Exchangeable:
    """An Arrow stream whose content is set before each call; the schema stays."""

    __slots__ = ("schema", "table")

    def __init__(self, table: pa.Table) -> None:
        self.schema = table.schema
        self.table: pa.Table | None = table

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        assert self.table is not None
        return self.table.__arrow_c_stream__(requested_schema)


class _Slot:
    """A cursor of its own for one statement, with the views that the statement reads."""

    __slots__ = ("_parameters", "_relation", "_views", "cursor", "sql")

    def __init__(self, cursor: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[str]) -> None:
        self.cursor = cursor
        self.sql = sql
        self._parameters = parameters
        self._views: dict[str, _Exchangeable] = {}
        self._relation: duckdb.DuckDBPyRelation | None = None

    def bound(self, params: Sequence[Any], sql: str | None = None) -> duckdb.DuckDBPyRelation:
        """The statement, or ``sql`` in its place, bound to its relations and to those of ``params`` that it uses; not run yet.

        A fragment has all parameters of its statement at hand and may use some; DuckDB takes exactly those that the text names.
        """
        if self._parameters:
            try:
                named = {name: params[int(name) - 1] for name in self._parameters}
            except IndexError:
                raise ParameterError(f"the statement uses ${max(map(int, self._parameters))}, but {len(params)} parameters were given") from None
            return self.cursor.sql(sql or self.sql, params=named)
        if sql is not None:
            return self.cursor.sql(sql)
        if self._relation is None:
            self._relation = self.cursor.sql(self.sql)
        return self._relation

    @contextmanager
    def reading(self, relations: Mapping[str, pa.Table], casts: Mapping[str, Sequence[tuple[str, str]]]) -> Iterator[None]:
        """Let the statement see ``relations`` for the length of the block."""
        relations = {name: table if table.num_columns else _with_column(table) for name, table in relations.items()}
        exchangeable = sum(table.num_rows for table in relations.values()) <= _EXCHANGEABLE_ROWS_MAX
        for name, table in relations.items():
            view = self._views.get(name)
            if exchangeable and view is not None and view.schema.equals(table.schema):
                view.table = table
                continue
            self._hide(name)
            if exchangeable:
                self._views[name] = _Exchangeable(table)
            self._show(name, self._views.get(name, table), table.schema, casts.get(name, ()))
        yield
        for name in relations:
            if exchangeable:
                self._views[name].table = None  # the rows of a partition must not outlive the call
            else:
                self._hide(name)

    def _show(self, name: str, rows: object, schema: pa.Schema, casts: Sequence[tuple[str, str]]) -> None:
        # a column that lies in memory otherwise than its cast expects came out wider than planned: DuckDB reads its own type
        needed = [(column, text) for column, text in casts if column in schema.names and schema.field(column).type.equals(arrow_type(text))]
        if not needed:
            self.cursor.register(name, rows)
            return
        self.cursor.register(_raw(name), rows)
        replaced = ", ".join(f"CAST({_quoted(column)} AS {text}) AS {_quoted(column)}" for column, text in needed)
        self.cursor.execute(f"CREATE TEMP VIEW {_quoted(name)} AS SELECT * REPLACE ({replaced}) FROM {_quoted(_raw(name))}")

    def _hide(self, name: str) -> None:
        self._views.pop(name, None)
        self.cursor.execute(f"DROP VIEW IF EXISTS {_quoted(name)}")
        self.cursor.unregister(name)
        self.cursor.unregister(_raw(name))


_default: DuckDBKernel | None = None
_default_lock: Final = threading.Lock()


def default_kernel() -> DuckDBKernel:
    """The kernel of this process, started at the first call."""
    return _default if _default is not None else configure()


def configure(*, memory_limit_bytes: int | None = None, threads: int | None = None, spill_directory: Path | None = None) -> DuckDBKernel:
    """Start the kernel of this process with limits of its own, unless it runs already; returns it.

    Members of one process share it, and its limits. It ends with the process.
    """
    global _default
    with _default_lock:
        if _default is None:
            _default = DuckDBKernel(memory_limit_bytes=memory_limit_bytes, threads=threads, spill_directory=spill_directory)
            atexit.register(_default.close)
        return _default


@contextmanager
def _interruptible(cursor: duckdb.DuckDBPyConnection, cancellation: Cancellation | None) -> Iterator[None]:
    if cancellation is None:
        yield
        return
    cancellation.attach(cursor)
    try:
        yield
    finally:
        cancellation.detach(cursor)


@contextmanager
def _translating() -> Iterator[None]:
    try:
        yield
    except duckdb.Error as error:
        raise translated(error) from error
    except (OverflowError, UnicodeError) as error:
        raise ParameterError(f"a parameter has no SQL value: {error}") from error


def _parameters_of_select(cursor: duckdb.DuckDBPyConnection, sql: str) -> tuple[str, ...]:
    """The numbers of the parameters that a SELECT uses. What is not one SELECT is refused: ``cursor.sql`` would run it at once."""
    statements = cursor.extract_statements(sql)
    if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
        found = ", ".join(statement.type.name for statement in statements) or "no statement"
        raise ProgrammingError(f"the DuckDB kernel answers one SELECT at a time; found {found}")
    names = tuple(statements[0].named_parameters)
    if not all(name.isdecimal() for name in names):
        raise ParameterError(f"parameters of a fragment are numbered, $1 and up; found {', '.join(sorted(names))}")
    return names


def _cast_columns(sql: str, given: Sequence[str], wanted: Sequence[str]) -> str:
    """The statement with the columns cast that Arrow cannot carry. Rows keep their order: DuckDB preserves it through a projection."""
    names = [f"c{index}" for index in range(len(given))]
    items = (name if have == want else f"CAST({name} AS {want})" for name, have, want in zip(names, given, wanted, strict=True))
    return f"SELECT {', '.join(items)} FROM (\n{sql}\n) AS result({', '.join(names)})"


def _with_column(table: pa.Table) -> pa.Table:
    """A table of the same rows that has a column: DuckDB has no table without, yet ``count(*)`` needs no column of its relation."""
    return pa.table({"rows without columns": pa.nulls(table.num_rows, pa.bool_())})


def _raw(name: str) -> str:
    return f"{name} (arrow)"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
