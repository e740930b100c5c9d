"""BACKUP and RESTORE: tables as folders of Parquet files, on the machine of the client."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "table_files": ["MANIFEST", "Manifest", "TableFiles", "from_parquet", "read_manifest"],
}

__all__, __getattr__ = exports(__name__, _FILES)
