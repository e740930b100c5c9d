"""Reads and writes of rows by their primary keys, without SQL."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "tables": ["RowKeys"],
}

__all__, __getattr__ = exports(__name__, _FILES)
