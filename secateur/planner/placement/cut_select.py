"""A SELECT whose core stays at the members, in two: as much of the rest as is exact there, and what the coordinator makes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from sqlglot import exp

from secateur.engine.processors.sort_key import SortKey
from secateur.engine.row_limit import RowLimit
from secateur.planner.fragments.aggregates import AGGREGATES
from secateur.planner.fragments.canonical import Cut, has_shadowed_names, is_canonical
from secateur.planner.fragments.merged_order import merge_keys
from secateur.planner.fragments.two_stage import Cutter, Halves
from secateur.planner.placement.blocks import TOP_CLAUSES, behind_from, canonical_block, core_of, has_windows, parts_in, title_of
from secateur.planner.placement.drafts import Columns
from secateur.planner.placement.mentions import moved_mention, relations_in
from secateur.planner.placement.workbench import Workbench
from secateur.planner.text.dialect import to_sql
from secateur.planner.text.folding import folded
from secateur.planner.text.trees import copied

__all__ = ["Passing", "cut_select", "named_as_asked", "passing", "without_order_and_limit"]

_NAMES: Final = "names"
_PASSING: Final = "passing"


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
    except Cut:
        return bench.all_moved(select)
    if has_shadowed_names(canonical, known) or not all(map(bench.stands_alone, bench.queries_behind(select))):
        return bench.all_moved(select)
    core = core_of(select)
    source, sources = behind_from(core), relations_in(core)
    core.set("where", None)
    from_ = behind_from(core)

    def types_of(expressions: Sequence[str]) -> list[str]:
        return [text for _, text in bench.drafts.describe(f"SELECT {', '.join(expressions)} FROM {from_}", sources)]

    try:
        halves = _halves(bench, canonical, Cutter(canonical, source, known, types_of, bench.drafts.next_relation), in_pieces=in_pieces)
    except Cut:
        halves = _columns_alone(canonical, source, bench.drafts.next_relation)
    relations = relations_in(select)
    partial = bench.parsed(halves.partial, relations)
    described = bench.drafts.describe(halves.partial, relations_in(partial))
    relation = bench.drafts.add(title_of(select), halves.partial, relations_in(partial), described, at_coordinator=False)
    final = bench.parsed(halves.final, [*relations, relation])
    final.meta[_NAMES] = columns
    final.meta[_PASSING] = Passing(relation, merge_keys(halves.order, described), halves.limit)
    return final


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
    distinct = select.args.get("distinct")
    if select.args.get("windows") or (isinstance(distinct, exp.Distinct) and distinct.args.get("on")):
        raise Cut("DISTINCT ON and named windows need all rows in one place")
    aggregated = bench.is_aggregated(select)
    if in_pieces or not (aggregated or has_windows(select)):
        return cutter.plain()
    if aggregated and bench.aggregates_of(select) <= AGGREGATES:
        return cutter.aggregated()
    raise Cut("it needs all rows in one place")


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
