"""Tells the other copies of partitions that are written to up to which change all of them have come.

Then they need not keep those changes any more. A write tells it too, so only the last ones need a notice of their own:
it is sent once for many partitions, a moment after the last copy has confirmed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Mapping

from secateur.cluster.background_tasks import BackgroundTasks
from secateur.cluster.member.replication.replica import Replica
from secateur.cluster.peers import Peers
from secateur.errors import Error
from secateur.protocol.changes import TellSettled


class SettledNotices:
    """Sends the notices. Lives on the member's event loop.

    Args:
        replicas: The copies here, by table and partition.
        peers: The other members.
        background: Runs what is sent.
        after_s: Seconds between a confirmation and the notice.
    """

    def __init__(
        self, replicas: Mapping[tuple[int, int], Replica], peers: Peers, background: BackgroundTasks, after_s: float
    ) -> None:
        self._replicas = replicas
        self._peers = peers
        self._background = background
        self._after_s = after_s
        self._untold: set[tuple[int, int]] = set()
        self._telling: asyncio.TimerHandle | None = None

    def tell_later(self, key: tuple[int, int]) -> None:
        """A copy of a partition has confirmed a change."""
        self._untold.add(key)
        if self._telling is None:
            self._telling = asyncio.get_running_loop().call_later(self._after_s, self._tell)

    def forget(self, key: tuple[int, int]) -> None:
        """A partition is gone."""
        self._untold.discard(key)

    def close(self) -> None:
        """Tell nothing more."""
        if self._telling is not None:
            self._telling.cancel()

    def _tell(self) -> None:
        self._telling = None
        untold, self._untold = self._untold, set()
        copies: defaultdict[str, list[tuple[int, int, int, int]]] = defaultdict(list)
        for key in untold:
            replica = self._replicas.get(key)
            if replica is not None and replica.is_open:
                for member in replica.others:
                    copies[member].append((*key, replica.term, replica.settled))
        for member, told in copies.items():
            self._background.start(self._tell_member(member, told))

    async def _tell_member(self, member: str, copies: list[tuple[int, int, int, int]]) -> None:
        with contextlib.suppress(Error):  # the next write tells it
            await self._peers.call(member, TellSettled(copies))
