"""COPY: files that are read and written in the process of the client, by DuckDB."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "reading": ["read_batches"],
    "writing": ["write_file"],
}

__all__, __getattr__ = exports(__name__, _FILES)
