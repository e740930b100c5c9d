"""The threads of a member beside its event loop."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Final

from secateur.cluster.loop_thread import threads_end
from secateur.cluster.settings import ClusterSettings
from secateur.engine.threads import ElasticThreads, is_long_over, lower_priority
from secateur.wire import PeerInfo

QUICK_THREADS_MAX: Final = 16
_CHANGING_THREADS_MAX: Final = 8
"""Calls that turn out to be long count as well."""


class MemberThreads:
    """Kernel calls by kind, so that long ones wait for each other, and the others do not wait for these.

    Args:
        member_id: The member, for the names of the threads.

    Attributes:
        long: Few, for kernel calls over many rows: these wait for each other. They, and the stages of jobs, leave the
            cores to the event loop and to short statements.
        staged: For the stages of jobs, and for calls over many rows where there are tenants: admission lets few of them
            run, and a tenant that has just come finds a thread.
        quick: For kernel calls over few rows.
        changing: For what writes wait for, whatever it reads.
    """

    def __init__(self, member_id: str, settings: ClusterSettings) -> None:
        kernel, count = f"secateur-{member_id}-kernel", settings.kernel_threads
        self.long = ThreadPoolExecutor(count, thread_name_prefix=kernel, initializer=lower_priority)
        self.staged = ElasticThreads(f"{kernel}-stage", count, QUICK_THREADS_MAX, initializer=lower_priority)
        self.quick = ElasticThreads(f"{kernel}-quick", count, QUICK_THREADS_MAX)
        self.changing = ElasticThreads(f"{kernel}-change", count, _CHANGING_THREADS_MAX)

    def of(self, rows: int, peer: PeerInfo) -> Executor:
        """The executor for one call of a peer over so many rows."""
        if peer is THIS_MEMBER:
            return self.changing
        if not is_long_over(rows):
            return self.quick
        return self.staged if peer.tenant else self.long

    async def end(self) -> None:
        """Accept no more work, and wait a while for what runs."""
        await asyncio.gather(*(threads_end(threads) for threads in (self.long, self.staged, self.quick, self.changing)))


THIS_MEMBER: Final = PeerInfo(0, "", "this member", True)
"""The peer of a query that this member asks itself, for a change."""
