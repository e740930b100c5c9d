"""The partitions of external tables for EXPLAIN: a member lists them, as for a statement that is about to run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from msgspec import structs

from secateur.engine.sql.select_plan import ScanPlan
from secateur.partitioning.pruning.row_predicate import OpenPredicate
from secateur.planner.statement import PlannedSelect
from secateur.protocol.external_tables import ListedPartitions
from secateur.protocol.statements import Statement

ListPartitions: TypeAlias = Callable[[int, OpenPredicate, Sequence[Any] | None], ListedPartitions]
"""Lists the partitions of the external table of an id that a predicate needs, for the values of its parameters."""


def with_listings(statement: Statement, list_partitions: ListPartitions | None) -> Statement:
    """The statement, with the partitions of the external tables that its query reads.

    Raises:
        Error: What a connector raises.
    """
    if list_partitions is None:
        return statement
    listed: Statement = statement.with_queries(lambda query: _listed(query, query.params, list_partitions))
    return listed


def _listed(select: PlannedSelect, params: Sequence[Any] | None, list_partitions: ListPartitions) -> PlannedSelect:
    """The query and its parts; ``params`` are those of the whole, and do not have the values of its steps."""

    def of(scan: ScanPlan) -> ScanPlan:
        if scan.external is None:
            return scan
        listed = list_partitions(scan.table_id, scan.external.predicate, params)
        return structs.replace(scan, external=structs.replace(scan.external, listed=listed))

    if not any(scan.external is not None for scan in select.plan.scans):
        return select
    plan, steps = structs.replace(select.plan, scans=tuple(map(of, select.plan.scans))), select.materialized
    if steps is not None:
        parts = tuple(replace(step, query=_listed(step.query, params, list_partitions)) for step in steps.steps)
        steps = replace(steps, steps=parts, outer=_listed(steps.outer, params, list_partitions))
    return replace(select, plan=plan, materialized=steps)
