"""A table as the sink of a DAG: rows go to the primaries of their partitions and to the backups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

import pyarrow as pa

from secateur.dag.codec import portable
from secateur.dag.processor import Outbox, Processor, ProcessorContext
from secateur.dag.supplier import MetaContext, ProcessorMetaSupplier, ProcessorSupplier, SupplierContext
from secateur.engine.runtime.services import MemberServices
from secateur.errors import DagError, NotSupportedError
from secateur.partitioning.tables.conform import MissingColumns, conform
from secateur.partitioning.tables.row_ids import check_has_key
from secateur.partitioning.tables.table import TableDef

_MODES: Final = ("upsert", "append")
_FLUSH_ROWS: Final = 1 << 20
_FLUSH_BYTES: Final = 64 << 20
"""Every write to a partition has a price of its own, and there are hundreds of partitions: an eighth of this took twice
the time for a million rows.
"""


def table_sink(
    name: str, *, mode: Literal["upsert", "append"] = "upsert", missing: Literal["null"] | None = None
) -> TableSink:
    """A sink that writes rows into a table.

    Columns are matched by name and converted as in :meth:`~secateur.client.loads.table_handle.TableHandle.load`.

    Each processor gathers rows, and writes those of each partition to its primary, on any member, which passes them to
    its backups; the job succeeds only when all of them have all rows. Feed it through an edge
    ``.partitioned(table=name).distributed()``, as a pipeline does: then rows are sent once, to the member that owns
    them if it takes part in the job, and the rows of one partition are written together.

    **Atomicity**: the rows of one write to one partition become visible together, those of a job do not, and a job that
    fails leaves the rows that it had written. An upsert is safe to run again, and is run again when a member is lost.
    An append that is run again finds its own keys (``DuplicateKeyError``): give its job
    ``JobConfig(on_member_lost="fail")``. For all rows or none: collect, then ``TableHandle.load``.

    Args:
        name: The table; it must exist when the job starts, and have a primary key. Ranges that it makes on demand
            (``EVERY``) are made as rows need them.
        mode: ``"upsert"`` replaces rows with the same primary key; ``"append"`` refuses them.
        missing: ``"null"`` has the default, or NULL, in the columns of the table that the rows lack. Without it, an
            upsert keeps their values in rows that are there; an append refuses those without a default.

    Raises:
        DagError: There is no such mode.
        ParameterError: ``missing`` is something else.
    """
    if mode not in _MODES:
        raise DagError(
            f"table_sink({name!r}): there is no mode {mode!r}; a job writes with one of {', '.join(map(repr, _MODES))}"
        )
    return TableSink(name, mode, MissingColumns.of_load(missing, is_upsert=mode == "upsert"))


@portable("table-sink")
@dataclass(eq=False)
class TableSink(ProcessorMetaSupplier):
    """The meta-supplier of :func:`table_sink`."""

    init_is_cooperative = True
    close_is_cooperative = True

    table: str
    mode: str
    missing: MissingColumns

    def init(self, context: MetaContext) -> None:
        table = context.table(self.table)
        if table.replicated:
            raise NotSupportedError(
                f"table {self.table} is replicated, and a job cannot write into that: collect the rows, then load them"
                " with TableHandle.load"
            )
        check_has_key(table, "a job that is run again would write its rows twice: collect them, and load them")

    def get(self, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        return {member: TableSinkSupplier(self.table, self.mode, self.missing) for member in members}


@portable("table-sink-supplier")
@dataclass(eq=False)
class TableSinkSupplier(ProcessorSupplier):
    """Makes the processors of :func:`table_sink` on one member."""

    init_is_cooperative = True
    close_is_cooperative = True

    table: str
    mode: str
    missing: MissingColumns

    def init(self, context: SupplierContext) -> None:
        self._services = context.service(MemberServices)
        self._definition = self._services.table(self.table)

    def get(self, count: int) -> Sequence[Processor]:
        return [_Write(self._definition, self.mode, self.missing, self._services) for _ in range(count)]


class _Write(Processor):
    """Waits for its writes in a thread of its own, not in one of the executor.

    A load that is being published may need the executor's threads before the writes can go on.
    """

    cooperative = False

    def __init__(self, table: TableDef, mode: str, missing: MissingColumns, services: MemberServices) -> None:
        self._table = table
        self._mode = mode
        self._missing = missing
        self._now = datetime.now(UTC)
        self._write = services.write_rows
        self._gathered: list[pa.Table] = []
        self._rows = 0
        self._bytes = 0
        self._writes = 0
        self._id = ""

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        super().init(outbox, context)
        self._id = f"{context.job_id}/{context.vertex}/{context.global_index}"

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        rows = conform(batch, self._table, self._missing, now=self._now)
        if rows.num_rows:
            if self._gathered and self._gathered[0].schema != rows.schema:  # another input, which lacks other columns
                self._flush()
            self._gathered.append(rows)
            self._rows += rows.num_rows
            self._bytes += rows.nbytes
            if self._rows >= _FLUSH_ROWS or self._bytes >= _FLUSH_BYTES:
                self._flush()
        return True

    def complete(self) -> bool:
        if self._gathered:
            self._flush()
        return True

    def close(self) -> None:
        self._gathered.clear()

    def _flush(self) -> None:
        gathered, self._gathered = self._gathered, []
        self._rows = self._bytes = 0
        self._writes += 1
        self._write(self._table, pa.concat_tables(gathered), self._mode, f"{self._id}/{self._writes}")
