"""A SELECT whose core stays at the members, in two: as much of the rest as is exact there, and what the coordinator makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from sqlglot import exp

from secateur.engine.processors.row_limit import RowLimit
from secateur.engine.processors.sort_key import SortKey
from secateur.planner.checks.placed import Cutting
from secateur.planner.checks.select_node import Node, named_columns
from secateur.planner.fragments.aggregates import AGGREGATES
from secateur.planner.fragments.canonical import Cut, has_shadowed_names, is_canonical
from secateur.planner.fragments.merged_order import merge_keys
from secateur.planner.fragments.two_stage import Cutter, Halves
from secateur.planner.placement.blocks import ORDERING, TOP_CLAUSES, behind_from, canonical_block, core_of, is_windowed, parts_in, title_of
from secateur.planner.placement.drafts import Columns
from secateur.planner.placement.mentions import moved_mention, moved_query, relations_in
from secateur.planner.placement.search import is_dealt
from secateur.planner.placement.spread import Route
from secateur.planner.placement.workbench import Workbench
from secateur.planner.relations.calls import windows_in
from secateur.planner.text.dialect import quoted, to_sql
from secateur.planner.text.folding import folded
from secateur.planner.text.trees import copied

__all__ = ["Passing", "cut_select", "named_as_asked", "passing", "without_order_and_limit"]

_NAMES: Final = "names"
_PASSING: Final = "passing"
_DEALT_BY: Final = frozenset(
    {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "VARCHAR", "DATE", "TIMESTAMP", "BOOLEAN", "UUID"}
)
"""The types of which equal values certainly have equal hashes."""


class Passing(NamedTuple):
    """What is done to the rows of a draft, but for leaving out columns.

    Attributes:
        relation: Its rows.
        order: What they are ordered by, if they can be merged; or nothing.
        limit: Which of them are taken, in any order; or None.
    """

    relation: str
    order: tuple[SortKey, ...]
    limit: RowLimit | None


def cut_select(bench: Workbench, select: exp.Select, columns: Callable[[], Columns], *, in_pieces: bool) -> exp.Expr:
    """The SELECT in two: the core, and as much of the rest as is exact, at the members."""
    try:
        canonical, known = canonical_block(select, bench.names(select))
    except Cut as refused:
        return bench.all_moved(select, str(refused))
    if has_shadowed_names(canonical, known):
        return bench.all_moved(select, "a name means a column of FROM and another one of the SELECT list")
    if not all(map(bench.stands_alone, bench.queries_behind(select))):
        return bench.all_moved(select, "a subquery of groups or windows is about the rows around it")
    core = core_of(select)
    source, sources = behind_from(core), relations_in(core)
    core.set("where", None)
    from_ = behind_from(core)

    def types_of(expressions: Sequence[str]) -> list[str]:
        return [text for _, text in bench.drafts.describe(f"SELECT {', '.join(expressions)} FROM {from_}", sources)]

    try:
        halves = _halves(bench, canonical, Cutter(canonical, source, known, types_of, bench.drafts.next_relation), in_pieces=in_pieces)
    except Cut as refused:
        halves = _columns_alone(canonical, source, bench.drafts.next_relation)
        scans = list(filter(bench.is_partitioned_scan, sources))
        key = _dealing_key(canonical, bench) if is_dealt(sum(map(bench.cost_of, scans))) and not in_pieces else None
        cutting = _cutting(bench, select, halves, from_, sources)
        if key is not None and types_of([to_sql(key)])[0] in _DEALT_BY:
            return _dealt(bench, select, cutting, key, columns)
        bench.note_gathered(select, scans, str(refused))
    else:
        cutting = _cutting(bench, select, halves, from_, sources)
    relations = relations_in(select)
    partial = bench.parsed(halves.partial, relations)
    described = bench.drafts.describe(halves.partial, relations_in(partial))
    relation = bench.drafts.add(title_of(select), halves.partial, relations_in(partial), described, at_coordinator=False, cutting=cutting)
    final = bench.parsed(halves.final, [*relations, relation])
    final.meta[_NAMES] = columns
    final.meta[_PASSING] = Passing(relation, merge_keys(halves.order, described), halves.limit)
    return final


def _cutting(bench: Workbench, select: exp.Select, halves: Halves, from_: str, sources: Sequence[str]) -> Cutting:
    """What the two parts of a SELECT claim to be."""

    def star(item: Node) -> list[Node]:
        named = f"{quoted(item['relation_name'])}.*" if item["relation_name"] else "*"
        columns = bench.drafts.describe(f"SELECT {named} FROM {from_}", sources)
        return named_columns((name for name, _ in columns), is_starred=True)

    return Cutting(to_sql(select), halves, star)


def passing(final: exp.Expr) -> Passing | None:
    """What the last query of a statement does beyond passing rows on, if it need not be a query: the rows may come in order, and end when there are enough."""
    found = final.meta.get(_PASSING)
    return found if isinstance(found, Passing) and (found.order or found.limit) else None


def without_order_and_limit(final: exp.Expr) -> exp.Expr:
    """A copy of a query that passes rows on as they come."""
    bare = copied(final)
    for key in ("order", "limit", "offset"):
        bare.set(key, None)
    return bare


def _halves(bench: Workbench, select: exp.Select, cutter: Cutter, *, in_pieces: bool) -> Halves:
    aggregated = bench.is_aggregated(select)
    if in_pieces or not (aggregated or is_windowed(select)):
        return cutter.plain()
    if not aggregated:
        raise Cut("a window that is not partitioned by the partitioning key")
    uncut = sorted(bench.aggregates_of(select) - AGGREGATES)
    if uncut or select.args.get("windows"):
        raise Cut(f"{', '.join(uncut)}() over groups of several members" if uncut else "a named window of groups of several members")
    return cutter.aggregated()


def _dealing_key(select: exp.Select, bench: Workbench) -> exp.Column | None:
    """A column of FROM in which all rows agree that a group or a window of a canonical SELECT is about; None where there is none."""
    named = {folded(window.this.name): window for window in select.args.get("windows") or []}
    windows = [window for clause in TOP_CLAUSES if clause != "windows" for part in parts_in(select, clause) for window in windows_in(part)]
    about = [_partition_of(window, named) for window in windows]
    group = select.args.get("group")
    if bench.is_aggregated(select):
        plain = isinstance(group, exp.Group) and not any(value for key, value in group.args.items() if key != "expressions")
        about.append([_by_ordinal(part, select) for part in group.expressions] if plain and isinstance(group, exp.Group) else [])
    columns = [{to_sql(part): part for part in parts if isinstance(part, exp.Column) and is_canonical(part)} for parts in about]
    shared = [text for text in columns[0] if all(text in others for others in columns)] if columns else []
    return columns[0][shared[0]] if shared else None


def _by_ordinal(part: exp.Expr, select: exp.Select) -> exp.Expr:
    is_ordinal = isinstance(part, exp.Literal) and not part.is_string and part.this.isdecimal() and 1 <= int(part.this) <= len(select.expressions)
    return select.expressions[int(part.name) - 1].unalias() if is_ordinal else part


def _partition_of(window: exp.Window, named: Mapping[str, exp.Window]) -> list[exp.Expr]:
    alias = window.args.get("alias")
    if isinstance(alias, exp.Identifier):
        known = named.get(folded(alias.name))
        return [] if known is None or known.args.get("alias") else list(known.args.get("partition_by") or [])
    return list(window.args.get("partition_by") or [])


def _dealt(bench: Workbench, select: exp.Select, cutting: Cutting, key: exp.Column, columns: Callable[[], Columns]) -> exp.Expr:
    """The columns that a SELECT is about, dealt to the members by a key, and the SELECT over what each of them gets."""
    halves = cutting.halves
    relations = relations_in(select)
    partial = bench.parsed(halves.partial, relations)
    described = bench.drafts.describe(halves.partial, relations_in(partial))
    name = described[[to_sql(item.unalias()) for item in partial.expressions].index(to_sql(key))][0]
    route = Route(None, f"dealt by {name}", (name,))
    relation = bench.drafts.add(title_of(select), halves.partial, relations_in(partial), described, at_coordinator=False, route=route, cutting=cutting)
    whole = bench.parsed(halves.final, [*relations, relation])
    assert isinstance(whole, exp.Select)
    if not any(whole.args.get(part) for part in (*ORDERING, "distinct")):
        return moved_query(bench.drafts.add(f"groups {relation}", to_sql(whole), relations_in(whole), columns(), at_coordinator=False))
    return cut_select(bench, whole, columns, in_pieces=True)


def _columns_alone(select: exp.Select, source: str, relation: str) -> Halves:
    """The members send the columns that the rest of a canonical SELECT is about."""
    taken = {folded(item.alias) for item in select.expressions if isinstance(item, exp.Alias)}
    prefix = "v"
    while any(alias.startswith(prefix) for alias in taken):
        prefix += "_"
    names: dict[str, str] = {}
    final = copied(select)
    for clause in TOP_CLAUSES:
        for part in parts_in(final, clause):
            for node in list(part.find_all(exp.Column)):
                if is_canonical(node):
                    name = names.setdefault(to_sql(node), f"{prefix}{len(names)}")
                    node.replace(exp.Column(this=exp.Identifier(this=name)))
    final.set("from_", exp.From(this=moved_mention(relation)))
    final.set("joins", None)
    final.set("where", None)
    columns = ", ".join(f"{text} AS {name}" for text, name in names.items()) or f"1 AS {prefix}0"
    return Halves(f"SELECT {columns} FROM {source}", to_sql(final))


def named_as_asked(query: exp.Expr) -> exp.Expr:
    """A query whose columns have the names that the query for which it stands has."""
    columns = query.meta.get(_NAMES)
    if columns is None:
        return query
    alias = exp.TableAlias(this=exp.to_identifier("q"), columns=[exp.to_identifier(name, quoted=True) for name, _ in columns()])
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Subquery(this=query, alias=alias)))
