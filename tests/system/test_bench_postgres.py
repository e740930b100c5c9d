"""The comparison with PostgreSQL and Redis from end to end, with those of them that are installed."""

from __future__ import annotations

import json
import multiprocessing
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.beside_postgres import __main__ as suite
from benchmarks.beside_postgres.lines import LINES
from benchmarks.beside_postgres.measuring import compare
from benchmarks.beside_postgres.on_duckdb import reference
from benchmarks.beside_postgres.report import bars_of
from benchmarks.installed_servers import NotInstalledError, postgres_server, redis_server

ROWS = 2_000
READS = [line for line in LINES if not line.written]


@pytest.mark.slow
def test_a_run_of_what_is_installed_measures_every_line_and_leaves_nothing(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    quick = ["--rows", str(ROWS), "--rounds", "2", "--seconds", "0.01", "--clients", "2", "--runtime", "embedded"]
    assert suite.main([*quick, "--json", str(record)]) == 0
    written = json.loads(record.read_text())
    assert written["conditions"]["pin"] == "no", "members in the process of the client cannot have another processor"
    assert set(written["missing"]) <= {"PostgreSQL", "Redis"}
    ours = {f"{line.name}: secateur" for line in LINES}
    assert ours <= set(written["p50_us"])
    assert all(len(rounds) == 2 and min(rounds) > 0 for rounds in written["p50_us"].values())
    assert {f"{line.name}: secateur" for line in READS} <= set(written["calls_per_s_of_2_clients"])
    for name in {"PostgreSQL", "Redis"} - set(written["missing"]):
        assert any(key.endswith(f": {name}") for key in written["p50_us"])
    assert multiprocessing.active_children() == []
    if written["missing"]:
        pytest.skip(f"compared without {written['missing']}")


def test_a_wrong_answer_ends_the_run() -> None:
    with reference(ROWS) as right:
        wrong: Mapping[Any, Any] = {**right, "get": lambda sql, key: []}
        compare(READS, {"right": right}, right, ROWS)
        with pytest.raises(SystemExit, match=r"get of .*: wrong gives"):
            compare(READS, {"right": right, "wrong": wrong}, right, ROWS)


@pytest.mark.slow
def test_a_write_that_is_lost_ends_the_run() -> None:
    changes = [line for line in LINES if line.written]
    with reference(ROWS) as right, reference(ROWS) as other:
        compare(changes, {"other": other}, right, ROWS)
    with reference(ROWS) as right, reference(ROWS) as other:
        lost: Mapping[Any, Any] = {**other, "put": lambda sql, row: []}
        with pytest.raises(SystemExit, match=r"just written of .*: lost gives"):
            compare(changes, {"lost": lost}, right, ROWS)


def test_a_bar_is_held_against_its_control_and_absent_without_one() -> None:
    times_us = {
        ("row by key", "secateur"): [90.0, 95.0, 500.0],
        ("row by key", "PostgreSQL"): [100.0],
        ("count and sum of a customer", "secateur"): [100.0],
        ("IN of 5 customers", "secateur"): [210.0],
        ("get", "secateur"): [50.0],
    }
    bars = bars_of(times_us)
    assert {name: (bar.ratio, bar.met) for name, bar in bars.items()} == {
        "row by key": (0.95, True),
        "IN of 5 customers": (2.1, False),
    }


@pytest.mark.parametrize("server", [postgres_server, redis_server])
def test_a_server_ends_with_what_fails_beside_it(server: Any) -> None:
    ports = []

    def fails() -> None:
        with server() as port:
            socket.create_connection(("127.0.0.1", port)).close()
            ports.append(port)
            raise KeyboardInterrupt

    try:
        with pytest.raises(KeyboardInterrupt):
            fails()
    except NotInstalledError as error:
        pytest.skip(str(error))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", ports[0]))
