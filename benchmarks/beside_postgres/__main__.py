"""Run the suite: ``python -m benchmarks.beside_postgres`` (``make bench-postgres``)."""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, Final

import benchmarks.beside_postgres as suite
from benchmarks.beside_postgres.client_processes import client_processes
from benchmarks.beside_postgres.lines import LINES, Line
from benchmarks.beside_postgres.measuring import compare, in_turn, times_s
from benchmarks.beside_postgres.on_duckdb import reference
from benchmarks.beside_postgres.report import bars_of, print_table
from benchmarks.installed_servers import NotInstalledError
from benchmarks.pinning import PINS, pinned, why_not_pinned
from benchmarks.record import write_record

__all__ = ["main"]

# Imported when their turn comes, as a client may be missing.
_SYSTEMS: Final = {
    "secateur": "benchmarks.beside_postgres.on_secateur",
    "PostgreSQL": "benchmarks.beside_postgres.on_postgres",
    "Redis": "benchmarks.beside_postgres.on_redis",
}


def main(arguments: list[str] | None = None) -> int:
    """Start, load, compare, measure, write the JSON, print the tables.

    Returns:
        0; with ``--check`` 1 if a bar was missed.
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.beside_postgres",
        description=suite.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="orders (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds in turn (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement (default: %(default)s)")
    parser.add_argument("--pin", choices=PINS, default="two", help="(default: %(default)s)")
    parser.add_argument("--clients", type=int, default=8, help="beside one; 0 leaves them out (default: %(default)s)")
    parser.add_argument("--runtime", choices=("ray", "embedded"), default="ray", help="(default: %(default)s)")
    parser.add_argument("--json", type=Path, default=Path("build/bench/beside_postgres.json"), help="the record")
    parser.add_argument("--check", action="store_true", help="fail when a bar is missed")
    options = parser.parse_args(arguments)
    if why := why_not_pinned(options.pin, options.runtime):
        _say(f"NOT PINNED, so that figures of two runs do not compare: {why}")
        options.pin = "no"
    with ExitStack() as open_:
        pin_client = open_.enter_context(pinned(options.pin))
        addresses, missing = _served(options, open_)
        pin_client()
        connects = {name: importlib.import_module(_SYSTEMS[name]).connect for name in addresses}
        clients = {name: open_.enter_context(connects[name](address)) for name, address in addresses.items()}
        duckdb = open_.enter_context(reference(options.rows))
        reads, changes = ([line for line in LINES if line.written is written] for written in (False, True))

        def p50_us(name: str, line: Line) -> float:
            taken_s = times_s(clients[name], line, line.arguments(options.rows), options.seconds)
            return 1e6 * median(taken_s) / line.per

        _say("Comparing and timing what is read")
        compare(reads, clients, duckdb, options.rows)
        times_us, rates = in_turn(options.rounds, reads, clients, p50_us), {}
        if options.clients:
            _say(f"Timing {options.clients} client processes")
            with ExitStack() as asking:
                rate = {
                    name: asking.enter_context(
                        client_processes(options.clients, connects[name], address, options.rows, options.seconds)
                    )
                    for name, address in addresses.items()
                }
                rates = in_turn(options.rounds, reads, clients, lambda name, line: rate[name](line))
        _say("Comparing and timing what is written")
        compare(changes, clients, duckdb, options.rows)
        times_us |= in_turn(options.rounds, changes, clients, p50_us)

    bars = bars_of(times_us)
    measured = {
        "conditions": {name: getattr(options, name) for name in ("rows", "rounds", "seconds", "pin", "runtime")},
        "missing": missing,
        "p50_us": {f"{line}: {name}": figures for (line, name), figures in times_us.items()},
        f"calls_per_s_of_{options.clients}_clients": {f"{line}: {name}": one for (line, name), one in rates.items()},
    }
    write_record(options.json, "beside_postgres", ("duckdb", "pyarrow", "ray"), measured, list(bars.values()))
    print_table("One client, p50 in microseconds", times_us, list(clients), bars)
    if rates:
        print_table(f"{options.clients} clients, calls a second", rates, list(clients), {})
    print(f"\nwritten to {options.json}")
    return int(options.check and not all(bar.met for bar in bars.values()))


def _served(options: argparse.Namespace, open_: ExitStack) -> tuple[dict[str, Any], dict[str, str]]:
    """Start and load every system that is here: the address of each, and why others are missing."""
    addresses, missing = {}, {}
    for name, module in _SYSTEMS.items():
        _say(f"Starting and loading {name}")
        try:
            with_runtime = (options.runtime,) if name == "secateur" else ()
            addresses[name] = open_.enter_context(importlib.import_module(module).serve(options.rows, *with_runtime))
        except (ImportError, NotInstalledError) as error:
            missing[name] = str(error)
            _say(f"WITHOUT {name.upper()}: {error}")
    return addresses, missing


def _say(text: str) -> None:
    print(f"{text} ...", file=sys.stderr, flush=True)


def _end(_signal: int, _frame: Any) -> None:
    raise SystemExit(143)


if __name__ == "__main__":
    # A process that is told to end stops what it has started, as Ctrl-C does.
    signal.signal(signal.SIGTERM, _end)
    sys.exit(main())
