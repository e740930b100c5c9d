"""Remembers what is said about a text, or about a few rows, which no cluster has a say in.

Planning and statistics of small tables are a fifth of the work of a seed, and other seeds of the same process ask for
the same. Each answer is a value that depends on nothing but the question, so no run can tell whether it was remembered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from secateur.cluster.controller import statement_replies
from secateur.cluster.member.tables import statistics
from secateur.engine.kernels.duckdb import DuckDBKernel
from secateur.partitioning.tables import TableDef
from secateur.planner import Planner
from secateur.planner.binding.catalog_view import PlanningCatalog
from secateur.storage import PartitionSnapshot, summarize

__all__ = ["remember_plans", "remember_summaries", "remember_texts"]

_FEW_ROWS: Final = 64
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
        self: DuckDBKernel, sql: str, relations: Mapping[str, Mapping[str, Any]], params: Sequence[Any] = ()
    ) -> tuple[tuple[str, str], ...]:
        schemas = tuple((name, tuple(schema.items())) for name, schema in relations.items())
        key = sql, schemas, tuple(map(_kind, params))
        if key not in columns:
            columns[key] = ask_columns(self, sql, relations, params)
        return columns[key]

    DuckDBKernel.trees = trees_of  # type: ignore[method-assign]
    DuckDBKernel.describe = columns_of  # type: ignore[method-assign]


def remember_plans() -> None:
    """Have controllers plan a text once for the same tables with the same statistics, for good."""
    statement_replies.Planner = _RememberingPlanner  # type: ignore[misc]


class _RememberingPlanner(Planner):
    """A planner that knows what others have planned. What was refused is planned again.

    A plan is a value, and its id is a digest of it. The texts of clients read no clock.
    """

    known: ClassVar[defaultdict[tuple[Any, ...], list[tuple[tuple[Any, ...], Any]]]] = defaultdict(list)

    def _plan(self, sql: str, tokens: Any, parameters: Any, params: Any, catalog: PlanningCatalog) -> Any:
        if not sql.startswith(_PLANNED):
            return super()._plan(sql, tokens, parameters, params, catalog)
        values = params.items() if isinstance(params, Mapping) else enumerate(params)
        key = sql, tuple((name, _kind(value)) for name, value in values), catalog.version, catalog.settings
        for relations, planned in self.known[key]:
            if all(catalog.relation(name) == table for name, table, _ in relations) and all(
                catalog.statistics_snapshot.of(table.table_id) == known for _, table, known in relations
            ):
                return planned
        view = _Watched(catalog.view)
        planned = super()._plan(sql, tokens, parameters, params, replace(catalog, view=view))
        if all(isinstance(relation, TableDef) for relation in view.seen.values()):
            relations = tuple(
                (name, table, catalog.statistics_snapshot.of(table.table_id)) for name, table in view.seen.items()
            )
            self.known[key].append((relations, planned))
        return planned


class _Watched:
    """A catalog that keeps which relations were looked up."""

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
    def version(self) -> Any:
        return self._view.version

    @property
    def statistics_snapshot(self) -> Any:
        return self._view.statistics_snapshot


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

    statistics.summarize = summary


def _kind(value: Any) -> Any:
    """What of a value may decide about the type of a result: of a small number only that it is one."""
    return int if type(value) is int and 0 <= value < 1 << 15 else (type(value), value)
