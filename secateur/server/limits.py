"""The bounds of the HTTP server: what it runs at once, and what it keeps for callers that come back for it."""

from __future__ import annotations

from dataclasses import dataclass

from secateur.tunable import check_tunables, tunable


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Bounds of one HTTP server.

    Raises:
        ProgrammingError: A number is out of bounds.
    """

    running_max: int = tunable(
        8,
        "statements",
        "statements that run at once, each in a thread with a connection of its own; further ones wait",
        "not measured: chosen as half of what one member runs by default, so that other clients have room",
        least=1,
        most=256,
    )
    waiting_max: int = tunable(
        256,
        "statements",
        "statements that wait for a thread; one more is refused, and may be repeated",
        "not measured: chosen so that a burst of a page that asks for many things at once fits",
    )
    system_running_max: int = tunable(
        2,
        "requests",
        "requests for system tables, plans, jobs and metrics that run at once, whatever the statements do",
        "not measured: chosen so that a page of the dashboard is not behind one slow answer",
        least=1,
        most=64,
    )
    tokens_max: int = tunable(
        64,
        "tokens",
        "tokens beside that of the server whose connections to the cluster are kept; those of the one that was used"
        " longest ago are closed first",
        "not measured: chosen so that their connections are fewer than a controller takes from one client",
        least=1,
        most=1000,
    )
    wait_s_max: float = tunable(
        60.0,
        "seconds",
        "how long a request waits for a statement or a job that has not ended",
        "chosen as the idle time after which proxies give up by default",
    )
    body_bytes_max: int = tunable(
        8 << 20,
        "bytes",
        "the body of a request",
        "chosen as the planner's bound on a statement with many parameters",
        least=1,
    )
    request_s_max: float = tunable(
        10.0,
        "seconds",
        "how long the headers of a request may take to arrive, and its body after them",
        "chosen so that the largest body may come with 0.8 MB a second",
        least=0.01,
    )
    page_rows_max: int = tunable(
        100_000,
        "rows",
        "rows of one JSON answer, whatever the request asks for",
        "not measured: chosen so that a page of narrow rows takes a few megabytes",
        least=1,
    )
    page_bytes_max: int = tunable(
        16 << 20,
        "bytes",
        "the rows of one JSON answer; the next page goes on where it ends",
        "not measured: chosen as what a browser parses in a moment",
        least=1,
    )
    result_bytes_max: int = tunable(
        256 << 20,
        "bytes",
        "the result of one statement; a larger one fails",
        "not measured: chosen as a quarter of what is kept",
        least=1,
    )
    kept_bytes_max: int = tunable(
        1 << 30,
        "bytes",
        "results that are kept, all together; the oldest are dropped first",
        "chosen as what a member holds for its clients by default",
        least=1,
    )
    kept_max: int = tunable(
        10_000,
        "statements",
        "statements that are known after they have ended; the oldest are forgotten first",
        "not measured: chosen so that the records of small statements take tens of megabytes",
        least=1,
    )
    kept_s: float = tunable(
        600.0,
        "seconds",
        "how long a statement and its result are kept after it has ended",
        "not measured: chosen so that a person who looks away for some minutes finds the result",
    )
    keys_max: int = tunable(
        100_000,
        "keys",
        "idempotency keys that are remembered; the oldest are forgotten first",
        "not measured: chosen so that they take tens of megabytes",
        least=1,
    )
    keys_kept_s: float = tunable(
        86_400.0,
        "seconds",
        "how long an idempotency key is remembered",
        "chosen as the day that payment interfaces promise",
    )

    metrics_share_max: float = tunable(
        0.02,
        "share",
        "the share of the time for which the cluster may be busy with the numbers of /metrics, which are read again"
        " only when that allows it; at the latest after 30 seconds, those of tables after 10 minutes",
        "chosen as what watching may cost",
        least=0.001,
        most=1,
    )
    page_share_max: float = tunable(
        0.02,
        "share",
        "the share of the time for which the cluster may be busy with one query of the dashboard, which is made again"
        " only when that allows it; at the latest after 15 seconds",
        "chosen as what watching may cost",
        least=0.001,
        most=1,
    )

    def __post_init__(self) -> None:
        check_tunables(self)
