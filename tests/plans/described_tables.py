"""A catalog of tables that are only described, and a planner over it: three members, no rows, no cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from msgspec import structs

from secateur.errors import UnknownTableError
from secateur.partitioning.tables import (
    NO_STATISTICS,
    ColumnStatistics,
    NamedType,
    StatisticsSnapshot,
    TableDef,
    TableStatistics,
)
from secateur.partitioning.topology import MemberAddress, Ownership, Topology, assign
from secateur.partitioning.types import TypeKind
from secateur.planner import CreateIndex, CreateTable, CreateView, PlannedSelect, Planner
from secateur.planner.explain.explain import ExplainedStatement, explain
from secateur.planner.views import ViewDef
from secateur.protocol import Statement

MEMBERS = ("m1", "m2", "m3")


@dataclass
class DescribedTables:
    """What a controller knows, as far as planning goes; ``statistics_snapshot`` are the statistics."""

    planner: Planner = field(default_factory=Planner)
    known: dict[str, TableDef] = field(default_factory=dict)
    views: dict[str, ViewDef] = field(default_factory=dict)
    owners: dict[str, Ownership] = field(default_factory=dict)
    version: int = 1
    statistics_snapshot: StatisticsSnapshot = NO_STATISTICS
    types: Mapping[str, NamedType] = field(default_factory=dict)

    @classmethod
    def of(cls, definitions: Iterable[str]) -> DescribedTables:
        """The tables, views and indexes of some CREATE statements."""
        tables = cls()
        for definition in definitions:
            tables.define(definition)
        return tables

    def define(self, ddl: str) -> None:
        """Carry out a CREATE TABLE, CREATE VIEW or CREATE INDEX."""
        if ddl.startswith("CREATE VIEW"):
            self.create_view(ddl)
        elif ddl.startswith("CREATE INDEX"):
            self.create_index(ddl)
        else:
            self.create(ddl)

    @property
    def topology(self) -> Topology:
        return Topology(3, tuple(MemberAddress(member, "127.0.0.1", 1) for member in MEMBERS), self.owners)

    def table(self, name: str) -> TableDef:
        if name.casefold() not in self.known:
            raise UnknownTableError(f"table {name!r} does not exist", table=name)
        return self.known[name.casefold()]

    def relation(self, name: str) -> TableDef | ViewDef:
        return self.views[name.casefold()] if name.casefold() in self.views else self.table(name)

    def tables(self) -> Sequence[TableDef]:
        return tuple(self.known.values())

    def create(self, ddl: str) -> TableDef:
        statement = self.planner.prepare(ddl, (), self)
        assert isinstance(statement, CreateTable)
        table = structs.replace(statement.tdef, table_id=len(self.known) + 1)
        self.known[table.name.casefold()] = table
        self.owners[table.scheme.affinity_group()] = assign(table.scheme.partition_count, MEMBERS, 1)
        self.version += 1
        return table

    def create_view(self, ddl: str) -> ViewDef:
        statement = self.planner.prepare(ddl, (), self)
        assert isinstance(statement, CreateView)
        self.version += 1
        view = self.views[statement.view.name.casefold()] = replace(statement.view, view_id=self.version)
        return view

    def create_index(self, ddl: str) -> None:
        statement = self.planner.prepare(ddl, (), self)
        assert isinstance(statement, CreateIndex)
        table = statement.table
        self.known[table.name.casefold()] = structs.replace(table, indexes=(*table.indexes, statement.index))
        self.version += 1

    def fill(self, name: str, rows: int, distinct: Mapping[str, int]) -> None:
        """Let the statistics say how many rows a table has, and how many distinct values its columns have; a value
        counts as 8 bytes.
        """
        table = self.table(name)
        columns = {
            column.name: ColumnStatistics(
                8 * rows, 0, distinct[column.name], None if column.type.kind is TypeKind.VARCHAR else 1
            )
            for column in table.columns
        }
        self.statistics_snapshot = self.statistics_snapshot.with_table(
            TableStatistics(table.table_id, rows, MappingProxyType(columns))
        )

    def prepare(self, sql: str, params: Any = (), settings: Mapping[str, str] | None = None) -> Statement:
        return self.planner.prepare(sql, params, self, settings)

    def select(self, sql: str, params: Any = ()) -> PlannedSelect:
        statement = self.prepare(sql, params)
        assert isinstance(statement, PlannedSelect)
        return statement

    def trees(self, sql: str, params: Any = ()) -> list[str]:
        return [str(scan.tree) for scan in self.select(sql, params).plan.scans]

    def reasons(self, sql: str, params: Any = ()) -> list[str | None]:
        return [scan.reason for scan in self.select(sql, params).plan.scans]

    def partition(self, table: str, **key: Any) -> int:
        return self.table(table).scheme.partition_of(key)

    def explain(self, sql: str, params: Any = (), **settings: str) -> ExplainedStatement:
        return explain(self.prepare(sql, params, settings), self, settings)
