"""A plan as it is kept, and the statement that it gives with the values of one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeAlias, assert_never

from msgspec.structs import replace as with_fields

from secateur.planner.dml.insert import InsertValues
from secateur.planner.statement import (
    AlterTable,
    CreateExternalTable,
    CreateIndex,
    CreateTable,
    CreateView,
    DropIndex,
    DropTable,
    DropView,
    ExplainStatement,
    KillJob,
    KillStatement,
    PlannedSelect,
    SetGlobalPruning,
    Statement,
)
from secateur.planner.text.parameters import Parameters
from secateur.protocol.statements import (
    BackupTo,
    ChangeStatement,
    CoordinatedChange,
    CopyFrom,
    CopyTo,
    CreateTableAs,
    EvaluatedInsert,
    InsertSelect,
    RestoreFrom,
    SetOption,
    SetPruning,
    SetTimeout,
    ShowSettings,
)

Params: TypeAlias = Sequence[Any] | Mapping[str, Any]
"""The parameters of a call, by position or by name."""

CachedPlan: TypeAlias = (
    PlannedSelect
    | InsertSelect[PlannedSelect]
    | InsertValues
    | ChangeStatement[PlannedSelect]
    | CoordinatedChange[PlannedSelect]
)
"""A cached plan; it is evaluated and given its values at each call."""


def cached_plan_of(statement: Statement | InsertValues) -> CachedPlan | None:
    """The statement as one with a plan to keep, which is given its values at each call; None where it has none."""
    match statement:
        case PlannedSelect() | InsertSelect() | InsertValues() | ChangeStatement() | CoordinatedChange():
            return statement
        case (
            CreateTable()
            | CreateExternalTable()
            | AlterTable()
            | DropTable()
            | CreateView()
            | DropView()
            | CreateIndex()
            | DropIndex()
            | CreateTableAs()
            | EvaluatedInsert()
            | CopyFrom()
            | CopyTo()
            | BackupTo()
            | RestoreFrom()
            | KillStatement()
            | KillJob()
            | SetPruning()
            | SetGlobalPruning()
            | SetTimeout()
            | SetOption()
            | ShowSettings()
            | ExplainStatement()
        ):
            return None
        case _:
            assert_never(statement)


def with_values(
    planned: CachedPlan, values: tuple[Any, ...] | None, lists: tuple[list[Any], ...], catalog_version: int
) -> Statement:
    """The statement of one call: its values, the lists that were hoisted from its text, and the time."""
    match planned:
        case InsertValues():
            return planned.evaluate(values or (), catalog_version)
        case PlannedSelect():
            return PlannedSelect(
                planned.plan,
                planned.bounds,
                _bound_values(planned, values),
                lists,
                planned.materialized,
                planned.rewrites,
                planned.colocated,
                planned.filters,
                planned.estimated_rows,
                planned.type_uses,
            )
        case InsertSelect() | ChangeStatement() | CoordinatedChange():
            return with_fields(planned, select=replace(planned.select, params=_bound_values(planned.select, values)))


def is_estimated(planned: CachedPlan) -> bool:
    """Whether the statistics had a say in a plan."""
    match planned:
        case InsertValues():
            return False
        case PlannedSelect():
            return planned.plan.is_estimated
        case InsertSelect() | ChangeStatement() | CoordinatedChange():
            return planned.select.plan.is_estimated


def typed_parameters(planned: CachedPlan) -> tuple[int, ...]:
    """The indexes of the parameters on whose types a plan depends."""
    match planned:
        case InsertValues():
            return ()  # each call evaluates it with its own values
        case PlannedSelect():
            return planned.type_uses.typed(planned.plan.parameter_count)
        case CoordinatedChange(select=select, returning=PlannedSelect() as returning):
            return (select.type_uses | returning.type_uses).typed(select.plan.parameter_count)
        case InsertSelect(select=select) | ChangeStatement(select=select) | CoordinatedChange(select=select):
            return typed_parameters(select)


def arrange(parameters: Parameters, params: Params) -> tuple[Any, ...] | None:
    """Return the values in order; None when a query has parameters and none are given.

    Such a query is planned to be explained, or bound later.
    """
    return None if parameters.count and not params else parameters.arrange(params)


def now() -> datetime:
    """The time of a statement that reads the clock."""
    return datetime.now(UTC)


def _bound_values(select: PlannedSelect, values: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    """The values of the user and the lists of the text, with the time if the query reads it."""
    return (*values, now()) if values is not None and select.plan.reads_clock else values
