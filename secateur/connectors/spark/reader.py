"""The reading half of the data source: what is pruned, which tasks there are, and what each of them reads.

Spark makes the reader and calls :meth:`QueryReader.partitions` in a Python process of its own, once for each DataFrame;
the tasks call :meth:`QueryReader.read` in others. So everything is pruned, and the moment whose rows all tasks read is
settled, before Spark starts a task.

A task loads this file and no client, unless it needs one: that costs a fresh worker more than many a task takes.

**Invariant**: all tasks of a DataFrame, first runs, retries and later actions on it alike, read rows of one moment.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from secateur.connectors.spark.endpoint import Endpoint
from secateur.connectors.spark.failures import noted_errors
from secateur.connectors.spark.read_values import QueryTask, ReadOptions, RowsTask, SnapshotTask
from secateur.connectors.spark.result_rows import spark_batches
from secateur.protocol.arrow_ipc import decode_table

_RESULT_ROWS: Final = 65_536


class QueryReader(DataSourceReader):
    """Reads a query."""

    def __init__(self, endpoint: Endpoint, options: ReadOptions, schema: StructType) -> None:
        self._endpoint = endpoint
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Prune, open the snapshot, and divide it into tasks.

        Returns:
            Tasks for partitions that are required and have rows, and no others; possibly none.
        """
        from secateur.connectors.spark.read_plan import plan_tasks

        with noted_errors():
            tasks = plan_tasks(self._endpoint, self._options)
        _spare_the_collector()
        return tasks

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        with noted_errors():
            match partition:
                case RowsTask(rows=rows, columns=columns):
                    yield from spark_batches(decode_table(rows, ranges=False), columns, self._schema)
                case SnapshotTask(rows=rows, columns=columns):
                    from secateur.connectors.spark.member_reader import MemberReader  # with the wire

                    with MemberReader(self._endpoint, rows) as reader:
                        for table in reader.tables():
                            yield from spark_batches(table, columns, self._schema)
                case QueryTask():
                    yield from self._rows_of_query()
                case _:
                    return  # Spark starts one task for no partitions

    def _rows_of_query(self) -> Iterator[pa.RecordBatch]:
        from secateur.client.dbapi.connection import Connection

        options = self._options
        with self._endpoint.session(timeout_s=None) as session, Connection(session) as connection:
            cursor = connection.execute(options.sql, options.params)
            assert cursor.description is not None
            columns = [(column[0], column[1]) for column in cursor.description]
            for batch in cursor.fetch_record_batch(_RESULT_ROWS):
                yield from spark_batches(pa.Table.from_batches([batch]), columns, self._schema)


def _spare_the_collector() -> None:
    """Have the collections to come leave out what this process has loaded.

    Spark collects all garbage after each use of a planning process, while it starts the job: with the files of the
    client loaded, for 27 ms of a core, nearly as long as everything else that a read of one key does in Python.
    """
    if os.environ.get("SPARK_REUSE_WORKER") and not gc.get_freeze_count():
        gc.freeze()
