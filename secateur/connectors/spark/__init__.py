"""Spark writes DataFrames straight into the members that own their rows, and reads tables straight from them.

Users see this package as ``secateur.spark``. Each name is loaded at its first use: a fresh Python worker of Spark loads
the file of its task, and not what the driver needs.

Spark ends a worker that has had no work for a minute, and starts others, so imports are often most of what a task
costs. Its daemon, from which workers are forked, could not import for all of them: what it imports must not start
threads, which pyarrow does.

**Invariant**: tasks that read or write load neither the client nor asyncio, DuckDB or pandas
(``tests/system/test_spark_workers.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from secateur.exports import exports

if TYPE_CHECKING:
    from secateur.connectors.spark.load import LoadReport, ProgressReport, register, write
    from secateur.connectors.spark.lookups import lookup
    from secateur.connectors.spark.reads import read
    from secateur.connectors.spark.source import SecateurDataSource

__all__ = ["LoadReport", "ProgressReport", "SecateurDataSource", "lookup", "read", "register", "write"]

_FILES = {
    "load": ["LoadReport", "ProgressReport", "register", "write"],
    "lookups": ["lookup"],
    "reads": ["read"],
    "source": ["SecateurDataSource"],
}

_, __getattr__ = exports(__name__, _FILES)
