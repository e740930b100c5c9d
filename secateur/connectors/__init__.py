"""Sources and sinks of DAGs: tables, files, Python objects and functions, Arrow batches, results; and Spark.

Also the interface of connectors, by which a source in Python becomes an external table of SQL.

Each is imported at its first use: a task of Spark needs nothing but the connector for Spark, and is over in less time
than all of them take to be imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from secateur.exports import exports

if TYPE_CHECKING:
    from secateur.connectors.external.connector import (
        Connector,
        ConnectorContext,
        ConnectorPartition,
        ExternalScanRequest,
    )
    from secateur.connectors.external.folder import csv_folder, parquet_folder
    from secateur.connectors.files import file_source, parquet_sink
    from secateur.connectors.functions import (
        batch_source,
        collect,
        function_sink,
        generator_source,
        iterable_source,
        logger_sink,
    )
    from secateur.connectors.table import table_sink, table_source
    from secateur.partitioning.pruning.row_predicate import RowPredicate, ValueSet, between, one_of

__all__ = [
    "Connector",
    "ConnectorContext",
    "ConnectorPartition",
    "ExternalScanRequest",
    "RowPredicate",
    "ValueSet",
    "batch_source",
    "between",
    "collect",
    "csv_folder",
    "file_source",
    "function_sink",
    "generator_source",
    "iterable_source",
    "logger_sink",
    "one_of",
    "parquet_folder",
    "parquet_sink",
    "table_sink",
    "table_source",
]

_FILES = {
    ".partitioning.pruning.row_predicate": ["RowPredicate", "ValueSet", "between", "one_of"],
    "external.connector": ["Connector", "ConnectorContext", "ConnectorPartition", "ExternalScanRequest"],
    "external.folder": ["csv_folder", "parquet_folder"],
    "files": ["file_source", "parquet_sink"],
    "functions": ["batch_source", "collect", "function_sink", "generator_source", "iterable_source", "logger_sink"],
    "table": ["table_sink", "table_source"],
}

_, __getattr__ = exports(__name__, _FILES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
