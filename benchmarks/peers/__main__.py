"""Run the suite: ``python -m benchmarks.peers`` (``make bench-peers``)."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import Any, Final

from benchmarks.peers.data import Answers, write_tables
from benchmarks.peers.environments import HERE
from benchmarks.peers.measuring import Findings, Plan, measure
from benchmarks.peers.peer_list import PEERS
from benchmarks.peers.report import write_report
from benchmarks.peers.running import Setting
from benchmarks.peers.statements import STATEMENTS

__all__ = ["main"]

_BELOW: Final = HERE / "build" / "peers"


def main() -> int:
    """Measure, and write the record, the tables and the picture; of a run that is interrupted, what there is.

    Returns:
        0, also if peers were not available.
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers", description="The same statements on secateur and on its peers."
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the orders (default: %(default)s)")
    parser.add_argument("--members", type=int, default=3, help="members of each peer (default: %(default)s)")
    parser.add_argument(
        "--peers", type=_names, default=list(PEERS), help=f"names with commas between them, of {','.join(PEERS)}"
    )
    parser.add_argument("--statements", type=_names, default=[], help="names with commas between them (default: all)")
    parser.add_argument("--values", type=int, default=300, help="values of each statement (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of one client (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each loop (default: %(default)s)")
    parser.add_argument("--warm-up", type=float, default=3.0, help="seconds of each statement (default: %(default)s)")
    parser.add_argument("--clients", type=_numbers, default=[8, 32], help="beside one (default: 8,32; none: '')")
    parser.add_argument("--rates", type=_numbers, default=[250, 1000], help="of open loops (default: 250,1000)")
    parser.add_argument(
        "--to", type=Path, default=HERE / "build" / "bench", help="the folder of the report (default: build/bench)"
    )
    options = parser.parse_args()
    unknown = [*(set(options.peers) - set(PEERS)), *(set(options.statements) - {one.name for one in STATEMENTS})]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}")
    # A process that is told to end stops what it has started, as Ctrl-C does.
    signal.signal(signal.SIGTERM, _end)

    data = _BELOW / f"data-{options.rows}"
    tables = write_tables(data, options.rows)
    plan = Plan(
        peers=[PEERS[name] for name in options.peers],
        values=options.values,
        rounds=options.rounds,
        seconds=options.seconds,
        warm_up_s=options.warm_up,
        clients=options.clients,
        rates_per_s=options.rates,
        only=options.statements,
    )
    began_load = os.getloadavg()[0]
    found = Findings()
    try:
        measure(plan, Setting(_BELOW, data, options.rows, options.members), Answers(tables), found)
    finally:
        if found.cells:
            loads = (began_load, os.getloadavg()[0])
            print(write_report(options.to, plan, found, options.rows, options.members, loads).read_text())
    return 0


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _numbers(text: str) -> list[int]:
    return [int(number) for number in _names(text)]


def _end(_signal: int, _frame: Any) -> None:
    raise SystemExit(143)


if __name__ == "__main__":
    sys.exit(main())
