"""Views: named queries. A statement that names one is planned as if the query were in its place."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "view": ["ViewRead"],
}

__all__, __getattr__ = exports(__name__, _FILES)
