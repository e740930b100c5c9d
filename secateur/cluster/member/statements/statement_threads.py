"""The threads in which a member runs kernel calls of statements."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final

from secateur.cluster.member.statements.local_execution import LocalExecution
from secateur.engine.sql.kernel_call import is_long_over
from secateur.wire import PeerInfo

THIS_MEMBER: Final = PeerInfo(0, "", "this member", True)
"""The peer of a query that this member asks itself, for a change."""


@dataclass(frozen=True, slots=True)
class StatementThreads:
    """The threads in which a member runs kernel calls of statements.

    Attributes:
        long: Few, for calls over many rows: these wait for each other.
        quick: For calls over few rows.
        changing: For the queries of changes, whatever they read: writes wait until they have ended.
    """

    long: Executor
    quick: Executor
    changing: Executor

    def of(self, call: LocalExecution, peer: PeerInfo) -> Executor:
        """The executor for one call of a peer."""
        if peer is THIS_MEMBER:
            return self.changing
        return self.long if is_long_over(call.rows) else self.quick
