"""From a text to its bound tree."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "bound_plan": ["BoundPlan", "Unreadable", "bind_to_plan"],
    "normalise": ["normalised"],
    "type_uses": ["type_uses_in"],
}

__all__, __getattr__ = exports(__name__, _FILES)
