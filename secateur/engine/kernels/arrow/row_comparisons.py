"""Keeps two comparisons of one row value apart, which DuckDB's optimizer must not combine.

``(a, b) >= (1, 1) AND (a, b) < (1, 3)``, the bounds of a primary key, becomes ``(a, b) BETWEEN ...`` when filters are
pushed down, and DuckDB 2.0 cannot evaluate BETWEEN over rows. An additional constant field, the same on both sides,
changes no result: rows compare field by field, and this one is always equal. A different constant in each comparison
makes them comparisons of different rows, which are not combined.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

__all__ = ["is_about_rows", "rows_told_apart"]

_ORDERING: Final = frozenset(
    {"COMPARE_LESSTHAN", "COMPARE_LESSTHANOREQUALTO", "COMPARE_GREATERTHAN", "COMPARE_GREATERTHANOREQUALTO"}
)


def is_about_rows(message: str) -> bool:
    """Whether a message is that of the optimizer's BETWEEN."""
    return "Invalid type for BETWEEN" in message


def rows_told_apart(sql: str, serialized: str) -> str | None:
    """Return the text with a different constant in each comparison of rows.

    Args:
        sql: A statement.
        serialized: The result of ``json_serialize_sql`` for it: DuckDB's parse tree, with positions in bytes.

    Returns:
        The changed text; None when fewer than two rows are compared by order, or a row is not at the position that
        DuckDB reports.
    """
    text = sql.encode()
    ends: list[tuple[int, int]] = []
    for number, comparison in enumerate(_row_comparisons(json.loads(serialized))):
        for side in (comparison["left"], comparison["right"]):
            end = side["query_location"] + side["query_location_length"] - 1
            if text[end : end + 1] != b")":
                return None
            ends.append((end, number))
    if len(ends) < 4:
        return None
    for end, number in sorted(ends, reverse=True):
        text = text[:end] + f", {number}".encode() + text[end:]
    return text.decode()


def _row_comparisons(data: Any) -> Iterator[dict[str, Any]]:
    pending = [data]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            if item.get("type") in _ORDERING and _is_row(item["left"]) and _is_row(item["right"]):
                yield item
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)


def _is_row(node: Any) -> bool:
    return node.get("class") == "FUNCTION" and node.get("function_name") == "row" and bool(node.get("arguments"))
