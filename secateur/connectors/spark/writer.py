"""The writing half of the data source: its modes, how Spark's tasks stage their rows, and how a load ends.

As a streaming sink, it makes one load of each batch of a stream, which is published once.

One object, made while Spark plans the write, is sent to every task, where :meth:`LoadWriter.write` stages rows at the
members. When all tasks have ended, it is sent to one more process beside the driver, where :meth:`LoadWriter.commit`
has the load published or :meth:`LoadWriter.abort` has it dropped.

**Invariant**: a row counts only under the attempt of a task whose message reached ``commit``. A task that failed, was
retried or ran twice at once leaves rows under another attempt, which is never published.

Several tasks may send rows of one partition, and the members sort them, so Spark need not shuffle: to bring the rows of
a partition together first costs more than it saves (``tasks=n`` of :func:`secateur.spark.write` does it all the same).
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import pyarrow as pa
from msgspec.structs import replace
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from secateur.connectors.spark.endpoint import Endpoint
from secateur.connectors.spark.failures import noted_errors
from secateur.connectors.spark.staging import Stager
from secateur.errors import ProgrammingError
from secateur.partitioning.tables.conform import MissingColumns
from secateur.partitioning.tables.row_ids import check_has_key
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.changes import AbortLoad, PublishLoad, StageRows, StreamBatch

_SAVE_MODES: Final = {
    "ignore": "Spark's mode 'ignore' would leave out the whole DataFrame if there is a table",
    "error": "Spark's mode 'error' would refuse every table that is there",
    "errorifexists": "Spark's mode 'errorifexists' would refuse every table that is there",
    "default": "Spark's default mode would refuse every table that is there",
}

PUBLISH_TIMEOUT_S: Final = 3600.0
"""Sorting and merging a large load takes minutes; giving up on a publication that goes on would leave the user in
doubt.
"""


class WriteMode(StrEnum):
    """The treatment of existing rows. The values are the modes of loads."""

    APPEND = "append"
    """Keep them; a key that is there already is an error."""
    OVERWRITE = "overwrite"
    """Replace them all."""
    OVERWRITE_RANGES = "overwrite_ranges"
    """Replace those of each range partition that gets a row, and keep those of others."""
    UPSERT = "upsert"
    """Replace those with the same key."""
    DELETE = "delete"
    """Remove those with the keys of the DataFrame."""

    @classmethod
    def of(cls, mode: str, overwrite_scope: str = "table") -> WriteMode:
        """Read the mode of :func:`secateur.spark.write`.

        Raises:
            ProgrammingError: There is no such mode or scope, or they contradict each other.
        """
        folded = mode.lower()
        if folded in _SAVE_MODES:
            raise ProgrammingError(
                f"{_SAVE_MODES[folded]}, and secateur adds rows to tables: use mode 'append', 'overwrite', 'upsert' or"
                " 'delete'"
            )
        if folded not in ("append", "overwrite", "upsert", "delete"):
            raise ProgrammingError(f"mode {mode!r} does not exist; use 'append', 'overwrite', 'upsert' or 'delete'")
        match overwrite_scope.lower():
            case "table":
                return cls(folded)
            case "partitions" if folded == cls.OVERWRITE:
                return cls.OVERWRITE_RANGES
            case "partitions":
                raise ProgrammingError(f"overwriteScope=partitions goes with mode 'overwrite', not with {mode!r}")
            case _:
                raise ProgrammingError(
                    f"overwriteScope={overwrite_scope!r} does not exist; use 'table' or 'partitions'"
                )

    @classmethod
    def of_options(cls, operation: str | None, overwrite_scope: str | None, *, overwrite: bool) -> WriteMode:
        """Read the options ``operation`` and ``overwriteScope`` beside Spark's save mode.

        Raises:
            ProgrammingError: As :meth:`of`.
        """
        saved = cls.OVERWRITE if overwrite else cls.APPEND
        mode = cls.of(saved if operation is None else operation, overwrite_scope or "table")
        if mode.is_overwrite is not overwrite:
            raise ProgrammingError(
                f'option operation={operation!r} contradicts .mode("{saved}"): upsert and delete go with'
                ' .mode("append"), the others with themselves'
            )
        return mode

    @classmethod
    def of_stream(cls, mode: str | None, *, complete: bool) -> WriteMode:
        """Read the option ``mode`` of a streaming write beside Spark's output mode.

        Raises:
            ProgrammingError: There is no such mode, or they contradict each other.
        """
        if complete:
            if mode is None:
                return cls.OVERWRITE
            raise ProgrammingError(
                f'option mode={mode!r} contradicts outputMode("complete"), in which each batch replaces the whole'
                " table: leave out one of them"
            )
        folded = (mode or cls.APPEND).lower()
        if folded not in (cls.APPEND, cls.UPSERT, cls.DELETE):
            raise ProgrammingError(
                f"option mode={mode!r} does not exist for a stream; use 'append', 'upsert' or 'delete', or"
                ' outputMode("complete") to replace the whole table by each batch'
            )
        return cls(folded)

    @property
    def is_overwrite(self) -> bool:
        return self in (WriteMode.OVERWRITE, WriteMode.OVERWRITE_RANGES)

    def check(self, table: TableDef) -> None:
        """Check that a table can be written so.

        Raises:
            ProgrammingError: It has no range partitions to overwrite, or no primary key by which rows are found.
        """
        if self in (WriteMode.UPSERT, WriteMode.DELETE):
            check_has_key(table, f"{self.value} cannot find its rows")
        if self is WriteMode.OVERWRITE_RANGES and table.scheme.range is None:
            raise ProgrammingError(
                f"table {table.name} has no range partitions, of which some could be overwritten: leave out"
                " overwriteScope, or upsert",
                table=table.name,
            )


@dataclass(frozen=True)
class StagedTask(WriterCommitMessage):
    """The rows that one task has staged: the number of its attempt, and how many there are, by partition."""

    attempt: int
    rows: dict[int, int]


@dataclass(frozen=True)
class LoadWriter(DataSourceArrowWriter):
    """One load into one table.

    Attributes:
        table: The table.
        topology: Its owners.
        endpoint: The cluster, whose controller publishes.
        load_id: The load.
        mode: The treatment of existing rows.
        chunk_bytes: Arrow bytes that a task gathers before it sends.
        report: A file for a report of the published rows, as JSON; None for none. ``commit`` cannot return anything to
            its caller.
        missing: The treatment of columns of the table that the rows lack.
        is_new: Whether the table was created for this load, and goes again if it is aborted.
    """

    table: TableDef
    topology: Topology
    endpoint: Endpoint
    load_id: str
    mode: WriteMode
    chunk_bytes: int
    report: str | None
    missing: MissingColumns
    is_new: bool = False

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedTask:
        """Stage the rows of one task."""
        context = TaskContext.get()
        assert context is not None  # Spark calls this in a task and nowhere else
        attempt, are_keys = context.taskAttemptId(), self.mode is WriteMode.DELETE
        stager = Stager(
            self.table,
            self.topology,
            StageRows(self.load_id, self.table.table_id, attempt, [], are_keys),
            token=self.endpoint.token,
            tls=self.endpoint.tls,
            chunk_bytes=self.chunk_bytes,
            make_ranges=None if are_keys else self._make_ranges,
            missing=self.missing,
        )
        with noted_errors(), stager:
            for batch in iterator:
                stager.add(batch)
            return StagedTask(attempt, stager.finish())

    def _make_ranges(self, table: TableDef, rows: pa.Table) -> tuple[TableDef, Topology]:
        with self.endpoint.session() as session:  # with the client, which tasks load for it
            covered = session.with_ranges_for(table, rows)
            return covered, session.topology_of(covered)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Publish the staged rows in the order of Spark's partitions: of equal keys, an upsert keeps the last."""
        tasks = [message for message in messages if isinstance(message, StagedTask)]
        publish = self.publication(tasks)
        # the report is opened first: if that failed afterwards, Spark would report a published load as failed
        with (
            noted_errors(),
            Path(self.report or os.devnull).open("w") as report,
            self.endpoint.session(timeout_s=PUBLISH_TIMEOUT_S) as session,
        ):
            rows = session.ask(publish).message.rows
            json.dump({"rows": rows, "partitions": len(publish.parts), "tasks": len(tasks)}, report)

    def publication(self, tasks: Iterable[StagedTask]) -> PublishLoad:
        """The request that publishes what tasks have staged, in their order."""
        attempts: defaultdict[int, list[int]] = defaultdict(list)
        for task in tasks:
            for partition in task.rows:
                attempts[partition].append(task.attempt)
        return PublishLoad(self.load_id, self.table.name, self.mode.value, dict(attempts), self.table.table_id)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Drop the rows that the tasks have staged, and a table that was created for them and that nobody else uses."""
        from secateur.client.loads.create_table import drop_unused

        with noted_errors(), self.endpoint.session() as session:
            session.ask(AbortLoad(self.load_id))
            if self.is_new:
                drop_unused(session, self.table)


_QUERY_PROPERTY: Final = "sql.streaming.queryId"
_BATCH_PROPERTY: Final = "streaming.sql.batchId"


@dataclass(frozen=True)
class StreamTask(WriterCommitMessage):
    """The rows that one task of a batch has staged, in the load of the batch.

    ``query`` is the id of the query, which Spark keeps in its checkpoint.
    """

    load_id: str
    query: str
    staged: StagedTask


@dataclass(frozen=True)
class StreamWriter(DataSourceStreamArrowWriter):
    """The batches of one stream into one table.

    Spark makes a writer for the tasks of each batch, and another one, in a process beside the driver, for the commit.
    So the messages of the tasks carry the id of the load. A driver that dies writes its last batch again when it is
    started from its checkpoint; the cluster knows the batches that it has published, and drops such a load
    (:mod:`secateur.cluster.controller.stream_batches`).

    Attributes:
        load: Stages the rows; the id of its load begins those of the batches.
        stream: The name of the stream; None for the id of the query.
    """

    load: LoadWriter
    stream: str | None

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StreamTask:
        """Stage the rows of one task."""
        context = TaskContext.get()
        assert context is not None  # Spark calls this in a task and nowhere else
        query = context.getLocalProperty(_QUERY_PROPERTY)
        with noted_errors():
            if query is None:
                raise ProgrammingError(
                    "Spark does not say which query this batch belongs to, so a batch that comes again could not be"
                    " recognised: write the DataFrame with writeStream and a checkpointLocation, or use df.write for"
                    " a single load"
                )
            load_id = f"{self.load.load_id}-{context.getLocalProperty(_BATCH_PROPERTY)}"
            return StreamTask(load_id, query, dataclasses.replace(self.load, load_id=load_id).write(iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 -- Spark's
        """Publish the rows of a batch, unless that was done before."""
        tasks = [message for message in messages if isinstance(message, StreamTask)]
        if not tasks:
            return
        first = tasks[0]
        publish = dataclasses.replace(self.load, load_id=first.load_id).publication(task.staged for task in tasks)
        if not publish.parts and self.load.mode is not WriteMode.OVERWRITE:
            return
        batch = StreamBatch(self.stream or first.query, first.query, batchId)
        with noted_errors(), self.load.endpoint.session(timeout_s=PUBLISH_TIMEOUT_S) as session:
            session.ask(replace(publish, stream=batch))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 -- Spark's
        """Drop the rows of a batch. Of tasks that have said nothing, members drop them after a while."""
        with noted_errors(), self.load.endpoint.session() as session:
            for load_id in {message.load_id for message in messages if isinstance(message, StreamTask)}:
                session.ask(AbortLoad(load_id))
