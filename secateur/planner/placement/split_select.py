"""Splits a SELECT whose core stays at the members: an exact partial part there, and a final part at the coordinator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from sqlglot import exp

from secateur.engine.processors.row_limit import RowLimit
from secateur.engine.processors.sort_key import SortKey
from secateur.partitioning.tables.identifier import folded, quoted
from secateur.planner.aggregates import SPLIT
from secateur.planner.checks.claims import Cutting
from secateur.planner.checks.select_node import Node, named_columns
from secateur.planner.fragments.merged_order import merge_keys
from secateur.planner.fragments.partial_final import AggregateSplitter, PartialFinal
from secateur.planner.fragments.qualified import NotDistributable, has_shadowed_names, is_qualified
from secateur.planner.placement.distribution import Repartition
from secateur.planner.placement.placement_context import PlacementContext
from secateur.planner.placement.search import is_shuffled
from secateur.planner.placement.select_blocks import (
    ORDERING,
    TOP_CLAUSES,
    behind_from,
    core_of,
    is_windowed,
    parts_in,
    qualified_block,
    title_of,
)
from secateur.planner.placement.stage_builder import Columns
from secateur.planner.placement.table_references import exchanged_query, exchanged_reference, relations_in
from secateur.planner.relations.calls import windows_in
from secateur.planner.text.dialect import to_sql
from secateur.planner.text.trees import copied

_NAMES: Final = "names"
_PASSING: Final = "passing"
_DEALT_BY: Final = frozenset(
    {
        "TINYINT",
        "SMALLINT",
        "INTEGER",
        "BIGINT",
        "UTINYINT",
        "USMALLINT",
        "UINTEGER",
        "UBIGINT",
        "VARCHAR",
        "DATE",
        "TIMESTAMP",
        "BOOLEAN",
        "UUID",
    }
)
"""The types of which equal values certainly have equal hashes."""


class PassThrough(NamedTuple):
    """The operations on the rows of a draft in the last query, other than leaving out columns.

    Attributes:
        relation: Its rows.
        order: The columns of their order, if they can be merged; or nothing.
        limit: How many of them are taken, in any order; or None.
    """

    relation: str
    order: tuple[SortKey, ...]
    limit: RowLimit | None


def split_block(
    context: PlacementContext, select: exp.Select, columns: Callable[[], Columns], *, is_distributed: bool
) -> exp.Expr:
    """The SELECT in two: the core, and as much of the rest as is exact, at the members."""
    try:
        qualified, known = qualified_block(select, context.names(select))
    except NotDistributable as refused:
        return context.all_moved(select, str(refused))
    if has_shadowed_names(qualified, known):
        return context.all_moved(
            select, "a name is both a column of FROM and an alias of the SELECT list: choose another alias"
        )
    if not all(map(context.stands_alone, context.queries_behind(select))):
        return context.all_moved(select, "a subquery over groups or windows is correlated: write it as a join")
    core = core_of(select)
    source, sources = behind_from(core), relations_in(core)
    core.set("where", None)
    from_ = behind_from(core)

    def types_of(expressions: Sequence[str]) -> list[str]:
        return [text for _, text in context.drafts.describe(f"SELECT {', '.join(expressions)} FROM {from_}", sources)]

    try:
        halves = _partial_final(
            context,
            qualified,
            AggregateSplitter(qualified, source, known, types_of, context.drafts.next_relation),
            is_distributed=is_distributed,
        )
    except NotDistributable as refused:
        halves = _columns_alone(qualified, source, context.drafts.next_relation)
        scans = list(filter(context.is_partitioned_scan, sources))
        key = (
            _shuffle_key(qualified, context)
            if is_shuffled(sum(map(context.cost_of, scans)), context.model) and not is_distributed
            else None
        )
        cutting = _cutting(context, select, halves, from_, sources)
        if key is not None and types_of([to_sql(key)])[0] in _DEALT_BY:
            return _shuffled(context, select, cutting, key, columns)
        context.note_gathered(select, scans, str(refused))
    else:
        cutting = _cutting(context, select, halves, from_, sources)
    relations = relations_in(select)
    partial = context.parsed(halves.partial, relations)
    described = context.drafts.describe(halves.partial, relations_in(partial))
    relation = context.drafts.add(
        title_of(select), halves.partial, relations_in(partial), described, at_coordinator=False, cutting=cutting
    )
    final = context.parsed(halves.final, [*relations, relation])
    final.meta[_NAMES] = columns
    final.meta[_PASSING] = PassThrough(relation, merge_keys(halves.order, described), halves.limit)
    return final


def _cutting(
    context: PlacementContext, select: exp.Select, halves: PartialFinal, from_: str, sources: Sequence[str]
) -> Cutting:
    """Describe the two parts of a SELECT for the check."""

    def star(item: Node) -> list[Node]:
        named = f"{quoted(item['relation_name'])}.*" if item["relation_name"] else "*"
        columns = context.drafts.describe(f"SELECT {named} FROM {from_}", sources)
        return named_columns((name for name, _ in columns), is_starred=True)

    return Cutting(to_sql(select), halves, star)


def pass_through_of(final: exp.Expr) -> PassThrough | None:
    """Return what the last query does beyond passing rows on, if it need not run as a query; else None.

    It need not if it only orders rows, which can then be merged, and limits them.
    """
    found = final.meta.get(_PASSING)
    return found if isinstance(found, PassThrough) and (found.order or found.limit) else None


def without_order_and_limit(final: exp.Expr) -> exp.Expr:
    """A copy of a query that passes rows on as they come."""
    bare = copied(final)
    for key in ("order", "limit", "offset"):
        bare.set(key, None)
    return bare


def _partial_final(
    context: PlacementContext, select: exp.Select, splitter: AggregateSplitter, *, is_distributed: bool
) -> PartialFinal:
    aggregated = context.is_aggregated(select)
    if is_distributed or not (aggregated or is_windowed(select)):
        return splitter.plain()
    if not aggregated:
        raise NotDistributable("a window is not partitioned by the partitioning key: add it to PARTITION BY")
    uncut = sorted(context.aggregates_of(select) - SPLIT)
    if uncut or select.args.get("windows"):
        raise NotDistributable(
            (
                f"{', '.join(uncut)}() has no partial aggregation, and its groups span members: GROUP BY "
                "the partitioning key"
            )
            if uncut
            else "a named window is computed over groups that span members: GROUP BY the partitioning key"
        )
    return splitter.aggregated()


def _shuffle_key(select: exp.Select, context: PlacementContext) -> exp.Column | None:
    """Return a column of FROM that all groups or windows of a qualified SELECT have as a key; None if there is none."""
    named = {folded(window.this.name): window for window in select.args.get("windows") or []}
    windows = [
        window
        for clause in TOP_CLAUSES
        if clause != "windows"
        for part in parts_in(select, clause)
        for window in windows_in(part)
    ]
    about = [_partition_of(window, named) for window in windows]
    group = select.args.get("group")
    if context.is_aggregated(select):
        plain = isinstance(group, exp.Group) and not any(
            value for key, value in group.args.items() if key != "expressions"
        )
        about.append(
            [_by_ordinal(part, select) for part in group.expressions] if plain and isinstance(group, exp.Group) else []
        )
    columns = [
        {to_sql(part): part for part in parts if isinstance(part, exp.Column) and is_qualified(part)} for parts in about
    ]
    shared = [text for text in columns[0] if all(text in others for others in columns)] if columns else []
    return columns[0][shared[0]] if shared else None


def _by_ordinal(part: exp.Expr, select: exp.Select) -> exp.Expr:
    is_ordinal = (
        isinstance(part, exp.Literal)
        and not part.is_string
        and part.this.isdecimal()
        and 1 <= int(part.this) <= len(select.expressions)
    )
    return select.expressions[int(part.name) - 1].unalias() if is_ordinal else part


def _partition_of(window: exp.Window, named: Mapping[str, exp.Window]) -> list[exp.Expr]:
    alias = window.args.get("alias")
    if isinstance(alias, exp.Identifier):
        known = named.get(folded(alias.name))
        return [] if known is None or known.args.get("alias") else list(known.args.get("partition_by") or [])
    return list(window.args.get("partition_by") or [])


def _shuffled(
    context: PlacementContext, select: exp.Select, cutting: Cutting, key: exp.Column, columns: Callable[[], Columns]
) -> exp.Expr:
    """Shuffle the columns that a SELECT reads by a key, and run the SELECT at each member over its part."""
    halves = cutting.partial_final
    relations = relations_in(select)
    partial = context.parsed(halves.partial, relations)
    described = context.drafts.describe(halves.partial, relations_in(partial))
    name = described[[to_sql(item.unalias()) for item in partial.expressions].index(to_sql(key))][0]
    route = Repartition(None, f"dealt by {name}", (name,))
    relation = context.drafts.add(
        title_of(select),
        halves.partial,
        relations_in(partial),
        described,
        at_coordinator=False,
        route=route,
        cutting=cutting,
    )
    whole = context.parsed(halves.final, [*relations, relation])
    assert isinstance(whole, exp.Select)
    if not any(whole.args.get(part) for part in (*ORDERING, "distinct")):
        return exchanged_query(
            context.drafts.add(
                f"groups {relation}", to_sql(whole), relations_in(whole), columns(), at_coordinator=False
            )
        )
    return split_block(context, whole, columns, is_distributed=True)


def _columns_alone(select: exp.Select, source: str, relation: str) -> PartialFinal:
    """The members send the columns that the rest of a qualified SELECT is about."""
    taken = {folded(item.alias) for item in select.expressions if isinstance(item, exp.Alias)}
    prefix = "v"
    while any(alias.startswith(prefix) for alias in taken):
        prefix += "_"
    names: dict[str, str] = {}
    final = copied(select)
    for clause in TOP_CLAUSES:
        for part in parts_in(final, clause):
            for node in list(part.find_all(exp.Column)):
                if is_qualified(node):
                    name = names.setdefault(to_sql(node), f"{prefix}{len(names)}")
                    node.replace(exp.Column(this=exp.Identifier(this=name)))
    final.set("from_", exp.From(this=exchanged_reference(relation)))
    final.set("joins", None)
    final.set("where", None)
    columns = ", ".join(f"{text} AS {name}" for text, name in names.items()) or f"1 AS {prefix}0"
    return PartialFinal(f"SELECT {columns} FROM {source}", to_sql(final))


def named_as_asked(query: exp.Expr) -> exp.Expr:
    """A query whose columns have the names that the query for which it stands has."""
    columns = query.meta.get(_NAMES)
    if columns is None:
        return query
    alias = exp.TableAlias(
        this=exp.to_identifier("q"), columns=[exp.to_identifier(name, quoted=True) for name, _ in columns()]
    )
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Subquery(this=query, alias=alias)))
