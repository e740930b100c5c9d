"""What the cluster tells of itself in SQL: system tables, the views of ``information_schema`` over them, SHOW, DESCRIBE
and SUMMARIZE.
"""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "information_schema": ["INFORMATION_SCHEMA"],
    "tables": ["SYSTEM_TABLES"],
}

__all__, __getattr__ = exports(__name__, _FILES)
