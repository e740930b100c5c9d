"""Where each part of a query is computed: from the bound tree to stages and the exchanges between them."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "distributor": ["Distributor"],
    "exchanges": ["Draft", "Exchanges", "NotDivided"],
}

__all__, __getattr__ = exports(__name__, _FILES)
