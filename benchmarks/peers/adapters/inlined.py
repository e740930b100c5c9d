"""Texts for peers whose SQL has no parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["inlined"]


def inlined(sql: str, values: Sequence[Any]) -> str:
    """The text with its parameters replaced by literals: numbers, and days as ``DATE '...'``."""
    texts = [f"DATE '{value}'" if isinstance(value, str) else str(value) for value in values]
    parts = sql.split("?")
    return "".join(part + text for part, text in zip(parts, [*texts, ""], strict=True))
