"""EXPLAIN of scans of external tables: the connector, the partitions that are kept, and why not fewer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from msgspec import structs

from secateur.engine.sql.select_plan import ExternalScan, ScanPlan
from secateur.partitioning.pruning.row_predicate import OpenPredicate
from secateur.planner.statement import PlannedSelect
from secateur.protocol.catalog import ListedPartitions
from secateur.protocol.statements import Statement

ListPartitions: TypeAlias = Callable[[int, OpenPredicate, Sequence[Any] | None], ListedPartitions]
"""Lists the partitions of the external table of an id that a predicate needs, for the values of its parameters."""


def external_reason(external: ExternalScan, *, enabled: bool) -> str | None:
    """The reason why every partition of an external table is read; None where some are left out, or it is not known."""
    found = external.listed
    if not enabled:
        return "pruning is off: SET pruning = on"
    if found is None or found.kept is None or found.kept < found.total or not found.total:
        return None
    divided = ", ".join(found.columns)
    if not found.columns:
        return "its connector declares no values of its partitions: let it name them in ConnectorPartition.values"
    if not external.predicate.columns & set(found.columns):
        return f"its partitions differ in ({divided}), with which no predicate compares values: compare them"
    return f"each of its partitions can hold rows with such values of ({divided}): ask for fewer values"


def external_text(name: str, external: ExternalScan, reason: str | None) -> list[str]:
    """The lines about a scan."""
    found = external.listed
    head = f"scan {name}: external table, {external.title}"
    if found is None:
        return [f"{head}, its partitions are listed when the statement runs"]
    kept = "those that the parameters select" if found.kept is None else str(found.kept)
    more = (found.kept or 0) - len(found.keys)
    keys = f" [{', '.join(found.keys)}{f', {more} more' if more > 0 else ''}]" if found.keys else ""
    lines = [f"{head}, {kept} of {found.total} partitions{keys}"]
    lines = lines if reason is None else [*lines, f"  because {reason}"]
    return lines if external.at_readers is None else [*lines, "  each reader sends the partial result of its rows"]


def external_json(external: ExternalScan) -> dict[str, Any]:
    """The members of a scan in the JSON of EXPLAIN that only an external table has."""
    found = external.listed
    return {
        "connector": external.title,
        "external_partitions_kept": None if found is None else found.kept,
        "external_partitions_total": None if found is None else found.total,
        "external_partitions": None if found is None else list(found.keys),
        "partial_result_at_readers": external.at_readers is not None,
    }


def readers_of(external: ExternalScan | None) -> int:
    """The number of members that can read partitions of an external table; 0 for other tables, or if it is unknown."""
    found = None if external is None else external.listed
    return 0 if found is None or found.kept is None else found.kept


def is_pruned(external: ExternalScan | None) -> bool:
    """Whether partitions of an external table are left out."""
    found = None if external is None else external.listed
    return found is not None and found.kept is not None and found.kept < found.total


def with_listings(statement: Statement, list_partitions: ListPartitions | None) -> Statement:
    """The statement, with the partitions of the external tables that its query reads.

    A member lists them, as for a statement that is about to run.

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
