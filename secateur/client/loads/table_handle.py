"""A table as a Python object: its schema, its partitions, and loads into it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, Unpack, overload

import pyarrow as pa

from secateur.client.copy.load_options import FileKeywords, FileOptions
from secateur.client.dbapi.shown_rows import html_records
from secateur.client.key_value.get import get_row, get_rows
from secateur.client.key_value.tables import KeyTable
from secateur.client.key_value.writes import delete_rows, put_rows
from secateur.client.loads.arrow_data import as_table
from secateur.client.loads.create_table import dropped_on_failure
from secateur.client.loads.load import LoadMode, Progress, load_rows
from secateur.client.loads.load_progress import progress_line
from secateur.client.session import Session
from secateur.errors import (
    DataError,
    Error,
    NoRangeError,
    NullKeyError,
    ParameterError,
    TopologyChangedError,
    forget_frames,
)
from secateur.partitioning.schemes.components import ROW_ID
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.tables.conform import MissingColumns
from secateur.partitioning.tables.row_ids import check_writable
from secateur.partitioning.tables.statistics import TableStatistics
from secateur.partitioning.tables.table import Column, TableDef
from secateur.protocol.catalog import RefreshStatistics
from secateur.tracing import operation_span

Mode: TypeAlias = Literal["append", "overwrite", "overwrite_ranges", "upsert", "ignore"]


class TableHandle:
    """One table of the cluster, as it was when :meth:`~secateur.client.dbapi.connection.Connection.table` was called.

    Of a table with many ranges, the handle fetches those of the keys that it is asked for; :attr:`definition` and
    :attr:`scheme` have them all, and fetch them at their first use.

    Args:
        session: The connection.
        table: The table, of a large scheme as much as the session knows.
    """

    def __init__(self, session: Session, table: TableDef) -> None:
        self._table = table
        self._session = session
        self._rows: KeyTable | None = None

    @property
    def definition(self) -> TableDef:
        """Columns, primary key, scheme with all ranges, copies.

        Fetched again when it turns out that the ranges have changed.
        """
        if self._table.scheme.partial is not None:
            self._table = self._session.table(self.name)
        return self._table

    @property
    def name(self) -> str:
        return self._table.name

    @property
    def schema(self) -> pa.Schema:
        """The columns as Arrow has them: what queries return and loads are converted to."""
        return self._table.visible_schema

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns with their SQL types, in order."""
        return self._table.visible_columns

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The columns of the primary key, in order; none for a table without one."""
        return self._table.declared_key

    @property
    def scheme(self) -> PartitionScheme:
        return self.definition.scheme

    @property
    def partitions(self) -> int:
        """The number of partitions; their ids are below it."""
        return self._table.partition_count

    def partition_of(self, key: Mapping[str, Any]) -> int:
        """The partition of the row with these key values.

        Args:
            key: Values by column name, at least for the partitioning key; further columns of the table are ignored.
                Values are converted to the column's type where that is exact.

        Raises:
            ParameterError: A partitioning column is missing, or the table spreads its rows at random.
            UnknownColumnError: A name that the table does not have.
            DataError: A value that its column cannot hold.
            NullKeyError: A value is NULL; partitioning columns are NOT NULL.
            NoRangeError: No range partition holds it.
        """
        if not isinstance(key, Mapping):
            raise ParameterError(
                f"partition_of takes a mapping of column names to values, such as {{{self._example()}}}, not a"
                f" {type(key).__name__}"
            )
        if len(self._partitioning) < len(self._table.scheme.columns):
            raise ParameterError(
                f"table {self.name} spreads its rows at random, so no values tell the partition of a row: create it"
                " with PARTITION BY HASH (columns)",
                table=self.name,
            )
        for name, value in key.items():
            column = self._table.visible_column(name)
            if value is None and not column.nullable:
                raise NullKeyError(
                    f"table {self.name}: column {column.name} is NOT NULL; no row has NULL there",
                    table=self.name,
                    column=column.name,
                )
        used = self._table
        try:
            return self._partition_of(key)
        except TopologyChangedError:  # the table has other ranges by now than those that were to be fetched
            self._refresh(used)
        except NoRangeError:
            if not self._refresh(used):
                raise
        return self._partition_of(key)

    def statistics(self) -> TableStatistics:
        """Collect the number of rows and the estimated number of distinct values of each column now.

        The planner uses the result from then on.

        The planner collects statistics on its own, and again when more than a fifth of the rows have changed. Call this
        to read them, or not to wait. Costs the members some 15 ms a column for large tables.

        Raises:
            UnknownTableError: The table has been dropped.
            OperationalError: A member could not be reached.
        """
        return self._session.ask(RefreshStatistics(self.name)).message.statistics

    def owner_of(self, partition: int) -> str:
        """The id of the member that serves a partition now. Every member serves a replicated table; its first is named.

        Raises:
            ParameterError: There is no such partition.
            PartitionLostError: No member is left.
        """
        if isinstance(partition, bool) or not hasattr(partition, "__index__"):
            raise ParameterError(f"a partition is a number, not {partition!r}")
        number = partition.__index__()
        topology = self._session.topology
        if not self._table.replicated and self._table.scheme.affinity_group() not in topology.owners:
            self._refresh(self._table)
            topology = self._session.topology
        if not 0 <= number < self.partitions:
            raise ParameterError(
                f"table {self.name} has the partitions 0 to {self.partitions - 1}; there is no {number}",
                table=self.name,
            )
        if not self._table.scheme.is_live(number):
            raise ParameterError(f"partition {number} of table {self.name} was dropped with its range", table=self.name)
        if self._table.replicated:
            topology.check_any()
            return topology.member_ids[0]
        group = self._table.scheme.affinity_group()
        return self._session.when_known(lambda: self._session.topology.ownership(group).primary(number))

    def load(
        self,
        data: Any,
        mode: Mode = "append",
        *,
        missing: Literal["null"] | None = None,
        progress: bool | Progress | None = None,
        **file: Unpack[FileKeywords],
    ) -> int:
        """Load rows: all of them become visible at once, or none.

        Args:
            data: A pyarrow Table, RecordBatch, RecordBatchReader or Dataset, a list or iterator of RecordBatches, a
                pandas or polars DataFrame, a polars LazyFrame, anything else with ``__arrow_c_stream__``, a dict of
                columns, a list of dicts, one a row, or the path of a Parquet, CSV, JSON or Arrow file. Columns are
                matched by name without regard to case and converted where that is exact.
            mode: ``"append"`` (a key that is there already is an error), ``"overwrite"`` (replaces all rows of the
                table), ``"overwrite_ranges"`` (replaces those of each range partition that gets a row), ``"upsert"``
                (replaces rows with the same key) or ``"ignore"`` (leaves out rows whose key is there already).
            missing: The treatment of columns of the table that the data do not have. An upsert keeps their values in
                rows that are there, and has their default, or NULL, in new ones. In every other mode they have their
                default, and without one are an error. ``"null"`` has the default or NULL in all rows. A column that
                is NOT NULL and has no default has to be there in any case.
            progress: True shows a line on ``sys.stderr``; a function is called with the rows sent so far, after each
                chunk of about 32 MiB.
            file: How a file is written: ``delimiter=";"``, ``date_format="%d/%m/%Y"`` and all others of
                :class:`~secateur.client.copy.load_options.FileOptions`.

        Returns:
            Rows loaded.

        Raises:
            DuplicateKeyError: An appended key is there already, or given twice.
            DataError: A value that its column cannot hold; NullKeyError, NoRangeError and UnknownColumnError likewise.
            LoadFailedError: A member could not be reached. After all of these the table is as it was.
            ProgrammingError: There is no such mode, or no such file.
        """
        if isinstance(data, (str, os.PathLike)):
            from secateur.client.copy.table_file import open_table_file  # it reads CSV with DuckDB

            with open_table_file(Path(data), FileOptions(**file), self.columns, same_names=missing is None) as opened:
                return self.load(opened.reader, mode, missing=missing, progress=progress)
        if file:
            raise ParameterError(f"{', '.join(file)}: for the path of a file, and the data are none: leave it out")
        load_mode = LoadMode.of(mode)
        lacking = MissingColumns.of_load(missing, is_upsert=load_mode is LoadMode.UPSERT)
        types = {column.name.casefold(): column.type for column in self.columns}
        # Of an upsert that keeps columns, all rows keep the same ones.
        made = {} if lacking is MissingColumns.KEPT else self._table.defaults
        defaults = {name.casefold(): default for name, default in made.items()}
        now = datetime.now(UTC)
        table = as_table(data, types, rows_name_all=missing is None, defaults=defaults, now=now)
        check_writable(table.schema, self._table)
        if load_mode is LoadMode.OVERWRITE and not table.schema.names and not isinstance(data, (list, tuple, Iterator)):
            raise DataError(
                f"table {self.name}: the {type(data).__name__} has no columns: give those of the table, or TRUNCATE it",
                table=self.name,
            )
        total = table.num_rows if isinstance(table, pa.Table) else None
        try:
            with progress_line(self.name, total, progress) as report, self._traced("load") as describe:
                given = self._session, self._table, table, load_mode
                rows = load_rows(*given, missing=lacking, progress=report, now=now).rows
                if describe is not None:
                    describe({"secateur.mode": mode, "secateur.rows": rows})
                return rows
        except Error as error:
            forget_frames(error)
            raise

    @contextmanager
    def dropped_on_failure(self) -> Iterator[Self]:
        """Enclose the first load into a table that was created for it: if the load fails, the table is dropped again.

        ``with conn.create_table("orders", df, primary_key=["id"]).dropped_on_failure() as table: table.load(df)``. A
        table that somebody else has begun to use stays: one that has ever got a row, for which a load has sent rows, or
        that has an index or a view.
        """
        with dropped_on_failure(self._session, self._table):
            yield self

    @overload
    def get(self, key: Mapping[str, Any], /) -> dict[str, Any] | None: ...

    @overload
    def get(self, key: Any, /) -> tuple[Any, ...] | None: ...

    @overload
    def get(self, /, **columns: Any) -> dict[str, Any] | None: ...

    def get(self, key: Any = None, /, **columns: Any) -> tuple[Any, ...] | dict[str, Any] | None:
        """The row with a primary key, read from the member that owns it, without SQL.

        Args:
            key: The value of a key of one column, such as ``get(7)``; otherwise a tuple of values in key order, or a
                mapping of column names to values. Values are converted to the column's type where that is exact.
            columns: In place of ``key``, the values by column name: ``get(customer_id=7, order_id=3)``.

        Returns:
            All columns as Python values, in the form of the key: for a mapping or column names a dict by the names of
            the columns, otherwise the tuple that a cursor returns for ``SELECT * FROM t WHERE key = ?``. None if there
            is no such row.

        Raises:
            ParameterError: Another number of values than the key has columns, or other names.
            DataError: A value that its column cannot hold; it names the column.
            NullKeyError: A value is NULL.
            UnknownTableError: The table has been dropped.
            OperationalError: As for a SELECT: the members could not be reached for longer than 10 s, the statement
                timeout has passed, or the call was interrupted.

        Cost: one round trip to one member. Every acknowledged write is seen, and no other.
        """
        try:
            if not self._session.is_traced:
                return get_row(self._by_key, _one_key(key, columns))
            with operation_span("get", self.name):
                return get_row(self._by_key, _one_key(key, columns))
        except Error as error:
            forget_frames(error)
            raise

    @overload
    def get_many(self, keys: Iterable[Mapping[str, Any]]) -> list[dict[str, Any] | None]: ...

    @overload
    def get_many(self, keys: Iterable[Any]) -> list[tuple[Any, ...] | None]: ...

    def get_many(self, keys: Iterable[Any]) -> Any:
        """The rows with some primary keys, with one request to each member that owns some of them.

        Each row is as it was at one moment, different rows perhaps at different ones.

        Args:
            keys: Each as for :meth:`get`.

        Returns:
            For each key its row in the form of the key, in the order of the keys; None where there is none.

        Raises:
            Error: As :meth:`get`.
        """
        wanted = list(keys)
        with self._traced("get", len(wanted)):
            return get_rows(self._by_key, wanted)

    def put(self, row: Mapping[str, Any] | Sequence[Any], *, missing: Literal["null"] | None = None) -> None:
        """Write a row without SQL: it is added, or replaces the row with its key.

        It has the guarantees of INSERT OR REPLACE: when this returns, all copies that the cluster counts on have the
        row, and it was written once, however often it was sent.

        Args:
            row: A mapping of column names to values, or a tuple of all values in the order of the columns. Values are
                converted where that is exact.
            missing: ``"null"`` has NULL in the columns that the row does not name. Without it, a row that is there
                keeps their values, and a new one has NULL.

        Raises:
            ParameterError: Another number of values than the table has columns.
            UnknownColumnError: A name that the table does not have.
            DataError: A value that its column cannot hold; it names the column.
            NullKeyError: NULL, or nothing, for a column that is NOT NULL.
            NoRangeError: No range partition holds the row.
            OperationalError: As for INSERT OR REPLACE.

        Cost: one round trip to the primary of the row, and one from it to each backup; of a replicated table, a load.
        """
        try:
            if not self._session.is_traced:
                put_rows(self._by_key, [row], missing)
                return
            with operation_span("put", self.name):
                put_rows(self._by_key, [row], missing)
        except Error as error:
            forget_frames(error)
            raise

    def put_many(
        self, rows: Iterable[Mapping[str, Any] | Sequence[Any]], *, missing: Literal["null"] | None = None
    ) -> None:
        """Write some rows: all of them become visible at once, or none. Of rows with the same key the last one counts.

        Args:
            rows: Each as for :meth:`put`, all with the same columns. For many rows, :meth:`load` takes Arrow, pandas
                and files.
            missing: As for :meth:`put`; with ``"null"``, rows may name different columns.

        Raises:
            Error: As :meth:`put`; nothing was written then.
        """
        given = list(rows)
        try:
            if given:
                with self._traced("put", len(given)):
                    put_rows(self._by_key, given, missing)
        except Error as error:
            forget_frames(error)
            raise

    def delete(self, key: Any = None, /, **columns: Any) -> bool:
        """Delete the row with a primary key without SQL; whether there was one.

        It has the guarantees of DELETE, as :meth:`put` has those of INSERT.

        Args:
            key: As for :meth:`get`.
            columns: As for :meth:`get`.

        Raises:
            Error: As :meth:`get`; if an answer was lost, an OperationalError that says so.
        """
        if not self._session.is_traced:
            return bool(delete_rows(self._by_key, [_one_key(key, columns)]))
        with operation_span("delete", self.name):
            return bool(delete_rows(self._by_key, [_one_key(key, columns)]))

    def delete_many(self, keys: Iterable[Any]) -> int:
        """Delete the rows with some primary keys; returns how many there were.

        The rows of one partition go at once, those of different ones do not; an error does not undo what was deleted
        before it.

        Args:
            keys: Each as for :meth:`get`.

        Raises:
            Error: As :meth:`delete`.
        """
        given = list(keys)
        with self._traced("delete", len(given)):
            return delete_rows(self._by_key, given)

    def _repr_html_(self) -> str:
        """Show its columns and their places in the keys in a notebook; nothing is asked of the cluster."""
        key, partitioning = self._table.declared_key, self._table.scheme.columns
        rows = (
            (
                column.name,
                column.type,
                "" if column.nullable else "NOT NULL",
                key.index(column.name) + 1 if column.name in key else "",
                partitioning.index(column.name) + 1 if column.name in partitioning else "",
            )
            for column in self.columns
        )
        names = ("column", "type", "", "in the primary key", "in the partitioning key")
        return f"<pre>{escape(repr(self))}</pre>{html_records(names, rows)}"

    def __repr__(self) -> str:
        kind = (
            "replicated"
            if self._table.replicated
            else f"{self.partitions} partitions by {', '.join(self._partitioning) or 'random'}"
        )
        return f"<Table {self.name}: {len(self.columns)} columns, {kind}>"

    def _traced(
        self, operation: str, count: int | None = None
    ) -> AbstractContextManager[Callable[[Mapping[str, Any]], None] | None]:
        """Trace an operation on several rows; those on one row look at the session themselves, which costs less."""
        return operation_span(operation, self.name, count) if self._session.is_traced else nullcontext()

    @property
    def _by_key(self) -> KeyTable:
        rows = self._rows
        if rows is None:
            rows = self._rows = KeyTable(self._session, self._table)
        return rows

    def _partition_of(self, key: Mapping[str, Any]) -> int:
        return self._session.when_known(lambda: self._table.scheme.newest().partition_of(key))

    def _refresh(self, used: TableDef) -> bool:
        """Fetch the table again; whether it is another than the one used, which other threads may have replaced."""
        self._table = newest = self._session.outlined_table(self.name)
        return (used.table_id, used.version) != (newest.table_id, newest.version)

    def _example(self) -> str:
        return ", ".join(f"{name!r}: ..." for name in self._partitioning)

    @property
    def _partitioning(self) -> list[str]:
        """The partitioning columns that users see."""
        return [name for name in self._table.scheme.columns if name != ROW_ID]


def _one_key(key: Any, columns: Mapping[str, Any]) -> Any:
    """The key of a call that names one in one of two ways.

    Raises:
        ParameterError: It names it in both.
    """
    if not columns:
        return key
    if key is not None:
        raise ParameterError("give a key either as one argument or by column names, not both")
    return columns
