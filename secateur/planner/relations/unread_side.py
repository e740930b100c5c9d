"""Whether a SELECT reads a column of the side of an outer join that is filled with NULLs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from secateur.partitioning.tables.identifier import folded
from secateur.planner.relations.names import FromItem
from secateur.planner.text.trees import children_of

_MANY: Final = (exp.Star, exp.Columns, exp.PositionalColumn, exp.Pivot)
"""They may refer to columns without their names."""

_CALLED: Final = frozenset({"columns", "unpack"})
"""Functions that do so."""


def is_unread(select: exp.Select, join: exp.Join, side: Sequence[FromItem]) -> bool:
    """Whether nothing in a SELECT but the condition of an outer join refers to its NULL-filled side.

    It goes by names alone: one that might be the side's counts as read, wherever it stands. False when that is not
    certain.

    Args:
        select: The SELECT whose FROM clause has the join.
        join: A LEFT JOIN, or a RIGHT JOIN that is the first join of the FROM clause.
        side: The items of its NULL-filled side.

    Cost: a walk through the SELECT, which ends at the first such name.
    """
    from_ = select.args["from_"]
    # The join that is a part of a parenthesis stands inside the first item of FROM.
    if join.args.get("side") == "LEFT":
        item = join.this
    elif join is (select.args.get("joins") or [None])[0] and not from_.this.args.get("joins"):
        item = from_.this
    else:
        return False
    if (
        isinstance(item, exp.Lateral)
        or _is_renamed(select, join)
        or not all(source.complete and source.alias for source in side)
    ):
        return False
    aliases = {source.alias for source in side}
    names = {"rowid", *aliases, *(name for source in side for name, _ in source.columns)}
    # No column of FROM is visible in WITH.
    apart = {id(item), id(join.args.get("on")), id(select.args.get("with_"))}
    pending: list[exp.Expr] = [select]
    while pending:
        node = pending.pop()
        match node:
            case exp.Literal():
                continue
            case exp.Count(this=exp.Star() as star) if not any(star.args.values()):
                continue
            case exp.Column():
                qualifiers = {folded(node.text(part)) for part in ("catalog", "db", "table") if node.args.get(part)}
                if qualifiers & names or (not qualifiers and folded(node.name) in names):
                    return False
                if isinstance(node.this, exp.Star):
                    if not qualifiers:
                        return False
                elif not isinstance(node.this, exp.Identifier):
                    return False
                continue
            case exp.Join() if node is not join and (
                str(node.args.get("method") or "").upper() == "NATURAL"
                or any(folded(column.name) in names for column in node.args.get("using") or [])
            ):
                return False
            case exp.Anonymous() if folded(node.name) in _CALLED:
                return False
            case _ if isinstance(node, _MANY):
                return False
            case _:
                pass
        pending.extend(child for child in children_of(node) if id(child) not in apart)
    return True


def _is_renamed(select: exp.Select, join: exp.Join) -> bool:
    """Whether the join is in parentheses with an alias, under which its columns have other names."""
    node: exp.Expr = join
    while node is not select:
        above = node.parent
        if above is None or (above.args.get("alias") is not None and node.arg_key != "joins"):
            return True
        node = above
    return False
