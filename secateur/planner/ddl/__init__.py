"""Statements that define tables and their ranges."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "defaults": ["read_default"],
    "table_sql": ["partition_by_sql", "range_sql"],
}

__all__, __getattr__ = exports(__name__, _FILES)
