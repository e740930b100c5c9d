"""Several engines in one process, connected in memory: for tests of processors, of DAGs, and of the engine itself.

Everything runs on the event loop of the caller, messages are delivered in order, and nothing depends on time, so a test
runs the same way each time. Messages are packed and unpacked as on a real network.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from secateur.dag.dag import DAG, FrozenDAG
from secateur.dag.processor import Params
from secateur.engine.exchange.exchange import Payload
from secateur.engine.kernels.fragment import run
from secateur.engine.runtime.result import JobResult
from secateur.engine.runtime.runtime import JobRuntime
from secateur.engine.runtime.services import MemberServices
from secateur.engine_limits import EngineLimits
from secateur.errors import MemberLostError, UnknownTableError
from secateur.partitioning.tables.conform import conform
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.affinity import assign
from secateur.partitioning.topology.owner_routing import split
from secateur.partitioning.topology.topology import MemberAddress, Ownership, Topology
from secateur.protocol.codec import decode, encode
from secateur.protocol.job_description import JobConfig
from secateur.protocol.message import Notice
from secateur.protocol.operations import operation_of
from secateur.storage.change import ChangeOperation, load_mode
from secateur.storage.member_store import MemberStore

_Hold = Callable[["_SentMessage"], bool]


async def until(condition: Callable[[], bool]) -> None:
    """Run the loop until a condition holds.

    For states that the code under test reaches on its own; a test's own timeout bounds the wait.
    """
    while not condition():  # noqa: ASYNC110 - what is waited for are turns of the loop, not time
        await asyncio.sleep(0)


class LocalCluster:
    """Members with stores and engines, but without sockets, controller or SQL. An async context manager.

    Args:
        members: How many.
        allow_code: Whether DAGs with functions are accepted; needed for processors of one's own on more than one
            member.
        limits: Bounds of the engines.
        gathered_bytes_max: Bytes of rows that the stages of one SELECT may gather on a member.

    Attributes:
        network: Connects them.
        runtimes: The engine of each member, by id: ``m1``, ``m2``, ...
        stores: The partitions of each member, by id.
        topology: Members and owners.
    """

    def __init__(
        self,
        members: int,
        *,
        allow_code: bool = True,
        limits: EngineLimits | None = None,
        gathered_bytes_max: int = 2 << 30,
    ) -> None:
        self.network = _LocalNetwork()
        self.runtimes: dict[str, JobRuntime] = {}
        self.stores: dict[str, MemberStore] = {}
        self._ids = [f"m{number}" for number in range(1, members + 1)]
        self.topology = Topology(1, tuple(MemberAddress(member, "local", 0) for member in self._ids), {})
        self._tables: dict[str, TableDef] = {}
        self._executor = ThreadPoolExecutor(max_workers=4, thread_name_prefix="secateur-local")
        self._loop: asyncio.AbstractEventLoop
        self._allow_code = allow_code
        self._limits = limits or EngineLimits()
        self._gathered_bytes_max = gathered_bytes_max

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        for member in self._ids:
            store = MemberStore(limits=self._limits)
            services = MemberServices(
                store=store,
                run_fragment=run,
                executor=self._executor,
                table=self.table,
                write_rows=self._write_from_thread,
                allow_code=self._allow_code,
                limits=self._limits,
                gathered_bytes_max=self._gathered_bytes_max,
            )
            runtime = JobRuntime(member, services, self.network.transport(member))
            self.stores[member] = store
            self.runtimes[member] = runtime
            self.network.attach(member, runtime.on_message)
        return self

    async def __aexit__(self, *_: object) -> None:
        for runtime in self.runtimes.values():
            await runtime.close()
        self._executor.shutdown(wait=True, cancel_futures=True)

    def table(self, name: str) -> TableDef:
        """The description of a table that was created.

        Raises:
            UnknownTableError: No such table.
        """
        try:
            return self._tables[name.casefold()]
        except KeyError:
            raise UnknownTableError(
                f"table {name!r} does not exist; there are {', '.join(self._tables) or 'none'}"
            ) from None

    def create_table(self, tdef: TableDef, rows: pa.Table) -> None:
        """Create a table on all members and put rows into it."""
        group = tdef.scheme.affinity_group()
        if not tdef.replicated and group not in self.topology.owners:
            owners: dict[str, Ownership] = {**self.topology.owners, group: assign(tdef.partition_count, self._ids, 1)}
            self.topology = Topology(self.topology.version + 1, self.topology.members, owners)
        self._tables[tdef.name.casefold()] = tdef
        parts = split(conform(rows, tdef), tdef)
        for member, store in self.stores.items():
            mine = [0] if tdef.replicated else self.topology.ownership(group).partitions_of(member)
            store.create_table(tdef, mine)
            for partition in mine:
                if partition in parts:
                    store.apply(tdef.table_id, partition, ChangeOperation.APPEND, parts[partition])

    def read_table(self, name: str) -> pa.Table:
        """All rows of a table, in the order of its partitions."""
        tdef = self.table(name)
        owners = self.topology.ownership(tdef.scheme.affinity_group())
        return pa.concat_tables(
            [self.stores[owners.primary(p)].relation(tdef.table_id, (p,)) for p in range(tdef.partition_count)]
        )

    def _write_from_thread(self, table: TableDef, rows: pa.Table, mode: str, change_id: str) -> int:
        parts = split(rows, table)

        async def write() -> int:
            owners = self.topology.ownership(table.scheme.affinity_group())
            return sum(
                self.stores[owners.primary(partition)].apply(table.table_id, partition, load_mode(mode), rows)
                for partition, rows in parts.items()
            )

        return asyncio.run_coroutine_threadsafe(write(), self._loop).result()

    async def run(
        self, dag: DAG | FrozenDAG, config: JobConfig | None = None, params: Params = (), *, coordinator: str = "m1"
    ) -> JobResult:
        """Run a job and wait for its result."""
        job = await self.runtimes[coordinator].start_job(dag, config or JobConfig(), params, self.topology)
        return await job.result()

    def received(self, operations: Sequence[str] | None = None) -> dict[str, int]:
        """Messages that were sent to each member so far; of these operations only, where some are named."""
        wanted = [
            message.receiver for message in self.network.sent if operations is None or message.operation in operations
        ]
        return {member: wanted.count(member) for member in self._ids}


@dataclass(frozen=True, slots=True)
class _SentMessage:
    """A message as a test sees it: as its receiver gets it."""

    sender: str
    receiver: str
    notice: Notice
    payload: bytes

    @property
    def operation(self) -> str:
        """The operation, such as ``exchange_rows``."""
        return operation_of(self.notice).title

    def __repr__(self) -> str:
        return f"{self.sender}->{self.receiver} {self.operation}"


class _LocalNetwork:
    """Delivers messages between members in memory, in order, and can misbehave on request.

    Attributes:
        sent: Every message that was handed over, also those that were held back or lost.
    """

    def __init__(self) -> None:
        self.sent: list[_SentMessage] = []
        self._receivers: dict[str, Callable[[Notice, Payload], None]] = {}
        self._lost: set[str] = set()
        self._holds: list[_Hold] = []
        self._held: list[_SentMessage] = []

    def attach(self, member: str, on_message: Callable[[Notice, Payload], None]) -> None:
        """Deliver the member's messages there."""
        self._receivers[member] = on_message

    def transport(self, member: str) -> _LocalTransport:
        """The way of one member to the others."""
        return _LocalTransport(self, member)

    def lose(self, member: str) -> None:
        """Messages from and to the member fail from now on."""
        self._lost.add(member)

    def hold(self, condition: _Hold) -> None:
        """Keep back the messages for which the condition holds, until :meth:`release`."""
        self._holds.append(condition)

    def release(self) -> None:
        """Deliver the messages that were held back, in order, and hold back no more."""
        self._holds.clear()
        held, self._held = self._held, []
        for message in held:
            self._deliver_soon(message)

    async def carry(self, sender: str, receiver: str, notice: Notice, payload: Payload) -> None:
        """Deliver one message, as a transport does."""
        if receiver in self._lost or sender in self._lost:
            raise MemberLostError(f"the connection from {sender} to {receiver} broke", member=receiver)
        message = _SentMessage(sender, receiver, decode(encode(notice), type(notice)), bytes(payload))
        self.sent.append(message)
        if any(condition(message) for condition in self._holds):
            self._held.append(message)
        else:
            self._deliver_soon(message)

    def _deliver_soon(self, message: _SentMessage) -> None:
        asyncio.get_running_loop().call_soon(self._deliver, message)

    def _deliver(self, message: _SentMessage) -> None:
        if message.receiver not in self._lost:
            self._receivers[message.receiver](message.notice, message.payload)


class _LocalTransport:
    def __init__(self, network: _LocalNetwork, member: str) -> None:
        self._network = network
        self._member = member

    async def send(self, member_id: str, notice: Notice, payload: Payload) -> None:
        await self._network.carry(self._member, member_id, notice, payload)
