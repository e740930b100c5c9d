"""The streaming sink of the data source: each batch of a stream is one load, which is published once.

Spark makes a writer for the tasks of each batch, and another one, in a process beside the driver, for the commit. So
the messages of the tasks carry the id of the load. A driver that dies writes its last batch again when it is started
from its checkpoint; the cluster knows the batches that it has published, and drops such a load
(:mod:`secateur.cluster.controller.stream_batches`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from msgspec.structs import replace
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from secateur.connectors.spark.failures import noted_errors
from secateur.connectors.spark.write_mode import WriteMode
from secateur.connectors.spark.writer import PUBLISH_TIMEOUT_S, LoadWriter, StagedTask
from secateur.errors import ProgrammingError
from secateur.protocol.changes import AbortLoad, StreamBatch

_QUERY_PROPERTY: Final = "sql.streaming.queryId"
_BATCH_PROPERTY: Final = "streaming.sql.batchId"


@dataclass(frozen=True)
class StreamTask(WriterCommitMessage):
    """The rows that one task of a batch has staged.

    Attributes:
        load_id: The load of the batch.
        query: The id of the query, which Spark keeps in its checkpoint.
        staged: The rows.
    """

    load_id: str
    query: str
    staged: StagedTask


@dataclass(frozen=True)
class StreamWriter(DataSourceStreamArrowWriter):
    """The batches of one stream into one table.

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
