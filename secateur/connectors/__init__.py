"""Sources and sinks of DAGs: tables, files, Python objects and functions, Arrow batches, results; and Spark.

Also the interface of connectors, by which a source in Python becomes an external table of SQL.

Each is imported at its first use: a task of Spark needs nothing but the connector for Spark, and is over in less time
than all of them take to be imported.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

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

_LATER: Final = {
    "Connector": "secateur.connectors.external.connector",
    "ConnectorContext": "secateur.connectors.external.connector",
    "ConnectorPartition": "secateur.connectors.external.connector",
    "ExternalScanRequest": "secateur.connectors.external.connector",
    "RowPredicate": "secateur.partitioning.pruning.row_predicate",
    "ValueSet": "secateur.partitioning.pruning.row_predicate",
    "batch_source": "secateur.connectors.functions",
    "between": "secateur.partitioning.pruning.row_predicate",
    "collect": "secateur.connectors.functions",
    "csv_folder": "secateur.connectors.external.folder",
    "file_source": "secateur.connectors.files",
    "function_sink": "secateur.connectors.functions",
    "generator_source": "secateur.connectors.functions",
    "iterable_source": "secateur.connectors.functions",
    "logger_sink": "secateur.connectors.functions",
    "one_of": "secateur.partitioning.pruning.row_predicate",
    "parquet_folder": "secateur.connectors.external.folder",
    "parquet_sink": "secateur.connectors.files",
    "table_sink": "secateur.connectors.table",
    "table_source": "secateur.connectors.table",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
