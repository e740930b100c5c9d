"""The stages of a statement: divided, or gathered.

A statement is divided where its operators can be computed apart (:mod:`~secateur.planner.distribute.distributor`). If
that is not certain to be exact, the coordinator gathers the rows that the statement needs and runs it as a whole.

Everything between two exchanges is one kernel call, and not one call for each operator: DuckDB plans the joins, filters
and groups inside of it better than a graph of our own operators would. So dividing decides only which rows move.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from msgspec import structs

from secateur.engine.kernels.arrow.fragment import ArrowFragment
from secateur.engine.kernels.duckdb.kernel import default_kernel
from secateur.engine.kernels.fragment import Fragment
from secateur.engine.sql.select_plan import PartialAtReaders, ScanPlan, Strategy
from secateur.engine.sql.stage import ExchangeKind, QueryStage, stage_relation
from secateur.errors import DatabaseError
from secateur.partitioning.types.column_type import SqlType
from secateur.partitioning.types.sql_text import folded
from secateur.planner.arrow.form import arrow_form
from secateur.planner.binding.bound_plan import BoundPlan, Unreadable
from secateur.planner.distribute.distributor import Distributor
from secateur.planner.distribute.exchanges import Draft, Exchanges, NotDivided, Schema, UndividedRows
from secateur.planner.gathered import FragmentOf, GatheredScan, QueryInputs
from secateur.planner.row_estimates import expected_rows
from secateur.planner.tree.expression_sql import BoundText
from secateur.planner.tree.relations import AnyRelation

Schemas = Mapping[str, Schema]
Columns = Sequence[tuple[str, str]]
ONE_PARTITION: Final = "one member answers it, unless pruning is off"
"""Why such a statement is not divided."""


@dataclass(frozen=True, slots=True)
class StagedPlan:
    """A statement in stages.

    Attributes:
        stages: In the order in which they can run; the last one has the answer.
        strategy: How they were found.
        reason: Why everything is gathered; for a placed statement the tables that are gathered for a part of it, and
            why; None where nothing is.
        gathered: The stages that gather the filtered rows of each scan, for a statement that runs in other stages.
        at_readers: For a statement over one external table, what is computed where its rows are read; None where they
            are gathered as they are.
    """

    stages: tuple[QueryStage, ...]
    strategy: Strategy
    reason: str | None = None
    gathered: tuple[QueryStage, ...] = ()
    at_readers: PartialAtReaders | None = None


@dataclass(frozen=True, slots=True)
class DistributedQuery:
    """The stages of a query that is divided.

    Attributes:
        drafts: The stages, in an order in which they can run; the last one has the answer.
        gathered: What the coordinator gets as it is.
    """

    drafts: tuple[Draft, ...]
    gathered: tuple[UndividedRows, ...]

    @property
    def sent_bytes(self) -> float:
        """About how many bytes members send, to each other and to the coordinator."""
        return sum(draft.nbytes for draft in self.drafts if not draft.at_coordinator)


def distributed(inputs: QueryInputs, *, at_readers: bool = False) -> DistributedQuery | NotDivided:
    """The stages of a query that is divided, or why it is not.

    Args:
        inputs: The query.
        at_readers: Whether the rows of external tables are where their readers are, and not at the coordinator.
    """
    query, plan, estimates = inputs.query, inputs.read.plan, inputs.estimates
    if isinstance(plan, Unreadable):
        return NotDivided(plan.reason)
    if plan.whole is not None:
        return NotDivided(plan.whole)
    exchanges = Exchanges(
        plan,
        inputs.schemas,
        {scan.relation: folded(scan.alias) for scan in query.scans},
        lambda sql, relations: default_kernel().describe(sql, relations, list(inputs.params)),
        _twins(inputs),
    )
    scans = {scan.relation: scan for scan in query.scans}
    # Members sort in parallel, and a merge holds a few megabytes of each, where a sort at the end holds all rows; few
    # rows are better sorted in one place.
    is_large = sum(estimate.bytes for estimate in estimates.values()) > inputs.model.merged_bytes_min
    try:
        distributor = Distributor(exchanges, scans, estimates, inputs.model, is_large=is_large, at_readers=at_readers)
        return DistributedQuery(tuple(distributor.distribute(plan.root)), tuple(exchanges.gathered))
    except NotDivided as refused:
        return refused
    except RecursionError:
        return NotDivided("it is nested too deeply to be divided: write it flatter")
    except DatabaseError as error:
        return NotDivided(f"its stages do not bind: {error.message}")


def _twins(inputs: QueryInputs) -> dict[str, str]:
    """For each scan of a table of members the first one that reads the same partitions and key ranges."""
    first: dict[bytes, str] = {}
    return {
        (relation := read.scan.relation): first.setdefault(inputs.rows_of[relation].read, relation)
        for read in inputs.read.scans
        # Rows whose keys were found in a step before are checked scan by scan when they are read.
        if read.scan.system is None and read.scan.external is None and read.bounds_in_steps is None
    }


def staged(
    inputs: QueryInputs,
    small: str | None,
    divided: Callable[[], DistributedQuery | NotDivided],
    *,
    is_of_one_partition: bool,
) -> StagedPlan:
    """Return the stages of a query.

    Args:
        inputs: The query.
        small: Why it is to be gathered (:meth:`~secateur.planner.gathered.QueryInputs.why_gathered`); None where it is
            divided if that is possible.
        divided: Its stages, from :func:`distributed`.
        is_of_one_partition: Whether one member answers it: then its stages run without pruning alone.
    """
    query, plan = inputs.query, inputs.read.plan
    fragment_of = partial(_fragment, text=BoundText() if isinstance(plan, Unreadable) else plan.text)

    def whole(fragment_of: FragmentOf, *, filters_all: bool = True) -> tuple[QueryStage, ...]:
        return inputs.gathered_stages(inputs.gathered_scans(filters_all=filters_all), fragment_of)

    if is_of_one_partition:
        return StagedPlan(whole(_left_to_duckdb), Strategy.GATHER, ONE_PARTITION)
    if small is not None:
        stages = whole(fragment_of, filters_all=False)
        return StagedPlan(stages, Strategy.GATHER, small, gathered=whole(_left_to_duckdb))
    found = divided()
    if isinstance(found, NotDivided):
        reason = query.refusal(str(found), found.location)
        return StagedPlan(whole(fragment_of), Strategy.GATHER, reason)
    assert isinstance(plan, BoundPlan)
    stages = _stages(found.drafts, plan, inputs)
    if len(query.scans) == 1 and len(stages) == 2 and all(draft.is_of_one for draft in found.drafts):
        return StagedPlan(stages, Strategy.TWO_STAGE)
    # When a placed statement has failed, it does not matter which kernel answers.
    parts = "; ".join(
        f"{', '.join(rows.names)}: {query.refusal(rows.reason, rows.location)}" for rows in found.gathered
    )
    return StagedPlan(
        stages, Strategy.PLACED, parts or None, gathered=whole(_left_to_duckdb), at_readers=_at_readers(inputs, plan)
    )


def as_written(inputs: QueryInputs) -> tuple[QueryStage, ...]:
    """Return the stages that run the user's own text, undivided, over all rows of its tables.

    None of their texts is printed from a tree.
    """
    gathered = [GatheredScan((scan,), None, 0.0) for scan in inputs.read.scans if not scan.scan.table.replicated]
    return inputs.gathered_stages(gathered, _left_to_duckdb)


def _stages(drafts: Sequence[Draft], plan: BoundPlan, inputs: QueryInputs) -> tuple[QueryStage, ...]:
    expected = {
        scan.scan.relation: expected_rows(
            scan, inputs.rows_of[scan.scan.relation], inputs.estimates[scan.scan.relation]
        )
        for scan in inputs.read.scans
    }
    scans = {scan.relation: index for index, scan in enumerate(inputs.query.scans)}
    rows = {stage_relation(index): index for index in range(len(drafts))}
    known: dict[str, Mapping[str, SqlType | str]] = {
        **inputs.schemas,
        **{relation: dict(drafts[index].columns) for relation, index in rows.items()},
    }
    elsewhere = {
        rows[relation]
        for draft in drafts
        if not draft.at_coordinator
        for relation in draft.relations
        if relation in rows
    }
    stages = []
    for index, draft in enumerate(drafts):
        shown = inputs.columns if index == len(drafts) - 1 else draft.columns
        read = {relation: known[relation] for relation in draft.relations}
        fragment = _fragment(draft.sql, read, shown, draft.relation, plan.text)
        exchange, route = ExchangeKind.GATHER, None
        if index in elsewhere:
            route = draft.route
            exchange = (
                ExchangeKind.BROADCAST
                if route is None
                else ExchangeKind.SHUFFLE
                if route.anchor is None
                else ExchangeKind.ROUTE
            )
        stages.append(
            QueryStage(
                draft.title,
                structs.replace(fragment, is_pipelineable=draft.is_pipelineable),
                scans=tuple(scans[relation] for relation in draft.relations if relation in scans),
                inputs=tuple(rows[relation] for relation in draft.relations if relation in rows),
                at_coordinator=draft.at_coordinator,
                exchange=exchange,
                order=draft.order,
                limit=draft.limit,
                columns=() if route is None else route.columns,
                route=None if route is None or route.anchor is None else scans[route.anchor],
                keeps_unmatched=route is not None and route.keeps_unmatched,
                estimate=expected[draft.relations[0]] if draft.is_scan else None,
            )
        )
    return tuple(stages)


def _fragment(sql: str, schemas: Schemas, columns: Columns, relation: AnyRelation, text: BoundText) -> Fragment:
    """A fragment for a text, with the form of its relation for the arrow kernel, where that has one."""
    form = arrow_form(relation, text, columns) if len(schemas) == 1 else None
    return Fragment.over(sql, schemas, columns, form if isinstance(form, ArrowFragment) else None)


def _left_to_duckdb(sql: str, schemas: Schemas, columns: Columns, _: AnyRelation) -> Fragment:
    return Fragment.over(sql, schemas, columns)


def _at_readers(inputs: QueryInputs, plan: BoundPlan) -> PartialAtReaders | None:
    """The part of a statement over one external table that its readers compute; None where that saves nothing."""
    if len(inputs.query.scans) != 1 or inputs.query.scans[0].external is None:
        return None
    found = distributed(inputs, at_readers=True)
    if isinstance(found, NotDivided) or len(found.drafts) != 2:
        return None
    first, final = found.drafts
    if first.is_pipelineable and not first.is_filtered:
        return None
    rows = {stage_relation(0): dict(first.columns)}
    return PartialAtReaders(
        _fragment(first.sql, inputs.schemas, first.columns, first.relation, plan.text),
        _fragment(final.sql, rows, inputs.columns, final.relation, plan.text),
    )


def ends_on_one_partition(scans: Sequence[ScanPlan]) -> bool:
    """Whether every execution with parameters of the right types reads one partition at most, on one member.

    Several scans do where their partitions are the same by their trees, and on the same members. Replicated tables are
    everywhere. Nothing of such a statement is divided.
    """
    if any(scan.is_fetched for scan in scans):
        return False
    partitioned = [scan for scan in scans if not scan.replicated]
    return len({(scan.group, scan.tree.root) for scan in partitioned}) <= 1 and all(
        scan.tree.is_single for scan in partitioned
    )
