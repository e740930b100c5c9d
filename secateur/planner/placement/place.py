"""Placement: divides a statement into stages, each one kernel call at its members or at the coordinator.

A SELECT is divided from the inside out. A query inside it that the members cannot compute from their own partitions
becomes rows that are computed first. Of the rest, the scans that are co-located stay where they are and the others move
(:mod:`~secateur.planner.placement.search`): FROM and WHERE are then one fragment at the members. Operations on all
rows, such as groups and limits, are split into a partial and a final part, or done at the coordinator over the columns
that they need.

Every uncertainty raises :class:`~secateur.planner.fragments.qualified.NotDistributable`; the statement is then gathered
as a whole. DuckDB binds the text of each stage, and the last one must have the result types of the statement.

Source: exchanges as operators of their own (Graefe, "Volcano", 1994); fragments between exchanges (Presto, Trino). The
    execution mode *local* of Ignite is handled elsewhere, because it needs no stages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sqlglot import exp

from secateur.errors import DatabaseError
from secateur.partitioning.tables.identifier import folded
from secateur.planner.binding.query import Query, holds_query
from secateur.planner.checks.placed import placed_difference
from secateur.planner.cost_model import CostModel
from secateur.planner.fragments.merged_order import is_worth_merging
from secateur.planner.fragments.qualified import NotDistributable, RecompositionMismatch
from secateur.planner.placement.correlated import Lookup, lookup_of, with_asked_keys
from secateur.planner.placement.cost import Estimate
from secateur.planner.placement.ctes import is_mention, without_ctes
from secateur.planner.placement.distribution import HashPartitioned, UnsupportedDistribution
from secateur.planner.placement.placement_context import PlacementContext
from secateur.planner.placement.scan_rows import ScanRows, mark_applied
from secateur.planner.placement.search import PlacementChoice
from secateur.planner.placement.select_blocks import (
    ORDERING,
    core_of,
    inside_of,
    is_source,
    nested_queries,
    ordered_source,
    same_union,
    title_of,
    without_order,
)
from secateur.planner.placement.split_select import (
    named_as_asked,
    pass_through_of,
    split_block,
    without_order_and_limit,
)
from secateur.planner.placement.stage_builder import Columns, Schema, StageDraft
from secateur.planner.placement.table_references import (
    exchanged_query,
    exchanged_reference,
    pass_through_relation,
    passed_through_relation,
    relations_in,
    tagged_tree,
)
from secateur.planner.text.dialect import to_sql
from secateur.planner.text.parser_cross_check import DuckDBParse
from secateur.planner.text.trees import copied

_NODES_MAX: Final = 20_000
_ORDERED: Final = "a subquery is evaluated after rows of several members are sorted: write it as a join"
_INTEGERS: Final = frozenset(
    {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
)
_EXACT: Final = frozenset({"VARCHAR", "DATE", "UUID", "BOOLEAN", "TIMESTAMP"})


def place(
    query: Query,
    reading: DuckDBParse,
    columns: Columns,
    schemas: Mapping[str, Schema],
    describe: Callable[[str, Mapping[str, Schema]], Columns],
    rows_of: Mapping[str, ScanRows],
    estimate_of: Callable[[str], Estimate],
    model: CostModel,
) -> tuple[tuple[StageDraft, ...], str | None]:
    """Place a query.

    Args:
        query: The bound query, which DuckDB's parser reads in the same way.
        reading: DuckDB's parse tree of it, from which the query can be printed again.
        columns: Name and type of each column of its result.
        schemas: The columns of each scan that the query may need.
        describe: DuckDB's binder.
        rows_of: For each scan the predicates on the rows that the query may need.
        estimate_of: The estimated rows of a scan.
        model: The costs of moving rows.

    Returns:
        Its stages in an order in which they can run; the last one has the answer. And the tables that the coordinator
        gathers for them, with the reason, or None.

    Raises:
        NotDistributable: It cannot be divided; the message is the reason.
        RecompositionMismatch: The texts of the stages are not equivalent to the statement.
    """
    if reading.has_collations:
        raise NotDistributable(
            "a collation decides which texts are equal, and stages do not exchange it: leave out COLLATE"
        )
    context = PlacementContext(query.scans, reading, schemas, describe, rows_of, estimate_of, model)
    placer = _Placer(query, context)
    try:
        drafts = placer.place(columns)
        found = placed_difference(reading, [draft.placed_text for draft in drafts], context.sources())
        if found is not None:
            raise RecompositionMismatch(found)
        return drafts, placer.gathered()
    except DatabaseError as error:
        raise NotDistributable(f"its stages do not bind: {error.message}") from error


class _Placer:
    def __init__(self, query: Query, context: PlacementContext) -> None:
        self._query = query
        self._context = context

    def place(self, columns: Columns) -> tuple[StageDraft, ...]:
        """The whole statement."""
        for relation, rows in self._context.rows_of.items():
            mark_applied(relation, rows)
        tree = tagged_tree(self._query)
        if sum(1 for _ in tree.walk()) > _NODES_MAX:
            raise NotDistributable("it is too long to be divided into stages: split it into several statements")
        self._context.move_fetched_tables(tree)
        final = self._gathered(without_ctes(tree, self._compute_cte, self._compute_recursion))
        done = pass_through_of(final)
        sizes = map(self._context.cost_of, self._context.rows_of)
        if done is not None and (done.limit or is_worth_merging(sizes, self._context.model)):
            final = without_order_and_limit(final)
            self._context.drafts.sort(done.relation, done.order)
        else:
            done = None
        relation = self._at_coordinator("final", final, columns, is_pipelineable=pass_through_relation(final))
        if done is not None and done.limit is not None:
            self._context.drafts.limit(relation, done.limit)
        return tuple(self._context.drafts.drafts)

    def gathered(self) -> str | None:
        """Describe the rows that the coordinator gathers unchanged, with the reason; None where there are none."""
        found = [
            f"{', '.join(part.names)}: {self._query.located(part.reason, part.node)}" for part in self._context.gathered
        ]
        return "; ".join(dict.fromkeys(found)) or None

    def _compute_cte(self, cte: exp.CTE) -> str:
        return self._computed(without_ctes(cte.this, self._compute_cte, self._compute_recursion), cte.alias)

    def _compute_recursion(self, cte: exp.CTE) -> str:
        """Run a UNION of WITH RECURSIVE at the coordinator, over its first part and the scans of each step."""
        without_ctes(cte.this, self._compute_cte, self._compute_recursion)
        cte.set("this", cte.this.unnest())  # in parentheses it would be computed beside, as a plain UNION
        self._compute_beside(cte.this)
        with_ = exp.With(expressions=[cte], recursive=True)
        query = exp.Select(
            expressions=[exp.Star()], from_=exp.From(this=exp.Table(this=cte.args["alias"].this.copy())), with_=with_
        )
        name = folded(cte.alias)
        reason = (
            f"each step of the recursion {cte.alias} reads all rows of the step before"
            if any(is_mention(node, name) for node in cte.this.find_all(exp.Table))
            else f"{cte.alias}, a UNION in WITH RECURSIVE, has the types of its first part: write it without RECURSIVE"
        )
        return self._at_coordinator(
            cte.alias, self._context.all_moved(query, reason), self._context.columns_as_rows(query)
        )

    def _compute_beside(self, node: exp.Expr) -> None:
        """Compute the queries inside that do not mention the recursion."""
        for query in filter(self._context.is_partitioned, nested_queries(node)):
            if self._context.stands_alone(query):
                self._compute(query)
            else:
                self._compute_beside(query)

    def _gathered(self, node: exp.Expr) -> exp.Expr:
        """Return an equal query over relations of the coordinator: replicated tables, and rows that were sent there."""
        if not self._context.is_partitioned(node):
            return node
        match node:
            case exp.Select():
                return self._select(node)
            case exp.SetOperation():
                return self._set_operation(node)
            case exp.Subquery() if holds_query(node):
                node.set("this", named_as_asked(self._gathered(node.this)))
                return self._context.all_moved(node, _ORDERED)
            case _:
                return self._context.all_moved(node, "it is not a SELECT")

    def _set_operation(self, node: exp.SetOperation) -> exp.Expr:
        bare = without_order(node)
        found = self._context.find(bare)
        if isinstance(found, PlacementChoice) and found.is_distributed:
            columns = self._context.columns_as_rows(bare)
            self._move(bare, found)
            query = exchanged_query(
                self._context.drafts.add(
                    "set operation", to_sql(bare), relations_in(bare), columns, at_coordinator=False
                )
            )
            for key in ORDERING:
                query.set(key, node.args.get(key))
            return self._context.all_moved(query, _ORDERED)
        self._gather_operands(node)
        return self._context.all_moved(node, _ORDERED)

    def _gather_operands(self, node: exp.SetOperation) -> None:
        operations = [node]
        while (inside := same_union(operations[-1].this, operations[-1])) is not None:
            operations.append(inside)
        for operation in reversed(operations):
            for key in ("this", "expression") if operation is operations[-1] else ("expression",):
                operation.set(key, named_as_asked(self._gathered(operation.args[key])))

    # SELECT

    def _select(self, select: exp.Select) -> exp.Expr:
        source = ordered_source(select)
        if source is not None and not self._context.is_aggregated(select):
            source.set("this", named_as_asked(self._gathered(source.this)))
            return self._context.all_moved(select, _ORDERED)
        if self._context.aggregates_from_inside(select):
            return self._context.all_moved(
                select, "a subquery aggregates rows of the outer query: aggregate them in a derived table"
            )
        columns = self._context.later_columns(select)
        found = self._prepared(select)
        if isinstance(found, UnsupportedDistribution):
            for query in self._computable(select):
                self._compute(query)
            found = self._context.find(self._context.core(select))
        if isinstance(found, UnsupportedDistribution):
            return self._context.all_moved(select, found.reason)
        if not isinstance(found.distribution, HashPartitioned):
            return self._context.all_moved(
                select, found.distribution.singleton_reason or "FROM reads only replicated rows"
            )
        if any(map(self._context.is_partitioned, self._context.queries_behind(select))):
            return self._context.all_moved(
                select, "a subquery over groups or windows reads partitioned tables: write it as a join"
            )
        whole = self._context.find(without_order(select))
        is_distributed = isinstance(whole, PlacementChoice) and whole.is_distributed and whole.cost <= found.cost
        self._move(select, whole if is_distributed and isinstance(whole, PlacementChoice) else found)
        if is_distributed and not any(select.args.get(key) for key in ORDERING):
            return exchanged_query(
                self._context.drafts.add(
                    title_of(select), to_sql(select), relations_in(select), columns(), at_coordinator=False
                )
            )
        return split_block(self._context, select, columns, is_distributed=is_distributed)

    def _prepared(self, select: exp.Select) -> PlacementChoice | UnsupportedDistribution:
        """Compute the queries that must, or should, be computed before the core of a SELECT; returns its placement."""
        self._compute_scattered(select)
        found = self._context.find(self._context.core(select))
        return self._context.find(self._context.core(select)) if self._compute_lookups(select, found) else found

    # Queries inside

    def _computable(self, node: exp.Expr) -> list[exp.Expr]:
        """The outermost queries inside that can be computed by themselves, and have rows at single members."""
        return [
            query
            for query in nested_queries(node)
            if self._context.is_partitioned(query) and self._context.stands_alone(query)
        ]

    def _compute_scattered(self, select: exp.Select) -> None:
        """Compute inner queries that the members cannot compute separately, and those that are needed after the core.

        A subquery of an expression for which rows have to move is computed first too: the outer rows cannot use the
        moved rows. A query in FROM is not: its rows are used.
        """
        behind = {id(query) for query in self._context.queries_behind(select)}
        for query in self._computable(select):
            found = None if id(query) in behind else self._context.find(inside_of(query))
            if (
                not isinstance(found, PlacementChoice)
                or not found.is_distributed
                or (found.moving and not is_source(query))
            ):
                self._compute(query)
            elif found.moving and isinstance(query, exp.Subquery) and isinstance(query.this, exp.Select):
                self._prepared(query.this)

    def _compute_lookups(self, select: exp.Select, found: PlacementChoice | UnsupportedDistribution) -> bool:
        """Decorrelate subqueries for which every member would need all rows; returns whether there were any."""
        before = len(self._context.drafts.drafts)
        for query in nested_queries(select):
            inside = [relation for relation in relations_in(query) if self._context.is_partitioned_scan(relation)]
            if (
                inside
                and (isinstance(found, UnsupportedDistribution) or found.staying.isdisjoint(inside))
                and not self._context.stands_alone(query)
            ):
                lookup = self._lookup(query, select)
                if lookup is not None:
                    asked = with_asked_keys(lookup, select, self._context.names(select))
                    lookup = asked if self._context.stands_alone(asked.rows) else lookup
                    relation = self._computed(lookup.rows, "keys")
                    self._context.drafts.note_keyed(relation, to_sql(lookup.rows))
                    rows = lookup.over(relation)
                    query.replace(exp.Subquery(this=rows) if isinstance(query, exp.Subquery) else rows)
        return len(self._context.drafts.drafts) > before

    def _lookup(self, query: exp.Expr, around: exp.Select) -> Lookup | None:
        select = query.this if isinstance(query, exp.Subquery) else query
        if not isinstance(select, exp.Select):
            return None
        lookup = lookup_of(query, self._context.names(select))
        # A query without GROUP BY always has a row, so EXISTS of it is TRUE.
        if (
            lookup is None
            or (not lookup.has_value and self._makes_a_row_of_none(select))
            or not self._context.stands_alone(lookup.rows)
        ):
            return None
        return lookup if not lookup.has_value or self._is_compared_alike(lookup, around) else None

    def _makes_a_row_of_none(self, select: exp.Select) -> bool:
        return self._context.is_aggregated(select) or self._context.aggregates_from_inside(select)

    def _is_compared_alike(self, lookup: Lookup, around: exp.Select) -> bool:
        """Whether all keys equal to one outer value are one key; otherwise the value would have several results."""
        from_ = core_of(around)
        from_.set("where", None)
        from_.set("expressions", [outer.copy() for outer in lookup.outer])
        try:
            outer = [text for _, text in self._context.drafts.describe(to_sql(from_), relations_in(from_))]
        except DatabaseError:
            return False
        keys = [text for _, text in self._context.columns_as_rows(lookup.rows)]
        return all(
            (mine in _INTEGERS and theirs in _INTEGERS) or (mine == theirs and mine in _EXACT)
            for mine, theirs in zip(keys, outer, strict=False)
        )

    def _compute(self, query: exp.Expr) -> None:
        """Put the rows of a query in its place."""
        if self._compute_in_array(query):
            return
        alias = query.args.get("alias")
        if is_source(query):
            relation = self._computed(inside_of(query), query.alias or "subquery")
            reference = exchanged_reference(relation, alias.copy() if isinstance(alias, exp.TableAlias) else None)
            reference.set("joins", query.args.get("joins"))
            query.replace(reference)
            return
        rows = exchanged_query(self._computed(inside_of(query), "subquery"))
        query.replace(exp.Subquery(this=rows) if isinstance(query, exp.Subquery) else rows)

    def _compute_in_array(self, query: exp.Expr) -> bool:
        """Compute what an ordered query or a set operation of ``ARRAY(...)`` reads; returns whether it is one.

        The query itself stays. DuckDB's parser makes an ``array_agg`` of it, with ORDER BY in the aggregate: that of
        moved rows would have no order.
        """
        inside = query.this if isinstance(query, exp.Subquery) else query
        if not (isinstance(query.parent, exp.Anonymous) and folded(query.parent.name) == "array") or not (
            isinstance(inside, exp.SetOperation) or inside.args.get("order")
        ):
            return False
        if isinstance(inside, exp.SetOperation):
            self._gather_operands(inside)
        else:
            self._compute_beside(inside)
        self._context.all_moved(query, "ARRAY has the order of its query")
        return True

    def _computed(self, query: exp.Expr, title: str) -> str:
        """Return the relation of a query's rows; its columns have the names that they have for a reader in FROM."""
        columns = self._context.columns_as_rows(query)
        gathered = self._gathered(copied(query))
        passed = passed_through_relation(gathered)
        if passed is not None and self._context.drafts.columns_of(passed) == columns:
            return passed
        return self._at_coordinator(title, gathered, columns)

    def _at_coordinator(
        self, title: str, gathered: exp.Expr, columns: Columns, *, is_pipelineable: bool = False
    ) -> str:
        """A stage at the coordinator."""
        return self._context.drafts.add(
            title,
            to_sql(gathered),
            relations_in(gathered),
            columns,
            at_coordinator=True,
            is_pipelineable=is_pipelineable,
        )

    # Scans

    def _move(self, node: exp.Expr, found: PlacementChoice) -> None:
        """Replace the parts that move: a query whose scans all move by its rows, and the other scans by theirs."""
        broadcast = found.moving - found.repartitions.keys()
        for query in self._computable(node):
            if all(
                relation in broadcast for relation in relations_in(query) if self._context.is_partitioned_scan(relation)
            ):
                self._compute(query)
        for relation in filter(found.moving.__contains__, relations_in(node)):
            self._context.move_scan(
                node, relation, found.repartitions.get(relation), found.semi_joins.get(relation, ())
            )
