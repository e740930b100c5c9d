"""Time of selective statements beside an empty Ray actor call, in alternating rounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa
import ray

from benchmarks.serving.orders import random_keys
from secateur import Connection

__all__ = ["CONTROL", "STATEMENTS", "LatencyResult", "Statement", "compare_answers", "measure_latency"]

CONTROL: Final = "empty Ray actor call"
_ROUNDS: Final = 7
_WARM_UP_RUNS: Final = 100
_ROUND_S_MAX: Final = 5.0
"""A candidate's round ends after this time, with the calls that it has made by then: statements without pruning take a
hundred times as long as pruned ones.
"""
_COMPARED_KEYS: Final = 50

Key = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of the benchmark.

    Attributes:
        name: How the report calls it.
        sql: Its text.
        parameters: From a customer and one of its orders to the parameters.
    """

    name: str
    sql: str
    parameters: Callable[[Key], Sequence[int]]


STATEMENTS: Final = (
    Statement(
        name="point lookup",
        sql="SELECT order_id, status, day, quantity, price FROM orders WHERE customer_id = ? AND order_id = ?",
        parameters=lambda key: key,
    ),
    Statement(
        name="per-key aggregate",
        sql=(
            "SELECT status, count(*) AS orders, sum(quantity) AS pieces, avg(price) AS mean FROM orders WHERE"
            " customer_id = ? GROUP BY status ORDER BY status"
        ),
        parameters=lambda key: key[:1],
    ),
)


@dataclass(frozen=True, slots=True)
class LatencyResult:
    """Times of one candidate.

    Attributes:
        name: Statement and setting, or the control.
        calls: Calls timed, over all rounds.
        p50_ms: Median over the rounds of the round's median.
        p50_low_ms: Smallest median of a round.
        p50_high_ms: Largest median of a round.
        p99_ms: Of all calls together.
        per_s: Calls divided by the time they took, one after the other.
    """

    name: str
    calls: int
    p50_ms: float
    p50_low_ms: float
    p50_high_ms: float
    p99_ms: float
    per_s: float


class _Idle:
    def nothing(self) -> None:
        return None


def compare_answers(pruned: Connection, unpruned: Connection, orders: pa.Table) -> None:
    """Compare both connections' answers with DuckDB's over the same rows.

    Raises:
        SystemExit: An answer differs, or a pruned statement touched more than one member.
    """
    with duckdb.connect() as oracle:
        oracle.execute("CREATE TABLE orders AS FROM orders")
        for statement in STATEMENTS:
            for key in random_keys(orders.num_rows, _COMPARED_KEYS, seed=1):
                parameters = statement.parameters(key)
                expected = oracle.execute(statement.sql, parameters).fetchall()
                for connection in (pruned, unpruned):
                    rows = connection.execute(statement.sql, parameters).fetchall()
                    if rows != expected:
                        raise SystemExit(
                            f"{statement.name} for {parameters} gave {rows}, DuckDB gives {expected}: no times are"
                            " taken from wrong answers"
                        )
            stats = pruned.execute(statement.sql, statement.parameters((0, 0))).stats
            if stats is None or stats.members_touched != 1:
                raise SystemExit(f"{statement.name} should touch one member: {stats}")


def measure_latency(
    pruned: Connection, unpruned: Connection, *, rows: int, calls: int, calls_unpruned: int
) -> list[LatencyResult]:
    """Time every statement on both connections, and the control.

    Args:
        pruned: A connection as it comes.
        unpruned: A connection with ``SET pruning = off``.
        rows: Rows of the table, to draw keys from.
        calls: Calls a round of each pruned statement and of the control.
        calls_unpruned: Calls a round of each unpruned statement, which takes longer.

    Returns:
        The control first, then statement by statement.
    """
    actor = ray.remote(num_cpus=0)(_Idle).remote()
    candidates: list[tuple[str, int, Callable[[Key], Any]]] = [
        (CONTROL, calls, lambda key: ray.get(actor.nothing.remote()))
    ]
    for statement in STATEMENTS:
        candidates.append((f"{statement.name}, pruned", calls, _asks(pruned, statement)))
        candidates.append((f"{statement.name}, pruning off", calls_unpruned, _asks(unpruned, statement)))
    times_ms: dict[str, list[np.ndarray[Any, np.dtype[np.float64]]]] = {name: [] for name, _, _ in candidates}
    try:
        for round_number in range(_ROUNDS):
            for name, count, call in candidates:
                keys = random_keys(rows, min(_WARM_UP_RUNS, count) + count, seed=round_number)
                times_ms[name].append(_times_ms(call, keys[:-count], keys[-count:]))
    finally:
        ray.kill(actor)
    return [_summary(name, rounds) for name, rounds in times_ms.items()]


def _asks(connection: Connection, statement: Statement) -> Callable[[Key], Any]:
    return lambda key: connection.execute(statement.sql, statement.parameters(key)).fetchall()


def _times_ms(
    call: Callable[[Key], Any], warm_up: Sequence[Key], keys: Sequence[Key]
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The milliseconds of each call, after calls to warm up that take at most as long as the timed ones may."""
    stop_s = time.perf_counter() + _ROUND_S_MAX
    for key in warm_up:
        call(key)
        if time.perf_counter() > stop_s:
            break
    ends = [time.perf_counter()]
    for key in keys:
        call(key)
        ends.append(time.perf_counter())
        if ends[-1] - ends[0] > _ROUND_S_MAX:
            break
    return np.diff(ends) * 1000


def _summary(name: str, rounds: Sequence[np.ndarray[Any, np.dtype[np.float64]]]) -> LatencyResult:
    medians = [float(np.median(times)) for times in rounds]
    together = np.concatenate(rounds)
    return LatencyResult(
        name=name,
        calls=len(together),
        p50_ms=float(np.median(medians)),
        p50_low_ms=min(medians),
        p50_high_ms=max(medians),
        p99_ms=float(np.quantile(together, 0.99)),
        per_s=len(together) / (float(together.sum()) / 1000),
    )
