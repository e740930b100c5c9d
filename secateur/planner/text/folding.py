"""Folds names: DuckDB ignores the case of the letters A to Z, and of no others.

``"É"`` and ``"é"`` are two columns, ``"ß"`` is not ``ss``.
"""

from __future__ import annotations

from string import ascii_lowercase, ascii_uppercase
from typing import Final

__all__ = ["folded"]

_LOWER: Final = str.maketrans(ascii_uppercase, ascii_lowercase)


def folded(name: str) -> str:
    """Return a name in the form in which names of a statement are compared.

    Tables and their declared columns are compared more strictly, by ``str.casefold``.
    """
    return name.lower() if name.isascii() else name.translate(_LOWER)
