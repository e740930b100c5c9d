"""Makes Spark know the format ``secateur`` without a line of set-up.

When a session first needs a Python data source, PySpark imports every top-level module whose name begins with
``pyspark_`` and registers its ``DefaultSource``. It does so for every session on a machine where secateur is installed,
also for those that never use it, and an exception here would fail them all: so this module imports nothing but PySpark,
and secateur when the format is used.

Source: ``pyspark/sql/worker/lookup_data_sources.py`` of Apache Spark.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):
    """The format ``secateur``; :class:`secateur.spark.SecateurDataSource` has its options."""

    @classmethod
    def name(cls) -> str:
        return "secateur"

    def schema(self) -> StructType:
        """See :meth:`SecateurDataSource.schema`."""
        return self._source.schema()

    def reader(self, schema: StructType) -> Any:
        """See :meth:`SecateurDataSource.reader`."""
        return self._source.reader(schema)

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        """See :meth:`SecateurDataSource.writer`."""
        return self._source.writer(schema, overwrite)

    def streamReader(self, schema: StructType) -> Any:  # noqa: N802 -- Spark's name
        """See :meth:`SecateurDataSource.streamReader`."""
        return self._source.streamReader(schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:  # noqa: N802 -- Spark's name
        """See :meth:`SecateurDataSource.streamWriter`."""
        return self._source.streamWriter(schema, overwrite)

    @property
    def _source(self) -> Any:
        try:
            from secateur.connectors.spark.source import SecateurDataSource
        except ImportError as error:
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"  # of this worker, which ends with its first exception
            raise ImportError(
                f"{error}: Spark runs Python as {sys.executable}, which has not all that secateur needs. Install it"
                " there, or set PYSPARK_PYTHON to the Python that has it, before Spark is started."
            ) from error
        return SecateurDataSource(self.options)
