"""The memory limit of a member: rows that would not fit are refused before they are kept.

What counts are the rows of tables, older rows of them that snapshots keep, the staged rows of loads (twice, because
they are copied where they are merged into rows that are there) and the results that clients are reading. The duckdb
kernel has a share of its own. Memory that is needed for a moment, and second forms of columns that are often scanned,
come on top.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from secateur.cluster.settings import ClusterSettings
from secateur.errors import LimitExceededError

KERNEL_SHARE: Final = 4
"""The duckdb kernel gets one part in so many of a limit that was set, unless its own limit is set."""
STAGED_FACTOR: Final = 2
"""Staged rows count so many times: they are copied where they are merged into rows that are there."""
_MACHINE_SHARE: Final = 0.8
_COUNT_EVERY_S: Final = 0.1
"""Tables also grow by loads and by copies of other members' writes, so they are counted again after this time."""
_COUNT_SHARE: Final = 20
"""Counting may take one part in so many of the time."""
_FAR_SHARE: Final = 4
"""A member that has less than one part in so many of its limit is far from it."""
_COUNT_FAR_S: Final = 1.0
"""The greatest age in seconds of the count, for writes to a member that is far from its limit."""
_CGROUP_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")


def memory_limit_of(settings: ClusterSettings) -> int:
    """The bytes that a member of a cluster may take.

    That is the limit that was set; else the memory that Ray was asked for; else 80 % of the machine or of the
    container, divided by the number of members, as if all of them ran on one machine.
    """
    if settings.memory_limit is not None:
        return settings.memory_limit
    asked = (settings.ray_actor_options or {}).get("memory")
    if asked is not None:
        return int(asked)
    return int(_MACHINE_SHARE * _machine_bytes() / settings.members)


def kernel_memory_of(settings: ClusterSettings) -> int | None:
    """The bytes that the duckdb kernel of a member may take; None for DuckDB's default."""
    if settings.kernel_memory_bytes_max is not None or settings.memory_limit is None:
        return settings.kernel_memory_bytes_max
    return settings.memory_limit // KERNEL_SHARE


class MemoryAdmission:
    """Refuses rows that would not fit. Lives on the member's event loop.

    Args:
        limit_bytes: The memory of the member without the share of the kernel.
        table_bytes: Counts the bytes of all tables and of what snapshots keep of them; microseconds per partition.
        other_bytes: The bytes of staged rows and results; cheap.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        limit_bytes: int,
        table_bytes: Callable[[], int],
        other_bytes: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit_bytes = limit_bytes
        self._table_bytes = table_bytes
        self._other_bytes = other_bytes
        self._clock = clock
        self._counted_bytes = 0
        self._written_bytes = 0
        self._count_after_s = -math.inf
        self._counted_s = -math.inf

    @property
    def used_bytes(self) -> int:
        """The bytes that are taken now."""
        started_s = self._clock()
        self._counted_bytes, self._written_bytes = self._table_bytes(), 0
        ended_s = self._clock()
        self._counted_s = ended_s
        self._count_after_s = ended_s + max(_COUNT_EVERY_S, _COUNT_SHARE * (ended_s - started_s))
        return self._counted_bytes + self._other_bytes()

    def check(self, asked_bytes: int, what: str) -> None:
        """Check that more bytes fit.

        Tables are counted now and then, and before rows are refused: rows written since are taken as new ones.

        Raises:
            LimitExceededError: They do not fit.
        """
        known = self._counted_bytes + self._written_bytes + self._other_bytes()
        if known + asked_bytes <= self.limit_bytes and self._clock() < self._count_after_s:
            return
        used = self.used_bytes
        if used + asked_bytes > self.limit_bytes:
            raise LimitExceededError(
                f"{what} takes {asked_bytes:,} bytes, and the member holds {used:,} of at most {self.limit_bytes:,}"
                " bytes of rows (its memory_limit without the share of the kernel): nothing was written. Delete rows,"
                " add members, or start the cluster with a larger memory_limit",
                limit="memory_limit",
                asked_bytes=asked_bytes,
                used_bytes=used,
                limit_bytes=self.limit_bytes,
            )

    def write(self, written_bytes: int, what: str) -> None:
        """Rows are about to be written into a table.

        Raises:
            LimitExceededError: They do not fit.
        """
        known = self._counted_bytes + self._written_bytes + self._other_bytes() + written_bytes
        is_far = known <= self.limit_bytes // _FAR_SHARE and self._clock() < self._counted_s + _COUNT_FAR_S
        if not is_far:
            self.check(written_bytes, what)
        self._written_bytes += written_bytes


def _machine_bytes() -> int:
    """The memory of the machine, or of the container if that has less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no such file, or the word "max"
        return min(machine, int(_CGROUP_LIMIT.read_text()))
    return machine
