"""How quick loads are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def with_rates(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The loads, each with ``rows_per_s``: its rows in each second that it has taken; None if it took no time.

    Args:
        rows: Those of ``secateur.loads``.
    """
    return [
        {**row, "rows_per_s": 1e3 * row["rows"] / row["elapsed_ms"] if row["elapsed_ms"] > 0 else None} for row in rows
    ]
