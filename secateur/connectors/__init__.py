"""Sources and sinks of DAGs: tables, batches in hand, results; and Spark."""

from __future__ import annotations

from secateur.connectors.batches import batch_source
from secateur.connectors.collect import collect
from secateur.connectors.table import table_source

__all__ = ["batch_source", "collect", "table_source"]
