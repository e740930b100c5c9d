"""Spark writes DataFrames straight into the members that own their rows, and reads tables straight from them.

Users see this package as ``secateur.spark``.
"""

from __future__ import annotations

from secateur.connectors.spark.load import LoadReport, register, write
from secateur.connectors.spark.lookup import lookup
from secateur.connectors.spark.read import read
from secateur.connectors.spark.source import SecateurDataSource

__all__ = ["LoadReport", "SecateurDataSource", "lookup", "read", "register", "write"]
