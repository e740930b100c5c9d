"""A catalog for the planner's tests: some tables, three members, no cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from secateur.errors import UnknownTableError
from secateur.partitioning.affinity import assign
from secateur.partitioning.statistics import NO_STATISTICS, StatisticsPicture
from secateur.partitioning.table import TableDef
from secateur.partitioning.topology import MemberAddress, Ownership, Topology
from secateur.planner.explain.explain import Explain, explain
from secateur.planner.planner import Planner
from secateur.planner.statement import CreateTable, CreateView, SelectStatement, Statement
from secateur.planner.views.view import ViewDef

MEMBERS = ("m1", "m2", "m3")
DDL = (
    (
        "CREATE TABLE orders (customer_id VARCHAR, id BIGINT, priority VARCHAR, amount DECIMAL(10,2), day DATE, PRIMARY KEY (customer_id, id)) "
        "PARTITION BY HASH (customer_id) PARTITIONS 271"
    ),
    "CREATE TABLE customers (customer_id VARCHAR PRIMARY KEY, name VARCHAR, score DOUBLE) PARTITION BY HASH (customer_id) PARTITIONS 271",
    (
        "CREATE TABLE metrics (host VARCHAR, metric VARCHAR, time TIMESTAMP, value DOUBLE, PRIMARY KEY (host, metric, time)) "
        "PARTITION BY HASH (host, metric) PARTITIONS 4, RANGE (time) SPLIT AT (TIMESTAMP '2016-01-01 00:00:00')"
    ),
    "CREATE TABLE airlines (code VARCHAR PRIMARY KEY, name VARCHAR) REPLICATED",
)


@dataclass
class Workbench:
    """A planner over tables that are only described."""

    planner: Planner = field(default_factory=Planner)
    known: dict[str, TableDef] = field(default_factory=dict)
    views: dict[str, ViewDef] = field(default_factory=dict)
    owners: dict[str, Ownership] = field(default_factory=dict)
    version: int = 1
    picture: StatisticsPicture = NO_STATISTICS

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
        table = replace(statement.tdef, table_id=len(self.known) + 1)
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

    def prepare(self, sql: str, params: Any = ()) -> Statement:
        return self.planner.prepare(sql, params, self)

    def select(self, sql: str, params: Any = ()) -> SelectStatement:
        statement = self.prepare(sql, params)
        assert isinstance(statement, SelectStatement)
        return statement

    def trees(self, sql: str, params: Any = ()) -> list[str]:
        return [str(scan.tree) for scan in self.select(sql, params).plan.scans]

    def reasons(self, sql: str, params: Any = ()) -> list[str | None]:
        return [scan.reason for scan in self.select(sql, params).plan.scans]

    def partition(self, table: str, **key: Any) -> int:
        return self.table(table).scheme.partition_of(key)

    def explain(self, sql: str, params: Any = (), **settings: str) -> Explain:
        return explain(self.prepare(sql, params), params, self, settings)


@pytest.fixture
def bench() -> Workbench:
    bench = Workbench()
    for ddl in DDL:
        bench.create(ddl)
    return bench
