"""Decides when the controller removes a silent member: a state machine without I/O.

Each member has its own clock of silence. It runs only while the controller itself does: the time between two checks
counts for at most twice their interval, so a controller that was suspended or starved does not take its own silence for
that of all members.

A member whose process is known to be gone is removed at once. One that is silent for too long, or has to be removed for
another reason, gets no further lease and is removed when the last one has certainly ended
(:mod:`~secateur.cluster.lease`).
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from secateur.cluster.lease import LeaseOutcome, LeaseTimes

_SUSPECT_SHARE = 0.4
"""The share of the silence limit after which a member is called suspect."""


@dataclass(slots=True)
class _Watched:
    """The state of one member.

    Attributes:
        promised_until_s: Until when it may hold a lease.
        silent_s: How long it has been silent.
        stalled_s: How long its event loop had not run when it reported last.
        is_condemned: Whether it gets no further lease.
    """

    promised_until_s: float
    silent_s: float = 0.0
    stalled_s: float = 0.0
    is_condemned: bool = False


class MemberWatch:
    """Watches all members of a cluster. All times are of one clock, the controller's own.

    Args:
        times: How long things last.
        stall_s: Seconds for which the event loop of a member may stand still, while its process goes on, before it is
            given up.
    """

    def __init__(self, times: LeaseTimes, stall_s: float) -> None:
        self._times = times
        self._stall_s = stall_s
        self._watched: dict[str, _Watched] = {}
        self._looked_s: float | None = None

    def joined(self, member: str, now_s: float) -> None:
        """A member is new in the cluster."""
        self._watched[member] = _Watched(now_s + self._times.promise_s)

    def left(self, member: str) -> None:
        """A member was given up."""
        self._watched.pop(member, None)

    def heard(self, member: str, now_s: float, *, stalled_s: float) -> LeaseOutcome:
        """A member asks for a lease.

        Args:
            member: Its id.
            now_s: Now.
            stalled_s: For how long its event loop has not turned.
        """
        watched = self._watched.get(member)
        if watched is None:
            return LeaseOutcome.GIVEN_UP
        watched.silent_s, watched.stalled_s = 0.0, stalled_s
        if stalled_s >= self._stall_s:
            watched.is_condemned = True
        if watched.is_condemned:
            return LeaseOutcome.REFUSED
        watched.promised_until_s = now_s + self._times.promise_s
        return LeaseOutcome.GRANTED

    def condemn(self, member: str) -> None:
        """The member has to be removed: it gets no further lease."""
        if member in self._watched:
            self._watched[member].is_condemned = True

    def is_condemned(self, member: str) -> bool:
        """Whether a member gets no further lease, or was removed."""
        watched = self._watched.get(member)
        return watched is None or watched.is_condemned

    def look(self, now_s: float) -> list[str]:
        """The members that may be given up now."""
        passed_s = 0.0 if self._looked_s is None else min(now_s - self._looked_s, 2 * self._times.interval_s)
        self._looked_s = now_s
        for watched in self._watched.values():
            watched.silent_s += passed_s
            watched.is_condemned |= watched.silent_s >= self._times.silence_s
        return [
            member
            for member, watched in self._watched.items()
            if watched.is_condemned and now_s >= watched.promised_until_s
        ]

    def suspects(self) -> Collection[str]:
        """The members that have been silent or stalled for long enough to wonder."""
        limit_s = _SUSPECT_SHARE * self._times.silence_s
        return {
            member
            for member, watched in self._watched.items()
            if watched.is_condemned or max(watched.silent_s, watched.stalled_s) >= limit_s
        }

    def why(self, member: str) -> str:
        """Why a member is given up, once :meth:`look` has named it."""
        watched = self._watched[member]
        if watched.silent_s >= self._times.silence_s:
            return f"silent for {watched.silent_s:.1f} s, and its lease has ended"
        if watched.stalled_s >= self._stall_s:
            return f"its event loop has stood still for {watched.stalled_s:.1f} s"
        return "it had to be removed, and its lease has ended"

    def silent_s(self, member: str) -> float:
        """Return how long a member has been silent; infinite for one that was removed."""
        watched = self._watched.get(member)
        return math.inf if watched is None else watched.silent_s
