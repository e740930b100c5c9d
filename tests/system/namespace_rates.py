"""What does a network between client and members cost, beside the loopback of one machine?

Question: are lookups, writes and loads over the addresses of network namespaces within 1.2 times of those over
loopback?
Data: one process in a namespace runs two clusters of three members, one that listens on its loopback and one on its
address; each has a table of 24 partitions with one backup.
Control: a client in the same namespace, over loopback. Candidate: a client in another namespace, over a bridge.
Metric: the median milliseconds of a lookup and of a write, and the seconds of a load of 200,000 rows; the median over
alternating rounds of the ratio within a round.

Run as root: ``PYTHONPATH=. python tests/system/namespace_rates.py [--rounds N]``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from subprocess import Popen
from typing import Any, Final

import pyarrow as pa
from namespaces import machines, why_not

import secateur
from benchmarks.record import Bar, print_bars

_BOUND: Final = 1.2
_DDL: Final = (
    "CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT, w DOUBLE) PARTITION BY HASH (id) PARTITIONS 24 BACKUPS 1"
)
_KEYS: Final = 2_000
_ROWS: Final = 200_000
_STATEMENTS: Final = 300
_TOKEN: Final = "namespace rates"


def serve(own_address: str) -> None:
    """Run the two clusters until nothing more is said."""
    with (
        secateur.start(members=3, runtime="embedded", host="127.0.0.1", token=_TOKEN) as near,
        secateur.start(members=3, runtime="embedded", host=own_address, token=_TOKEN) as far,
    ):
        _say({"near": near.address, "far": far.address})
        sys.stdin.read()


def ask(address: str) -> None:
    """Measure once for each line that is said."""
    with secateur.connect(address, token=_TOKEN) as connection:
        connection.execute(_DDL)
        connection.table("t").load(_rows(_KEYS))
        _say({"ready": True})
        for _ in sys.stdin:
            lookup = _median_ms(lambda key: connection.execute("SELECT v FROM t WHERE id = ?", [key]).fetchall())
            write = _median_ms(
                lambda key: connection.execute("INSERT OR REPLACE INTO t VALUES (?, ?, 0.5)", [key, key])
            )
            began_s = time.perf_counter()
            connection.table("t").load(_rows(_ROWS), "overwrite")
            _say({"lookup": lookup, "write": write, "load": time.perf_counter() - began_s})


def measure(rounds: int) -> list[Bar]:
    """Make the machines, and measure in alternating rounds."""
    program = [sys.executable, str(Path(__file__))]
    with machines(2) as made:
        serving = made.start(1, *program, "--serve", made.address(1))
        at = _said(serving)
        clients = {"loopback": made.start(1, *program, "--ask", at["near"])}
        clients["network"] = made.start(0, *program, "--ask", at["far"])
        for client in clients.values():
            _said(client)
        taken: list[dict[str, dict[str, Any]]] = []
        for number in range(rounds + 1):
            taken.append({})
            in_turn = list(clients.items())
            for name, client in in_turn if number % 2 else reversed(in_turn):
                assert client.stdin is not None
                client.stdin.write("\n")
                client.stdin.flush()
                taken[-1][name] = _said(client)
    bars = []
    for kind, unit in (("lookup", "ms"), ("write", "ms"), ("load", "s")):
        far, near = ([one[name][kind] for one in taken[1:]] for name in ("network", "loopback"))
        print(f"{kind}: {median(far):.3f} {unit} over the network, {median(near):.3f} {unit} over loopback")
        ratio = median(one / other for one, other in zip(far, near, strict=True))
        bars.append(Bar.at_most(f"{kind} over the network, to loopback", ratio, _BOUND))
    return bars


def _median_ms(work: Callable[[int], object]) -> float:
    taken_ms = []
    for key in itertools.islice(itertools.cycle(range(_KEYS)), _STATEMENTS):
        began_s = time.perf_counter()
        work(key)
        taken_ms.append((time.perf_counter() - began_s) * 1000)
    return median(taken_ms)


def _rows(count: int) -> pa.Table:
    return pa.table({"id": range(count), "v": range(count), "w": [0.5] * count})


def _say(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)


def _said(process: Popen[str]) -> dict[str, Any]:
    """The next document of a process.

    Raises:
        RuntimeError: It has ended.
    """
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        if line.startswith("{"):
            return dict(json.loads(line))
        lines.append(line)
    raise RuntimeError("".join(lines))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--ask", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
    elif options.ask:
        ask(options.ask)
    elif reason := why_not():
        print(f"nothing is measured: {reason}", file=sys.stderr)
        return 2
    else:
        bars = measure(options.rounds)
        print_bars(bars)
        return int(not all(bar.met for bar in bars))
    return 0


if __name__ == "__main__":
    sys.exit(main())
