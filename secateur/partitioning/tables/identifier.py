"""Names of tables and columns, and texts, as SQL writes them."""

from __future__ import annotations

__all__ = ["quoted", "text_literal"]


def quoted(name: str) -> str:
    """Return a name in quotation marks, as it can always be written."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    """Return a text in single quotation marks."""
    return "'" + text.replace("'", "''") + "'"
