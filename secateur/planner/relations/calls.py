"""Finds windows, aggregates and multi-column items in the expressions of a SELECT."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from sqlglot import exp

from secateur.partitioning.tables.identifier import folded
from secateur.planner.aggregates import called_aggregate
from secateur.planner.text.trees import children_of

# Classes of sqlglot's functions that do not aggregate.
_SCALAR: Final = (
    exp.Connector,
    exp.Cast,
    exp.Case,
    exp.If,
    exp.Coalesce,
    exp.Extract,
    exp.Substring,
    exp.Trim,
    exp.Array,
)


def chosen_column(call: exp.Expr) -> exp.Column | None:
    """Return the column of which an aggregate returns one of the values, or NULL; None for any other expression."""
    aggregate = called_aggregate(call)
    given = call.expressions if isinstance(call, exp.Anonymous) else [value for value in call.args.values() if value]
    is_quoted = isinstance(call.this, exp.Identifier)
    if aggregate is None or not aggregate.is_chosen or is_quoted or not isinstance(given[0], exp.Expr) or given[1:]:
        return None
    column = given[0].unnest()
    return column if isinstance(column, exp.Column) else None


def windows_in(part: exp.Expr) -> Iterator[exp.Window]:
    """The windows of an expression outside of its subqueries."""
    pending = [part]
    while pending:
        item = pending.pop()
        if isinstance(item, exp.Window):
            yield item
        if not isinstance(item, (exp.Literal, exp.Query)):
            pending.extend(children_of(item))


def has_windows(part: exp.Expr) -> bool:
    """Whether an expression calls something over a window, outside of its subqueries."""
    return any(True for _ in windows_in(part))


def names_a_window(predicate: exp.Expr) -> bool:
    """Whether a predicate contains ``OVER w``. DuckDB cannot parse it alone, so the cross-check cannot confirm it."""
    return any(isinstance(window.args.get("alias"), exp.Identifier) for window in windows_in(predicate))


def may_be_many(item: exp.Expr) -> bool:
    """Whether an item of a SELECT list may be expanded to several columns."""
    pending = [item]
    while pending:
        node = pending.pop()
        if isinstance(node, exp.Star) or (
            isinstance(node, exp.Anonymous) and folded(node.name) in ("columns", "unnest", "unpack")
        ):
            return True
        if not isinstance(node, (exp.Literal, exp.Query)) and not (
            isinstance(node, exp.Count) and isinstance(node.this, exp.Star)
        ):
            pending.extend(children_of(node))
    return False


def may_aggregate(part: exp.Expr | None, aggregates: Collection[str] | None = None) -> bool:
    """Whether an expression calls, outside of windows, a function that may be an aggregate.

    An aggregate in a subquery may aggregate the outer rows, when all its columns are from there.

    Args:
        part: The expression.
        aggregates: The names of all aggregates of the statement, or None when they are not known.
    """
    pending = [] if part is None else [part]
    while pending:
        item = pending.pop()
        if isinstance(item, exp.WithinGroup):
            return True
        if isinstance(item, exp.Func) and not isinstance(item, _SCALAR):
            known = isinstance(item, exp.Anonymous) and aggregates is not None
            if not known or folded(item.name) in (aggregates or ()):
                return True
        if isinstance(item, exp.Window):
            pending.extend(_inside_window(item))
        elif not isinstance(item, exp.Literal):
            pending.extend(children_of(item))
    return False


def _inside_window(window: exp.Window) -> Iterator[exp.Expr]:
    """Yield the parts of a window call that may aggregate: in ``sum(count(*)) OVER ()`` only the arguments."""
    for child in children_of(window):
        yield from children_of(child) if isinstance(child, exp.Func) else [child]
