"""The latest events of a cluster: who came, who was lost, what was moved."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

_KEPT_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """One event.

    Attributes:
        time: When, in UTC.
        kind: What has happened.
        member: The member concerned; None for none.
        detail: More about it, for people.
    """

    time: datetime
    kind: str
    member: str | None
    detail: str


class EventLog:
    """Keeps the latest events of a cluster, in order."""

    def __init__(self) -> None:
        self._events: deque[ClusterEvent] = deque(maxlen=_KEPT_MAX)

    def add(self, kind: str, member: str | None, detail: str) -> None:
        """Something has happened now."""
        self._events.append(ClusterEvent(datetime.now(UTC).replace(tzinfo=None), kind, member, detail))

    def latest(self) -> list[ClusterEvent]:
        """The events, oldest first; at most 10,000."""
        return list(self._events)
