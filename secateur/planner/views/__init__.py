"""Views: queries that have a name. A statement that mentions one is planned as if the query stood there."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "view": ["ViewRead"],
}

__all__, __getattr__ = exports(__name__, _FILES)
