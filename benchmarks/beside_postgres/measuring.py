"""Compares the answers of all systems, and times their calls in turn."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from benchmarks.beside_postgres.lines import Client, Line

__all__ = ["compare", "in_turn", "times_s"]

_COMPARED: Final = 40
_COMPARED_BATCHES: Final = 3
_WARM_UP_SHARE: Final = 0.3


def compare(lines: Sequence[Line], clients: Mapping[str, Client], reference: Client, rows: int) -> None:
    """Ask every system what the lines that read ask, after each line that writes if there are some.

    Raises:
        SystemExit: An answer differs from the reference's.
    """
    reads = [line for line in lines if not line.is_write]
    writes = [line for line in lines if line.is_write]
    if not writes:
        _compare(reads, clients, reference, rows)
    for line in writes:
        writers = {name: client for name, client in clients.items() if line.way in client}
        for argument in _compared(line, rows):
            for client in (reference, *writers.values()):
                client[line.way](line.sql, argument)
        _compare(reads, writers, reference, rows)


def _compare(lines: Sequence[Line], clients: Mapping[str, Client], reference: Client, rows: int) -> None:
    for line in lines:
        asked = {name: client[line.way] for name, client in clients.items() if line.way in client}
        for argument in _compared(line, rows):
            expected = sorted(reference[line.way](line.sql, argument))
            for name, ask in asked.items():
                found = sorted(ask(line.sql, argument))
                if found != expected:
                    raise SystemExit(
                        f"{line.name} of {argument}: {name} gives {found[:3]}, DuckDB {expected[:3]}: no times are"
                        " taken from wrong answers"
                    )


def _compared(line: Line, rows: int) -> list[Any]:
    return line.arguments(rows)[: _COMPARED if line.per == 1 else _COMPARED_BATCHES]


def in_turn(
    rounds: int, lines: Sequence[Line], clients: Mapping[str, Client], measured: Callable[[str, Line], float]
) -> dict[tuple[str, str], list[float]]:
    """Measure each line with each system that has it, one system after the other: the figure of each round."""
    found: dict[tuple[str, str], list[float]] = {}
    for _, line, name in itertools.product(range(rounds), lines, clients):
        if line.way in clients[name]:
            found.setdefault((line.name, name), []).append(measured(name, line))
    return found


def times_s(client: Client, line: Line, arguments: Sequence[Any], seconds: float) -> list[float]:
    """The seconds of each call for so long, after some that warm up; at least one."""
    call, sql, endless, taken_s = client[line.way], line.sql, itertools.cycle(arguments), list[float]()
    for limit_s in (seconds * _WARM_UP_SHARE, seconds):
        taken_s.clear()
        ended_s = time.perf_counter()
        stop_s = ended_s + limit_s
        while ended_s < stop_s or not taken_s:
            argument = next(endless)
            began_s = time.perf_counter()
            call(sql, argument)
            ended_s = time.perf_counter()
            taken_s.append(ended_s - began_s)
    return taken_s
