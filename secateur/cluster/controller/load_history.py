"""The loads of a cluster for ``secateur.loads``: those under way, and the newest that were published."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from secateur.protocol.changes import StagedLoads, StreamBatch

_PUBLISHED_MAX: Final = 1_000


class LoadState(StrEnum):
    """The state of a load."""

    STAGED = "staged"
    """Its rows arrive, or wait; no statement sees them."""
    PUBLISHING = "publishing"
    """Some member has prepared it."""
    PUBLISHED = "published"
    """All of its rows are visible."""


@dataclass(frozen=True, slots=True)
class LoadStatus:
    """One load.

    Attributes:
        load_id: The load.
        table_id: Its table.
        state: How far it is.
        rows: Rows that it has brought; while they are staged, those of failed attempts count as well.
        partitions: Partitions that they are in.
        started_s: When its first rows arrived, in seconds since 1970.
        elapsed_s: Seconds since then; of a published load, until all its members had its rows ready.
        stream: The batch of a stream that it has brought; None for any other load, and until it is published.
    """

    load_id: str
    table_id: int
    state: LoadState
    rows: int
    partitions: int
    started_s: float
    elapsed_s: float
    stream: StreamBatch | None = None


class LoadHistory:
    """Remembers published loads; lives on the controller's event loop.

    Args:
        clock: Seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._published: OrderedDict[str, LoadStatus] = OrderedDict()

    def published(
        self,
        load_id: str,
        table_id: int,
        *,
        rows: int,
        partitions: int,
        age_s: float,
        stream: StreamBatch | None = None,
    ) -> None:
        """A load was published whose first rows arrived ``age_s`` seconds ago."""
        started_s = self._clock() - age_s
        self._published[load_id] = LoadStatus(
            load_id, table_id, LoadState.PUBLISHED, rows, partitions, started_s, age_s, stream
        )
        if len(self._published) > _PUBLISHED_MAX:
            self._published.popitem(last=False)

    def statuses(self, told: Iterable[StagedLoads]) -> list[LoadStatus]:
        """All loads, those that began first in front, of what each member has under way.

        A partition has its rows on each member that keeps a copy; they count once.
        """
        rows: dict[str, dict[int, int]] = {}
        found: dict[str, LoadStatus] = {}
        now_s = self._clock()
        for load in (load for answer in told for load in answer.loads):
            if load.load_id in self._published:
                continue  # a member has not published it yet, or has told so before it did
            parts = rows.setdefault(load.load_id, {})
            for partition, count in load.parts:
                parts[partition] = max(count, parts.get(partition, 0))
            before = found.get(load.load_id)
            started_s = min(now_s - load.age_s, now_s if before is None else before.started_s)
            is_prepared = load.is_prepared or (before is not None and before.state is LoadState.PUBLISHING)
            found[load.load_id] = LoadStatus(
                load.load_id,
                load.table_id,
                LoadState.PUBLISHING if is_prepared else LoadState.STAGED,
                sum(parts.values()),
                sum(count > 0 for count in parts.values()),
                started_s,
                now_s - started_s,
            )
        return sorted([*found.values(), *self._published.values()], key=lambda status: status.started_s)
