"""Spark writes DataFrames straight into the members that own their rows, and reads tables straight from them.

Users see this package as ``secateur.spark``. Each name is loaded at its first use: a fresh Python worker of Spark loads
the file of its task, and not what the driver needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from secateur.exports import exports

if TYPE_CHECKING:
    from secateur.connectors.spark.load import LoadReport, register, write
    from secateur.connectors.spark.lookups import lookup
    from secateur.connectors.spark.progress import ProgressReport
    from secateur.connectors.spark.reads import read
    from secateur.connectors.spark.source import SecateurDataSource

__all__ = ["LoadReport", "ProgressReport", "SecateurDataSource", "lookup", "read", "register", "write"]

_FILES = {
    "load": ["LoadReport", "register", "write"],
    "lookups": ["lookup"],
    "progress": ["ProgressReport"],
    "reads": ["read"],
    "source": ["SecateurDataSource"],
}

_, __getattr__ = exports(__name__, _FILES)
