"""From the times of calls to what the report says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

__all__ = ["Cell", "Round", "quantile", "summarised"]


@dataclass(frozen=True, slots=True)
class Cell:
    """What was measured of one statement of one candidate under one load.

    Attributes:
        candidate: Peer and client.
        statement: Its name.
        clients: Client processes; threads of one process for Java.
        offered_per_s: Calls a second that an open loop was due to make; None for a closed loop.
        calls: Calls timed, of all clients and rounds.
        p50_us: Median over the rounds of the round's median.
        p50_low_us: Smallest median of a round.
        p50_high_us: Largest median of a round.
        p95_us: Of all calls together.
        p99_us: Of all calls together.
        per_s: Answers a second of all clients; the median over the rounds.
        echo_us: Median of the control's rounds that ran before the rounds of this cell; None where none ran.
        client_us: Processor microseconds of the clients for a call.
        members_us: Those of the members; 0 where the peer runs in the client's process.
        bytes_moved: Bytes that clients and members have sent over TCP for a call; None where it is not known.
    """

    candidate: str
    statement: str
    clients: int
    offered_per_s: float | None
    calls: int
    p50_us: float
    p50_low_us: float
    p50_high_us: float
    p95_us: float
    p99_us: float
    per_s: float
    echo_us: float | None
    client_us: float
    members_us: float
    bytes_moved: float | None


@dataclass(frozen=True, slots=True)
class Round:
    """One round of one cell.

    Attributes:
        latencies_us: Of all calls of all clients.
        elapsed_s: From the common start to the last answer of the slowest client.
        client_s: Processor seconds of the clients.
        members_s: Those of the members.
        bytes_moved: Bytes sent over TCP by clients and members.
        echo_us: The median of the control right before.
    """

    latencies_us: Sequence[float]
    elapsed_s: float
    client_s: float
    members_s: float
    bytes_moved: int | None
    echo_us: float | None


def quantile(ascending: Sequence[float], share: float) -> float:
    """The smallest of the values that at least this share of them does not exceed (nearest rank).

    Args:
        ascending: At least one value.
        share: Above 0 and at most 1.
    """
    rank = -(-len(ascending) * share // 1)  # rounded up
    return ascending[max(0, int(rank) - 1)]


def summarised(
    candidate: str, statement: str, clients: int, offered_per_s: float | None, rounds: Sequence[Round]
) -> Cell:
    """What rounds of the same thing say together; at least one round, each with at least one call."""
    together = sorted(latency for one in rounds for latency in one.latencies_us)
    medians = [quantile(sorted(one.latencies_us), 0.5) for one in rounds]
    echoes = [one.echo_us for one in rounds if one.echo_us is not None]
    moved = [one.bytes_moved for one in rounds if one.bytes_moved is not None]
    calls = len(together)
    return Cell(
        candidate=candidate,
        statement=statement,
        clients=clients,
        offered_per_s=offered_per_s,
        calls=calls,
        p50_us=median(medians),
        p50_low_us=min(medians),
        p50_high_us=max(medians),
        p95_us=quantile(together, 0.95),
        p99_us=quantile(together, 0.99),
        per_s=median(len(one.latencies_us) / one.elapsed_s for one in rounds),
        echo_us=median(echoes) if echoes else None,
        client_us=1e6 * sum(one.client_s for one in rounds) / calls,
        members_us=1e6 * sum(one.members_s for one in rounds) / calls,
        bytes_moved=sum(moved) / calls if len(moved) == len(rounds) else None,
    )
