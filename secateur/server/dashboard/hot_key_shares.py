"""Hot keys: what members have sampled, added up by key."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from secateur.partitioning.tables.identifier import text_literal

HOT_KEYS: Final = (
    "SELECT table_name, key, sum(share) AS share, sum(share_error) AS share_error, sum(sampled)::BIGINT AS sampled,"
    " arg_max(partition, share) AS partition, arg_max(member, share) AS member"
    " FROM secateur.hot_keys GROUP BY table_name, key ORDER BY share DESC, table_name, key"
)
"""A row for each key, the hottest first. One that several members have sampled, as those do whose partition has moved,
has the sum of its shares, and the member that has sampled it most.
"""
SAMPLING: Final = "SELECT value FROM secateur.settings WHERE name = 'hot_key_sampling'"


def spelled_keys(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows with the values of the ``key`` as SQL spells them, and with its ``columns``."""
    values = [json.loads(row["key"]) for row in rows]
    return [
        {**row, "key": ", ".join(map(_spelled, key.values())), "columns": ", ".join(key)}
        for row, key in zip(rows, values, strict=True)
    ]


def _spelled(value: Any) -> str:
    """A value of JSON as SQL spells it; dates and decimals are texts there, which SQL converts."""
    if value is None:
        return "not finite"  # a double for which JSON has no number; no key is NULL
    if isinstance(value, (bool, int, float)):
        return str(value)
    return text_literal(value)
