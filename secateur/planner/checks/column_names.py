"""Names of columns in DuckDB's parse trees: those that a query gives its columns, and those that a part mentions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from secateur.partitioning.tables.identifier import folded
from secateur.planner.checks.conjuncts import references
from secateur.planner.checks.select_node import Node
from secateur.planner.text.parse_tree import nodes_in
from secateur.protocol.clocks import CLOCKS


def all_folded(names: Iterable[str]) -> list[str]:
    """Fold some names."""
    return list(map(folded, names))


def called(table: Node) -> str:
    """The folded name by which a SELECT calls an item of its FROM clause."""
    return folded(table["alias"] or table.get("table_name") or "")


def shown_columns(table: Node, columns: Sequence[str]) -> dict[str, str]:
    """The columns of a table in FROM by the names that it shows them by, all folded; without names that are not unique.

    Args:
        table: The item of FROM.
        columns: The columns of the table.
    """
    own, aliases = all_folded(columns), all_folded(table["column_name_alias"])
    shown = [*aliases, *own[len(aliases) :]]
    return {name: column for name, column in zip(shown, own, strict=False) if shown.count(name) == 1}


def listed(select: Node) -> tuple[str, ...] | None:
    """The names of the columns that a SELECT lists, if that is all that its list has."""
    items = select.get("select_list") or ()
    plain = all(
        item.get("class") == "COLUMN_REF" and len(item["column_names"]) == 1 and not item["alias"] for item in items
    )
    return tuple(item["column_names"][0] for item in items) if plain else None


def mentioned(part: object, apart_from: Collection[int] = ()) -> set[str]:
    """All parts of all names of columns in a part of a tree, folded; without the references of some ids."""
    named = (name for node in references(part) if id(node) not in apart_from for name in node["column_names"])
    joined = (name for node in nodes_in(part) for name in node.get("using_columns") or ())
    return {folded(name) for names in (named, joined) for name in names}


def are_names(query: Node, names: Sequence[str], aliases: Sequence[str] = ()) -> bool:
    """Whether the columns of a query can have some names.

    The query does not determine the names of a ``*`` and of expressions without an alias.

    Args:
        query: The query.
        names: The names.
        aliases: The names that stand beside the query, for its first columns.
    """
    given, rest = names[: len(aliases)], names[len(aliases) :]
    own = named_by(query, len(names))
    if own is None or all_folded(given) != all_folded(aliases):
        return False
    return all(said is None or _is_name(name, said) for name, said in zip(rest, own[len(aliases) :], strict=True))


def named_by(query: Node, count: int | None = None) -> list[str | None] | None:
    """Return the names that a query gives its columns, None for each unnamed one.

    Args:
        query: The query.
        count: The number of its columns, if it is known.

    Returns:
        None if it cannot have so many columns, or if their number is needed.
    """
    unnamed = None if count is None else [None] * count
    while query.get("type") in ("SET_OPERATION_NODE", "RECURSIVE_CTE_NODE"):
        if "NAME" in str(query.get("setop_type")):
            return [*unnamed] if unnamed is not None else None
        query = query["left"] if query["type"] == "RECURSIVE_CTE_NODE" else query["children"][0]
    items = query.get("select_list")
    if items is None:
        return [*unnamed] if unnamed is not None else None
    said = [
        item.get("alias") or (item["column_names"][-1] if item.get("class") == "COLUMN_REF" else None) for item in items
    ]
    said = [None if own is None or folded(own) in CLOCKS else own for own in said]
    # Those that stand for any number of columns.
    several = [at for at, item in enumerate(items) if item.get("function_name") == "unnest" or _has_star(item)]
    if not several:
        return said if count in (None, len(said)) else None
    before, after = said[: several[0]], said[several[-1] + 1 :]
    between = -1 if count is None else count - len(before) - len(after)
    return [*before, *[None] * between, *after] if between >= 0 else None


def _has_star(item: Node) -> bool:
    """Whether there is a star in an item, as in ``COLUMNS(*) + 1``, and not in a query in it."""
    return any(node.get("class") == "STAR" for node in nodes_in(item, without="subquery"))


def _is_name(name: str, own: str) -> bool:
    """Whether a column that the query calls ``own`` can have a name: one that was there before gets a number."""
    return folded(name) == folded(own) or (
        folded(name).startswith(f"{folded(own)}_") and name.rpartition("_")[2].isdecimal()
    )
