"""The report: a JSON file for programs, and tables in Markdown and a picture for people."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from benchmarks.peers.measuring import Findings, Plan, saturation_per_s
from benchmarks.peers.peer_list import Peer
from benchmarks.peers.picture import latency_svg
from benchmarks.peers.summary import Cell
from benchmarks.record import write_record

__all__ = ["markdown", "write_report"]

_LIBRARIES: Final = ("duckdb", "polars", "pyarrow", "pyspark", "ray")
_CONTROL_COLUMNS: Final = ("echo", "empty Ray call")


def write_report(
    folder: Path, plan: Plan, found: Findings, rows: int, members: int, load_averages: tuple[float, float]
) -> Path:
    """Write ``peers.json``, ``peers.md`` and ``peers.svg``.

    Returns:
        The tables.
    """
    folder.mkdir(parents=True, exist_ok=True)
    versions = _versions(plan.peers)
    measured = {
        "rows": rows,
        "members": members,
        "load_averages": load_averages,
        "peers": versions,
        "ready_s": found.ready_s,
        "not_available": found.not_available,
        "cannot": found.cannot,
        "touched": found.touched,
        "cells": [asdict(cell) for cell in found.cells],
    }
    write_record(folder / "peers.json", "peers", _LIBRARIES, measured, [])
    (folder / "peers.svg").write_text(latency_svg(found.cells))
    tables = folder / "peers.md"
    tables.write_text(markdown(found, rows, members, load_averages))
    return tables


def markdown(found: Findings, rows: int, members: int, load_averages: tuple[float, float]) -> str:
    """All tables of a run."""
    one = [cell for cell in found.cells if cell.clients == 1]
    conditions = (
        f"{rows:,} rows, {members} members of each peer, load average {load_averages[0]:.0f} at the beginning and"
        f" {load_averages[1]:.0f} at the end."
    )
    parts = [
        conditions,
        "One client, p50 in microseconds (of the echo right before):",
        _table(one, found, _of_echo),
        "One client, p95 / p99 in microseconds:",
        _table(one, found, lambda cell: f"{cell.p95_us:,.0f} / {cell.p99_us:,.0f}"),
        "One client, processor microseconds of the members + the client for a statement:",
        _table(one, found, lambda cell: f"{cell.members_us:,.0f} + {cell.client_us:,.0f}"),
    ]
    if any(cell.bytes_moved is not None for cell in one):
        parts += [
            "Bytes that clients and members send for a statement, where they have connections:",
            _table(one, found, lambda cell: "" if cell.bytes_moved is None else f"{cell.bytes_moved:,.0f}"),
        ]
    if found.touched:
        parts += ["Members' processes that receive something during a statement, on average:", _touched(found)]
    for clients in sorted({cell.clients for cell in found.cells if cell.clients > 1 and cell.offered_per_s is None}):
        closed = [cell for cell in found.cells if cell.clients == clients and cell.offered_per_s is None]
        parts += [
            f"{clients} clients in a closed loop, answers a second; p50 / p99 in microseconds:",
            _table(closed, found, lambda cell: f"{cell.per_s:,.0f}; {cell.p50_us:,.0f} / {cell.p99_us:,.0f}"),
        ]
    if any(cell.clients > 1 for cell in found.cells):
        parts += ["Saturation: the most answers a second of any number of clients:", _saturation(found)]
    if any(cell.offered_per_s is not None for cell in found.cells):
        parts += ["Open loop, times from when a call was due:", _open_loops(found.cells)]
    if found.ready_s:
        parts += [
            "Seconds until a peer had started and loaded: "
            + ", ".join(f"{name} {seconds:.0f}" for name, seconds in found.ready_s.items())
            + "."
        ]
    parts += [f"{name} is not available: {why}" for name, why in found.not_available.items()]
    parts += [
        f"{candidate}, {statement}: {why}"
        for candidate, whys in found.cannot.items()
        for statement, why in whys.items()
    ]
    return "\n\n".join(parts) + "\n"


def _of_echo(cell: Cell) -> str:
    times = "" if not cell.echo_us else f" ({cell.p50_us / cell.echo_us:,.0f})"
    return f"{cell.p50_us:,.0f}{times}"


def _table(cells: Sequence[Cell], found: Findings, text: Callable[[Cell], str]) -> str:
    """A row for each statement, a column for each candidate."""
    columns = list(dict.fromkeys(cell.candidate for cell in found.cells if cell in cells))
    statements = list(dict.fromkeys(cell.statement for cell in cells))
    texts = {(cell.statement, cell.candidate): text(cell) for cell in cells}
    return _lines(columns, [[name, *(texts.get((name, column), "") for column in columns)] for name in statements])


def _touched(found: Findings) -> str:
    columns = list(found.touched)
    statements = list(dict.fromkeys(name for counts in found.touched.values() for name in counts))
    return _lines(
        columns,
        [
            [name, *(f"{found.touched[one][name]:.1f}" if name in found.touched[one] else "" for one in columns)]
            for name in statements
        ],
    )


def _saturation(found: Findings) -> str:
    cells = [cell for cell in found.cells if cell.candidate not in _CONTROL_COLUMNS]
    columns = list(dict.fromkeys(cell.candidate for cell in cells if cell.clients > 1))
    rows = []
    for name in dict.fromkeys(cell.statement for cell in cells):
        rates = [saturation_per_s(cells, column, name) for column in columns]
        rows.append([name, *("" if rate is None else f"{rate:,.0f}" for rate in rates)])
    return _lines(columns, rows)


def _open_loops(cells: Sequence[Cell]) -> str:
    lines = [
        [
            cell.statement,
            cell.candidate,
            f"{cell.offered_per_s:,.0f}",
            f"{cell.per_s:,.0f}",
            f"{cell.p50_us:,.0f}",
            f"{cell.p95_us:,.0f}",
            f"{cell.p99_us:,.0f}",
        ]
        for cell in sorted(cells, key=lambda cell: (cell.statement, cell.candidate, cell.offered_per_s or 0))
        if cell.offered_per_s is not None
    ]
    return _lines(["candidate", "due a second", "answered a second", "p50, us", "p95, us", "p99, us"], lines)


def _lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = ["| " + " | ".join(["", *columns]) + " |", "|" + "---|" * (len(columns) + 1)]
    return "\n".join([*head, *("| " + " | ".join(row) + " |" for row in rows)])


def _versions(peers: Sequence[Peer]) -> dict[str, list[str]]:
    """What each peer was installed from, as it is pinned."""
    versions = {}
    for peer in peers:
        pins = [*(peer.jars.coordinates if peer.jars else ())]
        pins += [pin for client in peer.clients if client.venv for pin in client.venv.requirements]
        if pins:
            versions[peer.name] = pins
    if shutil.which("java") is not None:
        told = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
        versions["java"] = told.stderr.splitlines()[:1]
    return versions
