"""Formats numbers with their units, as short as they remain readable."""

from __future__ import annotations

from typing import Final

_BYTE_UNITS: Final = ("KB", "MB", "GB", "TB")


def count_text(count: int, noun: str) -> str:
    """``1 row``, ``1,234 rows``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def byte_text(count: int) -> str:
    """``999 B``, ``12.3 KB``, in powers of a thousand."""
    if count < 1000:
        return f"{count} B"
    value = count / 1000
    for unit in _BYTE_UNITS[:-1]:
        if value < 999.95:
            return f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:,.1f} {_BYTE_UNITS[-1]}"


def duration_text(seconds: float) -> str:
    """``120 µs``, ``3.4 ms``, ``56.7 s``."""
    if seconds < 0.9995e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.1f} ms" if seconds < 0.99995 else f"{seconds:,.1f} s"
