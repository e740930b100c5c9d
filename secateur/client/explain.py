"""The answer of ``Connection.explain``."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

__all__ = ["Explain"]


@dataclass(frozen=True, slots=True)
class Explain:
    """How a statement would run: ``str()`` is the text, :meth:`to_dict` the same as data."""

    text: str
    data: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The ``EXPLAIN (FORMAT JSON)`` form; a copy."""
        return copy.deepcopy(self.data)

    def __str__(self) -> str:
        return self.text
