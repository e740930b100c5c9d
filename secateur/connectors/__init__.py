"""Sources and sinks of DAGs: tables, files, Python objects and functions, Arrow batches, results; and Spark."""

from __future__ import annotations

from secateur.connectors.batches import batch_source
from secateur.connectors.collect import collect
from secateur.connectors.files import file_source
from secateur.connectors.function_sink import function_sink, logger_sink
from secateur.connectors.generator import generator_source
from secateur.connectors.iterable import iterable_source
from secateur.connectors.parquet_sink import parquet_sink
from secateur.connectors.table import table_source
from secateur.connectors.table_sink import table_sink

__all__ = [
    "batch_source",
    "collect",
    "file_source",
    "function_sink",
    "generator_source",
    "iterable_source",
    "logger_sink",
    "parquet_sink",
    "table_sink",
    "table_source",
]
