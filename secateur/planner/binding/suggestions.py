"""Suggestions for unknown names."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


def similar_names(name: str, names: Sequence[str], otherwise: str | None = None) -> str:
    """``did you mean a or b?`` for a name that is none of ``names``; else ``otherwise``, or the names there are."""
    by_name = {candidate.casefold(): candidate for candidate in names}
    near = [by_name[match] for match in difflib.get_close_matches(name.casefold(), list(by_name), n=3)]
    return f"did you mean {' or '.join(near)}?" if near else otherwise or f"there is {', '.join(by_name.values())}"
