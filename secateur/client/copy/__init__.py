"""Files of rows, which the process of the client reads and writes with DuckDB: COPY, and files that are loaded."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "load_options": ["FileOptions"],
    "table_file": ["TableFile", "open_table_file"],
    "copy": ["read_batches", "write_file"],
}

__all__, __getattr__ = exports(__name__, _FILES)
