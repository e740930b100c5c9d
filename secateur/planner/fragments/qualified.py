"""Qualifies the names of a SELECT, so that equal expressions are equal text.

Column nodes that refer to the table's columns lose their qualifier and get the column's declared name; ``*`` becomes
the columns. Names that stay unresolved are aliases of the SELECT list, or local to a function.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from sqlglot import exp

from secateur.partitioning.tables.identifier import folded
from secateur.planner.binding.query import TableReference, is_columns_call, renames_columns
from secateur.planner.text.dialect import to_sql
from secateur.planner.text.trees import children_of, copied, nodes_in

DIFFERS: Final = "the stages that were made of the statement do not read back as the statement"
"""The start of the reason why a statement is gathered whose stages read back as another statement."""

_ORDER_ALIAS: Final = "order_alias"
_SPELLINGS: Final = "spellings"
_GROUPINGS: Final = (exp.Group, exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple)
_QUALIFIED: Final = "canonical"
_BEHIND_WHERE: Final = ("group", "having", "windows", "qualify", "distinct", "order")


class NotDistributable(Exception):  # noqa: N818 - not an error: it says that a statement stays whole, and why
    """A statement cannot be split into partial and final.

    Args:
        reason: Why, in the user's terms.
        node: The part of the statement that prevents it, if it is a part.
    """

    def __init__(self, reason: str, node: exp.Expr | None = None) -> None:
        super().__init__(reason)
        self.node = node


class RecompositionMismatch(NotDistributable):
    """The texts made from a statement are not equivalent to it, so it runs undivided.

    This is a defect of ours, which changes no answer.

    Args:
        clause: The clause that differs.
    """

    def __init__(self, clause: str) -> None:
        super().__init__(f"{DIFFERS}: {clause} differs, so the statement runs undivided; please report it")


def qualified_select(select: exp.Select, scan: TableReference) -> exp.Select:
    """Return a copy of the SELECT over the bare relation of its one scan.

    Raises:
        NotDistributable: A ``*`` with exceptions, or something else that stands for columns without naming them; the
            table has modifiers such as a sample.
    """
    if renames_columns(scan.node):
        raise NotDistributable("the columns of the table are renamed in FROM: rename them with AS in the SELECT list")
    if any(value for key, value in scan.node.args.items() if key not in ("this", "alias")):
        raise NotDistributable("the table is sampled or pivoted")
    columns = {folded(column.name): column.name for column in scan.table.columns}
    alias = folded(scan.alias)

    def rename(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column):
            if isinstance(node.this, exp.Star):
                return node.this
            if is_order_alias(node):
                return exp.Column(this=exp.Identifier(this=node.name, quoted=False))
            declared = columns.get(folded(node.name))
            if declared is not None and (not node.table or folded(node.table) == alias):
                return named(declared)
            if node.table:
                raise NotDistributable(f"{to_sql(node)} is not a column of {scan.alias}")
        return node

    copy = copied(select)
    mark_spelling(copy)
    result = copy.transform(rename, copy=False)
    assert isinstance(result, exp.Select)
    expanded: list[exp.Expr] = []
    for item in result.expressions:
        if isinstance(item, exp.Star):
            if any(item.args.values()):
                raise NotDistributable(f"{to_sql(item)} changes the columns of *: name the columns one by one")
            expanded.extend(named(column.name) for column in scan.table.columns)
        else:
            expanded.append(item)
    result.set("expressions", expanded)
    if any(
        is_columns_call(node) or (isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count))
        for node in result.walk()
    ):
        raise NotDistributable("a pattern such as COLUMNS(...) names columns: name them one by one")
    table = result.args["from_"].this
    table.replace(exp.to_table(scan.relation))
    return result


def named(column: str, source: str | None = None) -> exp.Column:
    """A column by its exact name, and that of the item of FROM which has it."""
    node = exp.Column(
        this=exp.Identifier(this=column, quoted=True),
        table=None if source is None else exp.Identifier(this=source, quoted=True),
    )
    node.meta[_QUALIFIED] = True
    return node


def key_of(node: exp.Expr) -> str:
    """Equal text for equal expressions of a qualified SELECT."""
    return to_sql(node.unnest())


def is_qualified(node: exp.Column) -> bool:
    """Whether a column node refers to a column of FROM by its qualified name."""
    return bool(node.meta.get(_QUALIFIED))


def unresolved_in(node: exp.Expr) -> list[exp.Column]:
    """The column nodes outside of subqueries that are not columns of FROM: aliases, or names local to a function."""
    found: list[exp.Column] = []
    pending = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, exp.Column):
            if not is_qualified(part):
                found.append(part)
        elif not isinstance(part, exp.Query):
            pending.extend(children_of(part))
    return found


def reads_columns(node: exp.Expr) -> bool:
    """Whether an expression reads a column of FROM."""
    return any(is_qualified(part) for part in node.find_all(exp.Column))


def has_shadowed_names(select: exp.Select, columns: Collection[str]) -> bool:
    """Whether a name in a clause after WHERE may be a column of FROM or an alias of the SELECT list.

    Args:
        select: A qualified SELECT.
        columns: The names of all columns of FROM, folded.
    """
    aliased = [(folded(item.alias), item.this) for item in select.expressions if isinstance(item, exp.Alias)]
    shadowed = {
        alias
        for alias, item in aliased
        if alias in columns and not (isinstance(item, exp.Column) and folded(item.name) == alias)
    }
    parts = [part for clause in _BEHIND_WHERE for part in nodes_in(select.args.get(clause))]
    return bool(shadowed) and any(
        folded(column.name) in shadowed and not _is_alias_alone(column)
        for part in parts
        for column in part.find_all(exp.Column)
    )


def _is_alias_alone(column: exp.Column) -> bool:
    """Whether a column node is a whole item of ORDER BY and not a column of FROM.

    It is then the alias, whatever else has the name.
    """
    ordered = column.parent
    return (
        isinstance(ordered, exp.Ordered)
        and isinstance(ordered.parent, exp.Order)
        and isinstance(ordered.parent.parent, exp.Select)
        and not is_qualified(column)
    )


def mark_spelling(select: exp.Select) -> None:
    """Remove the parentheses around positions and names (:func:`_unwrap_items`), and mark what qualifying would hide.

    The aliases in ORDER BY are marked (:func:`is_order_alias`): there a bare name is first the alias of an output
    column, and only then a column. And the spelling of GROUP BY is marked (:func:`check_spellings`): among grouping
    sets DuckDB treats expressions that are written in two ways as two.
    """
    _unwrap_items(select)
    group = select.args.get("group")
    if isinstance(group, exp.Group):
        group.meta[_SPELLINGS] = tuple(folded(to_sql(part)) for part in grouping_expressions(group))
    order = select.args.get("order")
    aliases = {folded(item.alias) for item in select.expressions if isinstance(item, exp.Alias)}
    for ordered in order.expressions if isinstance(order, exp.Order) else ():
        target = ordered.this if isinstance(ordered, exp.Ordered) else ordered
        if isinstance(target, exp.Column) and not target.table and folded(target.name) in aliases:
            target.meta[_ORDER_ALIAS] = True


def _unwrap_items(select: exp.Select) -> None:
    """Remove the parentheses around items of ORDER BY, DISTINCT ON and GROUP BY, as DuckDB's parser does.

    There ``(2)`` is the second column of the SELECT list as ``2`` is, and ``(a)`` the alias ``a``. Grouping sets are
    included. Parentheses around a row stay: ``((1, 2))`` among grouping sets may be a row, and ``(1, 2)`` is a set.
    """
    group, order, distinct = select.args.get("group"), select.args.get("order"), select.args.get("distinct")
    on = distinct.args.get("on") if isinstance(distinct, exp.Distinct) else None
    items = [
        *(grouping_expressions(group) if isinstance(group, exp.Group) else ()),
        *(
            ordered.this
            for ordered in (order.expressions if isinstance(order, exp.Order) else ())
            if isinstance(ordered, exp.Ordered)
        ),
        *(on.expressions if isinstance(on, exp.Tuple) else [on] if isinstance(on, exp.Expr) else ()),
    ]
    for item in items:
        if isinstance(item, exp.Paren) and not isinstance(item.unnest(), exp.Tuple):
            item.replace(item.unnest())


def is_order_alias(node: exp.Column) -> bool:
    """Whether a column node is marked as an alias of the SELECT list."""
    return bool(node.meta.get(_ORDER_ALIAS))


def grouping_expressions(group: exp.Group) -> list[exp.Expr]:
    """The expressions by which GROUP BY groups, those inside of sets too."""
    return [part for part in group.walk() if isinstance(part.parent, _GROUPINGS) and not isinstance(part, _GROUPINGS)]


def check_spellings(group: exp.Group, keys: Sequence[str]) -> None:
    """Check that grouping sets write no expression in two ways.

    Args:
        group: The GROUP BY of a qualified SELECT.
        keys: The replacement of each of its :func:`grouping_expressions`.

    Raises:
        NotDistributable: They do.
    """
    if len(set(zip(keys, group.meta[_SPELLINGS], strict=True))) != len(set(keys)):
        raise NotDistributable("grouping sets write one expression in two forms: write it in one")
