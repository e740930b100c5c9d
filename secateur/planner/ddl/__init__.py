"""Statements that define tables and their ranges."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "table_sql": ["partition_by_sql", "range_sql"],
    "row_expression": ["read_default"],
}

__all__, __getattr__ = exports(__name__, _FILES)
