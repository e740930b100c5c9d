"""The cluster's metadata in SQL: system tables, ``information_schema``, SHOW, DESCRIBE and SUMMARIZE."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "information_schema": ["INFORMATION_SCHEMA"],
    "tables": ["SYSTEM_TABLES"],
}

__all__, __getattr__ = exports(__name__, _FILES)
