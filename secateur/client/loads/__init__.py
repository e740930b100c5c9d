"""Bulk loads from the client: rows go straight to the owners of their partitions."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "arrow_data": ["as_chunks", "as_table"],
    "load_progress": ["progress_line"],
}

__all__, __getattr__ = exports(__name__, _FILES)
