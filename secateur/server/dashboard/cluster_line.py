"""The line at the top of every page: members, what statements do and take, and memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from secateur.server.dashboard.readings import Readings

MEMBERS: Final = "SELECT * FROM secateur.members ORDER BY id"
ARRIVALS: Final = "SELECT * FROM secateur.events WHERE kind IN ('member_joined', 'member_lost') ORDER BY number"
_LATEST: Final = "SELECT * FROM secateur.history WHERE process = 'cluster' ORDER BY time DESC LIMIT 1"

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ClusterLine:
    """The numbers; None where nothing has been measured yet.

    Attributes:
        alive: Members that are not lost.
        members: Members, with the lost ones in whose place no other has come.
        suspected: Members that have been silent for a while.
        seconds: Those over which the six that follow were measured.
        statements_per_s: Statements that have ended, for each second, without those about the cluster itself.
        failed_per_s: Those of them that failed.
        percentiles_ms: The times at the members that 50, 95 and 99 % of the statements did not exceed.
        members_touched: The mean of the members that took part in a query.
        share_pruned: The queries that left a partition out, of those over several partitions.
        memory_used: Bytes, over all members.
        memory_limit: Bytes, over all members.
    """

    alive: int
    members: int
    suspected: int
    seconds: float | None
    statements_per_s: float | None
    failed_per_s: float | None
    percentiles_ms: tuple[float, ...] | None
    members_touched: float | None
    share_pruned: float | None
    memory_used: int
    memory_limit: int


def cluster_line_now(readings: Readings) -> ClusterLine:
    """The line as it is now. It blocks while the cluster is asked.

    Raises:
        Error: The cluster did not answer.
    """
    latest = readings.rows(_LATEST)
    lost = missing_members(readings.rows(ARRIVALS))
    return line_from(readings.rows(MEMBERS), len(lost), latest[0] if latest else None)


def line_from(members: Sequence[Row], missing: int, latest: Row | None) -> ClusterLine:
    """The line.

    Args:
        members: The rows of ``secateur.members``.
        missing: Lost members in whose place no other has come.
        latest: The newest row of the cluster in ``secateur.history``; None for none.
    """
    alive = [row for row in members if row["state"] != "lost"]
    ended = {} if latest is None else latest
    over_several = ended.get("pruned", 0) + ended.get("unpruned", 0)
    return ClusterLine(
        alive=len(alive),
        members=len(alive) + missing,
        suspected=sum(row["state"] == "suspect" for row in members),
        seconds=ended.get("seconds"),
        statements_per_s=ended["statements"] / ended["seconds"] if ended else None,
        failed_per_s=ended["failed"] / ended["seconds"] if ended else None,
        percentiles_ms=(ended["p50_ms"], ended["p95_ms"], ended["p99_ms"]) if ended.get("statements") else None,
        members_touched=ended["members_touched"] / ended["queries"] if ended.get("queries") else None,
        share_pruned=ended["pruned"] / over_several if over_several else None,
        memory_used=sum(row["memory_used"] for row in alive),
        memory_limit=sum(row["memory_limit"] or 0 for row in alive),
    )


def missing_members(arrivals: Sequence[Row]) -> list[Row]:
    """The events of lost members in whose place no other has come since: one that joins takes the place of the first.

    Args:
        arrivals: The events ``member_joined`` and ``member_lost``, the oldest first.
    """
    missing: list[Row] = []
    for event in arrivals:
        if event["kind"] == "member_lost":
            missing.append(event)
        elif missing:
            missing.pop(0)
    return missing
