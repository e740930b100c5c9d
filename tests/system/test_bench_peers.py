"""The suite of peers from end to end, with the peers that need no installation."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from benchmarks.peers.data import Answers, write_tables
from benchmarks.peers.environments import HERE, Venv
from benchmarks.peers.measuring import Findings, Plan, measure
from benchmarks.peers.peer_list import PEERS, Client, Peer
from benchmarks.peers.report import write_report
from benchmarks.peers.running import Setting
from benchmarks.peers.statements import STATEMENTS

ROWS = 2_000
WRONG = Peer("wrong", (Client("Wrong", "echo_control", alone=True),), service="echo_control")
ABSENT = Peer("absent", (Client("Absent", "duckdb_peer", venv=Venv("absent", ("-not-a-requirement-",))),))


@pytest.mark.ray
@pytest.mark.slow
def test_a_run_compares_measures_and_leaves_no_process(tmp_path: Path) -> None:
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    tables = write_tables(tmp_path / "data", ROWS)
    plan = Plan(
        peers=[PEERS["duckdb"], WRONG, ABSENT],
        values=10,
        rounds=2,
        seconds=0.05,
        warm_up_s=0.05,
        clients=[2],
        rates_per_s=[40],
        open_clients=2,
        only=["row by key", "join of two co-located tables", "upsert by INSERT OR REPLACE"],
    )
    found = Findings()
    measure(plan, Setting(tmp_path / "peers", tmp_path / "data", ROWS, 3), Answers(tables), found)

    one = {(cell.candidate, cell.statement) for cell in found.cells if cell.clients == 1}
    candidates = ("echo", "empty Ray call", "DuckDB, in process")
    assert one == {(name, statement) for name in candidates for statement in plan.only}
    assert all(0 < cell.p50_us <= cell.p95_us <= cell.p99_us for cell in found.cells)
    assert "DuckDB gives" in found.cannot["Wrong"]["row by key"], "an echo has no rows, so its times do not count"
    assert "pip failed" in found.not_available["Absent"] or "python failed" in found.not_available["Absent"]
    rates = {(cell.candidate, cell.offered_per_s) for cell in found.cells if cell.offered_per_s is not None}
    assert ("echo", 40) in rates
    echo = next(cell for cell in found.cells if cell.candidate == "echo" and cell.clients == 1)
    assert echo.members_us >= 0
    assert echo.bytes_moved is None or echo.bytes_moved == pytest.approx(400, rel=0.2)
    after = {process.pid for process in psutil.Process().children(recursive=True)}
    assert after <= before

    report = write_report(tmp_path, plan, found, ROWS, 3, (1.0, 1.0)).read_text()
    assert "Absent is not available" in report
    assert (tmp_path / "peers.json").exists()


def test_adapters_are_there() -> None:
    for peer in PEERS.values():
        for client in peer.clients:
            folder = "java" if client.jars else "adapters"
            assert (
                HERE / "benchmarks" / "peers" / folder / f"{client.adapter}{'.java' if client.jars else '.py'}"
            ).exists()
    assert len({statement.name for statement in STATEMENTS}) == len(STATEMENTS)
