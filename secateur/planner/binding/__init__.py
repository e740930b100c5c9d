"""Binding: what the names and functions of a statement refer to, and which of them are refused."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "functions": ["TABLE_FUNCTIONS", "VALUE_FUNCTIONS", "is_listed"],
    "parameter_types": ["TypeUses", "sample_value"],
    "query": ["Query", "bind_query"],
}

__all__, __getattr__ = exports(__name__, _FILES)
