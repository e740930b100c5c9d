"""The bound tree of a query: DuckDB's own plan of it, before any optimization, as frozen values.

It is the tree of the planner that is being built, and is tested beside the one that runs.
"""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "columns": ["column_types", "columns_read"],
    "relations": ["AnyRelation"],
    "sql": ["BoundText", "Unprintable", "sql_of"],
}

__all__, __getattr__ = exports(__name__, _FILES)
