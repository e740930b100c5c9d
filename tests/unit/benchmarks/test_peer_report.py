"""The tables and the picture of the suite of peers."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import Any

from benchmarks.peers.measuring import Findings, saturation_per_s
from benchmarks.peers.picture import latency_svg
from benchmarks.peers.report import markdown
from benchmarks.peers.summary import Cell


def cell(candidate: str, statement: str = "row by key", **changed: Any) -> Cell:
    given: dict[str, Any] = {
        "clients": 1,
        "offered_per_s": None,
        "calls": 900,
        "p50_us": 250.4,
        "p50_low_us": 240.0,
        "p50_high_us": 300.0,
        "p95_us": 400.0,
        "p99_us": 1500.0,
        "per_s": 3600.0,
        "echo_us": 50.0,
        "client_us": 90.0,
        "members_us": 160.0,
        "bytes_moved": 380.0,
    }
    return Cell(candidate, statement, **{**given, **changed})


def test_tables_have_a_row_for_each_statement_and_a_column_for_each_candidate() -> None:
    found = Findings(
        cells=[
            cell("echo", p50_us=50, echo_us=None),
            cell("secateur, Python"),
            cell("Peer, Java", "GROUP BY of everything", p50_us=1234.6),
            cell("secateur, Python", clients=8, per_s=5000, p50_us=1500),
            cell("secateur, Python", clients=8, offered_per_s=1000, per_s=999),
        ],
        not_available={"slow": "pip failed"},
    )
    found.cannot["Peer, Java"]["row by key"] = "no such thing"
    found.touched["secateur, Python"]["row by key"] = 1.0
    lines = markdown(found, 1_000_000, 3, (0.4, 1.6)).splitlines()
    assert lines[0] == "1,000,000 rows, 3 members of each peer, load average 0 at the beginning and 2 at the end."
    assert "|  | echo | secateur, Python | Peer, Java |" in lines
    assert "| row by key | 50 | 250 (5) |  |" in lines
    assert "| GROUP BY of everything |  |  | 1,235 (25) |" in lines
    assert "| row by key | 400 / 1,500 | 400 / 1,500 |  |" in lines
    assert "| row by key | 380 | 380 |  |" in lines
    assert "| row by key | 5,000; 1,500 / 1,500 |" in lines
    assert "| row by key | secateur, Python | 1,000 | 999 | 250 | 400 | 1,500 |" in lines
    assert "| row by key | 1.0 |" in lines
    assert "slow is not available: pip failed" in lines
    assert "Peer, Java, row by key: no such thing" in lines


def test_saturation_is_the_most_of_closed_loops() -> None:
    cells = [
        cell("a", per_s=100),
        cell("a", per_s=700, clients=8),
        cell("a", per_s=600, clients=32),
        cell("a", per_s=900, clients=8, offered_per_s=900),
        cell("b", per_s=5000),
    ]
    assert saturation_per_s(cells, "a", "row by key") == 700
    assert saturation_per_s(cells, "c", "row by key") is None


def test_the_picture_has_a_bar_for_each_candidate_and_longer_ones_for_longer_times() -> None:
    picture = ElementTree.fromstring(
        latency_svg(
            [
                cell("echo", p50_us=50),
                cell("secateur, Python"),
                cell("<slow> & odd", p50_us=90_000),
                cell("secateur, Python", clients=8),
            ]
        )
    )
    bars = [float(bar.attrib["width"]) for bar in picture.findall(".//{*}rect")][1:]
    texts = ["".join(text.itertext()) for text in picture.findall(".//{*}text")]
    assert bars == sorted(bars)
    assert len(bars) == 3
    assert texts == ["row by key: p50, us", "echo", "50", "secateur, Python", "250", "<slow> & odd", "90,000"]


def test_a_run_without_times_has_an_empty_picture() -> None:
    assert not ElementTree.fromstring(latency_svg([])).findall(".//{*}text")
