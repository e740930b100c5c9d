"""Blocks: one SELECT, its core (FROM and WHERE), the queries inside it, and its form with qualified names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from sqlglot import exp

from secateur.partitioning.tables.identifier import folded
from secateur.planner.binding.query import holds_query, is_columns_call
from secateur.planner.fragments.qualified import (
    NotDistributable,
    check_spellings,
    grouping_expressions,
    is_order_alias,
    is_qualified,
    key_of,
    mark_spelling,
    named,
)
from secateur.planner.placement.table_references import relations_in, table_references
from secateur.planner.relations.calls import has_windows
from secateur.planner.relations.names import VisibleNames
from secateur.planner.relations.query_builder import subqueries_in
from secateur.planner.text.dialect import to_sql
from secateur.planner.text.trees import children_of, copied

ORDERING: Final = ("order", "limit", "offset")
"""The clauses of a query that order its rows, and choose rows by that order."""

TOP_CLAUSES: Final = ("expressions", "distinct", "group", "having", "windows", "qualify", "order")
"""The clauses of a SELECT that apply to the rows of its core."""


def core_of(select: exp.Select, items: list[exp.Expr] | None = None) -> exp.Select:
    """FROM and WHERE of a SELECT, as a SELECT of their own."""
    copy = exp.Select(expressions=items or [exp.Star()])
    for key in ("from_", "joins", "where"):
        part = select.args.get(key)
        copy.set(
            key,
            list(map(copied, part)) if isinstance(part, list) else copied(part) if isinstance(part, exp.Expr) else None,
        )
    return copy


def nested_queries(node: exp.Expr) -> list[exp.Expr]:
    """The outermost queries inside of a query: those of FROM, and the subqueries of its expressions."""
    return list(subqueries_in(node))


def parts_in(select: exp.Select, clause: str) -> list[exp.Expr]:
    """The expressions of a clause."""
    part = select.args.get(clause)
    return (
        [item for item in part if isinstance(item, exp.Expr)]
        if isinstance(part, list)
        else [part]
        if isinstance(part, exp.Expr)
        else []
    )


def qualified_block(select: exp.Select, names: VisibleNames) -> tuple[exp.Select, frozenset[str]]:
    """Qualify the columns in the clauses of a SELECT above its core, with ``*`` expanded.

    Returns a copy, and the names of all columns of FROM.

    Args:
        select: The SELECT; subqueries in it are left as they are.
        names: Those of its FROM clause.

    Raises:
        NotDistributable: A name or a ``*`` is ambiguous.
    """
    copy = copied(select)
    mark_spelling(copy)
    items: list[exp.Expr] = []
    for item in copy.expressions:
        bare = item.this if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) else item
        if isinstance(bare, exp.Star):
            if any(bare.args.values()):
                raise NotDistributable(f"{to_sql(item)} changes the columns of *: name the columns one by one")
            items.extend(_starred(names, folded(item.table) if isinstance(item, exp.Column) and item.table else None))
        else:
            items.append(item)
    copy.set("expressions", items)
    for clause in TOP_CLAUSES:
        for part in parts_in(copy, clause):
            for node in list(_outside_queries(part)):
                if is_columns_call(node) or (isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count)):
                    raise NotDistributable("a pattern such as COLUMNS(...) names columns: name them one by one")
                if isinstance(node, exp.Column) and not is_order_alias(node) and not is_qualified(node):
                    found = _resolved(node, names)
                    if found is not None:
                        node.replace(found)
    group = copy.args.get("group")
    if isinstance(group, exp.Group) and group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is not None:
        check_spellings(group, [key_of(part) for part in grouping_expressions(group)])
        _check_merged(columns for part in (group, *copy.expressions) for columns in part.find_all(exp.Column))
    return copy, frozenset(name for source in names.sources for name, _ in source.columns)


def _check_merged(columns: Iterable[exp.Column]) -> None:
    """Check that grouping sets, and the items that they may name, do not name a column of USING in two ways.

    Without its table it mostly is the column of one of the tables: for DuckDB both are then one expression of several
    sets, and their values are those of one of the sets.

    Raises:
        NotDistributable: They do.
    """
    names: dict[bool, set[str]] = {True: set(), False: set()}
    for column in filter(is_qualified, columns):
        names[bool(column.table)].add(folded(column.name))
    if twice := names[True] & names[False]:
        name = min(twice)
        raise NotDistributable(f"grouping sets name {name}, a column of USING, with and without its table")


def _outside_queries(part: exp.Expr) -> Iterator[exp.Expr]:
    pending = [part]
    while pending:
        node = pending.pop()
        if isinstance(node, exp.Query):
            continue
        yield node
        if not isinstance(node, exp.Column):
            pending.extend(children_of(node))


def _starred(names: VisibleNames, alias: str | None) -> list[exp.Expr]:
    if not all(source.complete for source in names.sources):
        raise NotDistributable("the columns of * are not all known: name them one by one")
    found: list[exp.Expr] = []
    for number, source in enumerate(names.sources):
        if alias is None or source.alias == alias:
            shown = [name for name, _ in source.columns if alias is not None or (number, name) not in names.hidden]
            found.extend(
                _merged(name, names) if alias is None and (number, name) in names.shown else named(name, source.alias)
                for name in shown
            )
    return found


def _merged(name: str, names: VisibleNames) -> exp.Column:
    """Return the column that USING has merged of several.

    Its bare name is enough, unless another item has a column of that name too.
    """
    others = [
        number
        for number, source in enumerate(names.sources)
        if source.has(name) and (number, name) not in names.shown and (number, name) not in names.hidden
    ]
    if others:
        raise NotDistributable(f"{name} names both a merged column of USING and another column: qualify it")
    return named(name)


def _resolved(node: exp.Column, names: VisibleNames) -> exp.Column | None:
    """The column of FROM that a column node means, by its exact name; None for an alias of the SELECT list."""
    name = folded(node.name)
    if node.args.get("db") is not None:
        raise NotDistributable(f"{to_sql(node)} has a name of several parts: qualify columns with one alias")
    if node.table:
        holders = [source for source in names.sources if source.alias == folded(node.table)]
        if len(holders) != 1 or not holders[0].has(name):
            raise NotDistributable(f"{to_sql(node)} may name more than one column: qualify it with an alias")
        return named(name, holders[0].alias)
    if name in names.merged:
        return _merged(name, names)
    holders = [source for source in names.sources if source.has(name)]
    if len(holders) == 1:
        return named(name, holders[0].alias)
    if holders or not all(source.complete for source in names.sources):
        raise NotDistributable(f"{to_sql(node)} may name more than one column: qualify it with an alias")
    return None


def is_source(query: exp.Expr) -> bool:
    """Whether a query is an item of FROM."""
    parent = query.parent
    return isinstance(query, exp.Subquery) and (
        isinstance(parent, (exp.From, exp.Join)) or (isinstance(parent, exp.Subquery) and not holds_query(parent))
    )


def without_order(query: exp.Expr) -> exp.Expr:
    """A copy of a query without ORDER BY, LIMIT and OFFSET."""
    copy = copied(query)
    for key in ORDERING:
        copy.set(key, None)
    return copy


def inside_of(query: exp.Expr) -> exp.Expr:
    """Return a query in parentheses without them, its alias and its joins."""
    if not isinstance(query, exp.Subquery):
        return query
    if any(query.args.get(key) for key in ORDERING):
        copy = copied(query)
        copy.set("alias", None)
        copy.set("joins", None)
        return copy
    return query.this if isinstance(query.this, exp.Expr) else query


def same_union(operand: exp.Expr, union: exp.SetOperation) -> exp.Union | None:
    """The left operand of a UNION without its parentheses, where it is one more of the same, apart from a WITH.

    DuckDB's parser makes one operation of ``a UNION b UNION c``: the values of ``a`` get the type that suits all three,
    and never the one of ``a`` and ``b`` alone, which may write them in another way as text.
    """
    inside: exp.Expr | None = operand
    while isinstance(inside, exp.Subquery) and not any(value for key, value in inside.args.items() if key != "this"):
        inside = inside.this
    if type(inside) is not exp.Union or type(union) is not exp.Union:
        return None
    alike = all(bool(inside.args.get(key)) == bool(union.args.get(key)) for key in ("distinct", "by_name"))
    return inside if alike and not any(inside.args.get(key) for key in ORDERING) else None


def ordered_source(select: exp.Select) -> exp.Subquery | None:
    """Return the query in FROM whose order is that of the SELECT, or None.

    DuckDB keeps the order of rows that it filters and projects.
    """
    from_ = select.args.get("from_")
    source = from_.this if isinstance(from_, exp.From) else None
    if not isinstance(source, exp.Subquery) or any(select.args.get(key) for key in ("joins", "distinct", "order")):
        return None
    if any(value for key, value in source.args.items() if key not in ("this", "alias")):
        return None
    inside = source.this
    ordered = isinstance(inside, exp.Query) and (
        inside.args.get("order") or (isinstance(inside, exp.Select) and ordered_source(inside))
    )
    return source if ordered else None


def behind_from(core: exp.Select) -> str:
    """Return the text that follows FROM in a core."""
    return to_sql(core).removeprefix("SELECT * FROM ")


def is_windowed(select: exp.Select) -> bool:
    """Whether a SELECT calls something over a window, or has QUALIFY."""
    return select.args.get("qualify") is not None or any(
        has_windows(part) for clause in TOP_CLAUSES for part in parts_in(select, clause)
    )


def title_of(select: exp.Select) -> str:
    """Return the title of a stage: the first relation that it reads."""
    first = next((node for node, _ in table_references(select)), None)
    name = "rows" if first is None else folded(first.alias_or_name)
    return f"join {name}" if len(relations_in(select)) > 1 else f"scan {name}"
