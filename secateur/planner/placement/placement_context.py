"""The placement context: the shared knowledge about a statement while it is divided, and how its scans are moved."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from secateur.errors import DatabaseError
from secateur.partitioning.tables.identifier import quoted
from secateur.partitioning.types.result_type import column_type_of
from secateur.planner.binding.query import TableReference
from secateur.planner.checks.claims import Source
from secateur.planner.checks.columns_by_position import read_by_position
from secateur.planner.cost_model import CostModel
from secateur.planner.placement.cost import Estimate
from secateur.planner.placement.distribution import Repartition, UnsupportedDistribution
from secateur.planner.placement.scan_rows import ScanRows, columns_read, hint_selection, settle_applied
from secateur.planner.placement.search import PlacementChoice, find_anchor
from secateur.planner.placement.select_blocks import (
    ORDERING,
    TOP_CLAUSES,
    core_of,
    inside_of,
    is_source,
    nested_queries,
    parts_in,
)
from secateur.planner.placement.semi_joins import SemiJoin, reduced_sql, reducing_scans, semi_joins, share_left
from secateur.planner.placement.stage_builder import Columns, GatheredRows, Schema, StageBuilder
from secateur.planner.placement.table_references import as_table_reference, relations_in, table_references
from secateur.planner.relations.build import RelationBuilder
from secateur.planner.relations.calls import aggregates_in, has_windows
from secateur.planner.relations.from_clause import FromClause
from secateur.planner.relations.names import VisibleNames
from secateur.planner.rewrites import common_conjunct, outer_join_reduction
from secateur.planner.text.dialect import parse_query, to_sql, tokenize
from secateur.planner.text.parser_cross_check import DuckDBParse
from secateur.planner.text.trees import copied


class PlacementContext:
    """One statement that is being placed.

    Args:
        scans: Its scans.
        reading: DuckDB's parse tree of it.
        schemas: The columns of each scan that it may need.
        describe: DuckDB's binder.
        rows_of: For each scan the predicates on the rows that it may need.
        estimate_of: The estimated rows of a scan.
        model: The costs of moving rows.

    Attributes:
        model: As given.
        drafts: The stages so far.
        gathered: The rows that the coordinator gathers unchanged, and why.
        rows_of: As given.
    """

    def __init__(
        self,
        scans: Sequence[TableReference],
        reading: DuckDBParse,
        schemas: Mapping[str, Schema],
        describe: Callable[[str, Mapping[str, Schema]], Columns],
        rows_of: Mapping[str, ScanRows],
        estimate_of: Callable[[str], Estimate],
        model: CostModel,
    ) -> None:
        self.model = model
        self.drafts = StageBuilder(schemas, describe)
        self.gathered: list[GatheredRows] = []
        self.rows_of = rows_of
        self._scans = {scan.relation: scan for scan in scans}
        self._estimate_of = estimate_of
        self._orderless = reading.has_orderless_aggregates
        self._aggregates = reading.aggregates()
        self._read_by_position = read_by_position(reading.tree)
        self._moved_scans: dict[Hashable, str] = {}

    def sources(self) -> dict[str, Source]:
        """The scans, for the check of the stages."""
        return {relation: self._source(scan) for relation, scan in self._scans.items()}

    def _source(self, scan: TableReference) -> Source:
        rows = self.rows_of[scan.relation]
        return Source.of(scan, (scan.table.table_id, rows.read, rows.where))

    def cost_of(self, relation: str) -> float:
        """Return the cost of sending the rows of a scan to every member."""
        return self._estimate_of(relation).bytes

    def is_partitioned(self, node: exp.Expr) -> bool:
        """Whether a query reads partitioned tables, whose rows are on single members."""
        return any(map(self.is_partitioned_scan, relations_in(node)))

    def is_partitioned_scan(self, relation: str) -> bool:
        scan = self._scans.get(relation)
        return scan is not None and not scan.table.replicated

    def core(self, select: exp.Select) -> exp.Select:
        """FROM and WHERE, and the subqueries of the SELECT list if it is about the rows of FROM."""
        if self.is_aggregated(select):
            return core_of(select)
        items = [item for item in select.expressions if nested_queries(item) and not has_windows(item)]
        return core_of(select, [exp.Star(), *map(copied, items)])

    def is_aggregated(self, select: exp.Select) -> bool:
        """Whether a SELECT makes rows of groups."""
        return bool(select.args.get("group") or select.args.get("having") or self.aggregates_of(select))

    def aggregates_of(self, select: exp.Select) -> set[str]:
        return {
            name
            for clause in TOP_CLAUSES
            for part in parts_in(select, clause)
            for name in aggregates_in(part, self._aggregates)
        }

    def aggregates_from_inside(self, select: exp.Select) -> bool:
        """Whether a subquery may aggregate rows of the SELECT: ``SELECT (SELECT max(t.a)) FROM t`` makes one row."""
        inside = [
            query for clause in TOP_CLAUSES for part in parts_in(select, clause) for query in nested_queries(part)
        ]
        kinds = (exp.AggFunc, exp.Anonymous, exp.WithinGroup)
        calls = [
            call
            for query in inside
            for call in query.find_all(*kinds)
            if any(True for _ in aggregates_in(call, self._aggregates))
        ]
        for call in calls:
            holder = call.parent_select
            names = None if holder is None else self.names(holder)
            if names is None or not all(names.is_local(column) for column in call.find_all(exp.Column)):
                return True
        return False

    def queries_behind(self, select: exp.Select) -> list[exp.Expr]:
        """The queries in clauses that are evaluated behind the core."""
        aggregated = self.is_aggregated(select)
        parts = [
            part
            for clause in TOP_CLAUSES
            for part in parts_in(select, clause)
            if aggregated or clause != "expressions" or has_windows(part)
        ]
        return [query for part in parts for query in nested_queries(part)]

    def later_columns(self, query: exp.Expr) -> Callable[[], Columns]:
        """:meth:`columns_as_rows` of a query as it is now, when they are needed: it may be changed by then."""
        sql, relations = f"SELECT * FROM ({to_sql(query)}) AS q", relations_in(query)
        return lambda: self.drafts.describe(sql, relations)

    def columns_as_rows(self, query: exp.Expr) -> Columns:
        return self.drafts.describe(f"SELECT * FROM ({to_sql(query)}) AS q", relations_in(query))

    def stands_alone(self, query: exp.Expr) -> bool:
        """Whether a query is uncorrelated: it binds without the outer names.

        DuckDB resolves a name inside first, including aliases.
        """
        own = {"this", "alias", *ORDERING, *(["joins"] if is_source(query) else [])}
        if isinstance(query, exp.Subquery) and any(value for key, value in query.args.items() if key not in own):
            return False
        try:
            self.columns_as_rows(inside_of(query))
        except DatabaseError:
            return False
        return True

    def find(self, query: exp.Expr) -> PlacementChoice | UnsupportedDistribution:
        builder = self._builder(query)
        written = builder.query(query, VisibleNames(), {}).relation
        root = outer_join_reduction.RULE.applied(common_conjunct.RULE.applied(written))
        # Only equalities of the user's text reduce scans: planner/checks looks for them there.
        joins = semi_joins(written, self._estimate_of, self.model)

        def cost_moved(relation: str) -> float:
            return self.cost_of(relation) * share_left(joins.get(relation, ()))

        found = find_anchor(root, builder.loose, cost_moved, self.model, orderless=self._orderless)
        return found if isinstance(found, UnsupportedDistribution) else replace(found, semi_joins=joins)

    def names(self, select: exp.Select) -> VisibleNames:
        return FromClause(self._builder(select), {}, VisibleNames(), select).read().names

    def all_moved(self, node: exp.Expr, reason: str) -> exp.Expr:
        """Return the query over the moved rows of all its scans, the last resort; ``reason`` explains it."""
        moved = list(filter(self.is_partitioned_scan, relations_in(node)))
        self.note_gathered(node, moved, reason)
        for relation in moved:
            self.move_scan(node, relation)
        return node

    def note_gathered(self, node: exp.Expr, relations: Sequence[str], reason: str) -> None:
        """Remember that the coordinator gets rows of some scans as they are."""
        if relations:
            self.gathered.append(
                GatheredRows(tuple(dict.fromkeys(self._scans[relation].alias for relation in relations)), reason, node)
            )

    def move_fetched_tables(self, tree: exp.Expr) -> None:
        """Put the rows of system tables and external ones, which only the coordinator has, where they are named."""
        for reference, relation in list(table_references(tree)):
            scan = self._scans[relation]
            if scan.is_fetched:
                sql = f"SELECT {', '.join(map(quoted, scan.columns))} FROM {relation}"
                columns = self.drafts.describe(sql, [relation])
                moved = self.drafts.add(
                    f"scan {scan.alias}",
                    sql,
                    [relation],
                    columns,
                    at_coordinator=True,
                    is_pipelineable=True,
                    is_scan=True,
                )
                reference.set("this", exp.to_identifier(moved))
                as_table_reference(reference, moved)

    def move_scan(
        self, node: exp.Expr, relation: str, route: Repartition | None = None, joins: Sequence[SemiJoin] = ()
    ) -> None:
        scan = self._scans[relation]
        for reference in [reference for reference, name in table_references(node) if name == relation]:
            settle_applied(reference, relation)
            # A repartitioning key may be equal to another column that is read, and be named nowhere once its
            # condition has been applied.
            named = columns_read(reference, scan, self._read_by_position)
            read = {*named, *(() if route is None else route.columns)}
            columns = tuple(name for name in scan.columns if name in read)
            if self._estimate_of(relation).share * share_left(joins) <= self.model.selection_share_max:
                hint_selection(reference, scan, columns)
            moved = self._scan_draft(scan, columns, route, joins)
            # Other parts of the node, such as joins in parentheses, stay.
            reference.set("this", exp.to_identifier(moved))
            as_table_reference(reference, moved)

    def _scan_draft(
        self, scan: TableReference, names: tuple[str, ...], route: Repartition | None, joins: Sequence[SemiJoin]
    ) -> str:
        """The relation of the rows of a scan."""
        key = (names, route, self._identity(scan.relation, joins))
        moved = self._moved_scans.get(key)
        if moved is None:
            sql, relations = (
                reduced_sql(scan.relation, names, joins, self.rows_of),
                list(dict.fromkeys([scan.relation, *reducing_scans(joins)])),
            )
            columns = self.drafts.describe(sql, relations)
            moved = self._moved_scans[key] = self.drafts.add(
                f"scan {scan.alias}",
                sql,
                relations,
                columns,
                at_coordinator=False,
                is_pipelineable=not joins,
                route=route,
                is_scan=True,
            )
        return moved

    def _identity(self, relation: str, joins: Sequence[SemiJoin]) -> Hashable:
        """Equal for scans that read the same rows."""
        rows = self.rows_of[relation]
        return rows.read, rows.where, tuple((join.on, self._identity(join.relation, join.by)) for join in joins)

    def _builder(self, tree: exp.Expr) -> RelationBuilder:
        scans, moved = [], {}
        for node, relation in table_references(tree):
            scan = self._scans.get(relation)
            if scan is None:
                moved[id(node)] = tuple((name, column_type_of(text)) for name, text in self.drafts.columns_of(relation))
            else:
                scans.append(replace(scan, node=node))
        return RelationBuilder(scans, moved, self._aggregates)

    def parsed(self, sql: str, relations: Sequence[str]) -> exp.Expr:
        """The tree of a text that has been made of parts, references known as such."""
        tree = parse_query(sql, tokenize(sql))
        for node in tree.find_all(exp.Table):
            if isinstance(node.this, exp.Identifier) and node.name in relations:
                as_table_reference(node, node.name)
        return tree
