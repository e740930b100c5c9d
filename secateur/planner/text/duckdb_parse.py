"""DuckDB's parse tree of a statement, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from secateur.engine.kernels.duckdb.kernel import default_kernel
from secateur.partitioning.tables.identifier import folded
from secateur.planner.segmented_stack import on_segmented_stack
from secateur.planner.text.deep_json import read_json
from secateur.planner.text.syntax import list_membership, nodes_of

_IGNORED: Final = frozenset({"query_location", "query_location_length"})


@dataclass(frozen=True, slots=True)
class DuckDBParse:
    """A statement as DuckDB's parser sees it.

    Attributes:
        tree: The parse tree without positions, as plain data.
    """

    tree: Mapping[str, Any]

    def base_tables(self) -> frozenset[str]:
        """The names that it reads from, folded, those of common table expressions among them."""
        return frozenset(folded(node["table_name"]) for node in nodes_of(self.tree) if node.get("type") == "BASE_TABLE")


def read_statement(sql: str) -> DuckDBParse | None:
    """Return DuckDB's parse tree of one query, or None if DuckDB has no tree for it.

    If it does not parse, binding it will report why.

    Cost: half a millisecond.
    """
    return read_statements([sql])[0]


def read_statements(statements: Sequence[str]) -> list[DuckDBParse | None]:
    """:func:`read_statement` of several, in one round."""
    return [_reading(read_json(text)) for text in default_kernel().trees(statements)]


def _reading(data: Mapping[str, Any]) -> DuckDBParse | None:
    if data.get("error") or len(data.get("statements", ())) != 1:
        return None
    return DuckDBParse(_stripped(data["statements"][0]["node"]))


def _stripped(data: Any) -> Any:
    if isinstance(data, dict):
        return _stripped_node(data)
    return [_stripped(value) for value in data] if isinstance(data, list) else data


@on_segmented_stack
def _stripped_node(data: dict[str, Any]) -> dict[str, Any]:
    return _memberships_plain({key: _stripped(value) for key, value in data.items() if key not in _IGNORED})


def _memberships_plain(node: dict[str, Any]) -> dict[str, Any]:
    """Turn ``x = ANY($1)`` and ``x IN (SELECT unnest($1))`` into comparisons of one row with a list."""
    found = list_membership(node)
    if found is None:
        return node
    named = {"alias": node["alias"]} if "alias" in node else {}
    return {"class": "OPERATOR", "type": "COMPARE_IN_LIST", "children": list(found), **named}
