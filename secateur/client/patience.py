"""What a client does between two tries of a statement, while the cluster changes: it learns the owners, has the plan made again, and waits a little longer."""

from __future__ import annotations

import time
from typing import Final

from secateur.client.lost_members import LostMembers
from secateur.client.session import Session
from secateur.errors import Error, MemberLostError, PartitionLostError

__all__ = ["Patience"]

_RETRY_S: Final = 10.0
"""How long a statement follows a cluster in change: a lost member is noticed within seconds."""
_PAUSE_MIN_S: Final = 0.02
_PAUSE_MAX_S: Final = 0.5


class Patience:
    """The tries of one statement, from now on for at most 10 s.

    Args:
        session: Whose picture of the cluster may be out of date.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._deadline_s = time.monotonic() + _RETRY_S
        self._pause_s = _PAUSE_MIN_S
        self._moved = False
        self._lost = LostMembers("statement", session.is_gone)

    def learn(self, error: Error) -> bool:
        """Refresh the owners after a try that failed.

        Args:
            error: How it failed: a copy that is lost, or what a picture of the cluster that is out of date leads to.

        Returns:
            Whether the plan may be stale too: make it again, then :meth:`pause`. If not, the statement may be tried again at once.

        Raises:
            Error: That error: the time is over, or the lost copy is lost in the newest picture as well.
            MemberLostError: The statement has cost too many members; see :mod:`~secateur.client.lost_members`.
        """
        if isinstance(error, MemberLostError):
            member = self._session.member_named_by(error)
            if member is not None:
                self._lost.note(member, error)
        stale_plan = not isinstance(error, PartitionLostError)
        if stale_plan and time.monotonic() >= self._deadline_s:
            raise error
        known = self._session.topology.version
        self._moved = self._session.refresh_topology().version != known
        if error.details.get("lease_ended"):  # the member will hear from its cluster again, or others take its place; the plan is as good as it was
            self.pause()
            return False
        if not stale_plan and not self._moved:
            raise error
        return stale_plan

    def pause(self) -> None:
        """Wait, each time longer, unless the owners have changed."""
        if not self._moved:
            time.sleep(self._pause_s)
            self._pause_s = min(self._pause_s * 2, _PAUSE_MAX_S)
