"""What a client does between two tries of a statement, while the cluster changes: it learns the owners, has the plan
made again, and waits a little longer.
"""

from __future__ import annotations

import time
from typing import Any, Final

from secateur.client.execution.lost_members import LostMembers
from secateur.client.execution.statement import Prepared
from secateur.client.session import Session, Sign
from secateur.errors import DeadlineError, Error, MemberLostError, PartitionLostError, UnreachableError

__all__ = ["RetryPolicy", "is_final", "planned_again", "wait_while_silent"]

_RETRY_S: Final = 10.0
"""How long a statement follows a cluster in change: a lost member is noticed within seconds."""
_PAUSE_MIN_S: Final = 0.02
_PAUSE_MAX_S: Final = 0.5


class RetryPolicy:
    """The tries of one statement, from now on for at most 10 s.

    Args:
        session: Whose view of the cluster may be out of date.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._deadline_s = time.monotonic() + _RETRY_S
        self._pause_s = _PAUSE_MIN_S
        self._moved = False
        self._lost = LostMembers("statement", session.is_gone)

    def learn(self, error: Error) -> bool:
        """Refresh the owners after a try that failed.

        A member that is silent is not asked again before it answers or others have taken its place.

        Args:
            error: How it failed: a copy that is lost, or what a view of the cluster that is out of date leads to.

        Returns:
            Whether the plan may be stale too: make it again, then :meth:`pause`. If not, the statement may be tried
            again at once.

        Raises:
            Error: That error: the time is over, another try cannot help, or the lost copy is lost in the newest
                topology as well.
            MemberLostError: The statement has cost too many members; see
                :mod:`~secateur.client.execution.lost_members`.
        """
        if is_final(error):
            raise error
        session = self._session
        member = session.member_named_by(error) if isinstance(error, (MemberLostError, UnreachableError)) else None
        if member is not None and isinstance(error, MemberLostError):
            self._lost.note(member, error)
        stale_plan = not isinstance(error, PartitionLostError)
        if stale_plan and time.monotonic() >= self._deadline_s:
            raise error
        known = session.topology.version
        session.refresh_topology()
        if member is not None:
            wait_while_silent(session, member, self._deadline_s)
        self._moved = session.topology.version != known
        if error.details.get(
            "lease_ended"
        ):  # the member will hear from its cluster again, or others take its place; the plan is as good as it was
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


def is_final(error: Error) -> bool:
    """Whether an error says that somebody is gone without whom the statement cannot go on: the controller, which nobody
    starts again.
    """
    return isinstance(error, UnreachableError) and not error.retry_safe


def wait_while_silent(session: Session, member_id: str, deadline_s: float) -> None:
    """Return when a member answers or has ended, when the owners are known to be others, or at the deadline.

    To ask a member that is silent once more would take as long as the first time. The cluster gives it up meanwhile,
    which the controller and the other members know, so they are asked in turn with a short look at the member itself.

    Args:
        session: Whose view of the cluster is refreshed.
        member_id: The member.
        deadline_s: On the clock of :func:`time.monotonic`.
    """
    while time.monotonic() < deadline_s and session.sign_of(member_id) is Sign.SILENT:
        session.refresh_topology()
        if session.control is not None:
            session.control.check()


def planned_again(session: Session, sql: str, params: list[Any] | dict[str, Any]) -> Prepared | None:
    """The plan of a statement, made anew; None while the controller is out of reach: then the old one is all there is,
    and may be as good as it was.

    Raises:
        Error: What the planner says of the statement by now.
    """
    try:
        return session.prepare_anew(sql, params)
    except (UnreachableError, MemberLostError, DeadlineError):
        if session.control is not None:
            session.control.check()
        return None
