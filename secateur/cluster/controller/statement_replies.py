"""Statements at the controller: from a text to the reply to the client, and the plans that members will request."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, assert_never

import pyarrow as pa

from secateur.cluster.controller.catalog import Catalog
from secateur.engine.sql.select_plan import SelectPlan
from secateur.errors import LimitExceededError, TopologyChangedError
from secateur.partitioning.tables.statistics import NO_STATISTICS, StatisticsSnapshot, TableStatistics
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.topology import Topology
from secateur.planner.cost_model import CostModel
from secateur.planner.explain.explain import explain
from secateur.planner.planner import Planner
from secateur.planner.segmented_stack import with_deep_stack
from secateur.planner.statement import (
    AlterTable,
    ChangeStatement,
    CopyFrom,
    CopyTo,
    CreateIndex,
    CreateTable,
    CreateTableAs,
    CreateView,
    DropIndex,
    DropTable,
    DropView,
    ExplainFormat,
    ExplainStatement,
    InsertRows,
    InsertSelect,
    InsertShape,
    SelectStatement,
    SetOption,
    ShowSettings,
    Statement,
    WholeChange,
)
from secateur.planner.views.view import ViewDef
from secateur.protocol.query import Explained
from secateur.wire import Payload, encode_table

__all__ = ["Params", "PlanningView", "StatementReplies", "bounded_depth"]

T = TypeVar("T")
Params = Sequence[Any] | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PlanningView:
    """The catalog and the topology for which a statement is planned: a consistent pair.

    Attributes:
        catalog: The tables.
        topology: Members and owners.
        statistics_snapshot: The statistics of the tables.
    """

    catalog: Catalog
    topology: Topology
    statistics_snapshot: StatisticsSnapshot = NO_STATISTICS

    @property
    def version(self) -> int:
        return self.catalog.version

    def table(self, name: str) -> TableDef:
        return self.catalog.table(name)

    def relation(self, name: str) -> TableDef | ViewDef:
        return self.catalog.relation(name)

    def tables(self) -> tuple[TableDef, ...]:
        return self.catalog.tables()

    def statistics(self, table_id: int) -> TableStatistics | None:
        return self.statistics_snapshot.of(table_id)


class Prepared(NamedTuple):
    """The controller's answer to a statement: its description for the client, and rows if there are any already."""

    statement: dict[str, Any]
    rows: Payload


class StatementReplies:
    """Plans statements and puts them into the form that clients read (:mod:`secateur.client.execution.statement`).

    Thread-safe.

    Args:
        plans_max: Plans kept for members to ask for.
        cost_model: The costs by which plans are chosen.
    """

    def __init__(self, plans_max: int, cost_model: CostModel | None = None) -> None:
        self._planner = Planner(cost_model=cost_model)
        self._plans: OrderedDict[str, SelectPlan] = OrderedDict()
        self._texts: dict[str, str] = {}
        self._plans_max = plans_max
        self._lock = threading.Lock()

    def plan(self, plan_id: str) -> SelectPlan:
        """A plan that was made here.

        Raises:
            TopologyChangedError: It is not kept any more; the client has to prepare its statement again.
        """
        plan = self._plans.get(plan_id)
        if plan is None:
            raise TopologyChangedError(
                f"plan {plan_id} is not known any more: prepare the statement again", plan=plan_id
            )
        return plan

    def text(self, plan_id: str) -> str | None:
        """The statement for which a plan was made; None when it is not known any more."""
        return self._texts.get(plan_id)

    def prepare(
        self, sql: str, params: Params, settings: Mapping[str, Any], view: PlanningView
    ) -> tuple[Statement, Prepared]:
        """Plan a statement; returns it with what to tell the client once DDL in it has been carried out.

        Raises:
            ProgrammingError: The statement is wrong.
            NotSupportedError: It is right, but not implemented.
        """
        started_s = time.perf_counter()
        statement = bounded_depth(lambda: self._planner.prepare(sql, params, view, settings))
        return statement, self._reply(statement, sql, params, settings, view, planned_s=time.perf_counter() - started_s)

    def explain(self, sql: str, params: Params, settings: Mapping[str, Any], view: PlanningView) -> Explained:
        """How a statement would run."""
        statement = bounded_depth(lambda: self._planner.prepare(sql, params, view, settings))
        explained = explain(
            statement.target if isinstance(statement, ExplainStatement) else statement, params, view, settings
        )
        return Explained(explained.text, explained.json)

    def _reply(
        self,
        statement: Statement,
        sql: str,
        params: Params,
        settings: Mapping[str, Any],
        view: PlanningView,
        *,
        planned_s: float,
    ) -> Prepared:
        match statement:
            case SelectStatement():
                return _statement("select", self._keep(statement, sql))
            case CreateTable():
                return _statement("ddl", {"message": "table created"})
            case CreateTableAs(table, create=create, select=select):
                source = None if select is None else self._keep(select, sql)
                return _statement("create_table_as", {"table": table, "create": create, "source_select": source})
            case CopyFrom(table, columns, options):
                return _statement(
                    "copy_from",
                    {"table": table, "columns": list(columns), "options": options.to_wire()},
                )
            case CopyTo(select, options):
                return _statement("copy_to", {"source_select": self._keep(select, sql), "options": options.to_wire()})
            case CreateIndex():
                return _statement("ddl", {"message": "index created"})
            case DropIndex():
                return _statement("ddl", {"message": "index dropped"})
            case AlterTable():
                return _statement("ddl", {"message": "table altered"})
            case DropTable():
                return _statement("ddl", {"message": "table dropped"})
            case CreateView():
                return _statement("ddl", {"message": "view created"})
            case DropView():
                return _statement("ddl", {"message": "view dropped"})
            case InsertRows(table, rows, mode, shape):
                template = None if shape is None else _template(shape, rows, view.version)
                return _statement(
                    "insert",
                    {"table": table, "mode": mode.value, "template": template},
                    rows,
                )
            case InsertSelect(table, columns, select, mode):
                return _statement(
                    "insert",
                    {
                        "table": table,
                        "mode": mode.value,
                        "columns": list(columns),
                        "source_select": self._keep(select, sql),
                    },
                )
            case ChangeStatement(table, kind, select):
                return _statement(
                    "change",
                    {
                        "table": table,
                        "operation": kind.value,
                        "source_select": self._keep(select, sql),
                    },
                )
            case WholeChange():
                return _statement("whole_change", self._whole_change(statement, sql))
            case SetOption(name, value):
                return _statement("set", {"name": name, "value": value})
            case ShowSettings(shown, is_single):
                listed = [[setting.name, setting.default, setting.description] for setting in shown]
                return _statement("show_settings", {"settings": listed, "is_single": is_single})
            case ExplainStatement(target, form, analyze, offset):
                explained = explain(target, params, view, settings)
                is_json = form is ExplainFormat.JSON
                lines = [json.dumps(explained.json)] if is_json else explained.text.splitlines()
                fields: dict[str, Any] = {"is_json": is_json}
                if analyze:
                    fields |= {"analyzed": sql[offset:], "planning_ms": planned_s * 1000}
                return _statement("explain", fields, pa.table({"plan": pa.array(lines, pa.string())}))
            case _:
                assert_never(statement)

    def _whole_change(self, change: WholeChange, sql: str) -> dict[str, Any]:
        return {
            "table": change.table,
            "source_select": self._keep(change.select, sql),
            "meeting": change.duplicate_match.value,
            "returning": None if change.returning is None else self._keep(change.returning, sql),
            "names_action": change.names_action,
            "is_narrow": change.is_single_partition,
            "many": None if change.many is None else [change.many.sql, change.many.cells],
        }

    def _keep(self, statement: SelectStatement, sql: str) -> dict[str, Any]:
        """Keep a query's plan for the members that will request it, and return its description for the client."""
        plan = statement.plan
        with self._lock:
            self._plans[plan.plan_id] = plan
            self._texts[plan.plan_id] = sql
            self._plans.move_to_end(plan.plan_id)
            while len(self._plans) > self._plans_max:
                dropped, _ = self._plans.popitem(last=False)
                del self._texts[dropped]
        known = {**plan.to_client(), "lists": statement.lists, "estimated": plan.is_estimated}
        if statement.materialized is None:
            return known
        steps = [
            {"select": self._keep(step.query, sql), "use": step.use.value, "values_max": step.values_max}
            for step in statement.materialized.steps
        ]
        watched = statement.materialized.watched
        return {
            **known,
            "materialized": {
                "steps": steps,
                "outer": self._keep(statement.materialized.outer, sql),
                "watched": watched,
            },
        }


def bounded_depth(plan: Callable[[], T]) -> T:
    """Plan a statement however deeply it is nested, up to a bound.

    Raises:
        LimitExceededError: It is nested more deeply.
    """
    try:
        return with_deep_stack(plan)
    except RecursionError:
        raise LimitExceededError(
            "the statement is nested too deeply to be read: write it flatter, or pass long lists as parameters",
            limit="nesting",
        ) from None


def _template(shape: InsertShape, rows: pa.Table, catalog_version: int) -> dict[str, Any]:
    """The shape of an INSERT with its literals, as the columns have them."""
    cells = [
        [
            [rows.column(name)[position].as_py()] if index is None else index
            for name, index in zip(shape.columns, row, strict=True)
        ]
        for position, row in enumerate(shape.cells)
    ]
    return {
        "columns": list(shape.columns),
        "rows": cells,
        "parameter_count": shape.parameter_count,
        "parameter_names": list(shape.parameter_names),
        "schema_version": catalog_version,
    }


def _statement(kind: str, fields: dict[str, Any], rows: pa.Table | None = None) -> Prepared:
    return Prepared({"kind": kind, **fields}, b"" if rows is None else encode_table(rows))
