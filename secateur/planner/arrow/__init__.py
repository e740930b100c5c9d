"""The forms of relations for the arrow kernel."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "form": ["arrow_form"],
    "sources": ["JoinInput"],
    "constants": ["KernelDeclined"],
}

__all__, __getattr__ = exports(__name__, _FILES)
