"""A single-table SELECT in one spelling, so that equal expressions are equal text.

Column nodes that mean the table's columns lose their qualifier and get the column's declared name; ``*`` becomes the columns. What stays unresolved is an
alias of the SELECT list, or something local to a function.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from secateur.planner.query import Scan, is_columns_call, renames_columns
from secateur.planner.text.dialect import to_sql
from secateur.planner.text.folding import folded

__all__ = ["Cut", "canonical_select", "columns_in", "key_of", "named", "unresolved_in"]

_ORDER_ALIAS: Final = "order_alias"


class Cut(Exception):  # noqa: N818 - not an error: it says that a statement stays whole, and why
    """A statement cannot be cut into partial and final; the message is the reason."""


def canonical_select(select: exp.Select, scan: Scan) -> exp.Select:
    """A copy of the SELECT over the bare relation of its one scan.

    Raises:
        Cut: A ``*`` with exceptions, or something else that stands for columns without naming them.
    """
    if renames_columns(scan.node):
        raise Cut("the columns of the table are renamed in FROM")
    columns = {folded(column.name): column.name for column in scan.table.columns}
    alias = folded(scan.alias)

    def rename(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column):
            if isinstance(node.this, exp.Star):
                return exp.Star()
            if node.meta.get(_ORDER_ALIAS):
                return exp.Column(this=exp.Identifier(this=node.name, quoted=False))
            declared = columns.get(folded(node.name))
            if declared is not None and (not node.table or folded(node.table) == alias):
                return named(declared)
            if node.table:
                raise Cut(f"{to_sql(node)} is not a column of {scan.alias}")
        return node

    copy: exp.Select = select.copy()
    _mark_order_aliases(copy)
    result = copy.transform(rename, copy=False)
    assert isinstance(result, exp.Select)
    expanded: list[exp.Expr] = []
    for item in result.expressions:
        if isinstance(item, exp.Star):
            if any(item.args.get(key) for key in ("except_", "replace", "rename", "except", "like")):
                raise Cut(f"{to_sql(item)} changes the columns that * stands for")
            expanded.extend(named(column.name) for column in scan.table.columns)
        else:
            expanded.append(item)
    result.set("expressions", expanded)
    if any(is_columns_call(node) or (isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count)) for node in result.walk()):
        raise Cut("columns are named by a pattern")
    table = result.args["from_"].this
    table.replace(exp.to_table(scan.relation))
    return result


def named(column: str) -> exp.Column:
    """A column by its exact name."""
    return exp.Column(this=exp.Identifier(this=column, quoted=True))


def key_of(node: exp.Expr) -> str:
    """Equal text for equal expressions of a canonical SELECT."""
    return to_sql(node.unnest())


def columns_in(node: exp.Expr, columns: Mapping[str, object]) -> set[str]:
    """The names of the table's columns that an expression reads."""
    return {part.name for part in node.find_all(exp.Column) if part.name in columns and part.this.quoted}


def unresolved_in(node: exp.Expr, columns: Mapping[str, object]) -> list[exp.Column]:
    """The column nodes that are not the table's columns: aliases, or names local to a function."""
    return [part for part in node.find_all(exp.Column) if not (part.name in columns and part.this.quoted)]


def _mark_order_aliases(select: exp.Select) -> None:
    """In ORDER BY a bare name is the alias of an output column first, and only then a column of the table."""
    order = select.args.get("order")
    aliases = {folded(item.alias) for item in select.expressions if isinstance(item, exp.Alias)}
    for ordered in order.expressions if isinstance(order, exp.Order) else ():
        target = ordered.this if isinstance(ordered, exp.Ordered) else ordered
        if isinstance(target, exp.Column) and not target.table and folded(target.name) in aliases:
            target.meta[_ORDER_ALIAS] = True
