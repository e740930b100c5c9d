"""The threads of a member beside its event loop."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from secateur.cluster.loop_thread import threads_end
from secateur.cluster.member.statements.local_execution import LocalExecution
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
        settings: The settings of the cluster.

    Attributes:
        long: For kernel calls over many rows. They, and the stages of jobs, leave the cores to the event loop and to
            short statements.
        staged: For the stages of jobs.
        quick: For kernel calls over few rows.
        changing: For what writes wait for.
    """

    def __init__(self, member_id: str, settings: ClusterSettings) -> None:
        kernel, count = f"secateur-{member_id}-kernel", settings.kernel_threads
        self.long = ThreadPoolExecutor(count, thread_name_prefix=kernel, initializer=lower_priority)
        self.staged = ElasticThreads(f"{kernel}-stage", count, QUICK_THREADS_MAX, initializer=lower_priority)
        self.quick = ElasticThreads(f"{kernel}-quick", count, QUICK_THREADS_MAX)
        self.changing = ElasticThreads(f"{kernel}-change", count, _CHANGING_THREADS_MAX)

    async def end(self) -> None:
        """Accept no more work, and wait a while for what runs."""
        await asyncio.gather(*(threads_end(threads) for threads in (self.long, self.staged, self.quick, self.changing)))


THIS_MEMBER: Final = PeerInfo(0, "", "this member", True)
"""The peer of a query that this member asks itself, for a change."""


@dataclass(frozen=True, slots=True)
class StatementThreads:
    """The threads in which a member runs kernel calls of statements.

    Attributes:
        long: Few, for calls over many rows: these wait for each other.
        quick: For calls over few rows.
        changing: For the queries of changes, whatever they read: writes wait until they have ended.
        shared: For calls over many rows where there are tenants: admission lets few of them run, and a tenant that has
            just come finds a thread.
    """

    long: Executor
    quick: Executor
    changing: Executor
    shared: Executor

    def of(self, call: LocalExecution, peer: PeerInfo) -> Executor:
        """The executor for one call of a peer."""
        if peer is THIS_MEMBER:
            return self.changing
        if peer.tenant:
            return self.shared if is_long_over(call.rows) else self.quick
        return self.long if is_long_over(call.rows) else self.quick
