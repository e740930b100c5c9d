"""The rows of one Spark task on their way to the members: gathered into chunks, grouped by owner and partition, sent as ``stage`` frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from secateur.partitioning.conform import conform
from secateur.partitioning.scheme import PartitionScheme
from secateur.partitioning.table import TableDef
from secateur.partitioning.topology import Topology
from secateur.wire import Channel, encode_table

__all__ = ["CHUNK_BYTES", "Share", "Sharing", "Stager"]

CHUNK_BYTES: Final = 32 << 20
"""Arrow bytes to gather before sending: enough that a frame costs little beside its rows, few enough for the memory of a task."""
_RADIX_PARTITIONS_MAX: Final = 1 << 16
_STAGE_TIMEOUT_S: Final = 300.0
"""A member that takes rows from hundreds of tasks at once answers late; giving up would cost the work of the whole job."""


class Share(NamedTuple):
    """The rows of a chunk that go to one member.

    Attributes:
        member: Its id.
        parts: ``(partition, rows)`` in the order in which the rows stand.
        rows: The rows, grouped by partition.
    """

    member: str
    parts: list[tuple[int, int]]
    rows: pa.Table


@dataclass(frozen=True, slots=True, eq=False)
class Sharing:
    """How rows of one table are shared out: its partitions in an order in which those of one primary stand together, so that one sort groups rows both ways.

    Attributes:
        scheme: The table's partition scheme.
        partitions: The partitions in that order.
        positions: The inverse: where in that order each partition stands; uint16 where that suffices, because numpy sorts those in linear time.
        ranges: Each primary and its range of positions, in order.
    """

    scheme: PartitionScheme
    partitions: npt.NDArray[np.int64]
    positions: npt.NDArray[Any]
    ranges: tuple[tuple[str, range], ...]

    @classmethod
    def of(cls, table: TableDef, topology: Topology) -> Sharing:
        """The sharing of a partitioned table.

        Raises:
            InterfaceError: The topology is older than the table.
        """
        ownership = topology.ownership(table.scheme.affinity_group())
        primaries = ownership.owners[0]
        partitions = np.argsort(primaries, kind="stable")
        positions = np.empty(len(partitions), dtype=np.uint16 if len(partitions) <= _RADIX_PARTITIONS_MAX else np.int64)
        positions[partitions] = np.arange(len(partitions))
        bounds = np.searchsorted(primaries[partitions], np.arange(len(ownership.members) + 1)).tolist()
        ranges = tuple((member, range(*bounds[index : index + 2])) for index, member in enumerate(ownership.members))
        return cls(table.scheme, partitions, positions, ranges)

    def shares(self, rows: pa.Table) -> Iterator[Share]:
        """Group rows, each partition's in the order they had; members without any do not appear.

        Args:
            rows: In the table's own schema.

        Raises:
            NoRangeError: A row that no range covers; nothing is yielded then.

        Cost: the partition function, and one copy of the rows.
        """
        positions = self.positions[self.scheme.partitions_of(rows)]
        order = np.argsort(positions, kind="stable")
        grouped = rows.combine_chunks().take(pa.array(order))
        counts = np.bincount(positions, minlength=len(self.partitions))
        ends = np.cumsum(counts)
        for member, owned in self.ranges:
            present = [position for position in owned if counts[position]]
            if present:
                start = int(ends[present[0]] - counts[present[0]])
                parts = [(int(self.partitions[position]), int(counts[position])) for position in present]
                yield Share(member, parts, grouped.slice(start, int(ends[present[-1]]) - start))


class Stager:
    """Sends rows of one load to the owners of their partitions, where they wait for publication. A context manager that closes its connections.

    Args:
        table: The table that is loaded.
        topology: Its owners. A partition that has moved since is refused by the member, with an error that is safe to retry.
        load_id: The load.
        attempt: Tells the rows of this task from those of a task that failed before it: only attempts that the publication names count.
        token: The secret of the cluster, if it has one.
        chunk_bytes: Arrow bytes to gather before sending.
    """

    def __init__(self, table: TableDef, topology: Topology, *, load_id: str, attempt: int, token: str | None = None, chunk_bytes: int = CHUNK_BYTES) -> None:
        self._table = table
        self._args = {"load_id": load_id, "table_id": table.table_id, "attempt": attempt, "topology_version": topology.version}
        self._chunk_bytes = chunk_bytes
        self._pending: list[pa.RecordBatch] = []
        self._pending_bytes = 0
        self._staged: Counter[int] = Counter()
        self._channels = {
            member.id: Channel(member.host, member.port, token=token, client=f"load {load_id}", timeout_s=_STAGE_TIMEOUT_S) for member in topology.members
        }
        self._sharing = None if table.replicated else Sharing.of(table, topology)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        for channel in self._channels.values():
            channel.close()

    def add(self, rows: pa.RecordBatch) -> None:
        """Take rows with the table's columns, in any order and of any types that convert to the table's; they are sent when a chunk is full.

        Raises:
            Error: What ``conform`` or the partition function says of bad rows, what a member answered, or that it is out of reach. The attempt is over then.
        """
        if rows.num_rows:
            self._pending.append(rows)
            self._pending_bytes += rows.nbytes
        if self._pending_bytes >= self._chunk_bytes:
            self._send()

    def finish(self) -> dict[int, int]:
        """Send what is left; returns the rows staged, by partition.

        Raises:
            Error: As :meth:`add`.
        """
        if self._pending:
            self._send()
        return dict(self._staged)

    def _send(self) -> None:
        rows = conform(pa.Table.from_batches(self._pending), self._table)
        self._pending, self._pending_bytes = [], 0
        shares = list(self._shares(rows))
        for share in shares:
            self._channels[share.member].request("stage", {**self._args, "parts": share.parts}, encode_table(share.rows))
        self._staged.update({partition: count for share in shares for partition, count in share.parts})  # a replicated row is one row

    def _shares(self, rows: pa.Table) -> Iterator[Share]:
        if self._sharing is not None:
            return self._sharing.shares(rows)
        return (Share(member, [(0, rows.num_rows)], rows) for member in self._channels)
