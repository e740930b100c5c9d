"""Keeps two comparisons of one row value apart, which DuckDB's optimizer must not combine.

``(a, b) >= (1, 1) AND (a, b) < (1, 3)``, the bounds of a primary key, becomes ``(a, b) BETWEEN ...`` when filters are
pushed down, and DuckDB 2.0 cannot evaluate BETWEEN over rows. An additional constant field, the same on both sides,
changes no result: rows compare field by field, and this one is always equal. A different constant in each comparison
makes them comparisons of different rows, which are not combined.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any, Final

_ORDERING: Final = frozenset(
    {
        "COMPARE_LESSTHAN",
        "COMPARE_LESSTHANOREQUALTO",
        "COMPARE_GREATERTHAN",
        "COMPARE_GREATERTHANOREQUALTO",
        "COMPARE_BETWEEN",
    }
)
_SIDES: Final = {"COMPARISON": ("left", "right"), "BETWEEN": ("input", "lower", "upper")}


def is_about_rows(message: str) -> bool:
    """Whether a message is that of the optimizer's BETWEEN."""
    return "Invalid type for BETWEEN" in message


def rows_told_apart(sql: str, serialized: str) -> str | None:
    """Return the text with a different constant in each comparison of rows, and two of them for each BETWEEN.

    Args:
        sql: A statement.
        serialized: The result of ``json_serialize_sql`` for it: DuckDB's parse tree, with positions in bytes.

    Returns:
        The changed text; None when fewer than two rows are compared by order, or a row is not at the position that
        DuckDB reports.
    """
    text = sql.encode()
    numbers = itertools.count()
    edits: list[tuple[int, int, bytes]] = []
    compared = 0
    for comparison in _row_comparisons(json.loads(serialized)):
        sides = [_span(comparison[name]) for name in _SIDES[comparison["class"]]]
        if any(text[end - 1 : end] != b")" for _, end in sides):
            return None
        number = b", %d)" % next(numbers)
        if len(sides) == 2:
            compared += 1
            edits += [(end - 1, end, number) for _, end in sides]
            continue
        compared += 2
        (start, between), (least, and_), (most, end) = sides
        again = text[start : between - 1] + (second := b", %d)" % next(numbers))
        opening = b"(NOT (" if b"NOT" in text[between:least].upper() else b"(("
        edits += [
            (start, start, opening),
            (between - 1, least, number + b" >= "),
            (and_ - 1, most, number + b" AND " + again + b" <= "),
            (end - 1, end, second + b"))"),
        ]
    if compared < 2:
        return None
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text.decode()


def _span(node: dict[str, Any]) -> tuple[int, int]:
    start: int = node["query_location"]
    return start, start + node["query_location_length"]


def _row_comparisons(data: Any) -> Iterator[dict[str, Any]]:
    pending = [data]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            if item.get("type") in _ORDERING and all(_is_row(item[side]) for side in _SIDES[item["class"]]):
                yield item
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)


def _is_row(node: Any) -> bool:
    return node.get("class") == "FUNCTION" and node.get("function_name") == "row" and bool(node.get("arguments"))
