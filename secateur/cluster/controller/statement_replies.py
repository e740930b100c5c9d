"""Statements at the controller: from a text to the reply to the client, and the plans that members will request."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

from secateur.cluster.controller.catalog import Catalog
from secateur.duckdb_expressions import VERSION
from secateur.engine.sql.scatter import row_merge_of
from secateur.engine.sql.select_plan import SelectPlan
from secateur.errors import TopologyChangedError
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.tables.statistics import NO_STATISTICS, StatisticsSnapshot, TableStatistics
from secateur.partitioning.tables.table import ExternalTable, NamedType, TableDef
from secateur.partitioning.topology.topology import Topology
from secateur.planner.binding.catalog_view import ANYBODY, Viewer
from secateur.planner.cached_plan import typed_parameters
from secateur.planner.cost_model import CostModel
from secateur.planner.explain.explain import explain
from secateur.planner.explain.external_scans import ListPartitions, with_listings
from secateur.planner.explain.statement_facts import StatementFacts, facts_of
from secateur.planner.planner import Planner
from secateur.planner.statement import Command, ExplainFormat, ExplainStatement, PlannedSelect
from secateur.planner.text.syntax import nested_too_deeply
from secateur.planner.views import ViewDef
from secateur.protocol import statements
from secateur.protocol.access import Rights
from secateur.protocol.query import Explained
from secateur.protocol.query_parts import QueryPart, QueryStep, SteppedQuery
from secateur.wire import Payload, encode_table

T = TypeVar("T")
Params = Sequence[Any] | Mapping[str, Any]

_FORGOTTEN_PER_PLAN: Final = 8
"""For each plan that is kept, the facts of so many others are: members list their executions, and the text says what
they were."""
_FORGOTTEN_CHARACTERS_MAX: Final = 2000
"""Of a longer text nothing is kept beside its plan."""


@dataclass(frozen=True, slots=True)
class PlanningView:
    """The catalog and the topology for which a statement is planned: a consistent pair.

    Attributes:
        catalog: The tables.
        topology: Members and owners.
        statistics_snapshot: The statistics of the tables.
        list_partitions: Lists the partitions of an external table, for EXPLAIN.
        viewer: Whom the statement is planned for.
    """

    catalog: Catalog
    topology: Topology
    statistics_snapshot: StatisticsSnapshot = NO_STATISTICS
    list_partitions: ListPartitions | None = None
    viewer: Viewer = ANYBODY

    @property
    def rights(self) -> Rights | None:
        """What the viewer may do; None for everything."""
        return self.viewer.rights

    @property
    def version(self) -> int:
        return self.catalog.version

    def table(self, name: str) -> TableDef:
        self._check(name)
        return self.catalog.table(name)

    def relation(self, name: str) -> TableDef | ViewDef | ExternalTable:
        self._check(name)
        return self.catalog.relation(name)

    @property
    def types(self) -> Mapping[str, NamedType]:
        return self.catalog.types

    def tables(self) -> tuple[TableDef, ...]:
        return self.catalog.tables()

    def statistics(self, table_id: int) -> TableStatistics | None:
        return self.statistics_snapshot.of(table_id)

    def _check(self, name: str) -> None:
        """Refuse a table that may not be named before it is looked up, since errors of the look-up name tables."""
        if self.rights is not None:
            self.rights.check_names(name.casefold())


class Prepared(NamedTuple):
    """The controller's answer to a statement that the client executes: the statement, and its rows if there are any."""

    statement: statements.PreparedStatement
    rows: Payload = b""


@dataclass(slots=True)
class _KeptPlan:
    """A plan that members may ask for, with the last statement that it was made for.

    Attributes:
        plan_whole: As of :class:`~secateur.planner.statement.PlannedSelect`.
        facts: How that statement is pruned, once somebody has asked.
    """

    plan: SelectPlan
    text: str
    plan_whole: Callable[[], PlannedSelect] | None
    facts: StatementFacts | None = None


class StatementReplies:
    """Plans statements, and keeps the plans of those that clients execute.

    Thread-safe.

    Args:
        plans_max: Plans kept for members to ask for.
    """

    def __init__(self, plans_max: int, cost_model: CostModel | None = None) -> None:
        self._planner = Planner(cost_model=cost_model)
        self._plans: OrderedDict[str, _KeptPlan] = OrderedDict()
        self._plans_max = plans_max
        self._forgotten: OrderedDict[str, StatementFacts] = OrderedDict()
        self._lock = threading.Lock()

    def plan(self, plan_id: str) -> SelectPlan:
        """A plan that was made here.

        Raises:
            TopologyChangedError: It is not kept any more; the client has to prepare its statement again.
        """
        return self._kept_plan(plan_id).plan

    def whole(self, plan_id: str) -> SelectPlan:
        """The plan of the query for the row changes, where the one of this id only finds the key of their row.

        Raises:
            TopologyChangedError: As :meth:`plan`.
            Error: The query is refused.

        Cost: that of planning it, for the first call.
        """
        kept = self._kept_plan(plan_id)
        if kept.plan_whole is None:
            return kept.plan
        whole = bounded_depth(kept.plan_whole)
        self._kept(whole, kept.text)
        return whole.plan

    def facts(self, plan_id: str) -> StatementFacts | None:
        """The statement for which a plan was made, and how it is pruned; None when it is not known any more.

        What somebody asks for is known longer than what nobody does.
        """
        kept = self._plans.get(plan_id)
        if kept is None:
            with self._lock:
                if plan_id in self._forgotten:
                    self._forgotten.move_to_end(plan_id)
                return self._forgotten.get(plan_id)
        if kept.facts is None:
            kept.facts = facts_of(kept.text, kept.plan)
        return kept.facts

    def prepare(self, sql: str, params: Params, settings: Mapping[str, Any], view: PlanningView) -> Command | Prepared:
        """Plan a statement: a command to carry out, or what the client executes.

        Raises:
            ProgrammingError: The statement is wrong.
            NotSupportedError: It is right, but not implemented.
        """
        started_s = time.perf_counter()
        rights = view.rights
        statement = bounded_depth(lambda: self._planner.prepare(sql, params, view, settings, viewer=view.viewer))
        planning_ms = (time.perf_counter() - started_s) * 1000
        if rights is not None:
            statement.check_tables(rights)
        match statement:
            case statements.EvaluatedInsert(insert, rows):
                return Prepared(insert, encode_table(rows))
            case ExplainStatement(target, form, analyze, offset):
                explained = bounded_depth(lambda: explain(with_listings(target, view.list_partitions), view, settings))
                is_json = form is ExplainFormat.JSON
                lines = (json.dumps(explained.json),) if is_json else tuple(explained.text.splitlines())
                analyzed = sql[offset:] if analyze else None
                return Prepared(statements.PlanText(lines, is_json, analyzed, planning_ms))
            case _ if isinstance(statement, Command):
                return statement
            case _:
                typed = typed_parameters(statement)
                return Prepared(statement.with_queries(lambda query: self._routed(query, sql, typed)))

    def explain(self, sql: str, params: Params, settings: Mapping[str, Any], view: PlanningView) -> Explained:
        """Describe how a statement would run."""
        statement = bounded_depth(
            lambda: self._planner.prepare(sql, params, view, settings, viewer=view.viewer, anew=True)
        )
        if view.rights is not None:
            statement.check_tables(view.rights)
        target = statement.target if isinstance(statement, ExplainStatement) else statement
        explained = bounded_depth(lambda: explain(with_listings(target, view.list_partitions), view, settings))
        return Explained(explained.text, explained.json)

    def _routed(self, statement: PlannedSelect, sql: str, typed: tuple[int, ...]) -> statements.SelectStatement:
        """Keep a query's plans for the members that will request them; return the form by which a client routes."""
        plan, first = statement.plan, statement
        while first.materialized is not None:
            first = first.materialized.steps[0].query
        return statements.SelectStatement(
            plan_id=plan.plan_id,
            scans=_routed_scans(plan),
            columns=tuple(itertools.starmap(statements.ResultColumn, plan.columns)),
            parameter_count=plan.parameter_count,
            parameter_names=plan.parameter_names,
            empty=plan.empty,
            deterministic=plan.deterministic,
            catalog_version=plan.catalog_version,
            is_estimated=plan.is_estimated,
            hidden=statement.hidden,
            steps=self._kept(statement, sql).steps,
            first_scans=() if first is statement else _routed_scans(first.plan),
            reads_clock=plan.reads_clock,
            merge=row_merge_of(plan) if statement.materialized is None else None,
            typed=typed,
            textual=statement.textual,
        )

    def _kept_plan(self, plan_id: str) -> _KeptPlan:
        kept = self._plans.get(plan_id)
        if kept is None:
            raise TopologyChangedError(
                f"plan {plan_id} is not known any more: prepare the statement again", plan=plan_id
            )
        return kept

    def _kept(self, statement: PlannedSelect, sql: str) -> QueryPart:
        """Keep the plans of a query and of its parts."""
        plan, planned = statement.plan, statement.materialized
        with self._lock:
            kept = self._plans.get(plan.plan_id)
            if kept is None or kept.text != sql:  # other words may make the same plan
                self._plans[plan.plan_id] = _KeptPlan(plan, sql, statement.plan_whole)
            self._plans.move_to_end(plan.plan_id)
            while len(self._plans) > self._plans_max:
                self._forget(*self._plans.popitem(last=False))
        if planned is None:
            return QueryPart(plan.plan_id)
        steps = tuple(
            QueryStep(self._kept(step.query, sql), step.use, step.values_max, step.estimate) for step in planned.steps
        )
        return QueryPart(plan.plan_id, SteppedQuery(steps, self._kept(planned.outer, sql), planned.watched))

    def _forget(self, plan_id: str, kept: _KeptPlan) -> None:
        """Keep what is known of a statement without its plan, which takes a hundred times the memory."""
        if len(kept.text) <= _FORGOTTEN_CHARACTERS_MAX:
            self._forgotten[plan_id] = kept.facts or facts_of(kept.text, kept.plan)
        while len(self._forgotten) > _FORGOTTEN_PER_PLAN * self._plans_max:
            self._forgotten.popitem(last=False)


def estimated_tables(planned: object) -> frozenset[int] | None:
    """The ids of the tables on whose statistics the answer to a client depends; None if it may be those of any table.

    Args:
        planned: The result of :meth:`StatementReplies.prepare`.
    """
    if not isinstance(planned, Prepared):
        return frozenset()
    if isinstance(planned.statement, statements.PlanText):
        return None
    estimated = (query for query in planned.statement.queries[:1] if query.is_estimated)
    return frozenset(scan.table_id for query in estimated for scan in query.scans)


def outlines_of(statement: statements.PreparedStatement) -> tuple[PartitionScheme, ...]:
    """The outlines of the large schemes to which a statement refers, for a client that may not know them."""
    schemes = [statement.table.scheme] if isinstance(statement, statements.RowChange) else []
    for query in statement.queries:
        schemes += [scan.tree.scheme for scan in (*query.scans, *query.first_scans)]
    return tuple({scheme.reference: scheme.outline() for scheme in schemes if scheme.reference is not None}.values())


def _routed_scans(plan: SelectPlan) -> tuple[statements.RoutedScan, ...]:
    return tuple(
        statements.RoutedScan(
            scan.table,
            scan.alias,
            scan.table_id,
            scan.table_version,
            scan.group,
            scan.replicated,
            scan.tree,
            VERSION if scan.tree.expressions else "",
            bool(scan.policy),
        )
        for scan in plan.scans
    )


def bounded_depth(plan: Callable[[], T]) -> T:
    """Plan a statement.

    Raises:
        LimitExceededError: It is nested more deeply than the frames of a thread let it be read: by some 300 calls or
            operators. A chain of AND or OR is one level, however long it is.
    """
    try:
        return plan()
    except RecursionError:
        raise nested_too_deeply() from None
