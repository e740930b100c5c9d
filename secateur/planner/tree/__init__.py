"""The bound tree of a query: DuckDB's own plan of it, before any optimization, as frozen values."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "columns": ["column_types", "columns_read"],
    "relations": ["AnyRelation"],
    "stability": ["depends_on_order", "is_repeatable"],
    "sql": ["sql_of"],
    "expression_sql": ["BoundText", "Unprintable"],
}

__all__, __getattr__ = exports(__name__, _FILES)
