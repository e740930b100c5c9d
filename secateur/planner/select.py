"""From the text of a query to its plan.

The order of the steps: bind the tables; let DuckDB bind the rest (names and types of the result, and every error that
DuckDB has to find), and show its plan; bound each scan by the conditions that the plan puts on it; and divide the
statement in stages where that is exact.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace as with_fields
from functools import partial
from hashlib import blake2b
from typing import Any

from msgspec.structs import replace

from secateur.cached_properties import cached_property
from secateur.engine.kernels.arrow.fragment import ArrowFragment
from secateur.engine.kernels.duckdb.kernel import default_kernel
from secateur.engine.kernels.fragment import Fragment
from secateur.engine.sql.key_search import KeySearch
from secateur.engine.sql.scatter import can_scatter
from secateur.engine.sql.select_plan import PartialAtReaders, ScanPlan, SelectPlan
from secateur.errors import DataError, NotSupportedError, ProgrammingError
from secateur.partitioning.pruning.nodes import All, Everywhere
from secateur.partitioning.types.sql_text import folded, quoted
from secateur.planner.arrow.form import arrow_form
from secateur.planner.arrow.sources import JoinInput
from secateur.planner.barriers import needs_barriers, with_barriers
from secateur.planner.binding.binding_errors import in_users_terms
from secateur.planner.binding.bound_plan import BoundPlan, Unreadable, bind_to_plan, type_uses_in
from secateur.planner.binding.catalog_view import PlanningCatalog
from secateur.planner.binding.clocks import is_unsettled, reads_clock, settled
from secateur.planner.binding.evaluation import is_small, refuse_large_constants
from secateur.planner.binding.query import FindGuard, Query, bind_query
from secateur.planner.cost_model import CostModel
from secateur.planner.distribute.exchanges import NotDivided, is_row_by_row
from secateur.planner.empty_answer import empty_answer
from secateur.planner.gathered import QueryInputs
from secateur.planner.prune.external_scan import external_scan
from secateur.planner.prune.scan_reading import QueryReading, ScanReading, ScanRows, read_query, rows_of_scans
from secateur.planner.prune.shown import conjunction_text
from secateur.planner.row_estimates import Estimate, estimate_of
from secateur.planner.stages import DistributedQuery, as_written, distributed, ends_on_one_partition, staged
from secateur.planner.statement import PlannedSelect
from secateur.planner.steps.join_keys import PlanStep, find_join_keys
from secateur.planner.text.hoisted_lists import lists_agree
from secateur.planner.text.parameters import NO_USES, Parameters, UnknownValue
from secateur.planner.text.tokens import Token
from secateur.planner.tree.columns import columns_read
from secateur.planner.tree.relations import AnyRelation
from secateur.planner.tree.stability import depends_on_order, is_repeatable
from secateur.planner.views import FindRelation
from secateur.protocol.access import PolicyCommand, session_call


class BoundSelect:
    """A bound query, which is analysed and planned lazily.

    Most of the cost is in the stages, which many trial queries never need.

    Args:
        text: The user's whole text.
        tokens: Those of the query, with numbered parameters.
        parameters: As read from the same tokens.
        params: Values in order of index; the plan depends on their types, not on their values. Those that only an
            execution has are :class:`~secateur.planner.text.parameters.UnknownValue`.
        catalog: The tables, views, statistics and settings to plan with.
        plan_step: Plans the queries that run before it; None when it must not run in steps.
        find: Looks up a table or view by name; by default the catalog does.
        guard: As for :func:`~secateur.planner.binding.query.bind_query`; by default that of the catalog.

    Attributes:
        columns: Name and SQL type text of each result column.
        reads_clock: Whether it calls a function of the clock.

    Raises:
        ProgrammingError, DataError: The statement is wrong; positions are those in ``text``.
        NotSupportedError: A hoisted list stands where it does not mean the same as its literals.
    """

    def __init__(
        self,
        text: str,
        tokens: Sequence[Token],
        parameters: Parameters,
        params: Sequence[Any],
        catalog: PlanningCatalog,
        plan_step: PlanStep | None = None,
        *,
        find: FindRelation | None = None,
        guard: FindGuard | None = None,
    ) -> None:
        self._bind: Callable[..., Query] = partial(
            bind_query, text, tokens, parameters, find or catalog.view.relation, guard or catalog.guard
        )
        self._query = self._bind()
        self.reads_clock = reads_clock(self._query)
        refuse_large_constants(self._query)
        if not lists_agree(self._query, dict(enumerate(parameters.lists, parameters.count))):
            raise NotSupportedError("the statement has a list that may not be taken out of it")
        self._samples = params
        self._params = [None if isinstance(value, UnknownValue) else value for value in params]
        # Plans are kept by the classes of values, so with a plan for integers only integers are executed.
        self._integers = frozenset(index for index, value in enumerate(params) if type(value) is int)
        self._catalog_version = catalog.view.version
        self._settings = catalog.settings
        self._statistics_snapshot = catalog.view.statistics_snapshot
        self._plan_step = plan_step
        try:
            self._describe()
        except (ProgrammingError, DataError):
            if not self._left_columns_out():
                raise

    @property
    def cost_model(self) -> CostModel:
        """The settings by which it is planned."""
        return self._settings.cost_model

    @property
    def reads_tables(self) -> bool:
        """Whether it has scans."""
        return bool(self._query.scans)

    @cached_property
    def scans(self) -> tuple[ScanPlan, ...]:
        """Its scans, with their partition trees."""
        return tuple(_scan_plan(read, self._query, self._plan) for read in self._read.scans)

    @property
    def skips_steps(self) -> bool:
        """Whether it is gathered at once, because it is known to read few rows in many parts.

        Steps before it would cost more than they save.
        """
        return self._why_whole is not None and all(
            scan.is_fetched or self._statistics_snapshot.of(scan.table.table_id) for scan in self._query.scans
        )

    @property
    def runs_apart(self) -> bool:
        """Whether it may run before a statement that it is a part of, which reads its rows: they are the same then."""
        plan = self._plan
        return self._repeatable is not None and isinstance(plan, BoundPlan) and plan.whole is None

    def planned(self) -> PlannedSelect:
        """The statement, with a form in steps where keys of its joins are worth to be found first."""
        read = self._read
        query, plan, root = self._query, read.plan, self._repeatable
        joins = (
            None
            if self._plan_step is None or self.skips_steps or root is None
            else find_join_keys(self._inputs, self._statistics_snapshot, self._settings)
        )
        if joins is not None:
            read = joins.noted_in(read)
        filters = tuple(_own_name(_residual(scan), query) for scan in read.scans)
        is_fetched = any(scan.is_fetched for scan in query.scans)
        local = Fragment.over(
            query.sql,
            self._schemas,
            self.columns,
            _arrow(query, plan, read, self.columns),
        )
        inputs = self._inputs if joins is None else with_fields(self._inputs, read=read, rows_of=rows_of_scans(read))
        is_of_one_partition = ends_on_one_partition(self.scans)
        found = staged(inputs, self._why_whole, lambda: self._distributed, is_of_one_partition=is_of_one_partition)
        if isinstance(plan, BoundPlan) and len(query.scans) == 1 and is_row_by_row(plan.root):
            local = replace(local, is_pipelineable=True)
        trees = [(scan.bounds_in_steps or scan.bounds).tree for scan in read.scans]
        # Some values of the parameters have to leave each scan without partitions.
        # A statement on a view has to ask a member, which knows whether the view is still the same.
        # Unless it is small, a statement that reads no table is answered by a member, where its computation has bounds
        # and can be cancelled.
        empty = (
            empty_answer(root, local, self._schemas, self._params, query.parameters.total)
            if root is not None
            and (bool(trees) or is_small(root))
            and not query.views
            and not is_fetched
            and not any(isinstance(tree.root, (All, Everywhere)) for tree in trees)
            else None
        )
        select_plan = SelectPlan(
            plan_id="",
            origin=self._origin(),
            scans=self.scans if found.at_readers is None else _read_in_parts(self.scans, found.at_readers),
            local=local,
            stages=found.stages,
            gathered=found.gathered,
            strategy=found.strategy,
            gather_reason=found.reason,
            reads_clock=query.parameters.clock is not None,
            columns=self.columns,
            parameter_count=query.parameters.total,
            parameter_names=query.parameters.names,
            empty=empty,
            deterministic=root is not None and not is_fetched and not depends_on_order(root),
            catalog_version=self._catalog_version,
            views=query.views,
            is_sized=query.is_ordered,
            undivided=as_written(inputs) if self._settings.is_verified else (),
            scatter_partitions_max=(
                self._settings.cost_model.scatter_partitions_max if can_scatter(self.scans, found.stages) else 0
            ),
            claims=tuple((index, claim) for claim, index in query.parameters.claim_places.items()),
        )
        if needs_barriers(query, plan):
            select_plan = with_barriers(select_plan, query, self._settled(self._bind(behind_barriers=True)).sql)
        select_plan = select_plan.named()
        statement = PlannedSelect(
            select_plan,
            tuple(scan.bounds for scan in read.scans),
            None,
            colocated=read.colocated,
            filters=filters,
            estimated_rows=tuple(
                round(self._estimates[scan.relation].rows)
                if self._statistics_snapshot.of(scan.table.table_id) is not None
                else None
                for scan in query.scans
            ),
            type_uses=type_uses_in(plan) if isinstance(plan, BoundPlan) else NO_USES,
        )
        return statement if joins is None or self._plan_step is None else joins.in_steps(statement, self._plan_step)

    @cached_property
    def _plan(self) -> BoundPlan | Unreadable:
        """DuckDB's plan of it, over all columns of its tables."""
        if is_unsettled(self._query):
            return Unreadable("it reads the clock in a place where that is not taken out of it")
        return bind_to_plan(default_kernel(), self._query.sql, self._query.relations, self._samples)

    @cached_property
    def _repeatable(self) -> AnyRelation | None:
        """Its plan, where equal rows and parameters give equal answers."""
        plan = self._plan
        return plan.root if isinstance(plan, BoundPlan) and is_repeatable(plan.root) else None

    @cached_property
    def _read(self) -> QueryReading:
        self._left_columns_out()
        return read_query(self._query, self._plan, self._settings, self._integers)

    @cached_property
    def _rows(self) -> dict[str, ScanRows]:
        return rows_of_scans(self._read)

    def _describe(self) -> None:
        self._schemas = {
            scan.relation: {column.name: column.type for column in scan.visible_columns if column.name in scan.columns}
            for scan in self._query.scans
        }
        self.columns = _described(self._query, self._params)
        # After the user's own text is bound, because its errors and the names of its columns are the user's.
        self._query = self._settled(self._query)

    def _settled(self, query: Query) -> Query:
        clock = query.parameters.clock
        return settled(query, clock) if clock is not None and self.reads_clock else query

    def _left_columns_out(self) -> bool:
        """Whether scans left out columns that DuckDB reads; then they now have all columns.

        ``ARRAY(SELECT a FROM t ORDER BY ALL)`` is one: DuckDB orders by all columns of ``t``.
        """
        scans = {scan.relation: scan for scan in self._query.scans}
        if all(len(scan.columns) == len(scan.visible_columns) for scan in scans.values()):
            return False
        if isinstance(self._plan, BoundPlan) and all(
            set(names) <= set(scans[relation].columns) for relation, names in columns_read(self._plan.root)
        ):
            return False
        self._bind = partial(self._bind, every_column=True)
        self._query = self._bind()
        self._describe()
        return True

    @cached_property
    def _estimates(self) -> dict[str, Estimate]:
        return {
            scan.scan.relation: estimate_of(
                scan, self._statistics_snapshot.of(scan.scan.table.table_id), self._settings.cost_model
            )
            for scan in self._read.scans
        }

    @cached_property
    def _inputs(self) -> QueryInputs:
        read = self._read  # which may bind the query once more
        return QueryInputs(
            self._query,
            read,
            self._rows,
            self._schemas,
            self.columns,
            self._params,
            self._estimates,
            self._settings.cost_model,
        )

    @cached_property
    def _distributed(self) -> DistributedQuery | NotDivided:
        return distributed(self._inputs)

    @cached_property
    def _why_whole(self) -> str | None:
        return self._inputs.why_gathered(self._sent_if_placed)

    def _sent_if_placed(self) -> float | None:
        """Estimate the bytes that its stages would send, None if it cannot be divided."""
        found = self._distributed
        return None if isinstance(found, NotDivided) else found.sent_bytes

    def _origin(self) -> str:
        """Return a digest of the plan's inputs; the id of the plan covers its content."""
        query = self._query
        parts = (query.text, len(query.parameters.lists), self._catalog_version, self._settings)
        return blake2b(repr(parts).encode(), digest_size=12).hexdigest()


def _residual(read: ScanReading) -> str:
    """The conditions that are tested on the rows that a scan finds."""
    tested = [read.conditions.conjuncts[index] for index in read.bounds.residual]
    return conjunction_text(tested, read.conditions.names)


def _scan_plan(read: ScanReading, query: Query, plan: BoundPlan | Unreadable) -> ScanPlan:
    scan, table = read.scan, read.scan.table
    return ScanPlan(
        relation=scan.relation,
        table_id=table.table_id,
        table=table.name,
        alias=scan.alias,
        columns=scan.columns,
        tree=read.bounds.tree,
        group=table.scheme.affinity_group(),
        replicated=table.replicated,
        table_version=table.version,
        keys=KeySearch() if scan.is_fetched else read.bounds.keys,
        system=scan.system,
        external=None if scan.external is None else external_scan(read, plan),
        reason=None if read.bounds.reason is None else _own_name(read.bounds.reason, query),
        policy="" if scan.guard is None else scan.guard.condition.text,
        policies=() if scan.guard is None else scan.guard.policies,
        policy_command=PolicyCommand.SELECT if scan.guard is None else scan.guard.command,
    )


def _read_in_parts(scans: tuple[ScanPlan, ...], at_readers: PartialAtReaders) -> tuple[ScanPlan, ...]:
    """The only scan of a statement over an external table, with what its readers compute.

    Where a few rows of it are enough, whichever they are, its readers do not read the others.
    """
    (scan,) = scans
    assert scan.external is not None
    if scan.external.limit is not None:
        return scans
    return (replace(scan, external=replace(scan.external, at_readers=at_readers)),)


def _described(query: Query, params: Sequence[Any]) -> tuple[tuple[str, str], ...]:
    """The result columns, from DuckDB's binder; its errors get positions in the user's text."""
    try:
        described = default_kernel().describe(query.sql, query.relations, list(params), are_tables=True)
        return tuple((_own_name(name, query), text) for name, text in described)
    except (ProgrammingError, DataError) as error:
        raise in_users_terms(error, query, query.relations) from None


def _own_name(name: str, query: Query) -> str:
    """Restore the user's names in a text made from the bound statement: the name of an unnamed column, or a reason."""
    for scan in query.scans:
        if scan.relation in name:
            own = scan.alias if folded(scan.alias) == folded(scan.table.name) else f"{scan.table.name} AS {scan.alias}"
            for alias in (scan.alias, quoted(scan.alias)):
                name = name.replace(f"{scan.relation} AS {alias}", own)
    clock = query.parameters.clock
    if clock is not None:
        name = re.sub(rf"\${clock + 1}\b", "now()", name)
    for claim, index in query.parameters.claim_places.items():
        name = re.sub(rf"\${index + 1}\b", session_call(claim).replace("\\", r"\\"), name)
    for index in reversed(range(len(query.parameters.names))):
        name = name.replace(f"${index + 1}", f"${query.parameters.names[index]}")
    return name


def _arrow(
    query: Query, plan: BoundPlan | Unreadable, read: QueryReading, columns: Sequence[tuple[str, str]]
) -> ArrowFragment | None:
    """The whole statement for the arrow kernel."""
    is_join = len(query.scans) > 1
    if (
        isinstance(plan, Unreadable)
        or plan.whole is not None
        or (is_join and any(scan.is_fetched for scan in query.scans))
    ):
        return None
    inputs = {scan.scan.relation: _join_input(scan) for scan in read.scans} if is_join else None
    form = arrow_form(plan.root, plan.text, columns, inputs)
    return form if isinstance(form, ArrowFragment) else None


def _join_input(read: ScanReading) -> JoinInput:
    key = read.scan.table.primary_key
    is_restricted = read.bounds.keys != KeySearch()
    return JoinInput(key[0] if key and not is_restricted else None, is_restricted)
