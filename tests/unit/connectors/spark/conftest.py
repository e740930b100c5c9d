"""A controller and members that only take loads, in a thread of the test: enough of the protocol for the writer, and
every frame to look at afterwards.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import asdict

from secateur.errors import DuplicateKeyError, Error, MemberLostError, UnknownTableError
from secateur.partitioning.schemes import HashComponent, PartitionScheme
from secateur.partitioning.tables import Column, TableDef, TableDefinition
from secateur.partitioning.topology import MemberAddress, Topology, assign
from secateur.partitioning.types import empty_table, parse_type
from secateur.protocol import (
    CONTROLLER_OPERATIONS,
    MEMBER_OPERATIONS,
    AbortLoad,
    Acknowledged,
    GetTables,
    GetTopology,
    Greeting,
    Hello,
    LoadedRows,
    PublishLoad,
    RowCount,
    StageRows,
    Tables,
    TopologyAnswer,
)
from secateur.wire import FrameServer, FrameService, Handled, Reply, Request, decode_table


def _define(name: str, columns: str, key: str, *, partitions: int = 8, replicated: bool = False) -> TableDef:
    """``columns`` as in DDL: ``"id BIGINT NOT NULL, note VARCHAR"``; hashed by the first key column.

    Inside of types, ``;`` stands for a comma.
    """
    parsed = [text.strip().removesuffix(" NOT NULL").split(" ", 1) for text in columns.split(", ")]
    types = {column: parse_type(type_.replace(";", ",")) for column, type_ in parsed}
    primary_key = tuple(key.split(", "))
    nullable = {
        column: "NOT NULL" not in text and column not in primary_key
        for (column, _), text in zip(parsed, columns.split(", "), strict=True)
    }
    hashed = primary_key[:1]
    scheme = (
        PartitionScheme()
        if replicated
        else PartitionScheme((HashComponent(hashed, partitions),), None, tuple((c, types[c]) for c in hashed))
    )
    return TableDef(
        name, 7, tuple(Column(c, types[c], nullable[c]) for c in types), primary_key, scheme, replicated=replicated
    )


_OPERATIONS = {**CONTROLLER_OPERATIONS, **MEMBER_OPERATIONS}


class LoadsOnly:
    """A cluster that knows one table and can be loaded, nothing else.

    Attributes:
        published: The loads in the order in which they were published: the arguments and the rows.
        aborted: Ids of the loads that were dropped.
        stages: The arguments of each ``stage`` frame, by member.
        stages_to_fail: How many of the next ``stage`` frames are answered with an error, after their rows were kept.
        publish_error: What the next publications are answered with, unless None.
    """

    def __init__(self, table: TableDef, members: int, token: str | None) -> None:
        self.table = table
        self.published: list[tuple[dict[str, Any], pa.Table]] = []
        self.aborted: list[str] = []
        self.stages: dict[str, list[dict[str, Any]]] = {f"m{index + 1}": [] for index in range(members)}
        self.publish_error: Error | None = None
        self.stages_to_fail = 0
        self._rows: dict[tuple[int, int], list[pa.Table]] = {}
        self._token = token
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._run(self._start())

    @property
    def address(self) -> str:
        return f"secateur://127.0.0.1:{self._servers['controller'].port}"

    def stop(self) -> None:
        if self._loop.is_closed():
            return
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _start(self) -> None:
        names = ["controller", *self.stages]
        self._servers = {
            name: FrameServer(FrameService(_Handler(self, name), _OPERATIONS, self._token)) for name in names
        }
        for server in self._servers.values():
            await server.start()
        members = tuple(MemberAddress(name, "127.0.0.1", self._servers[name].port) for name in self.stages)
        group = self.table.scheme.affinity_group()
        self.topology = Topology(3, members, {group: assign(self.table.partition_count, list(self.stages), 1)})

    async def _stop(self) -> None:
        for server in self._servers.values():
            await server.stop()

    def answer(self, name: str, request: Request[Any]) -> Handled:
        match request.message:
            case Hello():
                return Reply(Greeting(cluster_id="loads-only", catalog_version=1, topology=self.topology))
            case GetTopology():
                return Reply(TopologyAnswer(topology=self.topology))
            case GetTables(wanted):
                if wanted != self.table.name:
                    raise UnknownTableError(f"table {wanted!r} does not exist", table=wanted)
                return Reply(Tables(tables=[TableDefinition.of(self.table)]))
            case AbortLoad(load_id):
                self.aborted.append(load_id)
                return Reply(Acknowledged())
            case PublishLoad() as load:
                return self._publish(asdict(load))
            case StageRows() as staging:
                return self._stage(name, asdict(staging), decode_table(request.payload))
        raise AssertionError(f"{name} was asked for {request.operation.title}")

    def _stage(self, member: str, args: dict[str, Any], rows: pa.Table) -> Reply[RowCount]:
        assert rows.schema.equals(self.table.arrow_schema)
        self.stages[member].append(args)
        start = 0
        for partition, count in args["parts"]:
            piece = rows.slice(start, count)
            start += count
            if not self.table.replicated:
                assert self.topology.ownership(self.table.scheme.affinity_group()).primary(partition) == member
                assert set(self.table.scheme.partitions_of(piece)) == {partition}
            if not self.table.replicated or member == "m1":
                self._rows.setdefault((partition, args["attempt"]), []).append(piece)
        assert start == rows.num_rows
        if self.stages_to_fail:
            self.stages_to_fail -= 1
            raise MemberLostError(f"{member} fails as the test wants it", member=member)
        return Reply(RowCount(rows.num_rows))

    def _publish(self, args: dict[str, Any]) -> Reply[LoadedRows]:
        if self.publish_error is not None:
            raise self.publish_error
        pieces = [
            piece
            for partition, attempts in args["parts"].items()
            for attempt in attempts
            for piece in self._rows[int(partition), attempt]
        ]
        rows = pa.concat_tables([empty_table(self.table.arrow_schema), *pieces])
        keys = (
            rows.select(list(self.table.primary_key))
            .group_by(list(self.table.primary_key))
            .aggregate([([], "count_all")])
        )
        if args["mode"] == "append" and keys.num_rows < rows.num_rows:
            raise DuplicateKeyError(f"{self.table.name}: a key occurs twice", table=self.table.name, key=[1])
        self.published.append((args, rows))
        return Reply(LoadedRows(rows=rows.num_rows))


class _Handler:
    def __init__(self, cluster: LoadsOnly, name: str) -> None:
        self._cluster = cluster
        self._name = name

    def handle(self, request: Request[Any]) -> Handled:
        return self._cluster.answer(self._name, request)

    def notify(self, request: Request[Any]) -> None:
        raise AssertionError(f"{self._name} got the notice {request.operation.title}")


@pytest.fixture
def define() -> Callable[..., TableDef]:
    """Makes a table description from ``(name, columns, key)``."""
    return _define


@pytest.fixture
def loads_only() -> Iterator[Callable[..., LoadsOnly]]:
    """Starts clusters that can be loaded; they end with the test."""
    started: list[LoadsOnly] = []

    def start(table: TableDef, *, members: int = 3, token: str | None = None) -> LoadsOnly:
        started.append(LoadsOnly(table, members, token))
        return started[-1]

    yield start
    for cluster in started:
        cluster.stop()
