"""Remembers what is said about a text, or about a few rows, which no cluster has a say in.

Planning and statistics of small tables are a fourth of the work of a seed, and other seeds ask for the same. Each
answer is a value that depends on nothing but the question, so no run can tell whether it was remembered.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, TypeAlias

from msgspec import structs

from secateur.cluster.member import stored_tables
from secateur.engine.kernels.duckdb import DuckDBKernel
from secateur.partitioning.tables import ColumnStatistics, StatisticsSnapshot, TableDef, TableStatistics
from secateur.planner import PlannedSelect, planner
from secateur.planner.binding.catalog_view import PlanningCatalog
from secateur.planner.dml.insert import InsertValues
from secateur.planner.statement_planner import StatementPlanner
from secateur.protocol import ChangeStatement, CoordinatedChange, InsertSelect
from secateur.storage import PartitionSnapshot, summarize

__all__ = ["learn_plans", "learned_plans", "remember_plans", "remember_summaries", "remember_texts"]

_FEW_ROWS: Final = 64
_ROWS: Final = 8
_PLANNED: Final = ("SELECT", "INSERT", "UPDATE", "DELETE", "MERGE")


def remember_texts() -> None:
    """Ask DuckDB once for the parse trees and for the result's columns of each text, for good.

    What it has refused is asked again.
    """
    ask_trees, ask_columns = DuckDBKernel.trees, DuckDBKernel.describe
    trees: dict[tuple[str, ...], tuple[str, ...]] = {}
    columns: dict[tuple[Any, ...], tuple[tuple[str, str], ...]] = {}

    def trees_of(self: DuckDBKernel, statements: Sequence[str]) -> tuple[str, ...]:
        key = tuple(statements)
        if key not in trees:
            trees[key] = ask_trees(self, statements)
        return trees[key]

    def columns_of(
        self: DuckDBKernel,
        sql: str,
        relations: Mapping[str, Mapping[str, Any]],
        params: Sequence[Any] = (),
        *,
        are_tables: bool = False,
    ) -> tuple[tuple[str, str], ...]:
        schemas = tuple((name, tuple(schema.items())) for name, schema in relations.items())
        key = sql, schemas, tuple(map(_kind, params))
        if key not in columns:
            columns[key] = ask_columns(self, sql, relations, params, are_tables=are_tables)
        return columns[key]

    DuckDBKernel.trees = trees_of  # type: ignore[method-assign]
    DuckDBKernel.describe = columns_of  # type: ignore[method-assign]


def remember_plans() -> None:
    """Have controllers plan a text once for the same tables with the same statistics, for good."""
    planner.StatementPlanner = _RememberingPlanner  # type: ignore[misc]


def learned_plans() -> bytes:
    """What this process has planned since the last time, for :func:`learn_plans` of another."""
    learned, _RememberingPlanner.learned = _RememberingPlanner.learned, []
    return pickle.dumps(learned)


def learn_plans(learned: bytes) -> int:
    """Remember what another process of this machine has planned; how many plans that were."""
    plans = pickle.loads(learned)
    for key, plan in plans:
        if plan not in _RememberingPlanner.known[key]:
            _RememberingPlanner.known[key].append(plan)
    return len(plans)


_Plan: TypeAlias = tuple[tuple[tuple[str, TableDef, bool], ...], Any]
"""A plan, and of the relations that it is over: name, table, and whether there are statistics of it."""
_Plans: TypeAlias = defaultdict[tuple[Any, ...], list[_Plan]]


class _RememberingPlanner(StatementPlanner):
    """A planner that knows what others have planned. What was refused is planned again.

    A plan is a value, and its id is a digest of it. The texts of clients read no clock. The version of the catalog,
    which grows with every table that comes or goes, is put into a plan afterwards, and tables that have statistics have
    those of a small one: a controller, too, keeps a plan while a table changes by less than a thousand rows.
    """

    known: ClassVar[_Plans] = defaultdict(list)
    learned: ClassVar[list[tuple[tuple[Any, ...], _Plan]]] = []

    def plan(self, sql: str, tokens: Any, parameters: Any, params: Any) -> Any:
        catalog = self._catalog
        if not sql.startswith(_PLANNED):
            return super().plan(sql, tokens, parameters, params)
        values = params.items() if isinstance(params, Mapping) else enumerate(params)
        key = sql, tuple((name, _kind(value)) for name, value in values), catalog.settings
        for relations, planned in self.known[key]:
            if all(
                catalog.view.relation(name) == table and _has_statistics(catalog, table) == is_known
                for name, table, is_known in relations
            ):
                return _at_version(planned, catalog.view.version)
        view = _Watched(catalog.view)
        planned = StatementPlanner(replace(catalog, view=view), self._cost_model).plan(sql, tokens, parameters, params)
        planned = _at_version(planned, 0)
        if all(isinstance(relation, TableDef) for relation in view.seen.values()):
            relations = tuple((name, table, _has_statistics(catalog, table)) for name, table in view.seen.items())
            self.known[key].append((relations, planned))
            self.learned.append((key, (relations, planned)))
        return _at_version(planned, catalog.view.version)


def _has_statistics(catalog: PlanningCatalog, table: TableDef) -> bool:
    return catalog.view.statistics_snapshot.of(table.table_id) is not None


def _at_version(planned: Any, version: int) -> Any:
    """A plan for a catalog of this version."""
    match planned:
        case PlannedSelect(materialized=None):
            plan = structs.replace(planned.plan, catalog_version=version, origin=f"{planned.plan.origin} {version}")
            whole = planned.plan_whole and _Planned(_at_version(planned.plan_whole(), version))
            return replace(planned, plan=plan.named(), plan_whole=whole)
        case InsertSelect() | ChangeStatement():
            return structs.replace(planned, select=_at_version(planned.select, version))
        case CoordinatedChange():
            returning = planned.returning and _at_version(planned.returning, version)
            return structs.replace(planned, select=_at_version(planned.select, version), returning=returning)
        case _:
            assert isinstance(planned, InsertValues), planned  # it is given the version when it is evaluated
            return planned


@dataclass(frozen=True)
class _Planned:
    """A query that was planned at once, in place of a function that would plan it when it is needed."""

    query: PlannedSelect

    def __call__(self) -> PlannedSelect:
        return self.query


class _Watched:
    """A catalog that keeps which relations were looked up, and knows nothing that only this one has."""

    version: Final = 0

    def __init__(self, view: Any) -> None:
        self._view = view
        self.seen: dict[str, Any] = {}

    def table(self, name: str) -> Any:
        found = self.seen[name] = self._view.table(name)
        return found

    def relation(self, name: str) -> Any:
        found = self.seen[name] = self._view.relation(name)
        return found

    @property
    def types(self) -> Any:
        return self._view.types

    @property
    def statistics_snapshot(self) -> StatisticsSnapshot:
        known = self._view.statistics_snapshot.tables
        tables = {table.table_id: table for table in self._view.tables()}
        return StatisticsSnapshot(
            0, {table_id: _of_few_rows(tables[table_id]) for table_id in known if table_id in tables}
        )


def _of_few_rows(table: TableDef) -> TableStatistics:
    """The statistics of any table of the clients, roughly."""
    column = ColumnStatistics(8 * _ROWS, 0, _ROWS, 0, 100 * _ROWS)
    return TableStatistics(table.table_id, _ROWS, {each.name: column for each in table.columns})


def remember_summaries() -> None:
    """Have members summarize a few rows once, for good."""
    known: dict[tuple[Any, ...], Any] = {}

    def summary(table: TableDef, snapshots: Sequence[PartitionSnapshot]) -> Any:
        pieces = [snapshot.table for snapshot in snapshots if snapshot.rows]
        if sum(piece.num_rows for piece in pieces) > _FEW_ROWS:
            return summarize(table, snapshots)
        columns = [column for piece in pieces for column in piece.columns]
        key = table.columns, tuple((column.nbytes, tuple(column.to_pylist())) for column in columns)
        if key not in known:
            known[key] = summarize(table, snapshots)
        return known[key]

    stored_tables.summarize = summary


def _kind(value: Any) -> Any:
    """What of a value may decide about the type of a result: of a small number only that it is one."""
    return int if type(value) is int and 0 <= value < 1 << 15 else (type(value), value)
