"""A table as a Python object: its schema, its partitions, and loads into it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from secateur.client.loads.arrow_data import as_table
from secateur.client.loads.load import LoadMode, Progress, load_rows
from secateur.client.session import Session
from secateur.errors import NoRangeError, NullKeyError, ParameterError
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.tables.statistics import TableStatistics
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.catalog import RefreshStatistics

__all__ = ["TableHandle"]


class TableHandle:
    """One table of the cluster, as it was when :meth:`~secateur.client.dbapi.connection.Connection.table` was called.

    Attributes:
        definition: Columns, primary key, scheme, copies. Fetched again when it turns out that the ranges have changed.
    """

    def __init__(self, session: Session, definition: TableDef) -> None:
        self.definition = definition
        self._session = session

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def schema(self) -> pa.Schema:
        """The columns as Arrow has them: what queries return and loads are converted to."""
        return self.definition.arrow_schema

    @property
    def primary_key(self) -> tuple[str, ...]:
        return self.definition.primary_key

    @property
    def scheme(self) -> PartitionScheme:
        return self.definition.scheme

    @property
    def partitions(self) -> int:
        """How many partitions there are; ids are below it."""
        return self.definition.partition_count

    def partition_of(self, key: Mapping[str, Any]) -> int:
        """The partition of the row with these key values.

        Args:
            key: Values by column name, at least for the partitioning key; further columns of the table are ignored.
                Values are converted to the column's type where that is exact.

        Raises:
            ParameterError: A partitioning column is missing.
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
        for name, value in key.items():
            column = self.definition.column(name)
            if value is None and not column.nullable:
                raise NullKeyError(
                    f"table {self.name}: column {column.name} is NOT NULL; no row has NULL there",
                    table=self.name,
                    column=column.name,
                )
        try:
            return self.definition.scheme.partition_of(key)
        except NoRangeError:
            if not self._refresh():
                raise
            return self.definition.scheme.partition_of(key)

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
        """
        if isinstance(partition, bool) or not hasattr(partition, "__index__"):
            raise ParameterError(f"a partition is a number, not {partition!r}")
        number = partition.__index__()
        topology = self._session.topology
        if not self.definition.replicated and self.definition.scheme.affinity_group() not in topology.owners:
            self._refresh()
            topology = self._session.topology
        if not 0 <= number < self.partitions:
            raise ParameterError(
                f"table {self.name} has the partitions 0 to {self.partitions - 1}; there is no {number}",
                table=self.name,
            )
        if not self.definition.scheme.is_live(number):
            raise ParameterError(f"partition {number} of table {self.name} was dropped with its range", table=self.name)
        if self.definition.replicated:
            return topology.member_ids[0]
        group = self.definition.scheme.affinity_group()
        return self._session.when_known(lambda: self._session.topology.ownership(group).primary(number))

    def load(self, data: Any, mode: str = "append", *, progress: Progress | None = None) -> int:
        """Load rows: all of them become visible at once, or none.

        Args:
            data: A pyarrow Table, RecordBatch or RecordBatchReader, a pandas or polars DataFrame, anything else with
                ``__arrow_c_stream__``, a dict of columns, or a list of dicts, one a row. Columns are matched by name
                without regard to case and converted where that is exact; nullable columns may be missing.
            mode: ``"append"`` (a key that is there already is an error), ``"overwrite"`` (replaces all rows of the
                table), ``"upsert"`` (replaces rows with the same key) or ``"ignore"`` (leaves out rows whose key is
                there already).
            progress: Called with the rows sent so far, after each chunk of about 32 MiB.

        Returns:
            Rows loaded.

        Raises:
            DuplicateKeyError: An appended key is there already, or given twice.
            DataError: A value that its column cannot hold; NullKeyError, NoRangeError and UnknownColumnError likewise.
            LoadFailedError: A member could not be reached. After all of these the table is as it was.
            ProgrammingError: There is no such mode.
        """
        return load_rows(self._session, self.definition, as_table(data), LoadMode.of(mode), progress=progress).rows

    def __repr__(self) -> str:
        kind = (
            "replicated"
            if self.definition.replicated
            else f"{self.partitions} partitions by {', '.join(self.scheme.columns)}"
        )
        return f"<Table {self.name}: {len(self.definition.columns)} columns, {kind}>"

    def _refresh(self) -> bool:
        """Fetch the definition again; whether it is another."""
        before, self.definition = self.definition, self._session.table(self.name)
        return (before.table_id, before.version) != (self.definition.table_id, self.definition.version)

    def _example(self) -> str:
        return ", ".join(f"{name!r}: ..." for name in self.scheme.columns)
