"""Spark writes DataFrames straight into the members that own their rows. Users see this package as ``secateur.spark``."""

from __future__ import annotations

from secateur.connectors.spark.source import SecateurDataSource
from secateur.connectors.spark.write import LoadReport, register, write

__all__ = ["LoadReport", "SecateurDataSource", "register", "write"]
