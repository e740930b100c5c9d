"""The streaming source of the data source: the change feed of a table, in micro-batches, and its options.

Spark asks one process for offsets, and has the tasks of each batch read between two of them. An offset is a position in
the change feed, which means the same at every member; so a batch that is read again, after a failure or from the
checkpoint, has the same changes, as long as they are kept.

==================  ====================================================================================
option              meaning
==================  ====================================================================================
address, token      of the cluster, as for reads; tlsCa and tlsServerName likewise
table               the table, which was created ``WITH (change_feed = true)``
changeFeed          ``true``: Spark asks for columns before it says that they are for a stream
startingPosition    where a query without a checkpoint begins: ``latest`` (the default), ``earliest``,
                    or the text of a position of ``conn.changes``
maxRowsPerTrigger   about so many rows of changes has a batch at most; or
maxBytesPerTrigger  about so many bytes of them: one of the two, with Spark 4.2 or later
==================  ====================================================================================

The limits of batches are those of Spark 4.2 and later. Spark 4.1 has none: its streams take all that there is with
every batch, and an option that limits them is refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from secateur.client.changes import Changes, ChangesBounder, ChangesReader, Position
from secateur.client.execution.execute import execute
from secateur.client.session import Session
from secateur.connectors.spark.endpoint import Endpoint
from secateur.connectors.spark.failures import noted_errors
from secateur.connectors.spark.read_options import given_options, is_change_feed, positive
from secateur.connectors.spark.read_plan import spark_schema
from secateur.connectors.spark.result_rows import spark_batches
from secateur.errors import NotSupportedError, ProgrammingError
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.statements import ResultColumn
from secateur.storage.change_feed import CHANGE_TYPE, COMMIT_VERSION

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxBytes,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # Spark 4.1
    ReadAllAvailable = ReadMaxBytes = ReadMaxRows = None
    SupportsTriggerAvailableNow = object

_POSITION: Final = "position"
_LIMITS: Final = ("maxRowsPerTrigger", "maxBytesPerTrigger")
_OPTIONS: Final = ("address", "token", "tlsCa", "tlsServerName", "table", "changeFeed", "startingPosition", *_LIMITS)


@dataclass(frozen=True, slots=True)
class BatchLimit:
    """About so many rows, or bytes of rows, are wanted with a batch."""

    size_max: int
    in_rows: bool

    @classmethod
    def of_spark(cls, limit: Any) -> BatchLimit | None:
        """Read the limit that Spark gives to a batch; None for none, and from a Spark without limits."""
        if ReadMaxRows is not None and isinstance(limit, ReadMaxRows):
            return cls(limit.max_rows, in_rows=True)
        if ReadMaxBytes is not None and isinstance(limit, ReadMaxBytes):
            return cls(limit.max_bytes, in_rows=False)
        return None

    @staticmethod
    def to_spark(limit: BatchLimit | None) -> Any:
        """The limit as Spark has it.

        Raises:
            NotSupportedError: This Spark has none.
        """
        if ReadMaxRows is None:
            if limit is None:
                return None
            raise NotSupportedError(
                "options maxRowsPerTrigger and maxBytesPerTrigger need Spark 4.2 or later: this one takes all changes"
                " that there are with every batch; leave them out"
            )
        if limit is None:
            return ReadAllAvailable()
        return ReadMaxRows(limit.size_max) if limit.in_rows else ReadMaxBytes(limit.size_max)


def stream_options(options: Mapping[str, str]) -> tuple[Endpoint, str, str | None, BatchLimit | None]:
    """Read the options of ``spark.readStream``.

    Returns:
        The cluster, the table, where to begin: None for now; and how much a batch is to have: None for all there is.

    Raises:
        ProgrammingError: An option is missing or unknown, or there are two limits.
        NotSupportedError: There is a limit, and this Spark has none.
        InterfaceError: There is no address.
    """
    given = given_options(options)
    unknown = sorted(given.keys() - {name.casefold() for name in _OPTIONS})
    if unknown:
        raise ProgrammingError(
            f"format secateur has no option {', '.join(unknown)} to read a stream with; it has {', '.join(_OPTIONS)}"
        )
    table = given.get("table")
    if not table or not is_change_feed(options):
        raise ProgrammingError(
            'a stream is of the changes of a table: .option("table", ...).option("changeFeed", "true"), where the table'
            " was created WITH (change_feed = true)"
        )
    since = given.get("startingposition", "latest").strip()
    return Endpoint.of_options(given), table, None if since.lower() == "latest" else since, _limit(given)


def _limit(given: Mapping[str, str]) -> BatchLimit | None:
    limits = [
        BatchLimit(positive(option, given[option.casefold()]), in_rows=option == _LIMITS[0])
        for option in _LIMITS
        if option.casefold() in given
    ]
    if len(limits) > 1:
        raise ProgrammingError(f"options {' and '.join(_LIMITS)} limit the same batches: leave one out")
    if not limits:
        return None
    BatchLimit.to_spark(limits[0])  # refuses it, if this Spark has no limits
    return limits[0]


@dataclass(frozen=True)
class ChangesTask(InputPartition):
    """Some partitions of a table, each with the version behind which its changes begin and that of the last."""

    table: TableDef
    after: Mapping[int, int]
    until: Mapping[int, int]


def feed_columns(table: TableDef) -> tuple[ResultColumn, ...]:
    """The columns of a change feed."""
    columns = [ResultColumn(column.name, str(column.type)) for column in table.visible_columns]
    return (*columns, ResultColumn(CHANGE_TYPE, "VARCHAR"), ResultColumn(COMMIT_VERSION, "BIGINT"))


def stream_schema(endpoint: Endpoint, table: str) -> StructType:
    """The columns of the changes of a table.

    Raises:
        UnknownTableError: There is no such table.
        NotSupportedError: Spark has no type for a column.
        Error: The cluster cannot be reached.
    """
    with endpoint.session() as session:
        return spark_schema(feed_columns(session.outlined_table(table)))


class ChangesStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the changes of one table.

    ``since`` is where a query without a checkpoint begins: a position, ``"earliest"``, or None for now. ``limit`` is
    how much a batch is to have; None for all there is.
    """

    def __init__(
        self, endpoint: Endpoint, table: str, since: str | None, schema: StructType, limit: BatchLimit | None = None
    ) -> None:
        self._endpoint = endpoint
        self._table = table
        self._since = since
        self._schema = schema
        self._limit = limit
        self._last: Position | None = None

    def initialOffset(self) -> dict[str, str]:  # noqa: N802 -- Spark's name
        """Returns the offset at which a query without a checkpoint begins."""
        return self._position(self._since)

    def getDefaultReadLimit(self) -> Any:  # noqa: N802 -- Spark's name
        """Returns the limit of a batch, unless its trigger wants all there is; Spark 4.1 does not ask."""
        return BatchLimit.to_spark(self._limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 -- Spark's name
        """The query is to end with the changes that there are now."""
        self._last = Position.parse(self._position(None)[_POSITION])

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """Behind the changes of the next batch.

        Args:
            start: Behind those of the batch before; Spark 4.1 does not give it, nor the limit.
            limit: A limit of Spark.
        """
        bound = BatchLimit.of_spark(limit)
        if start is None or bound is None:
            return self._position(None) if self._last is None else {_POSITION: str(self._last)}
        first = Position.parse(start[_POSITION])
        with noted_errors(), self._endpoint.session() as session:
            table = session.table(self._table)
            _check_same(table, first)
            reached = execute(
                ChangesBounder(session, table, first, bound.size_max, in_rows=bound.in_rows, until=self._last)
            )
        return {_POSITION: str(reached)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The tasks of a batch: one for each member that owns partitions with changes."""
        first, last = Position.parse(start[_POSITION]), Position.parse(end[_POSITION])
        with noted_errors(), self._endpoint.session() as session:
            table = session.table(self._table)
            _check_same(table, first, last)
            ownership = session.topology_of(table).ownership(table.scheme.affinity_group())
            shares: defaultdict[str, list[int]] = defaultdict(list)
            for partition, until in last.versions.items():
                if until > first.versions.get(partition, 0):
                    shares[ownership.primary(partition)].append(partition)
        return [
            ChangesTask(
                table,
                {partition: first.versions.get(partition, 0) for partition in share},
                {partition: last.versions[partition] for partition in share},
            )
            for share in shares.values()
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The changes of one task."""
        if not isinstance(partition, ChangesTask):
            return  # Spark starts one task for no partitions
        columns = feed_columns(partition.table)
        with noted_errors(), self._endpoint.session() as session:
            for table in _one_ahead(session, partition):
                yield from spark_batches(table, columns, self._schema)

    def _position(self, since: str | None) -> dict[str, str]:
        with noted_errors(), self._endpoint.session() as session:
            changes = Changes(session, session.table(self._table), since, follow=False)
            return {_POSITION: str(changes.position)}


def _check_same(table: TableDef, *positions: Position) -> None:
    if any(position.table_id != table.origin for position in positions):
        raise ProgrammingError(
            f"table {table.name} was dropped and created again since this query began: start a query with a new"
            " checkpoint",
            table=table.name,
        )


def _one_ahead(session: Session, task: ChangesTask) -> Iterator[pa.Table]:
    """The changes of a task, of which the members send one answer more while Spark takes the one before."""
    reader = ChangesReader(session, task.table, 0, dict(task.after), task.until)
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(execute, reader)
        while True:
            batch, _ = coming.result()
            is_last = reader.is_done
            if not is_last:
                coming = thread.submit(execute, reader)
            if batch is not None:
                yield pa.Table.from_batches([batch])
            if is_last:
                return
