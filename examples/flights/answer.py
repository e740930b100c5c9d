"""Asking a question: its answer, what it took, how long it takes with pruning on and off, and whether DuckDB agrees."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

import duckdb
import pyarrow as pa

from examples.flights.questions import Question
from secateur import Connection

__all__ = ["Answer", "Oracle", "WrongAnswerError", "ask"]

_WARM_UP_RUNS: Final = 5
_TIMED_RUNS: Final = 41
# Sums of floats depend on the order of the rows; everything else is compared exactly.
_FLOAT_TOLERANCE: Final = 1e-9


class WrongAnswerError(Exception):
    """An answer differs from DuckDB's, or a member took part that owns nothing of what was asked."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a question gave.

    Attributes:
        columns: Names of the result's columns.
        rows: The result.
        execution: ``none``, ``local`` or ``distributed``.
        members: Members that received a frame for it, of how many.
        partitions: Partitions read, of how many.
        explain: The text of EXPLAIN.
        pruned_ms: Median over the timed runs with pruning on, from the call to the last row.
        unpruned_ms: The same with ``SET pruning = off``.
    """

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    execution: str
    members: tuple[int, int]
    partitions: tuple[int, int]
    explain: str
    pruned_ms: float
    unpruned_ms: float


class Oracle:
    """Plain DuckDB over the same cleaned tables."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self._database = duckdb.connect()
        for name, table in tables.items():
            self._database.register(f"{name}_arrow", table)
            self._database.execute(f"CREATE TABLE {name} AS FROM {name}_arrow")

    def rows(self, question: Question) -> list[tuple[Any, ...]]:
        return list(self._database.execute(question.sql, list(question.parameters)).fetchall())

    def close(self) -> None:
        self._database.close()


def ask(pruned: Connection, unpruned: Connection, oracle: Oracle, question: Question) -> Answer:
    """Ask, compare with the oracle, then take times.

    Args:
        pruned: A connection as it comes.
        unpruned: A connection on which ``SET pruning = off`` was executed.
        oracle: The same tables in DuckDB.
        question: What to ask.

    Raises:
        WrongAnswerError: Rows differ from DuckDB's, or more members were touched than own what was asked.
    """
    expected = oracle.rows(question)
    for connection, how in ((unpruned, "with pruning off"), (pruned, "with pruning on")):
        cursor = connection.execute(question.sql, question.parameters)
        rows = cursor.fetchall()
        if not _same(rows, expected):
            raise WrongAnswerError(
                f"{question.title} {how}: {len(rows)} rows that differ from DuckDB's {len(expected)}: {rows[:3]}"
                f" against {expected[:3]}"
            )
    # The plan is cached by now, so this run touches only whom it needs.
    cursor = pruned.execute(question.sql, question.parameters)
    stats = cursor.stats
    assert stats is not None, "every SELECT has statistics"
    owners = _owners(pruned, question)
    if owners is not None and stats.members_touched > len(owners):
        raise WrongAnswerError(
            f"{question.title}: touched {stats.members_touched} members, but only {sorted(owners)} own what was asked"
        )
    pruned_ms, unpruned_ms = _medians_ms(pruned, unpruned, question)
    return Answer(
        columns=tuple(column[0] for column in cursor.description or ()),
        rows=cursor.fetchall(),
        execution=stats.execution,
        members=(stats.members_touched, stats.members_total),
        partitions=(stats.partitions_read, stats.partitions_total),
        explain=str(pruned.explain(question.sql, question.parameters)),
        pruned_ms=pruned_ms,
        unpruned_ms=unpruned_ms,
    )


def _owners(connection: Connection, question: Question) -> set[str] | None:
    """The members that own the question's aircraft; None when it is about all of them.

    Both tables are partitioned alike, so one answers for both.
    """
    if question.aircraft is None:
        return None
    flights = connection.table("flights")
    return {flights.owner_of(flights.partition_of({"tailnum": tailnum})) for tailnum in question.aircraft}


def _medians_ms(pruned: Connection, unpruned: Connection, question: Question) -> tuple[float, float]:
    # In turns, so that a busy moment of the machine hits both.
    times_ms: tuple[list[float], list[float]] = ([], [])
    for run in range(_WARM_UP_RUNS + _TIMED_RUNS):
        for connection, taken in zip((pruned, unpruned), times_ms, strict=True):
            started = time.perf_counter()
            connection.execute(question.sql, question.parameters).fetchall()
            if run >= _WARM_UP_RUNS:
                taken.append((time.perf_counter() - started) * 1000)
    return median(times_ms[0]), median(times_ms[1])


def _same(rows: Sequence[tuple[Any, ...]], expected: Sequence[tuple[Any, ...]]) -> bool:
    return len(rows) == len(expected) and all(
        len(row) == len(other) and all(_equal(value, wanted) for value, wanted in zip(row, other, strict=True))
        for row, other in zip(rows, expected, strict=True)
    )


def _equal(value: Any, wanted: Any) -> bool:
    if isinstance(value, float) and isinstance(wanted, float):
        return math.isclose(value, wanted, rel_tol=_FLOAT_TOLERANCE)
    return type(value) is type(wanted) and bool(value == wanted)
