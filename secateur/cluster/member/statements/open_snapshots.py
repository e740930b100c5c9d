"""The snapshots that are open at a member: rows that are kept as they were, for those who read them in pieces."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from secateur.engine.kernels.fragment import Fragment
from secateur.protocol.snapshots import PinnedPartition
from secateur.storage.pinned_rows import PinnedRows, bytes_kept

SNAPSHOTS_MAX: Final = 256
"""Snapshots kept; those that were not read for longest go first. Whoever still reads one opens it again."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A pinned partition.

    Attributes:
        rows: Its rows.
        published: The number of the last load of the table that is in them.
        version: The number of the last change of the partition.
    """

    rows: PinnedRows
    published: int
    version: int

    @property
    def described(self) -> PinnedPartition:
        """The partition, for whoever reads it."""
        rows = self.rows
        return PinnedPartition(rows.partition, self.published, self.version, rows.rows, rows.nbytes)


@dataclass(slots=True)
class KeptSnapshot:
    """One open snapshot.

    Attributes:
        fragment: The fragment that is answered over its rows.
        relation: The name of the relation of the fragment.
        table: The name of the table.
        params: The parameters of the fragment.
        pinned: By partition.
        lease_s: How long it lives without a read.
        ends_s: When it ends.
    """

    fragment: Fragment
    relation: str
    table: str
    params: Sequence[Any]
    pinned: dict[int, Pin]
    lease_s: float
    ends_s: float = 0.0


class OpenSnapshots:
    """Keeps snapshots until their leases have ended. Lives on the member's event loop.

    Args:
        clock: Seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: OrderedDict[str, KeptSnapshot] = OrderedDict()

    @property
    def count(self) -> int:
        """The number of open snapshots."""
        return len(self._open)

    @property
    def kept_bytes(self) -> int:
        """Bytes that are in memory for snapshots alone; some microseconds per pinned partition."""
        return bytes_kept(pin.rows for snapshot in self._open.values() for pin in snapshot.pinned.values())

    def find(self, name: str) -> KeptSnapshot | None:
        """A snapshot; None if there is none of this name."""
        return self._open.get(name)

    def keep(self, name: str, snapshot: KeptSnapshot) -> None:
        """Have a snapshot under a name; one that is there gets the partitions that it lacks."""
        kept = self._open.setdefault(name, snapshot)
        for partition, pin in snapshot.pinned.items():
            kept.pinned.setdefault(partition, pin)
        self.renew(name, kept)
        while len(self._open) > SNAPSHOTS_MAX:
            self._open.popitem(last=False)

    def renew(self, name: str, snapshot: KeptSnapshot) -> None:
        """A snapshot is read: its lease begins anew."""
        snapshot.ends_s = self._clock() + snapshot.lease_s
        self._open.move_to_end(name)

    def close(self, name: str) -> None:
        """Forget a snapshot."""
        self._open.pop(name, None)

    def drop_ended(self) -> None:
        """Forget the snapshots whose lease has ended."""
        now_s = self._clock()
        for name in [name for name, snapshot in self._open.items() if snapshot.ends_s <= now_s]:
            del self._open[name]
