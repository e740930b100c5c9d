"""Placement: a statement as stages, each one kernel call at each member that has rows for it, or at the coordinator.

A SELECT is taken apart from the inside. A query in it that cannot be computed piece by piece becomes rows of its own, computed first. Of what remains, the
scans that are co-located stay where they are and the others move (:mod:`~secateur.planner.placement.search`): FROM and WHERE are then one fragment at the
members. What is about all rows, such as groups and limits, is cut in two, or done at the coordinator over the columns that it needs.

Whatever is not certain raises :class:`~secateur.planner.fragments.canonical.Cut`; the statement is then gathered as a whole. The text of each stage is bound by
DuckDB, and the last one has to have the types of the statement.

Source: exchanges as operators of their own (Graefe, "Volcano", 1994); fragments between exchanges (Presto, Trino); the rung *local* of Ignite is not here, for
it needs no stages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from secateur.engine.kernels.result_types import sql_type
from secateur.errors import DatabaseError
from secateur.planner.fragments.aggregates import AGGREGATES
from secateur.planner.fragments.canonical import Cut, has_shadowed_names, is_canonical
from secateur.planner.fragments.two_stage import Cutter, Halves
from secateur.planner.placement.blocks import TOP_CLAUSES, canonical_block, core_of, nested_queries, parts_in
from secateur.planner.placement.correlated import Lookup, lookup_of, with_asked_keys
from secateur.planner.placement.ctes import without_ctes
from secateur.planner.placement.drafts import Columns, Draft, Drafts, Schema
from secateur.planner.placement.mentions import as_mention, mentions, moved_mention, moved_query, passed_relation, relations_in, tagged_tree
from secateur.planner.placement.scan_rows import ScanRows, columns_read, mark_applied, settle_applied
from secateur.planner.placement.search import Found, find_anchor
from secateur.planner.placement.spread import Route, Scattered
from secateur.planner.query import Query, Scan
from secateur.planner.relations.build import Builder
from secateur.planner.relations.calls import aggregates_in, windows_in
from secateur.planner.relations.from_clause import FromClause
from secateur.planner.relations.names import Names
from secateur.planner.text.dialect import parse_query, to_sql, tokenize
from secateur.planner.text.folding import folded
from secateur.planner.text.second_reading import SecondReading

__all__ = ["Placed", "place"]

_ORDERING: Final = ("order", "limit", "offset")
_NODES_MAX: Final = 20_000
_NAMES: Final = "names"
_INTEGERS: Final = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"})
_EXACT: Final = frozenset({"VARCHAR", "DATE", "UUID", "BOOLEAN", "TIMESTAMP"})


@dataclass(frozen=True, slots=True)
class Placed:
    """A statement in stages.

    Attributes:
        drafts: In the order in which they can run; the last one has the answer.
    """

    drafts: tuple[Draft, ...]


def place(
    query: Query,
    reading: SecondReading,
    columns: Columns,
    schemas: Mapping[str, Schema],
    describe: Callable[[str, Mapping[str, Schema]], Columns],
    rows_of: Mapping[str, ScanRows],
    cost_of: Callable[[str], float],
) -> Placed:
    """Place a query.

    Args:
        query: The bound query, of which DuckDB reads the tree as it reads the text.
        reading: DuckDB's reading of it, which is repeatable.
        columns: Name and type of each column of its result.
        schemas: The columns of each scan that the query may need.
        describe: DuckDB's binder.
        rows_of: For each scan what restricts the rows that the query may need.
        cost_of: What it costs to send the rows of a scan to every member.

    Raises:
        Cut: It is not taken apart; the message says why.
    """
    placer = _Placer(query, reading, schemas, describe, rows_of, cost_of)
    try:
        return placer.place(columns)
    except DatabaseError as error:
        raise Cut(f"its parts do not bind: {error.message}") from error


class _Placer:
    def __init__(
        self,
        query: Query,
        reading: SecondReading,
        schemas: Mapping[str, Schema],
        describe: Callable[[str, Mapping[str, Schema]], Columns],
        rows_of: Mapping[str, ScanRows],
        cost_of: Callable[[str], float],
    ) -> None:
        if reading.has_collations:
            raise Cut("a collation decides what is equal")
        self._query = query
        self._scans = {scan.relation: scan for scan in query.scans}
        self._drafts = Drafts(schemas, describe)
        self._rows_of = rows_of
        self._cost_of = cost_of
        self._orderless = reading.has_orderless_aggregates
        self._aggregates = reading.aggregates()
        self._moved_scans: dict[tuple[str, str, tuple[str, ...], Route | None], str] = {}

    def place(self, columns: Columns) -> Placed:
        """The whole statement."""
        for relation, rows in self._rows_of.items():
            mark_applied(relation, rows)
        tree = tagged_tree(self._query)
        if sum(1 for _ in tree.walk()) > _NODES_MAX:
            raise Cut("it is too long to be taken apart")
        final = self._gathered(without_ctes(tree, self._compute_cte))
        sql, relations = to_sql(final), relations_in(final)
        if [text for _, text in self._drafts.describe(sql, relations)] != [text for _, text in columns]:
            raise Cut("its parts have other types than the whole")
        self._drafts.add("final", sql, relations, columns, at_coordinator=True)
        return Placed(tuple(self._drafts.drafts))

    def _compute_cte(self, cte: exp.CTE) -> str:
        return self._computed(without_ctes(cte.this, self._compute_cte), cte.alias)

    def _is_partitioned(self, node: exp.Expr) -> bool:
        """Whether rows of a query are at single members."""
        return any(map(self._is_partitioned_scan, relations_in(node)))

    def _is_partitioned_scan(self, relation: str) -> bool:
        scan = self._scans.get(relation)
        return scan is not None and not scan.table.replicated

    def _gathered(self, node: exp.Expr) -> exp.Expr:
        """An equal query over what the coordinator has: replicated tables, and rows that have been sent there."""
        if not self._is_partitioned(node):
            return node
        match node:
            case exp.Select():
                return self._select(node)
            case exp.SetOperation():
                return self._set_operation(node)
            case exp.Subquery() if isinstance(node.this, (exp.Query, exp.Values)):
                node.set("this", _named(self._gathered(node.this)))
                return self._all_moved(node)
            case _:
                return self._all_moved(node)

    def _all_moved(self, node: exp.Expr) -> exp.Expr:
        """The query over the rows of its scans, the last resort."""
        for relation in filter(self._is_partitioned_scan, relations_in(node)):
            self._move_scan(node, relation)
        return node

    def _set_operation(self, node: exp.SetOperation) -> exp.Expr:
        bare = _without_order(node)
        found = self._find(bare)
        if isinstance(found, Found) and found.in_pieces:
            columns = self._columns_as_rows(bare)
            self._move(bare, found)
            query = moved_query(self._drafts.add("set operation", to_sql(bare), relations_in(bare), columns, at_coordinator=False))
            for key in _ORDERING:
                query.set(key, node.args.get(key))
            return self._all_moved(query)
        for key in ("this", "expression"):
            node.set(key, _named(self._gathered(node.args[key])))
        return self._all_moved(node)

    # SELECT

    def _select(self, select: exp.Select) -> exp.Expr:
        source = _ordered_source(select)
        if source is not None and not self._is_aggregated(select):
            source.set("this", _named(self._gathered(source.this)))
            return self._all_moved(select)
        if self._aggregates_from_inside(select):
            return self._all_moved(select)
        columns = self._columns_as_rows(select)
        found = self._prepared(select)
        if isinstance(found, Scattered):
            for query in self._computable(select):
                self._compute(query)
            found = self._find(self._core(select))
        if isinstance(found, Scattered) or not found.in_pieces or any(map(self._is_partitioned, self._queries_behind(select))):
            return self._all_moved(select)
        whole = self._find(_without_order(select))
        in_pieces = isinstance(whole, Found) and whole.in_pieces and whole.cost <= found.cost
        self._move(select, whole if in_pieces and isinstance(whole, Found) else found)
        if in_pieces and not any(select.args.get(key) for key in _ORDERING):
            return moved_query(self._drafts.add(_title(select), to_sql(select), relations_in(select), columns, at_coordinator=False))
        return self._cut(select, columns, in_pieces=in_pieces)

    def _prepared(self, select: exp.Select) -> Found | Scattered:
        """Compute what has to be, and what had better be, computed before the core of a SELECT; returns what then stays."""
        self._compute_scattered(select)
        found = self._find(self._core(select))
        return self._find(self._core(select)) if self._compute_lookups(select, found) else found

    def _core(self, select: exp.Select) -> exp.Select:
        """FROM and WHERE, and the subqueries of the SELECT list if it is about the rows of FROM."""
        if self._is_aggregated(select):
            return core_of(select)
        items = [item for item in select.expressions if nested_queries(item) and not any(True for _ in windows_in(item))]
        return core_of(select, [exp.Star(), *(item.copy() for item in items)])

    def _is_aggregated(self, select: exp.Select) -> bool:
        """Whether a SELECT makes rows of groups."""
        return bool(select.args.get("group") or select.args.get("having") or self._aggregates_of(select))

    def _aggregates_from_inside(self, select: exp.Select) -> bool:
        """Whether a subquery may aggregate rows of the SELECT: ``SELECT (SELECT max(t.a)) FROM t`` makes one row."""
        inside = [query for clause in TOP_CLAUSES for part in parts_in(select, clause) for query in nested_queries(part)]
        calls = [call for query in inside for call in query.find_all(exp.AggFunc, exp.Anonymous) if any(True for _ in aggregates_in(call, self._aggregates))]
        for call in calls:
            holder = call.parent_select
            names = None if holder is None else self._names(holder)
            if names is None or not all(names.is_local(column) for column in call.find_all(exp.Column)):
                return True
        return False

    def _aggregates_of(self, select: exp.Select) -> set[str]:
        return {name for clause in TOP_CLAUSES for part in parts_in(select, clause) for name in aggregates_in(part, self._aggregates)}

    def _queries_behind(self, select: exp.Select) -> list[exp.Expr]:
        """The queries in clauses that are evaluated behind the core."""
        aggregated = self._is_aggregated(select)
        parts = [
            part for clause in TOP_CLAUSES for part in parts_in(select, clause) if aggregated or clause != "expressions" or any(True for _ in windows_in(part))
        ]
        return [query for part in parts for query in nested_queries(part)]

    def _cut(self, select: exp.Select, columns: Columns, *, in_pieces: bool) -> exp.Expr:
        """The SELECT in two: the core, and as much of the rest as is exact, at the members."""
        try:
            canonical, known = canonical_block(select, self._names(select))
        except Cut:
            return self._all_moved(select)
        if has_shadowed_names(canonical, known):
            return self._all_moved(select)
        core = core_of(select)
        source, sources = _behind_from(core), relations_in(core)
        core.set("where", None)
        from_ = _behind_from(core)

        def type_of(expression: str) -> str:
            return self._drafts.describe(f"SELECT {expression} FROM {from_}", sources)[0][1]

        try:
            halves = self._halves(canonical, Cutter(canonical, source, known, type_of, self._drafts.next_relation), in_pieces=in_pieces)
        except Cut:
            halves = _columns_alone(canonical, source, self._drafts.next_relation)
        relations = relations_in(select)
        partial = self._parsed(halves.partial, relations)
        described = self._drafts.describe(halves.partial, relations_in(partial))
        relation = self._drafts.add(_title(select), halves.partial, relations_in(partial), described, at_coordinator=False)
        final = self._parsed(halves.final, [*relations, relation])
        final.meta[_NAMES] = [name for name, _ in columns]
        return final

    def _halves(self, select: exp.Select, cutter: Cutter, *, in_pieces: bool) -> Halves:
        if not all(map(self._stands_alone, self._queries_behind(select))):
            raise Cut("a subquery is about rows that are not at one member")
        distinct = select.args.get("distinct")
        if select.args.get("windows") or (isinstance(distinct, exp.Distinct) and distinct.args.get("on")):
            raise Cut("DISTINCT ON and named windows need all rows in one place")
        aggregated = self._is_aggregated(select)
        if in_pieces or not (aggregated or _has_windows(select)):
            return cutter.plain()
        if aggregated and self._aggregates_of(select) <= AGGREGATES:
            return cutter.aggregated()
        raise Cut("it needs all rows in one place")

    # Queries inside

    def _computable(self, node: exp.Expr) -> list[exp.Expr]:
        """The outermost queries inside that can be computed by themselves, and have rows at single members."""
        return [query for query in nested_queries(node) if self._is_partitioned(query) and self._stands_alone(query)]

    def _compute_scattered(self, select: exp.Select) -> None:
        """Compute the queries inside that are not computed piece by piece, and those that are needed behind the core.

        A subquery of an expression for which rows have to move is computed too: what moves for it is of no use to the rows around. A query in FROM is not: its
        rows are.
        """
        behind = {id(query) for query in self._queries_behind(select)}
        for query in self._computable(select):
            found = None if id(query) in behind else self._find(query)
            if not isinstance(found, Found) or not found.in_pieces or (found.moving and not _is_source(query)):
                self._compute(query)
            elif found.moving and isinstance(query, exp.Subquery) and isinstance(query.this, exp.Select):
                self._prepared(query.this)

    def _compute_lookups(self, select: exp.Select, found: Found | Scattered) -> bool:
        """Compute for all keys at once what correlated subqueries read that every member would need; returns whether there was something."""
        before = len(self._drafts.drafts)
        for query in nested_queries(select):
            inside = [relation for relation in relations_in(query) if self._is_partitioned_scan(relation)]
            if inside and (isinstance(found, Scattered) or found.staying.isdisjoint(inside)) and not self._stands_alone(query):
                lookup = self._lookup(query, select)
                if lookup is not None:
                    asked = with_asked_keys(lookup, select, self._names(select))
                    lookup = asked if self._stands_alone(asked.rows) else lookup
                    rows = lookup.over(self._computed(lookup.rows, "keys"))
                    query.replace(exp.Subquery(this=rows) if isinstance(query, exp.Subquery) else rows)
        return len(self._drafts.drafts) > before

    def _lookup(self, query: exp.Expr, around: exp.Select) -> Lookup | None:
        select = query.this if isinstance(query, exp.Subquery) else query
        if not isinstance(select, exp.Select):
            return None
        lookup = lookup_of(query, self._names(select))
        # There is always a row where there is no GROUP BY: EXISTS of it is TRUE.
        if lookup is None or (not lookup.has_value and self._makes_a_row_of_none(select)) or not self._stands_alone(lookup.rows):
            return None
        return lookup if not lookup.has_value or self._is_compared_alike(lookup, around) else None

    def _makes_a_row_of_none(self, select: exp.Select) -> bool:
        return self._is_aggregated(select) or self._aggregates_from_inside(select)

    def _is_compared_alike(self, lookup: Lookup, around: exp.Select) -> bool:
        """Whether the keys that are equal to one outer value are one key: else there would be several values for it."""
        from_ = core_of(around)
        from_.set("where", None)
        from_.set("expressions", [outer.copy() for outer in lookup.outer])
        try:
            outer = [text for _, text in self._drafts.describe(to_sql(from_), relations_in(from_))]
        except DatabaseError:
            return False
        keys = [text for _, text in self._columns_as_rows(lookup.rows)]
        return all((mine in _INTEGERS and theirs in _INTEGERS) or (mine == theirs and mine in _EXACT) for mine, theirs in zip(keys, outer, strict=False))

    def _compute(self, query: exp.Expr) -> None:
        """Put the rows of a query in its place."""
        alias = query.args.get("alias")
        if _is_source(query):
            relation = self._computed(_inside(query), query.alias or "subquery")
            query.replace(moved_mention(relation, alias.copy() if isinstance(alias, exp.TableAlias) else None))
            return
        rows = moved_query(self._computed(_inside(query), "subquery"))
        query.replace(exp.Subquery(this=rows) if isinstance(query, exp.Subquery) else rows)

    def _computed(self, query: exp.Expr, title: str) -> str:
        """The relation that the rows of a query become; its columns have the names that a reader of the query in FROM knows."""
        columns = self._columns_as_rows(query)
        gathered = self._gathered(query.copy())
        passed = passed_relation(gathered)
        if passed is not None and self._drafts.columns_of(passed) == columns:
            return passed
        return self._drafts.add(title, to_sql(gathered), relations_in(gathered), columns, at_coordinator=True)

    def _columns_as_rows(self, query: exp.Expr) -> Columns:
        return self._drafts.describe(f"SELECT * FROM ({to_sql(query)}) AS q", relations_in(query))

    def _stands_alone(self, query: exp.Expr) -> bool:
        """Whether a query is about nothing outside of it: it binds by itself. DuckDB looks for a name inside first, among aliases too."""
        if isinstance(query, exp.Subquery) and any(value for key, value in query.args.items() if key not in ("this", "alias", *_ORDERING)):
            return False
        try:
            self._columns_as_rows(_inside(query))
        except DatabaseError:
            return False
        return True

    # Scans

    def _move(self, node: exp.Expr, found: Found) -> None:
        """Replace what moves: a query in which every scan moves by its rows, the other scans by theirs."""
        broadcast = found.moving - found.routes.keys()
        for query in self._computable(node):
            if all(relation in broadcast for relation in relations_in(query) if self._is_partitioned_scan(relation)):
                self._compute(query)
        for relation in filter(found.moving.__contains__, relations_in(node)):
            self._move_scan(node, relation, found.routes.get(relation))

    def _move_scan(self, node: exp.Expr, relation: str, route: Route | None = None) -> None:
        scan = self._scans[relation]
        for mention in [mention for mention, name in mentions(node) if name == relation]:
            settle_applied(mention, relation)
            moved = self._scan_draft(scan, columns_read(mention, scan), route)
            # What else stands in the node, such as joins in parentheses, stays.
            mention.set("this", exp.to_identifier(moved))
            as_mention(mention, moved)

    def _scan_draft(self, scan: Scan, names: tuple[str, ...], route: Route | None) -> str:
        """The relation of the rows of a scan."""
        rows = self._rows_of[scan.relation]
        key = (rows.read, rows.where, names, route)
        moved = self._moved_scans.get(key)
        if moved is None:
            sql = rows.sql(scan.relation, names)
            columns = self._drafts.describe(sql, [scan.relation])
            moved = self._moved_scans[key] = self._drafts.add(
                f"scan {scan.alias}", sql, [scan.relation], columns, at_coordinator=False, row_by_row=True, route=route
            )
        return moved

    def _find(self, query: exp.Expr) -> Found | Scattered:
        builder = self._builder(query)
        root = builder.query(query, Names(), {})
        return find_anchor(root.relation, builder.loose, self._cost_of, orderless=self._orderless)

    def _names(self, select: exp.Select) -> Names:
        return FromClause(self._builder(select), {}, Names()).read(select).names

    def _builder(self, tree: exp.Expr) -> Builder:
        scans, moved = [], {}
        for node, relation in mentions(tree):
            scan = self._scans.get(relation)
            if scan is None:
                moved[id(node)] = tuple((name, sql_type(text)) for name, text in self._drafts.columns_of(relation))
            else:
                scans.append(replace(scan, node=node))
        return Builder(scans, moved, self._aggregates)

    def _parsed(self, sql: str, relations: Sequence[str]) -> exp.Expr:
        """The tree of a text that has been made of parts, mentions known as such."""
        tree = parse_query(sql, tokenize(sql))
        for node in tree.find_all(exp.Table):
            if isinstance(node.this, exp.Identifier) and node.name in relations:
                as_mention(node, node.name)
        return tree


def _columns_alone(select: exp.Select, source: str, relation: str) -> Halves:
    """The members send the columns that the rest of a canonical SELECT is about."""
    taken = {folded(item.alias) for item in select.expressions if isinstance(item, exp.Alias)}
    prefix = "v"
    while any(alias.startswith(prefix) for alias in taken):
        prefix += "_"
    names: dict[str, str] = {}
    final = select.copy()
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


def _named(query: exp.Expr) -> exp.Expr:
    """A query whose columns have the names that the query for which it stands has."""
    names = query.meta.get(_NAMES)
    if names is None:
        return query
    alias = exp.TableAlias(this=exp.to_identifier("q"), columns=[exp.to_identifier(name, quoted=True) for name in names])
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Subquery(this=query, alias=alias)))


def _is_source(query: exp.Expr) -> bool:
    """Whether a query is an item of FROM."""
    return isinstance(query, exp.Subquery) and isinstance(query.parent, (exp.From, exp.Join))


def _without_order(query: exp.Expr) -> exp.Expr:
    copy = query.copy()
    for key in _ORDERING:
        copy.set(key, None)
    return copy


def _inside(query: exp.Expr) -> exp.Expr:
    """A query in parentheses without them and its alias."""
    if not isinstance(query, exp.Subquery):
        return query
    if any(query.args.get(key) for key in _ORDERING):
        copy = query.copy()
        copy.set("alias", None)
        return copy
    return query.this if isinstance(query.this, exp.Expr) else query


def _ordered_source(select: exp.Select) -> exp.Subquery | None:
    """The query in FROM whose order is that of the SELECT, as far as DuckDB goes: it keeps the order of rows that it filters and projects."""
    from_ = select.args.get("from_")
    source = from_.this if isinstance(from_, exp.From) else None
    if not isinstance(source, exp.Subquery) or any(select.args.get(key) for key in ("joins", "distinct", "order")):
        return None
    if any(value for key, value in source.args.items() if key not in ("this", "alias")):
        return None
    inside = source.this
    ordered = isinstance(inside, exp.Query) and (inside.args.get("order") or (isinstance(inside, exp.Select) and _ordered_source(inside)))
    return source if ordered else None


def _behind_from(core: exp.Select) -> str:
    """What follows FROM in a core."""
    return to_sql(core).removeprefix("SELECT * FROM ")


def _has_windows(select: exp.Select) -> bool:
    return select.args.get("qualify") is not None or any(True for clause in TOP_CLAUSES for part in parts_in(select, clause) for _ in windows_in(part))


def _title(select: exp.Select) -> str:
    """What a stage is called: by what it reads first."""
    first = next((node for node, _ in mentions(select)), None)
    name = "rows" if first is None else folded(first.alias_or_name)
    return f"join {name}" if len(relations_in(select)) > 1 else f"scan {name}"
