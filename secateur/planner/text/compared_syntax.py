"""Syntax trees in a form in which two texts are compared: without places, and with plain memberships in lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from secateur.engine.kernels.duckdb.kernel import default_kernel
from secateur.planner.segmented_stack import on_segmented_stack
from secateur.planner.text.deep_json import read_json
from secateur.planner.text.syntax import SyntaxNode, list_membership

_PLACES: Final = frozenset({"query_location", "query_location_length"})


def compared_trees(statements: Sequence[str]) -> list[SyntaxNode | None]:
    """The trees of some queries; None for a text that is none, or does not parse."""
    found: list[SyntaxNode | None] = []
    for text in default_kernel().trees(statements):
        data = read_json(text)
        is_one = not data["error"] and len(data["statements"]) == 1
        found.append(_plain(data["statements"][0]["node"]) if is_one else None)
    return found


def _plain(data: Any) -> Any:
    if isinstance(data, dict):
        return _plain_node(data)
    return [_plain(value) for value in data] if isinstance(data, list) else data


@on_segmented_stack
def _plain_node(data: dict[str, Any]) -> dict[str, Any]:
    node = {key: _plain(value) for key, value in data.items() if key not in _PLACES}
    membership = list_membership(node)
    if membership is None:
        return node
    named = {"alias": node["alias"]} if "alias" in node else {}
    return {"class": "OPERATOR", "type": "COMPARE_IN_LIST", "children": list(membership), **named}
