"""PEP 249: connections, cursors, and results as Python values."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "frames": ["pandas_frame", "polars_frame"],
    "parameters": ["ordered_values", "plain_values"],
    "rows": ["Rows", "describe"],
}

__all__, __getattr__ = exports(__name__, _FILES)
