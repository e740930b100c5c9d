"""Reading external tables for a statement that this member coordinates.

The partitions are listed once for each table of a statement, pruned with the statement's parameters, and read on the
members by a light job. The rows that may be needed come here; the statement runs over them as over a system table.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from typing import Any, Final, TypeVar

import pyarrow as pa

from secateur.cluster.member.statements.plans import check_bound
from secateur.cluster.statement_profile import work_of
from secateur.connectors.external import connector as interface
from secateur.connectors.external.connector import (
    columns_of,
    needed_partitions,
    partitions_of,
    settled_connector,
)
from secateur.connectors.external.external_source import ExternalPartitions, ExternalSource
from secateur.dag.dag import DAG
from secateur.dag.edge import between
from secateur.engine.kernels.fragment import Fragment
from secateur.engine.processors.order_and_limit import RowLimit
from secateur.engine.runtime.result import ResultCollector, ResultSink
from secateur.engine.runtime.runtime import JobRuntime
from secateur.engine.sql.select_plan import FetchedRows, ScanPlan, SelectPlan
from secateur.errors import DeadlineError
from secateur.partitioning.pruning.row_predicate import RowPredicate
from secateur.partitioning.tables.table import ExternalTable
from secateur.partitioning.topology.topology import Topology
from secateur.partitioning.types.arrow_layout import empty_table
from secateur.protocol.catalog import (
    ConnectorDescription,
    DescribeConnector,
    ListedPartitions,
    ListExternalPartitions,
)
from secateur.protocol.job_description import JobConfig
from secateur.wire import Reply, Request

T = TypeVar("T")

_TABLES_MAX: Final = 256
_KEYS_SHOWN_MAX: Final = 16


class ExternalReads:
    """Reads external tables. Lives on the member's event loop.

    Args:
        executor: Threads in which connectors are asked for their columns and partitions.
        fetch: Gets an external table from the controller by its id.
    """

    def __init__(
        self,
        member_id: str,
        jobs: JobRuntime,
        executor: Executor,
        fetch: Callable[[int], Awaitable[ExternalTable]],
    ) -> None:
        self._jobs = jobs
        self._executor = executor
        self._fetch = fetch
        self._context = interface.ConnectorContext(member_id, jobs.services.external_directories)
        self._tables: OrderedDict[int, ExternalTable] = OrderedDict()

    async def describe(self, request: Request[DescribeConnector]) -> Reply[ConnectorDescription]:
        """Ask a connector for the columns of its table."""
        asked = request.message

        def described() -> ConnectorDescription:
            connector = self._connector(asked.connector, asked.table)
            settled = settled_connector(connector, asked.table, self._context)
            columns = columns_of(settled, asked.table, self._context)
            return ConnectorDescription(columns, settled.title, None if settled is connector else settled.encoded())

        return Reply(await self._in_thread(described, asked.table, "its columns"))

    async def list_partitions(self, request: Request[ListExternalPartitions]) -> Reply[ListedPartitions]:
        """List the partitions of an external table that a statement would read."""
        asked = request.message
        partitions = await self._partitions(asked.table)
        columns = tuple(dict.fromkeys(column for partition in partitions for column in partition.values))
        try:
            predicate = asked.predicate.bind(() if asked.params is None else asked.params)
        except IndexError:
            return Reply(ListedPartitions(len(partitions), None, (), columns))
        kept = needed_partitions(partitions, predicate)
        keys = tuple(str(partition.key) for partition in kept[:_KEYS_SHOWN_MAX])
        return Reply(ListedPartitions(len(partitions), len(kept), keys, columns))

    async def rows(
        self, plan: SelectPlan, params: Sequence[Any], topology: Topology, *, pruning: bool, in_parts: bool
    ) -> dict[str, FetchedRows]:
        """The rows of each scan of an external table, by relation.

        Args:
            plan: The statement.
            params: Its parameters, with the values of its expressions behind them.
            topology: The members that read.
            pruning: Whether to leave out partitions that cannot match.
            in_parts: Whether a part of the statement may be computed where the rows are read.

        Raises:
            Error: A connector raises it.
            LimitExceededError: They take more memory than one statement may gather.
        """
        scans = [scan for scan in plan.scans if scan.external is not None]
        if not scans:
            return {}
        check_bound(plan, params)
        tables = {scan.table_id: await self._table(scan.table_id) for scan in scans}
        # A table that is named twice is listed once: both scans read the same files.
        listed = {table_id: await self._partitions(table) for table_id, table in tables.items()}
        found = {}
        for scan in scans:
            assert scan.external is not None
            at_readers = scan.external.at_readers if in_parts else None
            found[scan.relation] = await self._read(
                scan,
                tables[scan.table_id],
                listed[scan.table_id],
                params,
                topology,
                pruning=pruning,
                partial=None if at_readers is None else at_readers.partial,
            )
        return found

    async def _read(
        self,
        scan: ScanPlan,
        external: ExternalTable,
        partitions: Sequence[interface.ConnectorPartition],
        params: Sequence[Any],
        topology: Topology,
        *,
        pruning: bool,
        partial: Fragment | None,
    ) -> FetchedRows:
        assert scan.external is not None
        table = external.table
        predicate = scan.external.predicate.bind(params) if pruning else RowPredicate()
        limit = scan.external.limit if pruning else None
        kept = needed_partitions(partitions, predicate) if limit != 0 else ()
        here = self._context.member
        if not kept:
            fields = [table.arrow_schema.field(name) for name in scan.columns]
            nothing = work_of(_stage(scan, len(partitions), len(partitions)), here)
            return FetchedRows(empty_table(pa.schema(fields)), 0, len(partitions), (here,), (nothing,))
        request = interface.ExternalScanRequest(scan.columns, table.arrow_schema, predicate, limit)
        wanted = ExternalPartitions(table.name, external.connector, table.columns, kept, request, partial)
        dag = DAG()
        name = f"external {scan.alias}"
        dag.new_vertex(name, ExternalSource(wanted))
        dag.new_vertex("rows", ResultSink(None if limit is None else RowLimit(0, limit)))
        dag.edge(between(name, "rows").all_to_one().distributed())
        collector = ResultCollector(self._jobs.services.gathered_bytes_max)
        job = await self._jobs.start_job(dag, JobConfig(), params, topology, result=collector)
        result = await job.result()
        # The builder of the plan gives each member every n-th partition, the members in the order of the topology.
        read_by = sorted(
            (entry for entry in result.metrics if entry.vertex == name),
            key=lambda entry: topology.member_ids.index(entry.member),
        )
        stage = _stage(scan, len(partitions) - len(kept), len(partitions))
        work = tuple(
            work_of(
                stage,
                entry.member,
                partitions=len(range(index, len(kept), len(read_by))),
                rows_out=entry.rows_out,
                bytes_out=entry.bytes_out,
                sent_bytes=sum(output.sent_bytes for output in entry.outputs),
                kernel_s=entry.offload_s,
                busy_s=entry.busy_s,
            )
            for index, entry in enumerate(read_by)
        )
        rows = result.table()
        # Over no partial rows, a count would be NULL.
        is_partial = partial is not None and rows.num_rows > 0
        if not rows.num_columns or is_partial != (partial is not None):
            rows = empty_table(request.read_schema)
        members = tuple(sorted({here, *result.members_touched}))
        return FetchedRows(rows, len(kept), len(partitions), members, work, is_partial)

    async def _table(self, table_id: int) -> ExternalTable:
        """An external table. One of an id never changes."""
        found = self._tables.get(table_id)
        if found is None:
            found = self._tables[table_id] = await self._fetch(table_id)
            while len(self._tables) > _TABLES_MAX:
                self._tables.popitem(last=False)
        return found

    async def _partitions(self, external: ExternalTable) -> list[interface.ConnectorPartition]:
        def listed() -> list[interface.ConnectorPartition]:
            connector = self._connector(external.connector, external.name)
            return partitions_of(connector, external.table, self._context)

        return await self._in_thread(listed, external.name, "its partitions")

    def _connector(self, encoded: bytes, table: str) -> interface.Connector:
        return interface.decode_connector(encoded, allow_code=self._jobs.services.allow_code, table=table)

    async def _in_thread(self, call: Callable[[], T], table: str, what: str) -> T:
        """Call a connector. One that hangs keeps its thread, and nobody waits for it any longer.

        Raises:
            DeadlineError: It takes too long.
        """
        limit_s = self._jobs.services.limits.connector_listing_s
        answering = asyncio.get_running_loop().run_in_executor(self._executor, call)
        try:
            return await asyncio.wait_for(answering, limit_s)
        except TimeoutError as error:
            raise DeadlineError(
                f"the connector of table {table} has not named {what} on member {self._context.member} within"
                f" {limit_s} s (connector_listing_s): see what its store waits for, or raise that limit",
                table=table,
                member=self._context.member,
            ) from error


def _stage(scan: ScanPlan, left_out: int, total: int) -> str:
    """The name of the stage that reads an external table, in EXPLAIN ANALYZE."""
    return f"external {scan.alias}, {left_out} of {total} partitions left out"
