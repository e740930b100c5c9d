"""A cluster with real sockets and no engine: the controller knows a few statements by heart, the members answer them
with Python functions.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from msgspec import structs
from msgspec.structs import asdict

import secateur
from secateur.client import Connection
from secateur.errors import DuplicateKeyError, Error, SqlSyntaxError, TopologyChangedError, UnknownTableError
from secateur.partitioning.pruning import (
    UNCONSTRAINED,
    All,
    Box,
    Choice,
    Comparison,
    Constraint,
    Everywhere,
    Keys,
    Node,
    Nothing,
    Parameter,
    ParameterComparison,
    Partitions,
    PartitionTree,
)
from secateur.partitioning.schemes import HashComponent, PartitionScheme
from secateur.partitioning.tables import Column, TableDef, TableDefinition
from secateur.partitioning.topology import MemberAddress, Ownership, Topology, assign
from secateur.partitioning.types import parse_type
from secateur.protocol import (
    AbortLoad,
    Acknowledged,
    ChangedTable,
    Execute,
    Executed,
    Explained,
    ExplainRequest,
    GetTables,
    GivenVersions,
    Greeting,
    LoadedRows,
    Operation,
    Prepare,
    PreparedAnswer,
    PublishLoad,
    ResultColumn,
    RoutedScan,
    RowCount,
    SelectStatement,
    Server,
    StageRows,
    Tables,
    TopologyAnswer,
    WriteRows,
)
from secateur.wire import FrameServer, FrameService, Handled, Reply, Request, decode_table, encode_table

__all__ = ["FakeCluster", "Statement"]

VARCHAR, BIGINT, DOUBLE = parse_type("VARCHAR"), parse_type("BIGINT"), parse_type("DOUBLE")

ORDERS = TableDef(
    name="Orders",
    table_id=7,
    columns=(Column("customer_id", VARCHAR, False), Column("id", BIGINT, False), Column("amount", DOUBLE)),
    primary_key=("customer_id", "id"),
    scheme_or_reference=PartitionScheme((HashComponent(("customer_id",), 8),), None, (("customer_id", VARCHAR),)),
)
COUNTRIES = TableDef(
    "countries",
    8,
    (Column("code", VARCHAR, False), Column("name", VARCHAR)),
    ("code",),
    PartitionScheme(),
    replicated=True,
)

ONE_KEY: Node = Keys(
    Box.of({"customer_id": Constraint((Choice(tests=(ParameterComparison(Comparison.IN, (Parameter(0),)),)),))})
)
assert UNCONSTRAINED.choices == ()

Run = Callable[[pa.Table, list[Any]], pa.Table]


@dataclass
class Statement:
    """What the fake planner knows about one SQL text: a SELECT, or any other header and payload."""

    node: Node = field(default_factory=All)
    run: Run = field(default=lambda rows, _: rows)
    table: TableDef = ORDERS
    columns: tuple[ResultColumn, ...] = (
        ResultColumn("customer_id", "VARCHAR"),
        ResultColumn("id", "BIGINT"),
        ResultColumn("amount", "DOUBLE"),
    )
    parameter_count: int = 0
    parameter_names: tuple[str, ...] = ()
    empty: pa.Table | None = field(default_factory=lambda: ORDERS.arrow_schema.empty_table())
    deterministic: bool = True
    reply: Callable[[list[Any]], tuple[Any, bytes | memoryview]] | None = None

    def tree(self) -> PartitionTree:
        return PartitionTree(self.table.name, self.table.scheme, self.node, self.table.partition_count, 1000)

    def select(self, plan_id: str, catalog_version: int) -> SelectStatement:
        table = self.table
        group = table.scheme.affinity_group()
        scan = RoutedScan(table.name, "o", table.table_id, table.version, group, table.replicated, self.tree())
        return SelectStatement(
            plan_id,
            (scan,),
            self.columns,
            self.parameter_count,
            self.parameter_names,
            None if self.empty is None else bytes(encode_table(self.empty)),
            self.deterministic,
            catalog_version,
        )


class _Party:
    """A server of the fake cluster that writes down what it was asked."""

    def __init__(self, name: str, cluster: FakeCluster) -> None:
        self.name = name
        self.cluster = cluster
        operations = Operation.at_server(Server.CONTROLLER if name == "controller" else Server.MEMBER)
        self.server = FrameServer(FrameService(self, operations, cluster.token))

    def handle(self, request: Request[Any]) -> Handled:
        title = request.operation.title
        if isinstance(request.message, WriteRows):
            self.cluster.write_ids.append(request.message.change_id)
        if title != "hello":
            self.cluster.log.append((self.name, title))
        planned = self.cluster.failures.get((self.name, title))
        if planned:
            if self.cluster.latch is None:
                raise planned.pop(0)
            return self._fail_later(self.cluster.latch, planned.pop(0))
        method: Callable[[Request[Any]], Handled] = getattr(self, f"on_{title}")
        return method(request)

    async def _fail_later(self, latch: asyncio.Event, error: Error) -> Reply[Any]:
        await latch.wait()
        raise error

    def notify(self, request: Request[Any]) -> None:
        raise AssertionError(request)


class _Controller(_Party):
    def on_hello(self, _: Request[Any]) -> Reply[Greeting]:
        return Reply(
            Greeting(cluster_id=self.cluster.cluster_id, topology=self.cluster.topology, **self.cluster.versions())
        )

    def on_get_topology(self, _: Request[Any]) -> Reply[TopologyAnswer]:
        if self.cluster.topologies:
            self.cluster.topology = self.cluster.topologies.pop(0)
        return Reply(TopologyAnswer(topology=self.cluster.topology, **self.cluster.versions()))

    def on_get_tables(self, request: Request[GetTables]) -> Reply[Tables]:
        name = str(request.message.name)
        for table in self.cluster.tables:
            if table.name.casefold() == name.casefold():
                return Reply(Tables(tables=[TableDefinition.of(table)]))
        raise UnknownTableError(f"table {name!r} does not exist")

    def on_prepare(self, request: Request[Prepare]) -> Reply[PreparedAnswer]:
        sql, params = request.message.sql, request.message.params
        self.cluster.prepared.append((sql, params, request.message.settings))
        statement = self.cluster.statements.get(sql)
        if statement is None:
            raise SqlSyntaxError("line 1, column 1: what is this?", line=1, column=1)
        if statement.reply is not None:
            header, payload = statement.reply(params)
        else:
            header, payload = statement.select(sql, self.cluster.catalog_version), b""
        return Reply(PreparedAnswer(statement=header, **self.cluster.versions()), payload)

    def on_explain(self, request: Request[ExplainRequest]) -> Reply[Explained]:
        asked = request.message
        return Reply(Explained(f"plan of {asked.sql}", {"params": asked.params, "settings": asked.settings}))

    def on_publish_load(self, request: Request[PublishLoad]) -> Reply[LoadedRows]:
        load = request.message
        staged = self.cluster.staged.pop(load.load_id, {})
        if load.mode == "append" and any(
            rows.num_rows and "taken" in rows.column(0).to_pylist() for rows in staged.values()
        ):
            raise DuplicateKeyError("table Orders has the key ('taken', 1) already", table="Orders")
        assert {(partition, 0) for partition in load.parts} == staged.keys()
        if load.mode == "overwrite":
            self.cluster.rows = {}
        for (partition, _), rows in staged.items():
            if load.table == ORDERS.name:
                self.cluster.add(partition, rows)
        self.cluster.published.append((load.table, load.mode, sorted(load.parts)))
        return Reply(LoadedRows(rows=sum(rows.num_rows for rows in staged.values())))

    def on_change_table(self, _: Request[Any]) -> Reply[ChangedTable]:
        """The topology has changed meanwhile, which the clients hear of with this."""
        return Reply(ChangedTable(rows=7, members_touched=2, topology_version=self.cluster.topology.version + 1))

    on_change_several_partitions = on_change_table

    def on_abort_load(self, request: Request[AbortLoad]) -> Reply[Acknowledged]:
        self.cluster.staged.pop(request.message.load_id, None)
        return Reply(Acknowledged())


class _Member(_Party):
    def on_hello(self, _: Request[Any]) -> Reply[Greeting]:
        return Reply(Greeting(member=self.name))

    def on_get_owners(self, _: Request[Any]) -> Reply[TopologyAnswer]:
        return Reply(TopologyAnswer(topology=self.cluster.topology))

    def on_execute(self, request: Request[Execute]) -> Handled:
        asked = request.message
        statement = self.cluster.statements[asked.plan]
        self.cluster.executed.append({"member": self.name, **asdict(asked)})
        ids = statement.tree().bind(asked.params).ids if asked.pruning else statement.tree().live_ids()
        owners = (
            {self.name}
            if statement.table.replicated
            else {self.cluster.ownership.primary(p) for p in ids} or {self.name}
        )
        if self.name not in owners:
            raise TopologyChangedError(f"{self.name} owns none of these")
        rows = pa.concat_tables(
            [self.cluster.rows.get(p, ORDERS.arrow_schema.empty_table()) for p in ids]
            or [ORDERS.arrow_schema.empty_table()]
        )
        executed = Executed(
            execution="local" if len(owners) == 1 else "distributed",
            members=sorted(owners),
            partitions_read=len(ids),
            partitions_total=statement.table.partition_count,
            topology_version=self.cluster.topology.version,
            rows=rows.num_rows,
        )
        reply = Reply(executed, encode_table(statement.run(rows, asked.params)))
        if self.cluster.latch is None:
            return reply

        async def later(latch: asyncio.Event) -> Reply[Executed]:
            await latch.wait()
            return reply

        return later(self.cluster.latch)

    def on_stage_rows(self, request: Request[StageRows]) -> Reply[RowCount]:
        asked = request.message
        rows = decode_table(request.payload)
        table = next(table for table in self.cluster.tables if table.table_id == asked.table_id)
        assert rows.schema.equals(table.arrow_schema)
        start = 0
        for partition, count in asked.parts:
            assert table.replicated or self.cluster.ownership.primary(partition) == self.name
            piece = rows.slice(start, count)
            start += count
            assert set(table.scheme.partitions_of(piece).tolist()) == {partition}
            staged = self.cluster.staged.setdefault(asked.load_id, {})
            key = (partition, asked.attempt)
            if not table.replicated or self.name == "m1":
                staged[key] = pa.concat_tables([staged[key], piece]) if key in staged else piece
        assert start == rows.num_rows
        return Reply(RowCount(rows.num_rows))

    def on_write_rows(self, request: Request[WriteRows]) -> Reply[RowCount]:
        asked = request.message
        if self.cluster.ownership.primary(asked.partition) != self.name:
            raise TopologyChangedError("moved; nothing was written")
        rows = decode_table(request.payload)
        if asked.mode == "append" and "taken" in rows.column(0).to_pylist():
            raise DuplicateKeyError("table Orders has the key ('taken', 1) already", table="Orders")
        self.cluster.add(asked.partition, rows)
        return Reply(RowCount(rows.num_rows))


class FakeCluster:
    """A controller and three members on one loop thread."""

    token: str | None = None
    cluster_id = "fake"

    def __init__(self, member_count: int = 3, token: str | None = None) -> None:
        self.token = token
        self.catalog_version = 1
        self.tables = [ORDERS, COUNTRIES]
        self.statements: dict[str, Statement] = {}
        self.rows: dict[int, pa.Table] = {}
        self.staged: dict[str, dict[tuple[int, int], pa.Table]] = {}
        self.published: list[tuple[str, str, list[int]]] = []
        self.log: list[tuple[str, str]] = []
        self.write_ids: list[str] = []
        self.prepared: list[tuple[str, Any, Any]] = []
        self.executed: list[dict[str, Any]] = []
        self.failures: dict[tuple[str, str], list[Error]] = {}
        self.topologies: list[Topology] = []
        self.latch: asyncio.Event | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fake cluster")
        self._thread.start()
        self.controller = self.run(self._start(lambda: _Controller("controller", self)))
        self.members = {
            f"m{n}": self.run(self._start(lambda n=n: _Member(f"m{n}", self))) for n in range(1, member_count + 1)
        }
        addresses = tuple(
            MemberAddress(name, member.server.host, member.server.port) for name, member in self.members.items()
        )
        ownership = assign(ORDERS.partition_count, list(self.members), 2)
        self.topology = Topology(
            1,
            addresses,
            {
                ORDERS.scheme.affinity_group(): ownership,
                COUNTRIES.scheme.affinity_group(): assign(1, list(self.members), 1),
            },
        )

    async def _start(self, make: Callable[[], Any]) -> Any:
        party = make()
        await party.server.start()
        return party

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    def call(self, function: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(function)

    @property
    def address(self) -> str:
        return f"secateur://127.0.0.1:{self.controller.server.port}"

    @property
    def ownership(self) -> Ownership:
        return self.topology.ownership(ORDERS.scheme.affinity_group())

    def versions(self) -> GivenVersions:
        return {
            "catalog_version": self.catalog_version,
            "topology_version": self.topology.version,
            "statistics_version": 0,
        }

    def add(self, partition: int, rows: pa.Table) -> None:
        self.rows[partition] = pa.concat_tables([self.rows[partition], rows]) if partition in self.rows else rows

    def moved(self, partition: int, member: str) -> Topology:
        """The topology after a partition has moved."""
        owners = self.ownership.owners.copy()
        index = self.ownership.members.index(member)
        owners[:, partition] = [index, (index + 1) % len(self.members)]
        groups = {**self.topology.owners, ORDERS.scheme.affinity_group(): Ownership.of(self.ownership.members, owners)}
        return structs.replace(self.topology, version=self.topology.version + 1, owners=groups)

    def kill(self, name: str) -> None:
        self.run(self.members[name].server.stop())

    def stop(self) -> None:
        for party in (self.controller, *self.members.values()):
            self.run(party.server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)
        self._loop.close()

    # -- what tests ask

    def asked(self, op: str) -> list[str]:
        """Who was asked for an operation, in order."""
        return [name for name, asked in self.log if asked == op]


def orders(*rows: tuple[str, int, float | None]) -> pa.Table:
    return pa.Table.from_pylist(
        [dict(zip(("customer_id", "id", "amount"), row, strict=True)) for row in rows], schema=ORDERS.arrow_schema
    )


def of_customer(rows: pa.Table, params: list[Any]) -> pa.Table:
    return rows.filter(pc.equal(rows.column("customer_id"), str(params[0])))


def count(rows: pa.Table, _: list[Any]) -> pa.Table:
    return pa.table({"count": pa.array([rows.num_rows], pa.int64())})


ZERO = pa.table({"count": pa.array([0], pa.int64())})
COUNT_COLUMNS = (ResultColumn("count", "BIGINT"),)

CUSTOMERS = ["C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9"]


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    fake = FakeCluster()
    fake.statements = {
        "one": Statement(ONE_KEY, of_customer, parameter_count=1),
        "named": Statement(ONE_KEY, of_customer, parameter_count=1, parameter_names=("customer",)),
        "all": Statement(),
        "count": Statement(run=count, columns=COUNT_COLUMNS, empty=ZERO),
        "never": Statement(Nothing(), count, columns=COUNT_COLUMNS, empty=ZERO),
        "never, with parameters": Statement(Nothing(), count, columns=COUNT_COLUMNS, empty=None, parameter_count=1),
        "countries": Statement(Everywhere(), count, COUNTRIES, columns=COUNT_COLUMNS, empty=None),
        "wrongly pruned": Statement(Partitions((0,)), count, columns=COUNT_COLUMNS, empty=None),
    }
    for position, customer in enumerate(CUSTOMERS):
        rows = orders((customer, position, 1.5), (customer, position + 100, None))
        fake.add(ORDERS.scheme.partition_of({"customer_id": customer}), rows)
    yield fake
    fake.stop()


@pytest.fixture
def conn(cluster: FakeCluster) -> Iterator[Connection]:
    with secateur.connect(cluster.address, timeout_s=20) as connection:
        yield connection
