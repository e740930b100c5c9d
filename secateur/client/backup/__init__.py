"""BACKUP and RESTORE: tables as folders of Parquet files, on the machine of the client."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "manifest": ["MANIFEST", "Manifest", "read_manifest"],
    "table_files": ["TableFiles", "from_parquet"],
}

__all__, __getattr__ = exports(__name__, _FILES)
