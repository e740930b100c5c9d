"""When two names are one: DuckDB looks past the case of the letters A to Z, and of no others. ``"É"`` and ``"é"`` are
two columns, ``"ß"`` is not ``ss``.
"""

from __future__ import annotations

from string import ascii_lowercase, ascii_uppercase
from typing import Final

__all__ = ["folded"]

_LOWER: Final = str.maketrans(ascii_uppercase, ascii_lowercase)


def folded(name: str) -> str:
    """A name as it compares with others in a statement.

    Tables and the columns that they declare are told apart more strictly, by ``str.casefold``.
    """
    return name.lower() if name.isascii() else name.translate(_LOWER)
