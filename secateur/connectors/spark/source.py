"""The data source of format ``secateur``.

Users call :func:`secateur.spark.write` and :func:`secateur.spark.read`; without them, it looks like this::

    df.write.format("secateur").mode("append").options(address=cluster.address, table="flights").save()
    spark.read.format("secateur").options(address=cluster.address, table="flights", where="tailnum = 'N14228'").load()
    spark.readStream.format("secateur").options(address=cluster.address, table="flights", changeFeed="true").load()
    df.writeStream.format("secateur").options(address=cluster.address, table="flights", mode="upsert").start()

Filters of Spark are not pushed into the source (``pushFilters``): PySpark 4.1 to 4.3 keeps one reader for all scans of
a DataFrame, so that the filters of one leave out rows of another, and of every later action
(``tests/system/test_spark.py``). The options say what is to be pruned.

Spark accepts the modes ``append`` and ``overwrite`` for such a source; it refuses the others, including its default.

Spark calls each method in another process. So a method loads what it needs, and not what the others do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from secateur.connectors.spark.failures import noted_errors

if TYPE_CHECKING:
    from secateur.connectors.spark.reader import QueryReader
    from secateur.connectors.spark.stream_reader import ChangesStreamReader
    from secateur.connectors.spark.writer import LoadWriter, StreamWriter


class SecateurDataSource(DataSource):
    """Reads tables and queries as DataFrames, and writes DataFrames into tables.

    Options of both:
        address: ``secateur://host:port`` of the cluster; by default that of the environment, ``SECATEUR_ADDRESS``.
        token: The secret of the cluster, if it has one; by default that of the environment.

    Options of reads:
        table: The table or view; or the name in ``load(...)``.
        columns: Names of its columns, divided by commas; by default all.
        where: A condition in secateur's SQL, which prunes partitions before Spark starts a task.
        query: A SELECT, in place of these three.
        params: Made by :func:`secateur.spark.read`.
        taskBytes: About as many bytes does a task read; by default 64 MiB.
        snapshotSeconds: How long members keep the rows of a DataFrame that nobody reads; by default 600, at most 3600.

    Those of writes are in :mod:`~secateur.connectors.spark.write_options`.
    """

    @classmethod
    def name(cls) -> str:
        return "secateur"

    def schema(self) -> StructType:
        """The columns of what is read, which the planner of the cluster knows.

        Raises:
            NotSupportedError: Spark has no type for a column.
            Error: As :meth:`reader`.
        """
        from secateur.connectors.spark.read_options import check_secrets, is_change_feed, read_options, with_options
        from secateur.connectors.spark.read_plan import query_schema

        with noted_errors():
            check_secrets(self.options)
            if is_change_feed(self.options):
                from secateur.connectors.spark.stream_reader import stream_options, stream_schema

                endpoint, table, *_ = stream_options(self.options)
                return stream_schema(endpoint, table)
            return with_options(query_schema(*read_options(self.options)), self.options)

    def reader(self, schema: StructType) -> QueryReader:
        """Prepare a read; partitions are pruned when Spark plans the job.

        Raises:
            ProgrammingError: An option is missing, unknown, or contradicts another.
            Error: The planner refuses the query, or the cluster cannot be reached.
        """
        from secateur.connectors.spark.read_options import read_options
        from secateur.connectors.spark.reader import QueryReader

        with noted_errors():
            return QueryReader(*read_options(self.options, schema), schema)

    def writer(self, schema: StructType, overwrite: bool) -> LoadWriter:
        """Prepare a load.

        Raises:
            Error: As ``load_writer``.
        """
        from secateur.connectors.spark.read_options import TUNING_OPTIONS, given_options
        from secateur.connectors.spark.write_options import load_writer

        with noted_errors():
            # Not the options in the columns of a table of Spark's catalog: it may be the table that is read.
            return load_writer(given_options(self.options), schema, overwrite=overwrite, ignored=TUNING_OPTIONS)

    def streamReader(self, schema: StructType) -> ChangesStreamReader:  # noqa: N802 -- Spark's name
        """Follow the changes of a table.

        Raises:
            Error: As ``stream_options``.
        """
        from secateur.connectors.spark.stream_reader import ChangesStreamReader, stream_options

        with noted_errors(is_last=False):  # Spark stops the reader that it did not get
            endpoint, table, since, limit = stream_options(self.options)
            return ChangesStreamReader(endpoint, table, since, schema, limit)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802 -- Spark's name
        """Prepare to write the next batch of a stream; Spark calls this for every batch.

        Raises:
            Error: As ``stream_writer``.
        """
        from secateur.connectors.spark.read_options import given_options
        from secateur.connectors.spark.write_options import stream_writer

        with noted_errors():
            return stream_writer(given_options(self.options), schema, complete=overwrite)
