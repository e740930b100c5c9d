"""Statements that change rows."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "literal_insert": ["take_literal_rows"],
}

__all__, __getattr__ = exports(__name__, _FILES)
