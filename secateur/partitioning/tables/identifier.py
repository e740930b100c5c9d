"""Names of tables and columns as SQL texts write them."""

from __future__ import annotations

__all__ = ["quoted"]


def quoted(name: str) -> str:
    """Return a name in quotation marks, as it can always be written."""
    return '"' + name.replace('"', '""') + '"'
