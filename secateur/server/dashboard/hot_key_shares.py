"""Hot keys: what members have sampled, added up by key."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from secateur.partitioning.tables.identifier import text_literal

HOT_KEYS: Final = "SELECT * FROM secateur.hot_keys"
SAMPLING: Final = "SELECT value FROM secateur.settings WHERE name = 'hot_key_sampling'"

Row = Mapping[str, Any]


def hot_keys_by_share(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """A row for each key, the hottest first, with the values of the ``key`` as SQL spells them, and its ``columns``.

    A key that several members have sampled, as those do whose partition has moved, has the sum of its shares, and the
    member that has sampled it most.

    Args:
        rows: Those of ``secateur.hot_keys``.
    """
    by_key: dict[tuple[str, str], dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: -row["share"]):
        known = by_key.setdefault(
            (row["table_name"], row["key"]), {**row, "share": 0.0, "share_error": 0.0, "sampled": 0}
        )
        for name in ("share", "share_error", "sampled"):
            known[name] += row[name]
    for row in by_key.values():
        values = json.loads(row["key"])
        row |= {"key": ", ".join(map(_spelled, values.values())), "columns": ", ".join(values)}
    return sorted(by_key.values(), key=lambda row: (-row["share"], row["table_name"], row["key"]))


def _spelled(value: Any) -> str:
    """A value of JSON as SQL spells it; dates and decimals are texts there, which SQL converts."""
    if value is None:
        return "not finite"  # a double for which JSON has no number; no key is NULL
    if isinstance(value, (bool, int, float)):
        return str(value)
    return text_literal(value)
