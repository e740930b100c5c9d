"""EXPLAIN of serving: whether a member answers a short statement by a program made once, and why not.

Such a statement takes some microseconds at its member; any other is read from Arrow tables by a kernel, or is a job.
The owners of some distributed ones may be asked without a job (:func:`scatters`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from secateur.engine.sql.keyed_change import KeyedChange
from secateur.engine.sql.scatter import is_scattered, row_merge_of
from secateur.engine.sql.select_plan import SelectPlan
from secateur.partitioning.tables.table import TableDef
from secateur.planner.explain.scan_facts import ScanExplanation
from secateur.planner.statement import PlannedSelect
from secateur.protocol.statements import ChangeKind, ChangeStatement, CoordinatedChange
from secateur.wire import SHORT_ROWS_MAX


def serving(plan: SelectPlan, find: Callable[[str], TableDef], *, has_steps: bool) -> dict[str, Any]:
    """The members of the document about the serving of a query, whose values are found by steps or not."""
    # Imported here: with its first scalar, Arrow loads pandas.
    from secateur.engine.sql.serving_program import not_served

    if has_steps:
        return said("queries run first whose values prune it")
    return said(not_served(plan, lambda number: find(plan.scans[number].table).primary_key))


def serving_change(change: ChangeStatement[PlannedSelect]) -> dict[str, Any]:
    """The same of an UPDATE or DELETE."""
    plan, deletes = change.select.plan, change.kind is ChangeKind.DELETE
    if KeyedChange.of(plan, change.table, deletes=deletes) is not None:
        return said(None)
    if change.table.has_row_ids:
        return said(f"{change.table.name} has no primary key, by which one row is changed")
    key = ", ".join(change.table.primary_key)
    return said(f"it changes more than the row with one key: compare all columns of ({key}) with values")


def serving_upsert(change: CoordinatedChange[PlannedSelect]) -> dict[str, Any]:
    """The same of a change that a query computes, such as an INSERT with ON CONFLICT."""
    is_one_row = change.row is not None or (change.is_single_partition and change.select.plan.upsert is not None)
    return said(None if is_one_row else "its rows are computed by a query")


def serving_insert(table: TableDef, rows: pa.Table) -> dict[str, Any]:
    """The same of an INSERT of rows that are known."""
    if table.replicated or rows.num_rows > SHORT_ROWS_MAX:
        return said(f"rows of a replicated table, and more than {SHORT_ROWS_MAX}, are staged and then published")
    return said(None)


def serving_text(pruning: dict[str, Any]) -> str:
    """A line for people."""
    return "serving: yes" if pruning["serving"] else f"serving: no, {pruning['serving_reason']}"


def said(reason: str | None) -> dict[str, Any]:
    """The members of the document, with the reason why a statement is not served; None for one that is."""
    return {"serving": reason is None, "serving_reason": reason}


def scatters(plan: SelectPlan, facts: Sequence[ScanExplanation], *, enabled: bool) -> bool | None:
    """Whether a distributed statement is scattered while its owners have few rows; None if the parameters decide."""
    if not (enabled and plan.scatter_partitions_max):
        return False
    if not all(fact.known for fact in facts):
        return None
    return is_scattered(plan, [fact.possible for fact in facts])


def scatters_text(plan: SelectPlan, scattered: bool | None, *, in_steps: bool) -> list[str]:
    """The line that says so; none for a statement that always runs as a job."""
    if scattered is False:
        return []
    who = "one" if in_steps or row_merge_of(plan) is None else "the client"
    known = "" if scattered else f" where at most {plan.scatter_partitions_max} partitions are left"
    return [f"scatter: each owner is asked once{known}, and {who} combines their rows; no job, unless they are many"]
