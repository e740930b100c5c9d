"""Sends the rows of one Spark task to the members.

Rows are gathered into chunks, grouped by owner and partition, and sent as ``stage_rows`` requests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, Self

import pyarrow as pa
from msgspec.structs import replace

from secateur.connectors.spark.schema import keys_of
from secateur.partitioning.tables.conform import MissingColumns, conform
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.owner_routing import OwnerRouting
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.arrow_ipc import encode_table
from secateur.protocol.changes import StageRows
from secateur.wire.channel import Channel
from secateur.wire.handshake import hello
from secateur.wire.tls import Tls

CHUNK_BYTES: Final = 32 << 20
"""Arrow bytes to gather before sending: enough that a frame costs little beside its rows, few enough for the memory of
a task.
"""
_STAGE_TIMEOUT_S: Final = 300.0
"""A member that takes rows from hundreds of tasks at once answers late; giving up would cost the work of the whole
job.
"""


class Stager:
    """Sends rows of one load to the owners of their partitions, where they wait for publication.

    A context manager that closes its connections.

    Args:
        table: The table that is loaded.
        topology: Its owners. If a partition has moved since, the member refuses it with an error that is safe to
            retry.
        staging: What it asks of the owners, without rows yet. The attempt distinguishes the rows of this task from
            those of a task that failed before it: only attempts that the publication names count. Of keys, other
            columns are left out.
        token: The secret of the cluster, if it has one.
        tls: How connections are encrypted; None for a cluster without TLS.
        chunk_bytes: Arrow bytes to gather before sending.
        make_ranges: Has the ranges made that rows of a table with EVERY need; returns the table with them, and the
            owners. None for a table without EVERY.
        missing: The treatment of columns of the table that the rows lack.
    """

    def __init__(
        self,
        table: TableDef,
        topology: Topology,
        staging: StageRows,
        *,
        token: str | None = None,
        tls: Tls | None = None,
        chunk_bytes: int = CHUNK_BYTES,
        make_ranges: Callable[[TableDef, pa.Table], tuple[TableDef, Topology]] | None = None,
        missing: MissingColumns = MissingColumns.NULL,
    ) -> None:
        self._table = keys_of(table) if staging.are_keys else table
        self._staging = staging
        self._missing = missing
        self._now = datetime.now(UTC)
        self._make_ranges = make_ranges
        self._chunk_bytes = chunk_bytes
        self._pending: list[pa.RecordBatch] = []
        self._pending_bytes = 0
        self._staged: Counter[int] = Counter()
        self._channels = {
            member.id: Channel(
                member.host, member.port, hello(token, f"load {staging.load_id}"), timeout_s=_STAGE_TIMEOUT_S, tls=tls
            )
            for member in topology.members
        }
        self._sharing = OwnerRouting.of(table, topology)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for channel in self._channels.values():
            channel.close()

    def add(self, rows: pa.RecordBatch) -> None:
        """Take rows, which are sent when a chunk is full.

        They have the table's columns, in any order and of any types that convert to the table's.

        Raises:
            Error: ``conform`` or the partition function refused rows, a member answered with an error, or it could not
                be
                reached. The attempt has then failed.
        """
        if rows.num_rows:
            self._pending.append(rows)
            self._pending_bytes += rows.nbytes
        if self._pending_bytes >= self._chunk_bytes:
            self._send()

    def finish(self) -> dict[int, int]:
        """Send the remaining rows; returns the rows staged, by partition.

        Raises:
            Error: As :meth:`add`.
        """
        if self._pending:
            self._send()
        return dict(self._staged)

    def _send(self) -> None:
        given = pa.Table.from_batches(self._pending)
        self._pending, self._pending_bytes = [], 0
        if self._staging.are_keys:
            keys = {name.casefold() for name in self._table.primary_key}
            given = given.select([name for name in given.schema.names if name.casefold() in keys])
        rows = conform(given, self._table, self._missing, now=self._now)
        if self._make_ranges is not None and self._table.scheme.missing_cells(rows):
            self._table, topology = self._make_ranges(self._table, rows)
            self._sharing = OwnerRouting.of(self._table, topology)
        shares = list(self._sharing.shares(rows))
        for share in shares:
            asked = replace(self._staging, table_id=self._table.table_id, parts=share.parts)
            self._channels[share.member].request(asked, encode_table(share.rows))
        self._staged.update(
            {partition: count for share in shares for partition, count in share.parts}
        )  # a replicated row is one row
