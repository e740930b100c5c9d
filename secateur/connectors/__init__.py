"""Sources and sinks of DAGs: tables, files, Python objects and functions, Arrow batches, results; and Spark.

Also the interface of connectors, by which a source in Python becomes an external table of SQL.
"""

from __future__ import annotations

from secateur.connectors.batches import batch_source
from secateur.connectors.collect import collect
from secateur.connectors.external.connector import (
    Connector,
    ConnectorContext,
    ConnectorPartition,
    ExternalScanRequest,
)
from secateur.connectors.external.folder import csv_folder, parquet_folder
from secateur.connectors.files import file_source
from secateur.connectors.function_sink import function_sink, logger_sink
from secateur.connectors.generator import generator_source
from secateur.connectors.iterable import iterable_source
from secateur.connectors.parquet_sink import parquet_sink
from secateur.connectors.table import table_source
from secateur.connectors.table_sink import table_sink
from secateur.partitioning.pruning.row_predicate import RowPredicate
from secateur.partitioning.pruning.value_set import ValueSet, between, one_of

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
